package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/plugin/cli"
)

// TestAWSSim checks that the verb prints its address, serves requests there, and ends on request.
func TestAWSSim(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	root := newRoot()
	root.SetOut(writer)
	root.SetArgs([]string{"aws-sim", "--listen", "127.0.0.1:0", "--region", "eu-west-1"})
	code := make(chan int)
	go func() { code <- cli.Run(ctx, root) }()
	line := make([]byte, 200)
	n, err := reader.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	url, found := strings.CutPrefix(strings.TrimSpace(string(line[:n])), "AWS_ENDPOINT_URL=")
	if !found {
		t.Fatalf("it prints %q", line[:n])
	}
	answer, err := http.Get(url + "/_admin/subnets")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var subnets []struct{ Zone string }
	if err := json.NewDecoder(answer.Body).Decode(&subnets); err != nil {
		t.Errorf("the subnets are not JSON: %v", err)
	}
	if len(subnets) == 0 || !strings.HasPrefix(subnets[0].Zone, "eu-west-1") {
		t.Errorf("the subnets are %v, want the first in a zone of eu-west-1", subnets)
	}
	cancel()
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
}

func TestAWSSimUsage(t *testing.T) {
	for _, arguments := range [][]string{{"--scarcity", "2"}, {"--lag", "-1s"}, {"--region", "mars-1"}, {"now"}} {
		root := newRoot()
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		root.SetArgs(append([]string{"aws-sim"}, arguments...))
		if got := cli.Run(t.Context(), root); got != 2 {
			t.Errorf("%v: exit code %d, want 2", arguments, got)
		}
	}
}
