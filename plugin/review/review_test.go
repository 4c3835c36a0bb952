package review

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// object returns an object of a JSON text.
func object(t *testing.T, kind, text string) Object {
	t.Helper()
	o := Object{Kind: kind, Name: "x"}
	if text == "" {
		return o
	}
	if err := json.Unmarshal([]byte(text), &o.Content); err != nil {
		t.Fatal(err)
	}
	return o
}

// initContainers returns a pod whose init containers have these names; those after a hyphen are sidecars.
func initContainers(names ...string) string {
	list := make([]string, len(names))
	for i, name := range names {
		policy := ""
		if sidecar, is := strings.CutPrefix(name, "-"); is {
			name, policy = sidecar, `"restartPolicy":"Always",`
		}
		list[i] = `{"name":"` + name + `",` + policy + `"resources":{"requests":{"cpu":"1"}}}`
	}
	return `{"spec":{"initContainers":[` + strings.Join(list, ",") + `]}}`
}

// TestCompare checks which fields decide, how they are named, and which orders matter.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name, kind, old, now string
		want                 []string
	}{
		{"requirements by key, whatever their order", "NodePool",
			`{"spec":{"requirements":[{"key":"a/b","operator":"In","values":["x","y"]},{"key":"c","operator":"Gt","values":["1"]}]}}`,
			`{"spec":{"requirements":[{"key":"c","operator":"Gt","values":["1"]},{"key":"c","operator":"Lt","values":["9"]},
			{"key":"a/b","operator":"In","values":["y","x"]}]}}`,
			[]string{"spec.requirements[c]: Gt [1] -> Gt [1], Lt [9]"}},
		{"minValues", "NodePool", `{"spec":{"requirements":[{"key":"a","operator":"Exists"}]}}`,
			`{"spec":{"requirements":[{"key":"a","operator":"Exists","minValues":3}]}}`,
			[]string{"spec.requirements[a]: Exists -> Exists minValues 3"}},
		{"taints", "NodePool", `{"spec":{"taints":[{"key":"a","value":"b","effect":"NoSchedule"}]}}`,
			`{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`, []string{"spec.taints[a]: b:NoSchedule -> NoExecute"}},
		{"labels and status of a pool, and notes of a controller", "NodePool",
			`{"metadata":{"labels":{"a":"b"},"annotations":{"karpenter.sh/nodepool-hash":"1","x/y":"z"}},"spec":{"weight":1},"status":{"n":1}}`,
			`{"metadata":{"annotations":{"karpenter-go.github.io/pauses":"{}"}},"spec":{"weight":1}}`, nil},
		{"an annotation with a meaning", "NodePool", `{"metadata":{"annotations":{"karpenter-go.github.io/min-stay":"1h"}},"spec":{}}`,
			`{"spec":{}}`, []string{"metadata.annotations.[karpenter-go.github.io/min-stay]: 1h -> unset"}},
		{"budgets in another order", "NodePool", `{"spec":{"budgets":[{"nodes":"1"},{"nodes":"10%","schedule":"@daily"}]}}`,
			`{"spec":{"budgets":[{"schedule":"@daily","nodes":"10%"},{"nodes":"1"}]}}`, nil},
		{"image, command and a port that is not the host's", "Deployment",
			`{"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"c","image":"a","resources":{"requests":{"cpu":"1"}}}]}}}}`,
			`{"spec":{"replicas":2,"template":{"spec":{"schedulerName":"default-scheduler","containers":[{"name":"c","image":"b","command":["x"],
			"ports":[{"containerPort":80}],"resources":{"requests":{"cpu":"1"}}}]}}}}`, nil},
		{"requests and replicas", "Deployment",
			`{"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}}}`,
			`{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"2"}}}]}}}}`,
			[]string{"spec.replicas: 2 -> 3", "spec.template.spec.containers.c.resources.requests.cpu: 1 -> 2"}},
		{"init containers in another order", "Pod", initContainers("a", "b"), initContainers("b", "a"), nil},
		{"a sidecar that starts later", "Pod", initContainers("-s", "a", "b"), initContainers("a", "-s", "b"),
			[]string{"spec.initContainers.a.afterSidecars: [s] -> unset"}},
		{"sidecars in another order, and init containers after them", "Pod", initContainers("-s", "-t", "a", "b"),
			initContainers("-t", "-s", "b", "a"), nil},
		{"a sidecar among several that starts earlier", "Pod", initContainers("-s", "a", "-t"), initContainers("-s", "-t", "a"),
			[]string{"spec.initContainers.a.afterSidecars: [s] -> [s t]"}},
		{"an init container and a sidecar without requests before others", "Pod", initContainers("-s", "a"),
			strings.Replace(initContainers("-s", "a"), "[", `[{"name":"x","image":"y"},`, 1), nil},
		{"a CronJob", "CronJob", `{"spec":{"schedule":"a","jobTemplate":{"spec":{"parallelism":1}}}}`,
			`{"spec":{"schedule":"b","jobTemplate":{"spec":{"parallelism":2}}}}`,
			[]string{"spec.jobTemplate.spec.parallelism: 1 -> 2"}},
		{"labels of a namespace", "Namespace", `{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"labels":{"a":"c"}}}`,
			[]string{"metadata.labels.a: b -> c"}},
		{"a new object", "NodePool", "", `{"spec":{}}`, []string{": absent -> present"}},
		{"an object that is gone", "NodePool", `{"spec":{}}`, "", []string{": present -> absent"}},
		{"a value of PriorityClass", "PriorityClass", `{"value":1,"description":"x"}`, `{"value":2,"description":"x"}`,
			[]string{"value: 1 -> 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, change := range Compare(object(t, c.kind, c.old), object(t, c.kind, c.now)) {
				got = append(got, change.Field+": "+change.Old+" -> "+change.New)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if back := Compare(object(t, c.kind, c.now), object(t, c.kind, c.old)); len(back) != len(got) {
				t.Errorf("%d changes forth, %d back", len(got), len(back))
			}
			if same := Compare(object(t, c.kind, c.now), object(t, c.kind, c.now)); len(same) != 0 {
				t.Errorf("an object differs from itself: %v", same)
			}
		})
	}
}

