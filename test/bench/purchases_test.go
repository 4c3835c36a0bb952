package main

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// TestOptimum compares the optimum with costs that are known: of one node, and of two where no type holds all.
func TestOptimum(t *testing.T) {
	types := workload.Everyday(3, 1).Types
	pods := func(cpus ...int) *workload.Fleet {
		f := &workload.Fleet{Types: types}
		for _, c := range cpus {
			f.Pods = append(f.Pods, workload.FleetPod{Room: workload.Room{CPU: c, Memory: 100, Pods: 1}})
		}
		return f
	}
	largest := 0
	for _, m := range types {
		largest = max(largest, m.Room.CPU)
	}
	one := oneNode(pods(), workload.Room{CPU: 100, Memory: 100, Pods: 1})
	most := oneNode(pods(), workload.Room{CPU: largest, Memory: 100, Pods: 1})
	for _, c := range []struct {
		name string
		pods *workload.Fleet
		want float64
	}{
		{"one pod", pods(100), one},
		{"three pods on one node", pods(100, 100, 100), one},
		{"two pods that fit no node together", pods(largest, 100), most + one},
		{"a pod that fits no node", pods(largest + 1), math.Inf(1)},
	} {
		if got := optimum(c.pods); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
}

// TestPurchasesTable prints a row for each kind of features, with the real binary.
func TestPurchasesTable(t *testing.T) {
	var out bytes.Buffer
	if err := measure([]string{"-binary", binary, "-tables", "purchases", "-seeds", "2"}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	var names []string
	for line := range strings.Lines(out.String()) {
		if cells := strings.Split(line, " | "); len(cells) == 8 && cells[1] == "2" {
			names = append(names, strings.TrimPrefix(cells[0], "| "))
		}
	}
	if diff := cmp.Diff([]string{"none", "far limits", "five pools", "wide zone spread"}, names); diff != "" {
		t.Errorf("rows (-want +got):\n%s\n%s", diff, out.String())
	}
}

// TestPurchased checks the cells of a row.
func TestPurchased(t *testing.T) {
	var s purchased
	s.add(3, 1.005, 1, 0)
	s.add(4, 2.2, 2, 1)
	if diff := cmp.Diff([]string{"2", "3.21", "3.00", "1.068", "1", "1.100 (4)", "**1**"}, s.cells()); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}
