package nominate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// opened is a node of a plan: the kinds of its pods, and its stage. Pods of kind web are spread over zones.
type opened struct {
	pods      []string
	stage     model.Stage
	nominated bool
}

// opening returns a world with nodes that have joined, and the planned nodes of their pods.
func opening(t *testing.T, nodes map[string]opened) (*plantest.World, nominate.Targets) {
	w, targets := plantest.New(t, 0), nominate.Targets{}
	spread := model.Spread{Key: model.LabelZone, MaxSkew: 1,
		Selector: model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{{Key: "app", Operator: label.In, Values: []string{"web"}}}}}
	for name, o := range nodes {
		n := w.Add(name, "c-"+name)
		n.Stage, n.Labels = o.stage, map[string]string{model.LabelPool: "p", model.LabelZone: name}
		for i, kind := range o.pods {
			nominated := ""
			if o.nominated {
				nominated = name
			}
			w.Pend(fmt.Sprintf("%s-%d", name, i), nominated)
			p := &w.Pods[len(w.Pods)-1]
			p.Labels = map[string]string{"app": kind}
			if kind == "web" {
				p.Spread = []model.Spread{spread}
			}
			p.Requests[0].Value += int64(len(kind))
			targets["c-"+name] = append(targets["c-"+name], &model.Pod{Shape: &model.Shape{Namespace: "default"}, UID: p.UID, Name: p.Name})
		}
	}
	return w, targets
}

// Nodes with unlimited pods open before nodes with limited pods only, one after the other.
func TestOpening(t *testing.T) {
	webs, many := []string{"web", "web", "web"}, map[string]opened{"c": {pods: []string{"web", "web", "web"}, stage: model.Launched}}
	for i := range 12 {
		many[fmt.Sprintf("a%02d", i)] = opened{pods: []string{"db"}, stage: model.Launched}
	}
	drifting := map[string]opened{"a": {[]string{"db", "web"}, model.Registered, false}, "c": {webs, model.Launched, false}}
	everyday := map[string]opened{"a": {[]string{"db", "web"}, model.Launched, false}, "b": {[]string{"db"}, model.Launched, true}, "c": {webs, model.Launched, false}}
	begun := map[string]opened{"a": {[]string{"db", "web"}, model.Registered, true}, "b": {[]string{"db"}, model.Launched, false}, "c": {webs, model.Launched, true}}
	mixed := map[string]opened{"a": {[]string{"db"}, model.Launched, false}, "b": {[]string{"db", "web", "web"}, model.Launched, false}}
	for name, c := range map[string]struct {
		nodes map[string]opened
		node  string
		want  *nominate.Opening
	}{
		"pods that float come last":                    {everyday, "c", &nominate.Opening{Before: []string{"a", "b"}, First: true}},
		"a node with a pod that stays":                 {everyday, "a", &nominate.Opening{Unlimited: true, Alone: true, First: true}},
		"its pods are nominated":                       {everyday, "b", &nominate.Opening{Unlimited: true, Alone: true, First: true, Untried: true}},
		"one is open":                                  {begun, "c", &nominate.Opening{Before: []string{"b"}, Untried: true}},
		"the next after one is open":                   {begun, "b", &nominate.Opening{Unlimited: true, Alone: true}},
		"pods that float beside one that stays":        {mixed, "b", &nominate.Opening{Before: []string{"a"}, Unlimited: true, Alone: true, First: true}},
		"more than may open one after the other":       {many, "a00", &nominate.Opening{Unlimited: true, First: true}},
		"all that stay are open":                       {map[string]opened{"a": {[]string{"db"}, model.Registered, false}, "c": {webs, model.Launched, false}}, "c", &nominate.Opening{Untried: true, Unnominated: true}},
		"all that stay are nominated":                  {map[string]opened{"a": {[]string{"db"}, model.Registered, true}, "c": {webs, model.Launched, false}}, "c", &nominate.Opening{Untried: true}},
		"one that stays lost its nomination":           {drifting, "c", &nominate.Opening{Untried: true, Unnominated: true}},
		"pods of one kind":                             {map[string]opened{"a": {webs, model.Launched, false}, "c": {webs, model.Launched, false}}, "c", nil},
		"all pods of each node are nominated":          {map[string]opened{"a": {[]string{"db"}, model.Launched, false}, "c": {[]string{"web"}, model.Launched, false}}, "c", nil},
		"a node to which no pods are planned":          {everyday, "other", nil},
		"the pods that stay are bound before it opens": {map[string]opened{"c": {webs, model.Launched, false}, "d": {webs, model.Launched, false}}, "d", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w, targets := opening(t, c.nodes)
			got := targets.Order(w.Snapshot()).Opening("c-"+c.node, c.node)
			if got != nil {
				slices.Sort(got.Before)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("opening (-want +got):\n%s", diff)
			}
		})
	}
	for i := range 30 {
		many[fmt.Sprintf("b%02d", i)] = opened{pods: []string{"db"}, stage: model.Launched}
	}
	if w, targets := opening(t, many); targets.Order(w.Snapshot()) != nil {
		t.Error("the nodes of a large plan have an order, want none")
	}
}