// TestVerdict checks the sentence: swapped sides negate the cost, and what rounds to nothing has no sign.
func TestVerdict(t *testing.T) {
	change := []Change{{Kind: "NodePool", Name: "a", Field: "spec.weight", Old: "1", New: "2"}}
	for _, c := range []struct {
		e    Effect
		want string
	}{
		{Effect{Changes: change, Old: Fleet{PricePerHour: 1}, New: Fleet{PricePerHour: 0.5, Replaced: 1, Moved: 2}},
			"NodePool a: spec.weight 1 -> 2: " +
				"costs 365.00 USD a month less at rest (of 730.00), replaces 1 node by drift, moves 2 pods, 0 pods become unschedulable"},
		{Effect{Changes: change, Old: Fleet{PricePerHour: 0.5, Moved: 1}, New: Fleet{PricePerHour: 1, Moved: 3}, Unschedulable: 1},
			"NodePool a: spec.weight 1 -> 2: " +
				"costs 365.00 USD a month more at rest (of 365.00), replaces 0 nodes by drift, " +
				"moves 3 pods (1 without the change), 1 pod becomes unschedulable"},
		{Effect{Old: Fleet{PricePerHour: 1, Replaced: 1, Moved: 2}, New: Fleet{PricePerHour: 1 - 1e-9, Replaced: 1, Moved: 2}},
			"Nothing changes: no field that decides changed (730.00 USD a month at rest)"},
		{Effect{Old: Fleet{PricePerHour: 1, Unpriced: 2}, New: Fleet{PricePerHour: 1, Unpriced: 2}},
			"Nothing changes: no field that decides changed (730.00 USD a month at rest, without 2 nodes of unknown price)"},
		{Effect{Old: Fleet{PricePerHour: 1}, New: Fleet{PricePerHour: 1 - 1e-9, Unpriced: 2}},
			"Nothing changes: no field that decides changed: " +
				"costs 0.00 USD a month more at rest (of 730.00, without 2 nodes of unknown price), " +
				"replaces 0 nodes by drift, moves 0 pods, 0 pods become unschedulable"},
		{Effect{Changes: append(change, change...), Old: Fleet{PricePerHour: 1}, Useless: []string{"a"}, Removed: 3},
			"NodePool a: spec.weight 1 -> 2 and 1 more change: " +
				"costs 730.00 USD a month less at rest (of 730.00), which is no saving: NodePool a can launch nothing, " +
				"replaces 0 nodes by drift, deletes 3 nodes with their NodePool, moves 0 pods, 0 pods become unschedulable"},
	} {
		if got := c.e.Verdict(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestViolations checks the limits of an increase at their edges.
func TestViolations(t *testing.T) {
	for _, c := range []struct {
		most string
		e    Effect
		want []string
	}{
		{"", Effect{New: Fleet{PricePerHour: 100}}, nil},
		{"365", Effect{New: Fleet{PricePerHour: 0.5}}, nil},
		{"364.99", Effect{New: Fleet{PricePerHour: 0.5}}, []string{"max-increase"}},
		{"50%", Effect{Old: Fleet{PricePerHour: 1}, New: Fleet{PricePerHour: 1.5}}, nil},
		{"49.9%", Effect{Old: Fleet{PricePerHour: 1}, New: Fleet{PricePerHour: 1.5}}, []string{"max-increase"}},
		{"50%", Effect{New: Fleet{PricePerHour: 1}}, []string{"max-increase"}},
		{"0", Effect{Old: Fleet{PricePerHour: 1}, New: Fleet{PricePerHour: 1 + 1e-6}}, nil},
		{"0", Effect{Old: Fleet{PricePerHour: 1}, New: Fleet{PricePerHour: 0.5, Unpriced: 1}}, []string{"max-increase"}},
		{"0", Effect{Old: Fleet{PricePerHour: 1, Unpriced: 1}, New: Fleet{PricePerHour: 0.5, Unpriced: 1}}, nil},
		{"", Effect{Useless: []string{"a"}, Unschedulable: 1}, []string{"uselessNodePool", "forbid-unschedulable"}},
	} {
		p := Policy{Unschedulable: true}
		if c.most != "" {
			if err := p.Increase.Set(c.most); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, v := range p.Violations(&c.e) {
			got = append(got, v.Policy)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q, %+v: got %v, want %v", c.most, c.e, got, c.want)
		}
	}
	for _, text := range []string{"", "x", "-1", "-1%", "NaN", "Inf", "5 %", "%"} {
		if err := new(Increase).Set(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestMarker checks that a key cannot end the hidden line, or write another one.
func TestMarker(t *testing.T) {
	for _, name := range []string{"", "a>b", "a -->", "a\nb", "-a", "a b", "é", strings.Repeat("a", 101)} {
		if line, err := Marker(name); err == nil {
			t.Errorf("%q is accepted: %s", name, line)
		}
	}
	if line, err := Marker("eu/prod-1"); err != nil || line != "<!-- kubectl-karpenter simulate --diff eu/prod-1 -->" {
		t.Errorf("got %q, %v", line, err)
	}
}
