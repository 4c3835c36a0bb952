// Command fakeapi serves the API of a cluster of any size from the sample that make scale keeps (package
// internal/testing/fakeapi). It writes a kubeconfig and runs until it is interrupted.
//
//	go -C test run ./fakeapi -nodes 5000 -kubeconfig FILE
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/karpenter-go/karpenter/internal/testing/fakeapi"
)

func main() {
	var o options
	flags := flag.NewFlagSet("fakeapi", flag.ExitOnError) // libraries add flags to the common set
	flags.StringVar(&o.sample, "sample", filepath.Join("..", "bin", "scale", "sample.json"), "file of the sample, \"\" for an empty cluster")
	flags.IntVar(&o.nodes, "nodes", 1000, "number of nodes, a multiple of those of the sample")
	flags.IntVar(&o.minor, "minor", 36, "minor version of Kubernetes; 33 refuses WatchList")
	flags.StringVar(&o.address, "address", "127.0.0.1:0", "address to listen on")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file for the kubeconfig (default: standard output)")
	_ = flags.Parse(os.Args[1:]) // which exits on errors
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, o, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "fakeapi: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	sample, address, kubeconfig string
	nodes, minor                int
}

// serve runs until the end of the context. It writes to messages where it serves.
func serve(ctx context.Context, o options, messages io.Writer) error {
	of, err := o.read()
	if err != nil {
		return err
	}
	server, err := fakeapi.New(of)
	if err != nil {
		return err
	}
	server.SetFaults(fakeapi.Faults{NoWatchList: o.minor == 33})
	running, err := fakeapi.Start(server, o.address)
	if err != nil {
		return err
	}
	defer running.Close()
	text, err := running.Kubeconfig("controller")
	if err != nil {
		return err
	}
	place := o.kubeconfig
	if place == "" {
		place = "on standard output"
		fmt.Print(string(text))
	} else if err := os.WriteFile(o.kubeconfig, text, 0o600); err != nil {
		return err
	}
	fmt.Fprintf(messages, "serving at %s, kubeconfig %s\n", running.URL(), place)
	<-ctx.Done()
	return nil
}

// read returns what to serve.
func (o options) read() (of fakeapi.Options, err error) {
	of.Minor = o.minor
	if o.sample == "" {
		return of, nil
	}
	text, err := os.ReadFile(o.sample)
	if errors.Is(err, fs.ErrNotExist) {
		return of, fmt.Errorf("there is no sample (%w): take one by make scale, or serve an empty cluster by -sample \"\"", err)
	}
	of.Sample = &fakeapi.Sample{}
	if err == nil {
		err = json.Unmarshal(text, of.Sample)
	}
	if err != nil {
		return of, fmt.Errorf("reading the sample: %w", err)
	}
	if of.Blocks = o.nodes / len(of.Sample.Nodes); o.nodes%len(of.Sample.Nodes) != 0 {
		return of, fmt.Errorf("-nodes is %d, want a multiple of %d", o.nodes, len(of.Sample.Nodes))
	}
	return of, nil
}