// Of the nodes whose pods limited pods of higher priority may displace, those open last whose pods have no other place.
func TestOpeningOfOutrankedNodes(t *testing.T) {
	for name, c := range map[string]struct {
		web    int32 // the priority of the limited pods
		takes  int64 // CPU of pod a-0
		has    int64 // CPU of node a
		closed bool  // whether a taint excludes it from a node of the limited pods
		before []string
	}{
		"no other place":             {web: 1, takes: 3000, has: 4000, before: []string{"b"}},
		"another place":              {web: 1, takes: 2000, has: 4000},
		"equal priority":             {web: 0, takes: 3000, has: 4000},
		"higher priority":            {web: -1, takes: 3000, has: 4000},
		"excluded":                   {web: 1, takes: 1500, has: 2000, closed: true, before: []string{"b"}},
		"not excluded":               {web: 1, takes: 1500, has: 2000},
		"too small for limited pods": {web: 1, takes: 1500, has: 1800, closed: true},
	} {
		t.Run(name, func(t *testing.T) {
			webs := opened{pods: []string{"web", "web"}, stage: model.Launched}
			w, targets := opening(t, map[string]opened{"a": {pods: []string{"db"}, stage: model.Launched}, "b": {pods: []string{"job"}, stage: model.Launched}, "c": webs, "d": webs})
			for i := range w.Pods {
				p := &w.Pods[i]
				if len(p.Spread) > 0 {
					p.Priority, p.Requests[0].Value = c.web, 1900
				}
				if p.Name == "a-0" {
					p.Requests[0].Value = c.takes
					continue
				}
				p.Tolerations = []model.Toleration{{Key: "web", Exists: true, Effect: model.AnyEffect}}
			}
			w.Nodes["c-a"].Allocatable = []quantity.Amount{{Name: "cpu", Value: c.has}}
			if c.closed {
				w.Nodes["c-c"].Taints = []model.Taint{{Key: "web", Effect: model.NoSchedule}}
			}
			order := targets.Order(w.Snapshot())
			if diff := cmp.Diff(c.before, order.Opening("c-a", "a").Before); diff != "" {
				t.Errorf("nodes before a (-want +got):\n%s", diff)
			}
			if got := order.Opening("c-b", "b").Before; got != nil {
				t.Errorf("nodes %v open before b, want none", got)
			}
		})
	}
}

// Before a node opens, nominations are written to the nodes of its plan that are open or open next, and last to itself.
func TestMissingBefore(t *testing.T) {
	w, targets := opening(t, map[string]opened{
		"a": {pods: []string{"db"}, stage: model.Registered}, "b": {pods: []string{"db", "web"}, stage: model.Launched},
		"d": {pods: []string{"db"}, stage: model.Launched}, "e": {pods: []string{"job"}, stage: model.Launched, nominated: true},
		"c": {pods: []string{"web", "web"}, stage: model.Launched},
	})
	w.Nodes["c-d"].Name = "c-d" // a claim without a node
	w.Pods[slices.IndexFunc(w.Pods, func(p model.PodSpec) bool { return p.Name == "d-0" })].Nominated = ""
	var got []string
	for _, action := range targets.Order(w.Snapshot()).MissingBefore("c-b", "b") {
		got = append(got, action.String())
	}
	want := []string{"nominate pod default/a-0 to node a",
		"nominate pod default/b-0 to node b", "nominate pod default/b-1 to node b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// A pod that was bound to another node of the plan than its own has exchanged nodes with a pending pod of its shape.
func TestOrderAfterPodsChangePlaces(t *testing.T) {
	w, targets := opening(t, map[string]opened{
		"a": {pods: []string{"db", "web", "web"}, stage: model.Registered}, "b": {pods: []string{"db"}, stage: model.Launched},
		"c": {pods: []string{"web", "web"}, stage: model.Launched},
	})
	bind := func(pod, node string) {
		p := &w.Pods[slices.IndexFunc(w.Pods, func(p model.PodSpec) bool { return p.Name == pod })]
		p.State, p.Node, p.Nominated = model.Bound, node, ""
	}
	nominations := func() []string {
		var got []string
		for _, action := range targets.Order(w.Snapshot()).MissingBefore("c-c", "c") {
			got = append(got, action.String())
		}
		return got
	}
	for _, step := range []struct {
		pod  string
		want []string
	}{
		// One pod of web is nominated to a node at a time, and the plan has capacity on node a for two.
		{"c-0", []string{"nominate pod default/a-0 to node a", "nominate pod default/a-2 to node a", "nominate pod default/b-0 to node b", "nominate pod default/c-1 to node c"}},
		// Two pods of node c have taken that capacity: both remaining pods of web go to node c.
		{"c-1", []string{"nominate pod default/a-0 to node a", "nominate pod default/b-0 to node b", "nominate pod default/a-1 to node c"}},
	} {
		bind(step.pod, "a")
		if diff := cmp.Diff(step.want, nominations()); diff != "" {
			t.Errorf("nominations after pod %s was bound to node a (-want +got):\n%s", step.pod, diff)
		}
	}
}

// Nodes have no order where taints exclude limited pods from the nodes of unlimited pods, and these from the nodes of
// limited pods.
func TestOrderOfPodsThatDoNotCompete(t *testing.T) {
	w, targets := opening(t, map[string]opened{
		"a": {pods: []string{"db"}, stage: model.Launched}, "c": {pods: []string{"web", "web"}, stage: model.Launched},
	})
	for _, step := range []struct {
		taint string // the node that gets a taint, which its own pods tolerate
		want  bool
	}{{"", true}, {"c", true}, {"a", false}} {
		if step.taint != "" {
			w.Nodes["c-"+step.taint].Taints = []model.Taint{{Key: step.taint, Effect: model.NoSchedule}}
			for i := range w.Pods {
				if strings.HasPrefix(w.Pods[i].Name, step.taint) {
					w.Pods[i].Tolerations = []model.Toleration{{Key: step.taint, Exists: true, Effect: model.AnyEffect}}
				}
			}
		}
		if got := targets.Order(w.Snapshot()) != nil; got != step.want {
			t.Errorf("with a taint on node %q there is an order: %v, want %v", step.taint, got, step.want)
		}
	}
}
