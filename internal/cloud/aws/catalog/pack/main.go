// Command pack converts a catalog of instance types from JSON (standard input) to the compressed form that package
// catalog embeds (standard output), and validates it. The comment of package catalog describes the JSON:
//
//	go run ./pack < new.json > catalog.json.gz
//
// It must not depend on the source of the JSON.
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

func main() {
	var packed bytes.Buffer
	err := catalog.Pack(os.Stdin, &packed)
	if err == nil {
		_, err = os.Stdout.Write(packed.Bytes())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}
