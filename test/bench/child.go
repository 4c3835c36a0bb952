package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/karpenter-go/karpenter/test/bench/check"
	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// used is what a child process took, as the operating system says.
type used struct {
	cpu  float64 // seconds, user and system
	peak float64 // largest resident set, MiB
}

// child runs a command on so many processors to its end.
func child(procs int, name string, args ...string) ([]byte, used, error) {
	command := exec.CommandContext(context.Background(), name, args...)
	command.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(procs))
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaints
	if err := command.Run(); err != nil {
		return nil, used{}, fmt.Errorf("running %s %q: %w\n%s", name, args, err, complaints.Bytes())
	}
	state := command.ProcessState
	u := used{cpu: state.UserTime().Seconds() + state.SystemTime().Seconds()}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		u.peak = float64(usage.Maxrss) / 1024 // Linux: KiB
	}
	return out.Bytes(), u, nil
}

// simulate decides a workload so many times from its decoded objects.
func (b *bench) simulate(folder string, rounds, procs int) ([]byte, used, error) {
	return child(procs, b.binary, "simulate", "-f", folder, "-o", "json", "--repeat", strconv.Itoa(rounds))
}

// answer decides a workload once and reads what was said.
func (b *bench) answer(folder string) (*check.Answer, used, error) {
	out, u, err := b.simulate(folder, 1, 2)
	if err != nil {
		return nil, used{}, err
	}
	a, err := check.Read(bytes.NewReader(out))
	return a, u, err
}

// decodeVerb is the argument that makes this program a child that reads a workload and stops.
const decodeVerb = "decode"

func decode(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: bench %s FOLDER", decodeVerb)
	}
	w, err := workload.Read(args[0])
	if err != nil {
		return err
	}
	fmt.Println(len(w.Pods))
	return nil
}
