package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/top"
)

// disruptPool allows the removal of any node at any time, within the given budget.
const disruptPool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  disruption: {consolidateAfter: 0s, budgets: [{nodes: "100%"}]}
  template:
    spec:
      nodeClassRef: {group: example.com, kind: AnyClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
`

// nodeYAML returns a node of the pool, of one of the types of typesJSON.
func nodeYAML(name, kind string) string {
	size := map[string]string{"small": "cpu: 1900m, memory: 4Gi, pods: 20", "large": "cpu: 7900m, memory: 16Gi, pods: 50"}[kind]
	return fmt.Sprintf(`---
apiVersion: v1
kind: Node
metadata:
  name: %[1]s
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {kubernetes.io/hostname: %[1]s, karpenter.sh/nodepool: default, karpenter.sh/capacity-type: on-demand, node.kubernetes.io/instance-type: %[2]s,
    topology.kubernetes.io/zone: a, kubernetes.io/arch: amd64, kubernetes.io/os: linux}
status:
  allocatable: {%[3]s}
  capacity: {%[3]s}
  conditions: [{type: Ready, status: "True"}]
`, name, kind, size)
}

// podYAML returns a pod of a ReplicaSet on a node, with a CPU request and annotations.
func podYAML(name, node, cpu, annotations string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata:
  name: %s
  labels: {app: %[1]s}
  annotations: {%s}
  creationTimestamp: "2026-01-01T00:00:00Z"
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: set, uid: set, controller: true}]
spec: {nodeName: %s, containers: [{name: c, image: i, resources: {requests: {cpu: %s, memory: 100Mi}}}]}
status: {phase: Running}
`, name, annotations, node, cpu)
}

// mixed is a fleet with nodes of several kinds: an empty node, two that are too large, and one that is protected.
func mixed() map[string]string {
	return map[string]string{"instance-types.json": typesJSON, "pool.yaml": disruptPool,
		"cluster.yaml": nodeYAML("empty", "large") + nodeYAML("idle-1", "large") + nodeYAML("idle-2", "large") + nodeYAML("held", "large") +
			podYAML("one", "idle-1", "500m", "") + podYAML("two", "idle-2", "500m", "") + podYAML("held", "held", "500m",
			`karpenter.sh/do-not-disrupt: "true"`)}
}

func disruptJSON(t *testing.T, arguments ...string) offline.DisruptAnswer {
	t.Helper()
	out, err := simulate(t, "", append(arguments, "--disrupt", "-o", "json")...)
	if err != nil {
		t.Fatal(err)
	}
	var a offline.DisruptAnswer
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&a); err != nil {
		t.Fatal(err)
	}
	if a.Stats == nil || a.Stats.WallSeconds <= 0 {
		t.Errorf("stats %+v", a.Stats)
	}
	return a
}

func TestDisrupt(t *testing.T) {
	folder := files(t, mixed())
	a := disruptJSON(t, "-f", folder, "--until-stable", "--node-overhead-price", "0.01")
	near := cmp.Comparer(func(x, y top.Sum) bool { return math.Abs(float64(x-y)) < 1e-9 })
	// All moved pods have room on the node that must be kept.
	if diff := cmp.Diff(offline.FleetFigures{Nodes: 4, PricePerHour: 2, CostPerHour: 2.04}, a.Before, near); diff != "" {
		t.Errorf("before:\n%s", diff)
	}
	if diff := cmp.Diff(offline.FleetFigures{Nodes: 1, PricePerHour: 0.5, CostPerHour: 0.51}, a.After, near); diff != "" {
		t.Errorf("after:\n%s", diff)
	}
	var out []string
	var moves []offline.PodMove
	for i, s := range a.Steps {
		out, moves = append(out, s.Remove...), append(moves, s.Moves...)
		if len(s.Moves) != s.Moved {
			t.Errorf("step %d moves %d pods and lists the target of %d", i+1, s.Moved, len(s.Moves))
		}
		if s.Reason == "Empty" {
			got := []any{i, s.Method, s.Score, s.Moved}
			if diff := cmp.Diff([]any{0, "empty", (*float64)(nil), 0}, got); diff != "" {
				t.Errorf("position, method, score and moved pods of the step that removes the empty node (-want +got):\n%s", diff)
			}
		}
		if s.Reason == "Underutilized" {
			// The saving of an hour divided by the price of moving a pod: 0.51 / 0.001.
			switch {
			case s.Score == nil:
				t.Errorf("step %d has no score", i+1)
			case math.Abs(*s.Score-510) > 1e-6:
				t.Errorf("step %d has the score %v, want 510", i+1, *s.Score)
			case s.Moved != 1:
				t.Errorf("step %d moves %d pods, want 1", i+1, s.Moved)
			case len(s.Add) != 0:
				t.Errorf("step %d adds %+v, want nothing", i+1, s.Add)
			case math.Abs(float64(s.Saving)-0.51) > 1e-9:
				t.Errorf("step %d saves %v, want 0.51", i+1, s.Saving)
			}
		}
	}
	slices.Sort(out)
	if diff := cmp.Diff([]string{"empty", "idle-1", "idle-2"}, out); diff != "" {
		t.Errorf("removed:\n%s", diff)
	}
	slices.SortFunc(moves, func(a, b offline.PodMove) int { return strings.Compare(a.Pod, b.Pod) })
	if diff := cmp.Diff([]offline.PodMove{{Pod: "default/one", From: "idle-1", To: "held"},
		{Pod: "default/two", From: "idle-2", To: "held"}}, moves); diff != "" {
		t.Errorf("moves:\n%s", diff)
	}
	want := []offline.KeptNode{{Node: "held", Reasons: []offline.KeptReason{{For: "Underutilized",
		Reason: offline.Reason{Code: "NodeProtected", NodePool: "default",
			Message: "node held is protected by the annotation karpenter.sh/do-not-disrupt of pod default/held"}}}}}
	if diff := cmp.Diff(want, a.Kept, cmp.AllowUnexported(offline.KeptReason{})); diff != "" {
		t.Errorf("kept:\n%s", diff)
	}
	if a.LowerBoundCostPerHour > float64(a.After.CostPerHour)+1e-9 || a.LowerBoundCostPerHour < 0.51 {
		t.Errorf("the lower bound of the cost is %v, want 0.51 to %v, which is the cost afterward", a.LowerBoundCostPerHour, a.After.CostPerHour)
	}
	if a.LowerBoundPerHour < 0.5 {
		t.Errorf("the lower bound of the price is %v, want at least 0.5", a.LowerBoundPerHour)
	}
	sums(t, a)
}

