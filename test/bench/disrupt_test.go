package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCourse checks the cost of a fleet before the first step and after each tenth of the steps.
func TestCourse(t *testing.T) {
	var a rearranged
	if err := json.Unmarshal([]byte(`{"before": {"costPerHour": 10}, "after": {"costPerHour": 4},
		"steps": [{"savingPerHour": 1}, {"savingPerHour": 2}, {"savingPerHour": 3}, {"savingPerHour": 0}]}`), &a); err != nil {
		t.Fatal(err)
	}
	want := []string{"10.00", "10.00", "9.00", "9.00", "7.00", "7.00", "7.00", "4.00", "4.00", "4.00", "4.00"}
	if diff := cmp.Diff(want, a.course()); diff != "" {
		t.Errorf("course (-want +got):\n%s", diff)
	}
}
