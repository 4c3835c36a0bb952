package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/testing/neutral"
	"github.com/karpenter-go/karpenter/internal/testing/neutral/decide"
)

// TestNeutralTable prints a row for a change, without a problem.
func TestNeutralTable(t *testing.T) {
	var out bytes.Buffer
	if err := measure([]string{"-tables", "neutral", "-only", "^order of objects$", "-seeds", "2"}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "| order of objects | 0 | 0 of 2 | +0.0% |") {
		t.Errorf("no row of the change:\n%s", out.String())
	}
}

// TestEffect checks the cells of a change: costs are compared where as many pods have a place.
func TestEffect(t *testing.T) {
	var e effect
	decided := func(cost float64, unschedulable int) decide.Decision {
		return decide.Decision{Outcome: neutral.Outcome{Cost: cost, Unschedulable: unschedulable}, CPU: cost}
	}
	if diff := cmp.Diff([]string{"-", "-", "-", "-", "-"}, e.cells()); diff != "" {
		t.Errorf("cells of no input (-want +got):\n%s", diff)
	}
	e.add(1, decided(1, 0), decided(1, 0))
	e.add(2, decided(1, 0), decided(1.2, 0))
	e.add(3, decided(2, 0), decided(0.8, 2))
	if diff := cmp.Diff([]string{"2", "**2 of 3**", "+10.0%", "+20.0% (2), 2 pods stay", "0.8"}, e.cells()); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	e.refused = 1
	if diff := cmp.Diff([]string{"-", "**3 of 4**", "refused", "-", "-"}, e.cells()); diff != "" {
		t.Errorf("cells with an input that is refused (-want +got):\n%s", diff)
	}
}
