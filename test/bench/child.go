package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// used is the resource usage of a process, according to the operating system.
type used struct {
	CPU  float64 // seconds, user and system
	Peak float64 // largest resident set, MiB
}

// These first arguments make this program a child of itself.
const (
	spawnVerb  = "spawn"  // runs a command and reports its usage on file descriptor 3
	decodeVerb = "decode" // reads a workload and stops
)

// child runs a command on procs processors to its end. The command is a grandchild, because Linux counts the resident
// set of the process that starts a program in the program's peak, and this process grows large.
func child(procs int, name string, args ...string) ([]byte, used, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, used{}, err
	}
	report, notify, err := os.Pipe()
	if err != nil {
		return nil, used{}, err
	}
	defer report.Close()
	command := exec.CommandContext(context.Background(), self, append([]string{spawnVerb, name}, args...)...)
	command.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(procs))
	var out, complaints bytes.Buffer
	command.Stdout, command.Stderr, command.ExtraFiles = &out, &complaints, []*os.File{notify}
	err = command.Run()
	notify.Close() // the data fits the pipe's buffer
	if err != nil {
		return nil, used{}, fmt.Errorf("running %s %q: %w\n%s", name, args, err, complaints.Bytes())
	}
	var u used
	if err := json.NewDecoder(report).Decode(&u); err != nil {
		return nil, used{}, fmt.Errorf("reading what %s used: %w", name, err)
	}
	return out.Bytes(), u, nil
}

// spawn is the child between this program and what it measures.
func spawn(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s takes a command and its arguments", spawnVerb)
	}
	report := os.NewFile(3, "report")
	if report == nil {
		return fmt.Errorf("%s needs a file descriptor 3", spawnVerb)
	}
	command := exec.CommandContext(context.Background(), args[0], args[1:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return err
	}
	u := used{CPU: command.ProcessState.UserTime().Seconds() + command.ProcessState.SystemTime().Seconds()}
	if usage, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.Peak = float64(usage.Maxrss) / 1024 // Linux: KiB
	}
	return json.NewEncoder(report).Encode(u)
}

// simulate decides a workload rounds times from its decoded objects.
func (b *bench) simulate(folder string, rounds, procs int) ([]byte, used, error) {
	return child(procs, b.binary, "simulate", "-f", folder, "-o", "json", "--repeat", strconv.Itoa(rounds))
}

// answer decides a workload once and reads the answer.
func (b *bench) answer(folder string) (*answer, used, error) {
	out, u, err := b.simulate(folder, 1, 2)
	if err != nil {
		return nil, used{}, err
	}
	a, err := readAnswer(bytes.NewReader(out))
	return a, u, err
}

// decoding returns the usage of a process that only reads the workload.
func (b *bench) decoding(folder string) (used, error) {
	self, err := os.Executable()
	if err != nil {
		return used{}, err
	}
	_, u, err := child(2, self, decodeVerb, folder)
	return u, err
}

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
