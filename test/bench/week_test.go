package main

import (
	"bytes"
	"cmp"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/testing/world"
)

// TestWeek prints the same row for a day twice.
func TestWeek(t *testing.T) {
	var printed []string
	for range 2 {
		var out bytes.Buffer
		if err := measure([]string{"-tables", "week", "-days", "1", "-only", "^5 nodes$", "-first-seed", "2"}, &out); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		row := regexp.MustCompile(`(?m)^\| 5 \|.*$`).FindString(out.String())
		if head := strings.Split(out.String(), "\n")[4]; row == "" || strings.Count(row, "|") != strings.Count(head, "|") {
			t.Fatalf("want a row under its head:\n%s", out.String())
		}
		printed = append(printed, row)
	}
	if printed[0] != printed[1] {
		t.Errorf("two runs differ:\n%s\n%s", printed[0], printed[1])
	}
}

// TestWeekFinds checks that a lost pod, one that cannot be placed, and one that waits for too long are errors.
func TestWeekFinds(t *testing.T) {
	w := weekOf(t, world.Config{})
	w.work(0)
	w.Scale(w.apps[0].template(0), w.apps[0].replicas-1)
	if err := w.complete(); err == nil || !strings.Contains(err.Error(), " pods, wants ") {
		t.Errorf("without one of its pods, a Deployment is complete: %v", err)
	}

	if err := weekOf(t, world.Config{Types: []cloud.InstanceType{}}).play(1); err == nil || !strings.Contains(err.Error(), "no room for pod") {
		t.Errorf("without instance types, the week ends with %v", err)
	}

	slow := weekOf(t, world.Config{MachineTime: 2 * longestPending})
	if err := slow.play(1); err == nil || !strings.Contains(err.Error(), "a pod is pending for") {
		t.Errorf("with slow machines, the week ends with %v", err)
	}
}

// weekOf returns a week of five nodes, changed by what is set.
func weekOf(t *testing.T, set world.Config) *week {
	t.Helper()
	config, err := (&bench{folder: t.TempDir()}).mixed()
	if err != nil {
		t.Fatal(err)
	}
	config.MachineTime = cmp.Or(set.MachineTime, config.MachineTime)
	if set.Types != nil {
		config.Types = set.Types
	}
	w, err := newWeek(config, 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// TestTarget checks the replicas of an office over two days.
func TestTarget(t *testing.T) {
	a := &app{day: 40, office: true}
	for _, c := range []struct {
		minute  int
		workday bool
		want    int
	}{
		{0, true, 10},
		{morning - 1, true, 10},
		{morning, true, 13},
		{morning + steps*stepTime, true, 40},
		{evening - 1, true, 40},
		{evening, true, 36},
		{evening + steps*stepTime, true, 10},
		{12 * 60, false, 10},
	} {
		if got := a.target(c.minute, c.workday); got != c.want {
			t.Errorf("%d replicas at minute %d, workday %v, want %d", got, c.minute, c.workday, c.want)
		}
	}
}

// TestRoll checks that a rolling update keeps three quarters of the pods and ends with all of the new revision.
func TestRoll(t *testing.T) {
	w := weekOf(t, world.Config{})
	a := w.apps[0]
	a.replicas = 8
	w.scale(a)
	for minute := range 20 {
		if minute == 3 {
			a.revision, a.old = 1, a.replicas
		}
		if a.old > 0 {
			w.roll(a)
		}
		young, _ := w.Count(a.controller(1))
		old, _ := w.Count(a.controller(0))
		if young+old < 6 || young+old > 10 {
			t.Errorf("minute %d: %d old and %d new pods", minute, old, young)
		}
		w.Advance(time.Minute)
	}
	young, _ := w.Count(a.controller(1))
	old, _ := w.Count(a.controller(0))
	if young != 8 || old != 0 {
		t.Errorf("%d old and %d new pods in the end, want 0 and 8", old, young)
	}
}