// sums checks that the savings of the steps add up, and that each step reduces the cost.
func sums(t *testing.T, a offline.DisruptAnswer) {
	t.Helper()
	cost := a.Before.CostPerHour
	for i, s := range a.Steps {
		cost -= s.Saving
		if s.Saving <= 0 || math.Abs(float64(cost-s.After.CostPerHour)) > 1e-6 {
			t.Errorf("step %d saves %v, the fleet then costs %v, want %v", i+1, s.Saving, s.After.CostPerHour, cost)
		}
	}
	if math.Abs(float64(cost-a.After.CostPerHour)) > 1e-6 {
		t.Errorf("after %v, want %v", a.After.CostPerHour, cost)
	}
	if a.LowerBoundCostPerHour > float64(a.After.CostPerHour)+1e-9 {
		t.Errorf("bound %v is above %v", a.LowerBoundCostPerHour, a.After.CostPerHour)
	}
}

// TestDisruptReplaces checks that a single node that is too large is replaced, and that its replacement is not
// replaced again.
func TestDisruptReplaces(t *testing.T) {
	folder := files(t, map[string]string{"instance-types.json": typesJSON, "pool.yaml": disruptPool,
		"cluster.yaml": nodeYAML("big", "large") + podYAML("one", "big", "500m", "")})
	a := disruptJSON(t, "-f", folder, "--until-stable")
	if len(a.Steps) != 1 {
		t.Fatalf("steps %+v", a.Steps)
	}
	s := a.Steps[0]
	if len(s.Add) != 1 || !strings.HasPrefix(s.Add[0].Name, "default-") {
		t.Fatalf("added %+v, want a node whose name begins with its pool's", s.Add)
	}
	name := s.Add[0].Name
	if diff := cmp.Diff([]offline.AddedNode{{Name: name, NodePool: "default", InstanceType: "small", Zone: "a",
		CapacityType: "on-demand", PricePerHour: 0.1}}, s.Add); diff != "" || s.Method != "single" {
		t.Errorf("%s: added:\n%s", s.Method, diff)
	}
	if diff := cmp.Diff([]offline.PodMove{{Pod: "default/one", From: "big", To: name}}, s.Moves); diff != "" {
		t.Errorf("moves:\n%s", diff)
	}
	if len(a.Kept) != 1 || a.Kept[0].Reasons[0].Code != "NoSaving" {
		t.Errorf("kept %+v", a.Kept)
	}
	sums(t, a)
}

