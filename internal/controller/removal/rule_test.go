package removal

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// some returns n cases like c, each with another machine.
func some(n int, c Case) []Case {
	cases := make([]Case, n)
	for i := range cases {
		cases[i] = c
		cases[i].Machine = fmt.Sprintf("%s-%s-%d", c.Pool, c.Cause, i)
	}
	return cases
}

func TestRule(t *testing.T) {
	ill := Case{Pool: "a", Cause: CauseUnhealthy, Cloud: Alive}
	stray := Case{Cause: CauseStray, Cloud: Alive}
	missing := Case{Pool: "a", Cause: CauseMachineGone, Cloud: Gone, Node: Alive}
	dead := Case{Pool: "a", Cause: CauseMachineGone, Cloud: Gone, Node: Gone}
	failing := Case{Pool: "a", Cause: "instance_status", Cloud: Failing, Node: Alive}
	useless := Case{Pool: "a", Cause: "instance_status", Cloud: Failing, Node: Gone}
	fleet := func(a, b int) map[string]int { return map[string]int{"a": a, "b": b} }
	for _, test := range []struct {
		name  string
		facts Facts
		asked Case
		want  Verdict
	}{
		{"one ill node of ten", Facts{Machines: fleet(10, 0), Cases: some(1, ill)}, ill, Remove},
		{"three of ten: the least limit", Facts{Machines: fleet(10, 0), Cases: some(3, ill)}, ill, Remove},
		{"four of ten", Facts{Machines: fleet(10, 0), Cases: some(4, ill)}, ill, Hold},
		{"four of nineteen are more than a fifth", Facts{Machines: fleet(19, 0), Cases: some(4, ill)}, ill, Hold},
		{"four of twenty are a fifth", Facts{Machines: fleet(20, 0), Cases: some(4, ill)}, ill, Remove},
		{"twenty of a hundred", Facts{Machines: fleet(100, 0), Cases: some(20, ill)}, ill, Remove},
		{"twenty-one of a hundred", Facts{Machines: fleet(100, 0), Cases: some(21, ill)}, ill, Hold},
		{"removals of the window count", Facts{Machines: fleet(100, 0), Cases: some(1, ill), Removed: map[string]int{"a": 20}}, ill, Hold},
		{"another pool's do not count in this one", Facts{Machines: fleet(20, 200), Cases: append(some(5, ill), some(1, Case{Pool: "b", Cloud: Alive})...)}, Case{Pool: "b", Cloud: Alive}, Remove},
		{"those of all pools count in the fleet", Facts{Machines: fleet(20, 20), Cases: append(some(4, ill), some(4, Case{Pool: "b", Cloud: Alive})...), Removed: map[string]int{"": 1}}, ill, Hold},
		{"both witnesses call it gone", Facts{Machines: fleet(10, 0), Cases: some(10, ill)}, dead, Remove},
		{"a hundred that are really gone do not hold an ill one", Facts{Machines: fleet(100, 0), Cases: append(some(100, dead), some(1, ill)...)}, ill, Remove},
		{"the cloud alone", Facts{Machines: fleet(10, 0), Cases: some(1, missing)}, missing, Keep},
		{"the cloud alone, and the operator allows removals", Facts{Machines: fleet(10, 0), Cases: some(1, missing), Allowed: map[string]bool{"a": true}}, missing, Keep},
		{"machines in dispute hold repair", Facts{Machines: fleet(100, 0), Cases: some(21, missing)}, ill, Hold},
		{"machines in dispute hold strays", Facts{Machines: fleet(100, 0), Cases: some(21, missing)}, stray, Hold},
		{"few in dispute hold nothing", Facts{Machines: fleet(100, 0), Cases: some(19, missing)}, stray, Remove},
		{"strays of a small fleet", Facts{Machines: fleet(4, 0), Cases: some(4, stray)}, stray, Hold},
		{"strays without any fleet", Facts{Cases: some(3, stray)}, stray, Remove},
		{"many strays without any NodePool go at a pace", Facts{Cases: some(40, stray), Removed: map[string]int{"": 2}}, stray, Remove},
		{"which is three in a window", Facts{Cases: some(40, stray), Removed: map[string]int{"": 3}}, stray, Hold},
		{"not beside machines in dispute", Facts{Machines: map[string]int{"": 4}, Cases: append(some(40, stray), some(4, Case{Cause: CauseMachineGone, Cloud: Gone, Node: Alive})...)}, stray, Hold},
		{"a few fail checks", Facts{Machines: fleet(100, 0), Cases: some(20, failing)}, failing, Remove},
		{"many fail checks: a tenth", Facts{Machines: fleet(100, 0), Cases: some(91, failing), Removed: map[string]int{"a": 9}}, failing, Remove},
		{"many fail checks: more than a tenth", Facts{Machines: fleet(100, 0), Cases: some(90, failing), Removed: map[string]int{"a": 10}}, failing, Hold},
		{"many fail checks, others in dispute", Facts{Machines: fleet(100, 0), Cases: append(some(90, failing), some(21, missing)...)}, failing, Hold},
		{"many fail checks, held before the restart", Facts{Machines: fleet(100, 0), Cases: some(90, failing), Latched: map[string]bool{"a": true}}, failing, Hold},
		{"many fail checks of another pool", Facts{Machines: fleet(100, 100), Cases: append(some(90, failing), some(3, Case{Pool: "b", Cloud: Failing, Node: Alive})...), Removed: map[string]int{"a": 10}},
			Case{Pool: "b", Cloud: Failing, Node: Alive}, Remove},
		{"many fail checks, and the asked one is ill", Facts{Machines: fleet(100, 0), Cases: append(some(90, failing), some(1, ill)...)}, ill, Hold},
		{"all fail checks, and no node reports", Facts{Machines: fleet(100, 0), Cases: some(100, useless)}, useless, Remove},
		{"the operator allows a pool", Facts{Machines: fleet(10, 0), Cases: some(10, ill), Allowed: map[string]bool{"a": true}}, ill, Remove},
		{"and not another", Facts{Machines: fleet(10, 10), Cases: some(10, ill), Allowed: map[string]bool{"b": true}}, ill, Hold},
		{"what is allowed does not hold others", Facts{Machines: fleet(10, 10), Cases: some(10, ill), Allowed: map[string]bool{"a": true}}, Case{Pool: "b", Cloud: Alive}, Remove},
		{"strays are allowed with every pool", Facts{Machines: fleet(10, 10), Cases: some(9, stray), Allowed: map[string]bool{"a": true, "b": true}}, stray, Remove},
		{"strays are not allowed with one of two", Facts{Machines: fleet(10, 10), Cases: some(9, stray), Allowed: map[string]bool{"a": true}}, stray, Hold},
		{"held before the restart", Facts{Machines: fleet(100, 0), Cases: some(1, ill), Latched: map[string]bool{"a": true}}, ill, Hold},
		{"the fleet held before the restart", Facts{Machines: fleet(100, 100), Cases: some(1, ill), Latched: map[string]bool{"": true}}, Case{Pool: "b", Cloud: Alive}, Hold},
		{"held before the restart, and the operator allows it", Facts{Machines: fleet(100, 0), Cases: some(1, ill), Latched: map[string]bool{"a": true, "": true}, Allowed: map[string]bool{"a": true, "b": true}}, ill, Remove},
	} {
		if got := Rule(test.facts).Of(test.asked); got != test.want {
			t.Errorf("%s: verdict %d, want %d", test.name, got, test.want)
		}
	}
}

