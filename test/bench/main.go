// Command bench measures the cost of `kubectl karpenter simulate` and the quality of its plans, and prints Markdown tables.
//
//	go -C test run ./bench                          all tables (docs/performance.md holds them)
//	go -C test run ./bench -tables price -only '^spread'
//	go -C test run ./bench -tables rest -first-seed 1 -seeds 200
//	go -C test run ./bench -tables week -days 1 -only '^30 nodes'
//	go -C test run ./bench workload NAME FOLDER     only write a workload
//	go -C test run ./bench digest FILE              compare the hashes of all answers with a file (make digests)
//
// It generates its inputs (package workload), runs the binary as a child process and reads the child's resource usage
// from the operating system, so that it does not depend on the binary's own statistics:
//
//	CPU seconds  = (user+system of --repeat 11 - user+system of --repeat 1) / 10: from decoded objects to the plan,
//	               garbage collection included; the median of BENCH_RUNS (5) such pairs. Where a round takes seconds,
//	               fewer are made
//	memory       = peak resident set of --repeat 1, less that of a child that decodes the same files and stops
//
// A problem of the tables rest and week is printed and makes the exit status 1. Whether plans are right is judged elsewhere, by
// internal/testing/audit in the tests of the engine. CPU seconds are compared instead of wall time, because other work on the machine affects them less.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/karpenter-go/karpenter/test/bench/workload"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "workload":
			return writeWorkload(args[1:], out)
		case "digest":
			return digest(args[1:], out)
		case spawnVerb:
			return spawn(args[1:])
		case decodeVerb:
			return decode(args[1:])
		}
	}
	return measure(args, out)
}

func writeWorkload(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("workload", flag.ContinueOnError)
	seed := flags.Int("seed", 1, "variant of the workload")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		return fmt.Errorf("usage: bench workload [-seed N] NAME FOLDER")
	}
	set, err := workload.Named(flags.Arg(0), *seed)
	if err != nil {
		return err
	}
	if err := set.Write(flags.Arg(1)); err != nil {
		return err
	}
	fmt.Fprintln(out, flags.Arg(1))
	return nil
}