// TestDisruptBudget checks that one pass respects the budget, and that with --until-stable removed nodes no longer
// count.
func TestDisruptBudget(t *testing.T) {
	texts := mixed()
	texts["pool.yaml"] = strings.Replace(disruptPool, `"100%"`, `"1"`, 1)
	folder := files(t, texts)
	once := disruptJSON(t, "-f", folder)
	if len(once.Steps) != 1 || once.Steps[0].Remove[0] != "empty" {
		t.Errorf("steps %+v, want the empty node", once.Steps)
	}
	codes := map[string]string{}
	for _, k := range once.Kept {
		codes[k.Node] = k.Reasons[0].Code
	}
	if diff := cmp.Diff(map[string]string{"idle-1": "BudgetExhausted", "idle-2": "BudgetExhausted", "held": "NodeProtected"},
		codes); diff != "" {
		t.Errorf("kept:\n%s", diff)
	}
	if all := disruptJSON(t, "-f", folder, "--until-stable"); len(all.Steps) != 3 || all.After.Nodes != 1 {
		t.Errorf("until stable: %+v", all.Steps)
	}
}

// TestDisruptEconomics checks that the flags' requirements on savings apply, and that a pool's own take precedence.
func TestDisruptEconomics(t *testing.T) {
	folder := files(t, mixed())
	demanding := mixed()
	demanding["pool.yaml"] = strings.Replace(disruptPool, "{name: default}\nspec:\n  disruption",
		`{name: default, annotations: {karpenter-go.github.io/move-price: "2"}}`+"\nspec:\n  disruption", 1)
	strict := files(t, demanding)
	for name, c := range map[string]struct {
		arguments []string
		steps     int
		code      string
	}{
		"as usual":               {[]string{"-f", folder}, 3, ""},
		"moving is dear":         {[]string{"-f", folder, "--move-price", "1"}, 1, "SavingTooSmall"},
		"and pays over a day":    {[]string{"-f", folder, "--move-price", "1", "--payback", "24h"}, 3, ""},
		"nothing that has price": {[]string{"-f", folder, "--payback", "0s"}, 1, "SavingTooSmall"},
		"nothing has a price":    {[]string{"-f", folder, "--payback", "0s", "--move-price", "0"}, 3, ""},
		"more than there is":     {[]string{"-f", folder, "--min-saving", "3"}, 1, "SavingTooSmall"},
		"the pool says":          {[]string{"-f", strict, "--move-price", "0"}, 1, "SavingTooSmall"},
	} {
		a := disruptJSON(t, append(c.arguments, "--until-stable")...)
		code := ""
		for _, k := range a.Kept {
			if k.Node == "idle-1" {
				code = k.Reasons[0].Code
			}
		}
		if len(a.Steps) != c.steps || code != c.code {
			t.Errorf("%s: %d steps, idle-1 is kept for %q; want %d, %q", name, len(a.Steps), code, c.steps, c.code)
		}
	}
}

func TestDisruptFlags(t *testing.T) {
	folder := files(t, mixed())
	for want, arguments := range map[string][]string{
		"--until-stable requires --disrupt": {"--until-stable"},
		"--payback requires --disrupt":      {"--payback", "1h"},
		"--min-saving requires --disrupt":   {"--min-saving", "0"},
		"--payback is -1h0m0s":              {"--disrupt", "--payback", "-1h"},
		"--min-stay requires --disrupt":     {"--min-stay", "1h"},
		"--min-stay is -1h0m0s":             {"--disrupt", "--min-stay", "-1h"},
		"--move-price is -1":                {"--disrupt", "--move-price", "-1"},
		"--min-saving is NaN":               {"--disrupt", "--min-saving", "NaN"},
		"--forbid-unschedulable is about":   {"--disrupt", "--forbid-unschedulable"},
		`--payback is "soon", want a dur`:   {"--disrupt", "--payback", "soon"},
	} {
		_, err := simulate(t, "", append(arguments, "-f", folder)...)
		switch {
		case err == nil:
			t.Errorf("%v: no error, want one", arguments)
		case cli.ExitCode(err) != 2:
			t.Errorf("%v: exit code %d, want 2", arguments, cli.ExitCode(err))
		case !strings.Contains(err.Error(), want):
			t.Errorf("%v: got error %q, want %q in it", arguments, err, want)
		}
	}
}