func TestLiveness(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name string
		node NodeFacts
		want Liveness
	}{
		{"no node", NodeFacts{}, Gone},
		{"ready", NodeFacts{Exists: true, Ready: corev1.ConditionTrue}, Alive},
		{"ready, and a lease of a clock that is behind", NodeFacts{Exists: true, Ready: corev1.ConditionTrue, Renewed: now.Add(-time.Hour)}, Alive},
		{"the kubelet says that it is not ready", NodeFacts{Exists: true, Ready: corev1.ConditionFalse}, Alive},
		{"silent, without a lease", NodeFacts{Exists: true, Ready: corev1.ConditionUnknown}, Gone},
		{"silent, and the lease has run out", NodeFacts{Exists: true, Ready: corev1.ConditionUnknown, Renewed: now.Add(-40 * time.Second)}, Gone},
		{"silent, and the lease is fresh", NodeFacts{Exists: true, Ready: corev1.ConditionUnknown, Renewed: now.Add(-39 * time.Second)}, Alive},
		{"a longer lease", NodeFacts{Exists: true, Ready: corev1.ConditionUnknown, Renewed: now.Add(-90 * time.Second), Duration: 100 * time.Second}, Alive},
		{"never reported", NodeFacts{Exists: true}, Gone},
	} {
		if got := test.node.Liveness(now); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

func TestRecord(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 30, 0, time.UTC)
	const window = 10 * time.Minute
	r := Record{}
	r.add(now.Add(-9*time.Minute), 3)
	r.add(now, 2)
	r.add(now, 1)
	const text = "2026-01-01T11:51:00Z=3 2026-01-01T12:00:00Z=3"
	if diff := cmp.Diff(text, r.String()); diff != "" {
		t.Error(diff)
	}
	if got := readRecord(text, "", now, window).within(now, window); got != 6 {
		t.Errorf("%d removals were parsed, want 6", got)
	}
	for text, want := range map[string]int{
		"": 0, "nonsense": 0, "2026-01-01T11:51:00Z=x": 0, "2026-01-01T11:51:00Z=-4": 0, "2026-01-01T11:49:00Z=5": 0,
		"2026-01-01T11:51:00Z=2 broken 2026-01-01T11:52:00Z=1": 3,
		"2026-01-01T18:00:00Z=4":                               4, // of a clock that was ahead: it counts from now on
		"2026-01-01T18:00:00Z=4 2026-01-01T11:55:00Z=2":        6,
	} {
		if got := readRecord(text, "", now, window).within(now, window); got != want {
			t.Errorf("%q: %d removals, want %d", text, got, want)
		}
	}
	if got := r.within(now.Add(5*time.Minute), window); got != 3 || len(r) != 1 {
		t.Errorf("%d removals remain of %v, want 3", got, r)
	}
}

// TestRecordOfAClockThatWasSetBack verifies that a clock that is set back neither loses removals nor counts them
// until it has caught up.
func TestRecordOfAClockThatWasSetBack(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 30, 0, time.UTC)
	const window = 10 * time.Minute
	r := Record{}
	r.add(now.Add(6*time.Hour), 4)
	r.add(now.Add(-time.Minute), 1)
	if got := r.within(now, window); got != 5 {
		t.Errorf("%d removals count, want 5", got)
	}
	if diff := cmp.Diff("2026-01-01T11:59:00Z=1 2026-01-01T12:00:00Z=4", r.String()); diff != "" {
		t.Error(diff)
	}
	if got := r.within(now.Add(window+time.Minute), window); got != 0 {
		t.Errorf("%d removals count after the window, want none", got)
	}
}
