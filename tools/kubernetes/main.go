// Command kubernetes writes the module files from which the sandbox is built for other minor versions of Kubernetes
// than that of sandbox/kubernetes/go.mod:
//
//	go -C tools run ./kubernetes 1.33.13 1.37.1
//
// writes sandbox/kubernetes/1.33.mod and 1.37.mod, with their .sum files. Each requires the direct requirements of
// go.mod there, with the staging modules of the given version: k8s.io/kubernetes 1.X.Y belongs to k8s.io/api 0.X.Y
// and so on, and its own go.mod lists these modules (the replace lines to ./staging).
//
// The command depends on the layout of the Kubernetes repository, and within this repository only on that go.mod.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	module := flag.String("module", "../sandbox/kubernetes", "folder of the module of the components")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "kubernetes: want versions such as 1.33.13")
		os.Exit(2)
	}
	for _, version := range flag.Args() {
		if err := write(*module, version); err != nil {
			fmt.Fprintf(os.Stderr, "kubernetes: version %s: %v\n", version, err)
			os.Exit(1)
		}
	}
}

var (
	versions = regexp.MustCompile(`^1\.\d+\.\d+$`)
	staging  = regexp.MustCompile(`(?m)^\s*(?:replace )?(k8s\.io/[a-z0-9-]+) => \./staging/`)
	direct   = regexp.MustCompile(`(?m)^\t(\S+) (v\S+)$`) // lines of require blocks without "// indirect"
	required = regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`)
)

// unstable lists modules that have removed or changed an API that Kubernetes uses. Kubernetes gets the version that
// it requires, even where etcd or kwok require a later one.
var unstable = []string{
	"github.com/google/gnostic-models", "go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc", "k8s.io/kube-openapi",
}

// write writes the module file of a version, and completes it and its checksums by `go mod tidy`.
func write(module, version string) error {
	if !versions.MatchString(version) {
		return errors.New("want a version such as 1.33.13")
	}
	shared, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		return err
	}
	own, err := kubernetesModule(module, version)
	if err != nil {
		return err
	}
	text, err := moduleFile(string(shared), string(own), version)
	if err != nil {
		return err
	}
	minor := version[:strings.LastIndexByte(version, '.')]
	path, err := filepath.Abs(filepath.Join(module, minor+".mod"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	tidy := exec.Command("go", "mod", "tidy", "-modfile", path)
	tidy.Dir = module
	if output, err := tidy.CombinedOutput(); err != nil {
		return fmt.Errorf("go mod tidy: %w: %s", err, output)
	}
	return nil
}

// kubernetesModule returns the go.mod of k8s.io/kubernetes at a version.
func kubernetesModule(module, version string) ([]byte, error) {
	download := exec.Command("go", "mod", "download", "-json", "k8s.io/kubernetes@v"+version)
	download.Dir = module
	output, err := download.Output()
	var answer struct{ GoMod, Error string }
	if parse := json.Unmarshal(output, &answer); parse != nil {
		return nil, errors.Join(err, parse)
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return os.ReadFile(answer.GoMod)
}

// moduleFile returns the module file: the direct requirements of shared, and a replace line per staging module that
// own names.
func moduleFile(shared, own, version string) (string, error) {
	stagingVersion := "v0." + strings.TrimPrefix(version, "1.")
	var text strings.Builder
	text.WriteString("// Written by `go -C tools run ./kubernetes`, from go.mod.\nmodule github.com/karpenter-go/karpenter/sandbox/kubernetes\n\ngo 1.26.0\n\nrequire (\n")
	replaced := map[string]bool{}
	var replaces strings.Builder
	for _, match := range staging.FindAllStringSubmatch(own, -1) {
		replaced[match[1]] = true
		fmt.Fprintf(&replaces, "\t%s => %s %s\n", match[1], match[1], stagingVersion)
	}
	if len(replaced) == 0 {
		return "", errors.New("the go.mod of k8s.io/kubernetes names no staging modules")
	}
	for _, match := range required.FindAllStringSubmatch(own, -1) {
		if slices.Contains(unstable, match[1]) {
			fmt.Fprintf(&replaces, "\t%s => %s %s\n", match[1], match[1], match[2])
		}
	}
	for _, match := range direct.FindAllStringSubmatch(shared, -1) {
		module, wanted := match[1], match[2]
		switch {
		case module == "k8s.io/kubernetes":
			wanted = "v" + version
		case replaced[module]:
			wanted = stagingVersion
		}
		fmt.Fprintf(&text, "\t%s %s\n", module, wanted)
	}
	text.WriteString(")\n\nreplace (\n" + replaces.String() + ")\n")
	return text.String(), nil
}