func TestDisruptText(t *testing.T) {
	out, err := simulate(t, "", "-f", files(t, mixed()), "--disrupt", "--until-stable")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"STEP  REASON", "1     Empty          empty   empty",
		"STEP 2 from idle-1 to held: default/one\nSTEP 3 from idle-2 to held: default/two\n",
		"KEPT held\n  NodeProtected (Underutilized): node held is protected",
		"3 steps: 4 nodes become 1, price 2.0000 USD per hour becomes 0.5000, cost 2.0200 becomes 0.5050\n2 pods moved, 1.3 for each USD per hour saved\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestDisruptReplay(t *testing.T) {
	file := captured(t, "-f", files(t, mixed()), "--disrupt", "--until-stable", "--payback", "2h", "--move-price",
		"0.002", "--min-saving", "0.01")
	out, err := runProgram(t, "", "replay", file)
	if err != nil || out != "the same answer: 3 steps, 4 nodes become 1, cost 2.0200 USD per hour becomes 0.5050\n" {
		t.Errorf("%v\n%s", err, out)
	}
	for name, c := range map[string]string{
		"another price of moving": edit(t, file, `"movePrice": 0.002`, `"movePrice": 2`),
		"one pass": edit(t, file, `"untilStable": true`, `"untilStable": false`, `"savingPerHour": 0.505`,
			`"savingPerHour": 0.504`),
		"another answer": edit(t, file, `"podsMoved": 1`, `"podsMoved": 2`),
	} {
		_, err := runProgram(t, "", "replay", c)
		if err == nil {
			t.Errorf("%s: no error, want one that the answer has changed", name)
			continue
		}
		for _, want := range []string{"the answer has changed", " --disrupt"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got error %q, want %q in it", name, err, want)
			}
		}
		if stable := name != "one pass"; strings.Contains(err.Error(), "--until-stable") != stable {
			t.Errorf("%s: the error mentions --until-stable: %t, want %t: %v", name, !stable, stable, err)
		}
	}
	if _, err := runProgram(t, "", "replay", edit(t, file, `"podsMoved"`, `"podsShaken"`)); err == nil || !strings.Contains(err.Error(),
		"podsShaken") {
		t.Errorf("another field: got %v", err)
	}
}

// TestDisruptWaits checks that with --until-stable the time of the model advances to the moments at which nodes may be
// removed that are kept for a time only, and that the answer says what the steps wait for.
func TestDisruptWaits(t *testing.T) {
	young := strings.Replace(disruptPool, "consolidateAfter: 0s", "consolidateAfter: 30m", 1)
	evenings := strings.Replace(disruptPool, `{nodes: "100%"}`, `{nodes: "100%"}, {nodes: "0", schedule: "0 8 * * *", duration: 10h}`, 1)
	never := strings.Replace(disruptPool, `{nodes: "100%"}`, `{nodes: "0"}`, 1)
	monthly := strings.Replace(disruptPool, `{nodes: "100%"}`, `{nodes: "0", schedule: "0 0 1 * *", duration: 672h}`, 1)
	for name, c := range map[string]struct {
		pool, now string
		steps     int
		wait      int64
		codes     []string
	}{
		"nothing to wait for":  {disruptPool, "2026-01-02T00:00:00Z", 3, 0, nil},
		"consolidateAfter":     {young, "2026-01-01T00:10:00Z", 3, 20 * 60, []string{"NodeTooYoung"}},
		"a window opens":       {evenings, "2026-01-05T09:30:00Z", 3, 8*3600 + 1800, []string{"BudgetExhausted"}},
		"a budget of zero":     {never, "2026-01-02T00:00:00Z", 0, 0, nil},
		"a window in 27 days":  {monthly, "2026-01-02T00:00:00Z", 0, 0, nil},
		"the window is open":   {evenings, "2026-01-05T19:00:00Z", 3, 0, nil},
		"both, one by another": {strings.Replace(evenings, "consolidateAfter: 0s", "consolidateAfter: 12h", 1), "2026-01-01T09:00:00Z", 3, 9 * 3600, []string{"BudgetExhausted", "NodeTooYoung"}},
	} {
		texts := mixed()
		texts["pool.yaml"] = c.pool
		folder := files(t, texts)
		a := disruptJSON(t, "-f", folder, "--now", c.now, "--until-stable")
		var wait, sum int64
		var codes []string
		for _, s := range a.Steps {
			wait = s.WaitSeconds
		}
		for _, w := range a.Waits {
			sum += w.Seconds
			codes = append(codes, w.Codes...)
		}
		slices.Sort(codes)
		codes = slices.Compact(codes)
		if len(a.Steps) != c.steps || wait != c.wait || sum != c.wait || !slices.Equal(codes, c.codes) {
			t.Errorf("%s: %d steps, the last after %d s, waits of %d s for %v; want %d, %d s, %v", name, len(a.Steps), wait, sum, codes, c.steps, c.wait, c.codes)
		}
		if once := disruptJSON(t, "-f", folder, "--now", c.now); len(once.Waits) > 0 {
			t.Errorf("%s: one pass waits: %+v", name, once.Waits)
		}
		text, err := simulate(t, "", "-f", folder, "--now", c.now, "--disrupt", "--until-stable")
		if err != nil {
			t.Fatal(err)
		}
		if says := strings.Contains(text, "the last step begins after"); says != (c.wait > 0) {
			t.Errorf("%s: the text says that steps wait: %t\n%s", name, says, text)
		}
	}
}
