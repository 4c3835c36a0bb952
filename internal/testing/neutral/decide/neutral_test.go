package decide

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/testing/golden"
	"github.com/karpenter-go/karpenter/internal/testing/neutral"
)

// fixed are the changes that TestNeutral tries; `make bench BENCH_ARGS='-tables neutral'` tries all, on more inputs.
var fixed = []string{
	"far limit of cpu", "far limit of nodes", "limit of a resource that does not exist", "far quota of cpu",
	"3 idle pools", "46 idle pools", "twin pools", "pool split by architecture", "pool split by zone",
	"minValues 1 of zone", "minValues 1 of capacity type",
	"zone spread, maxSkew 1000", "soft zone spread, maxSkew 1000", "zone spread of no pod", "preferred zone anti-affinity to no pod",
	"hostname anti-affinity to no pod", "hostname spread, maxSkew 1000", "host port on one pod",
	"reservation that no pool allows", "reservation with nothing left", "price rule for no type", "commitment for no type",
	"commitment with nothing left", "commitment in USD with nothing left", "zone that is shifted away from and that no pool uses",
	"each pod its toleration of nothing", "requests 10% smaller",
}

// inputs of TestNeutral
const purchases, fleets = 14, 6

func fixedInputs() []*neutral.Input {
	var all []*neutral.Input
	for seed := 1; seed <= purchases; seed++ {
		all = append(all, neutral.Purchase(seed))
	}
	for seed := 1; seed <= fleets; seed++ {
		all = append(all, neutral.Fleet(seed))
	}
	return all
}

func changes(t *testing.T) []neutral.Change {
	var list []neutral.Change
	for _, c := range neutral.Changes() {
		if slices.Contains(fixed, c.Name) {
			list = append(list, c)
		}
	}
	if len(list) != len(fixed) {
		t.Fatalf("%d of the %d changes exist", len(list), len(fixed))
	}
	return list
}

// TestNeutral checks that no change makes a plan dearer, except those in testdata/exceptions.txt, and that these still
// do, by as much as the file says.
func TestNeutral(t *testing.T) {
	const file = "testdata/exceptions.txt"
	inputs, changes := fixedInputs(), changes(t)
	results := make([][]string, len(inputs))
	var running sync.WaitGroup
	limit := make(chan struct{}, 2)
	for i, in := range inputs {
		running.Go(func() {
			limit <- struct{}{}
			results[i] = dearer(t, in, changes)
			<-limit
		})
	}
	running.Wait()
	found := append([]string{}, slices.Concat(results...)...) // not nil, as the lines of a file without any
	slices.Sort(found)
	if *golden.Update {
		text := "# Neutral changes that make a plan dearer, and by how much. Each line is a fault.\n" + strings.Join(append(found, ""), "\n")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	known, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.DeleteFunc(strings.Split(string(known), "\n"), func(line string) bool { return line == "" || line[0] == '#' })
	if diff := cmp.Diff(lines, found); diff != "" {
		t.Errorf("changes that make plans dearer (-%s +found); a line that is not found is to be removed:\n%s", file, diff)
	}
}

// dearer returns a line for each change that makes the plan for an input dearer.
func dearer(t *testing.T, in *neutral.Input, changes []neutral.Change) []string {
	folder := t.TempDir()
	without, err := Input(in, filepath.Join(folder, "without"), 1)
	if err != nil {
		t.Error(err)
		return nil
	}
	if without.Unschedulable > 0 || without.Cost == 0 {
		t.Errorf("%s: costs %g, %d pods have no place", in.Name, without.Cost, without.Unschedulable)
	}
	var lines []string
	for i, c := range changes {
		changed := c.Apply(in, without.Outcome)
		if changed == nil {
			continue
		}
		with, err := Input(changed, filepath.Join(folder, fmt.Sprint(i)), 1)
		switch {
		case err != nil:
			t.Error(err)
		case with.Dearer(without.Outcome):
			more := fmt.Sprintf("%+.1f%%", 100*(with.Ratio(without.Outcome)-1))
			if n := with.Unschedulable - without.Unschedulable; n > 0 {
				more = fmt.Sprintf("%d pods without a place", n)
			}
			lines = append(lines, changed.Name+": "+more)
		}
	}
	return lines
}
