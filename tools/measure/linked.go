package main

import (
	"fmt"
	"os/exec"
	"strings"
)

const module = "github.com/karpenter-go/karpenter"

// operators are the roots of packages that the controller does not need: they are for the machine of an operator or a
// developer.
var operators = []string{
	"plugin/admission", "internal/legacy/migrate", "internal/sandbox", "internal/testing",
	"plugin/doctor", "plugin/offline", "plugin/top", "plugin/web", "internal/migrate", "internal/offline", "internal/top",
	"internal/cloud/aws/awssim", "internal/admission", "github.com/charmbracelet", "golang.org/x/term",
}

// dependencies returns what the go command says about cmd/karpenter in root.
func dependencies(root string) ([]measure, error) {
	cmd := exec.Command("go", "list", "-deps", "./cmd/karpenter")
	cmd.Dir = root
	out, err := output(cmd)
	if err != nil {
		return nil, err
	}
	var foreign []string
	all := strings.Fields(string(out))
	for _, pkg := range all {
		short := strings.TrimPrefix(pkg, module+"/")
		for _, prefix := range operators {
			if short == prefix || strings.HasPrefix(short, prefix+"/") {
				foreign = append(foreign, short)
			}
		}
	}
	return []measure{
		{Name: "packages linked into the controller", Value: fmt.Sprint(len(all))},
		{Name: "of these for operators and tests only", Value: fmt.Sprint(len(foreign)), Detail: strings.Join(foreign, " ")},
	}, nil
}
