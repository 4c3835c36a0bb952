// Command pack turns a catalogue of instance types from JSON (standard input) into the compressed form that package
// catalog embeds (standard output), after checking it. The comment of package catalog says what the JSON looks like:
//
//	go run ./pack < new.json > catalog.json.gz
//
// It must not know where the JSON is from.
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
