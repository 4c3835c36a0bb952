package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
)

// TestServe: the message says where it serves, once the kubeconfig works.
func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write := io.Pipe()
	ended := make(chan error, 1)
	o := options{address: "127.0.0.1:0", kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), minor: 36}
	go func() {
		err := serve(ctx, o, write)
		_ = write.CloseWithError(io.EOF)
		ended <- err
	}()
	var url, file string
	if _, err := fmt.Fscanf(read, "serving at %s kubeconfig %s\n", &url, &file); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if url != config.Host+"," || file != o.kubeconfig {
		t.Errorf("the message says %q and %q, want %q and %q", url, file, config.Host, o.kubeconfig)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if version, err := client.ServerVersion(); err != nil || version.Minor != "36" {
		t.Errorf("the version is %v: %v", version, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestNoSample: without the file of the sample, the error says how to take one and how to do without.
func TestNoSample(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sample.json")
	err := serve(t.Context(), options{sample: file, nodes: 20}, io.Discard)
	for _, want := range []string{file, "make scale", `-sample ""`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s in it", err, want)
		}
	}
}
