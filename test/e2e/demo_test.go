package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestDemo checks the output of the demo, and that no process remains.
func TestDemo(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "--replicas=20")
	if err := d.command.Wait(); err != nil {
		t.Errorf("the demo ended with %v, want exit code 0\n%s\n%s", err, d.out.String(), d.complaint.String())
	}
	for _, want := range []string{"pods running             20", "Cost", "USD/hour", "nodes removed", "All processes are stopped."} {
		if !strings.Contains(d.out.String(), want) {
			t.Errorf("the demo did not print %q:\n%s", want, d.out.String())
		}
	}
	await(t, patience, "no process to be left", d.nothingLeft)
	d.showsPage(t)
}

// showsPage runs the command that the demo printed for the page, as a report: that ends by itself.
func (d *runningDemo) showsPage(t *testing.T) {
	t.Helper()
	at, _, found := strings.Cut(d.out.String(), " web -f ")
	if !found {
		t.Fatalf("the demo printed no command for the page:\n%s", d.out.String())
	}
	tool := strings.TrimSpace(at[strings.LastIndex(at, "\n")+1:])
	file := filepath.Join(d.directory, "fleet.json")
	report, err := exec.CommandContext(t.Context(), tool, "report", "--from", file, "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var fleet struct{ Cost struct{ Pods int } }
	if err := json.Unmarshal(report, &fleet); err != nil || fleet.Cost.Pods != 20 {
		t.Errorf("the captured fleet has %d pods (%v), want 20:\n%.600s", fleet.Cost.Pods, err, report)
	}
}

// TestConsolidationStory runs the consolidation story, which checks itself: the fleet becomes cheaper within its
// budgets, and no pod waits for a node.
func TestConsolidationStory(t *testing.T) {
	if effort(0, 1, 1) == 0 {
		t.Skip("takes some minutes; make e2e runs it")
	}
	t.Parallel()
	d := startDemo(t, "--story=consolidation")
	if err := d.command.Wait(); err != nil {
		t.Errorf("the demo ended with %v, want exit code 0\n%s\n%s", err, d.out.String(), d.complaint.String())
	}
	for _, want := range []string{"60 nodes so far", "The plan", "Underutilized", "Cost after", "none waited for a node",
		"All processes are stopped."} {
		if !strings.Contains(d.out.String(), want) {
			t.Errorf("the demo did not print %q:\n%s", want, d.out.String())
		}
	}
	await(t, patience, "no process to be left", d.nothingLeft)
}

// TestAWSDemo runs the demo on AWS, in which half of the machines are interrupted and a new image is released. It
// checks budget and time itself.
func TestAWSDemo(t *testing.T) {
	if effort(0, 1, 1) == 0 {
		t.Skip("takes some minutes; make e2e runs it")
	}
	t.Parallel()
	d := startDemo(t, "--cloud-provider=aws", "--replicas=40")
	if err := d.command.Wait(); err != nil {
		t.Errorf("the demo ended with %v, want exit code 0\n%s\n%s", err, d.out.String(), d.complaint.String())
	}
	for _, want := range []string{"pods running             40", "Cost", "All pods ran on other nodes", "were replaced in",
		"Cost with the new image", "nodes removed", "All processes are stopped."} {
		if !strings.Contains(d.out.String(), want) {
			t.Errorf("the demo did not print %q:\n%s", want, d.out.String())
		}
	}
	await(t, patience, "no process to be left", d.nothingLeft)
}

// TestCapacityDemo runs the story of a capacity reservation, a placement group and a zonal shift, which checks itself.
func TestCapacityDemo(t *testing.T) {
	if effort(0, 1, 1) == 0 {
		t.Skip("takes some minutes; make e2e runs it")
	}
	t.Parallel()
	d := startDemo(t, "--cloud-provider=aws", "--story=capacity")
	if err := d.command.Wait(); err != nil {
		t.Errorf("the demo ended with %v, want exit code 0\n%s\n%s", err, d.out.String(), d.complaint.String())
	}
	for _, want := range []string{"The reservation is used up", "Each partition has one machine", "Warning ZonalShiftActive",
		"The new machines are in other zones", "Normal ZonalShiftCleared", "All processes are stopped."} {
		if !strings.Contains(d.out.String(), want) {
			t.Errorf("the demo did not print %q:\n%s", want, d.out.String())
		}
	}
	await(t, patience, "no process to be left", d.nothingLeft)
}

// TestInterruptedDemo checks that an interrupted demo stops its processes, reports the interruption, and fails.
func TestInterruptedDemo(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "--replicas=20")
	await(t, patience, "the demo to scale up", func(context.Context) error {
		if !strings.Contains(d.out.String(), "Scale up") {
			return fmt.Errorf("it printed %q", d.out.String())
		}
		return nil
	})
	if err := d.nothingLeft(t.Context()); err == nil {
		t.Error("the demo runs, and none of its processes was found")
	}
	if err := d.command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := d.command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the interrupted demo ended with %v, want exit code 1", err)
	}
	if !strings.Contains(d.complaint.String(), "interrupted") {
		t.Errorf("the interrupted demo printed %q", d.complaint.String())
	}
	await(t, patience, "no process to be left", d.nothingLeft)
}

// runningDemo is `karpenter-sandbox demo` in a directory of its own.
type runningDemo struct {
	command        *exec.Cmd
	out, complaint output
	directory      string
}

func startDemo(t *testing.T, flags ...string) *runningDemo {
	t.Helper()
	directory, err := os.MkdirTemp(artifacts, "demo-")
	if err != nil {
		t.Fatal(err)
	}
	d := &runningDemo{directory: directory}
	t.Cleanup(func() {
		if d.command.Process != nil && d.command.ProcessState == nil { // the test timed out, and its context has ended
			_ = d.command.Wait()
		}
		giveBack(t, directory)
	})
	d.command = exec.CommandContext(t.Context(), sandboxed, append([]string{"demo", "--data-dir", directory}, flags...)...)
	d.command.Stdout, d.command.Stderr = &d.out, &d.complaint
	if err := d.command.Start(); err != nil {
		t.Fatal(err)
	}
	return d
}

// nothingLeft fails while a process has the demo's directory on its command line.
func (d *runningDemo) nothingLeft(context.Context) error {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, path := range lines {
		if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(d.directory)) {
			return fmt.Errorf("%s is left: %s", filepath.Dir(path), bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
		}
	}
	return nil
}

// output can be read while a process writes it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
