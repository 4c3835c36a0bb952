package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// TestRest prints a row for the steps that need no waiting and one for all steps, with the real binary.
func TestRest(t *testing.T) {
	var out bytes.Buffer
	args := []string{"-binary", binary, "-tables", "rest", "-only", "^3 to 10 nodes, 10%, usual$", "-first-seed", "3", "-seeds", "2"}
	if err := measure(args, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	rows := regexp.MustCompile(`(?m)^\| 3 to 10 \| 10% \| usual \| (at once|all) \| 2 \|.*$`).FindAllString(out.String(), -1)
	columns := strings.Count(strings.Split(out.String(), "\n")[4], "|")
	if len(rows) != 2 || strings.Count(rows[0], "|") != columns {
		t.Errorf("want two rows of %d columns:\n%s", columns-1, out.String())
	}
	for _, none := range []string{"-seeds", "-first-seed"} {
		if err := measure([]string{"-tables", "rest", none, "0"}, &out); err == nil {
			t.Errorf("%s 0 returned no error", none)
		}
	}
}

// fleetOf returns a fleet of 4-processor nodes, one for each list; its elements are the processors that pods request.
func fleetOf(t *testing.T, nodes ...[]int) *workload.Fleet {
	t.Helper()
	f := &workload.Fleet{Types: workload.Everyday(3, 1).Types}
	for i, pods := range nodes {
		node, err := f.NewNode("node-"+string(rune('a'+i)), "c4a.xlarge", "zone-a")
		if err != nil {
			t.Fatal(err)
		}
		f.Nodes = append(f.Nodes, node)
		for _, cpus := range pods {
			name := "pod-" + string(rune('a'+len(f.Pods)))
			f.Pods = append(f.Pods, workload.FleetPod{Name: name, Node: node.Name, Room: workload.Room{CPU: 1000 * cpus, Memory: 100, Pods: 1}})
		}
	}
	return f
}

// homes returns "pod node" for each pod, and the names of the nodes.
func homes(f *workload.Fleet) (pods, nodes []string) {
	for _, p := range f.Pods {
		pods = append(pods, p.Name+" "+p.Node)
	}
	for _, n := range f.Nodes {
		nodes = append(nodes, n.Name+" "+n.Type.Name)
	}
	return pods, nodes
}

// TestGreedy checks that greedy empties nodes onto others, and moves what is left to one cheaper node.
func TestGreedy(t *testing.T) {
	for _, c := range []struct {
		name        string
		fleet       *workload.Fleet
		pods, nodes []string
	}{
		{
			"one node holds all", fleetOf(t, []int{1}, []int{2}),
			[]string{"pod-a node-b", "pod-b node-b"}, []string{"node-b c4a.xlarge"},
		},
		{
			"a smaller node holds what is left", fleetOf(t, []int{3}, []int{3}, []int{1}),
			[]string{"pod-a node-a", "pod-b node-b", "pod-c greedy-0"},
			[]string{"node-a c4a.xlarge", "node-b c4a.xlarge", "greedy-0 c4a.large"},
		},
	} {
		got, err := greedy(c.fleet)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		pods, nodes := homes(got)
		if diff := cmp.Diff(c.pods, pods); diff != "" {
			t.Errorf("%s: pods (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.nodes, nodes); diff != "" {
			t.Errorf("%s: nodes (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestGreedyKeepsPods checks that greedy overfills no node, loses no pod and makes no fleet dearer.
func TestGreedyKeepsPods(t *testing.T) {
	for seed := 1; seed <= 40; seed++ {
		before := workload.Everyday(3+seed%20, seed)
		after, err := greedy(before)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if _, err := after.Free(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if len(after.Pods) != len(before.Pods) {
			t.Errorf("seed %d: %d pods, want %d", seed, len(after.Pods), len(before.Pods))
		}
		if costOf(after) > costOf(before) {
			t.Errorf("seed %d: costs %g USD per hour, %g before", seed, costOf(after), costOf(before))
		}
	}
}

const consolidation = `{"after": {"costPerHour": 0.16642}, "steps": [
	{"remove": ["node-b"], "add": [{"name": "new", "instanceType": "c4a.xlarge", "zone": "zone-b"}], "moves": [
		{"pod": "default/pod-b", "from": "node-b", "to": "node-a"}, {"pod": "default/pod-c", "from": "node-b", "to": "new"}]},
	{"remove": ["node-a"], "moves": [
		{"pod": "default/pod-a", "from": "node-a", "to": "new"}, {"pod": "default/pod-b", "from": "node-a", "to": "new"}]}]}`

// TestApply executes the steps of a plan, and refuses those that overfill a node or lose a pod.
func TestApply(t *testing.T) {
	for _, c := range []struct {
		name, from, to, err string
	}{
		{name: "valid"},
		{"a pod stays on a removed node", `, {"pod": "default/pod-b", "from": "node-a", "to": "new"}`, "", "step 1: pod pod-b: no node node-a"},
		{"a pod moves to no node", `"from": "node-b", "to": "node-a"`, `"from": "node-b", "to": "nowhere"`, "step 0: pod pod-b: no node nowhere"},
		{
			"a pod moves that is elsewhere", `"from": "node-a", "to": "new"`, `"from": "node-c", "to": "new"`,
			"step 1: pod pod-a is not on node node-c",
		},
		{"an overfull node", `c4a.xlarge`, `c4a.large`, "step 1: pod pod-b: node new is overfull"},
		{"no such node", `"remove": ["node-a"]`, `"remove": ["node-c"]`, "no node node-c to remove"},
		{"no such type", `c4a.xlarge`, `c4g.xlarge`, "the pool allows no c4g.xlarge"},
		{"another cost", `0.16642`, `0.1`, "says that the fleet costs 0.1 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			var a rearranged
			if err := json.Unmarshal([]byte(strings.Replace(consolidation, c.from, c.to, 1)), &a); err != nil {
				t.Fatal(err)
			}
			f, moves := fleetOf(t, []int{1}, []int{1, 1}), map[string]int{}
			_, err := a.applyTo(f, moves)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want one with %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			pods, nodes := homes(f)
			if diff := cmp.Diff([]string{"pod-a new", "pod-b new", "pod-c new"}, pods); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"new c4a.xlarge"}, nodes); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]int{"pod-a": 1, "pod-b": 2, "pod-c": 1}, moves); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSummary checks the cells of a row.
func TestSummary(t *testing.T) {
	var s summary
	s.add(&reference{Fleet: &workload.Fleet{Seed: 4}, start: 10, greedy: 5, fresh: 4}, rested{5.05, map[string]int{"a": 3, "b": 2}})
	s.add(&reference{Fleet: &workload.Fleet{Seed: 5}, start: 10, greedy: 5, fresh: 4}, rested{5.2, map[string]int{"a": 4}})
	s.add(&reference{Fleet: &workload.Fleet{Seed: 6}, start: 10, greedy: 5, fresh: 4}, rested{4.75, nil})
	want := []string{"3", "30.00", "15.00", "15.00", "12.00", "1.250", "1", "1", "1.300 (5)", "0.6", "2"}
	if diff := cmp.Diff(want, s.cells()); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}
