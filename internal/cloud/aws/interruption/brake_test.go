package interruption

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func machineIDs(n int) []string {
	var ids []string
	for k := range n {
		ids = append(ids, fmt.Sprintf("i-%04d", k))
	}
	return ids
}

// A few machines in trouble are replaced at once, many a step at a time.
func TestBrake(t *testing.T) {
	for _, c := range []struct {
		name               string
		machines, troubled int
		atOnce, afterHour  int
	}{
		{"one of one", 1, 1, 1, 1},
		{"three of three", 3, 3, 3, 3},
		{"all four of a small cluster", 4, 4, 1, 4},
		{"a fifth", 100, 20, 20, 20},
		{"more than a fifth", 100, 21, 10, 21},
		{"all of a hundred", 100, 100, 10, 60},
		{"all of a thousand", 1000, 1000, 100, 600},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, now, troubled := NewBrake(), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), machineIDs(c.troubled)
			for minute := range 60 {
				passed, held := b.Pass(troubled, c.machines, now.Add(time.Duration(minute)*time.Minute))
				if held.Troubled != len(troubled) || held.Held != len(troubled)-len(passed) {
					t.Errorf("of %d in trouble %d are replaced, and it says %+v", len(troubled), len(passed), held)
				}
				troubled = slices.DeleteFunc(troubled, func(id string) bool { return passed[id] })
				if minute == 0 && c.troubled-len(troubled) != c.atOnce {
					t.Errorf("%d are replaced at once, want %d", c.troubled-len(troubled), c.atOnce)
				}
			}
			if c.troubled-len(troubled) != c.afterHour {
				t.Errorf("%d are replaced within an hour, want %d", c.troubled-len(troubled), c.afterHour)
			}
		})
	}
}

// Trouble that comes a few machines at a time is braked like trouble that comes all at once.
func TestBrakeOfATrickle(t *testing.T) {
	b, now, ids := NewBrake(), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), machineIDs(100)
	replaced := map[string]bool{}
	for minute := range 10 {
		passed, _ := b.Pass(ids[minute*10:minute*10+10], 100, now.Add(time.Duration(minute)*time.Minute))
		for id := range passed {
			replaced[id] = true
		}
	}
	if len(replaced) != Free(100) {
		t.Errorf("%d are replaced within ten minutes, want %d", len(replaced), Free(100))
	}
}
