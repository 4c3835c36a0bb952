package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// odd returns the world in which some pods and DaemonSets name labels and resources that, as a rule, no node has.
func (w world) odd(d dice) world {
	w.pods, w.nodes, w.daemons = slices.Clone(w.pods), slices.Clone(w.nodes), slices.Clone(w.daemons)
	key := func() string { return fmt.Sprintf("odd-%d", d.IntN(6)) }
	requirement := func() label.Requirement {
		switch d.IntN(8) {
		case 0, 1, 2:
			return label.Requirement{Key: key(), Operator: label.DoesNotExist}
		case 3, 4, 5:
			return label.Requirement{Key: key(), Operator: label.NotIn, Values: d.some("x", "y")}
		case 6:
			return label.Requirement{Key: key(), Operator: label.Exists}
		}
		return in(key(), "x")
	}
	for i := range w.pods {
		p := &w.pods[i]
		switch d.IntN(8) {
		case 0, 1:
			alternatives := [][]label.Requirement{{requirement()}}
			for _, reqs := range p.Alternatives {
				alternatives = append(alternatives, append(slices.Clone(reqs), requirement()))
			}
			if len(p.Alternatives) > 0 && d.chance(70) {
				alternatives = alternatives[1:]
			}
			p.Alternatives = alternatives
		case 2:
			p.Preferred = append(slices.Clone(p.Preferred), model.Preference{Weight: 50, Requirements: []label.Requirement{requirement()}})
		case 3:
			if d.chance(40) {
				p.Requests = append(slices.Clone(p.Requests), quantity.Amount{Name: d.one("a.io/odd", "z.io/odd"), Value: 1})
			}
		}
	}
	for i := range w.nodes {
		n := &w.nodes[i]
		if n.Stage == model.Launching {
			continue
		}
		if d.chance(10) {
			n.Labels = with(n.Labels, "odd-0", d.one("x", "z"))
		}
		if d.chance(10) {
			n.Allocatable = append(slices.Clone(n.Allocatable), quantity.Amount{Name: "a.io/odd", Value: 3})
		}
	}
	for i := range w.daemons {
		if d.chance(20) {
			w.daemons[i].Alternatives = [][]label.Requirement{{requirement()}}
		}
	}
	return w
}

// exact returns the world without what makes a plan depend on the numbers themselves: whether a spread constraint counts
// the pods of another group is more certain where fewer requirements differ, and volumes without a limit have a value
// where they have a number.
func (w world) exact() world {
	w.pods = slices.Clone(w.pods)
	for i := range w.pods {
		p := &w.pods[i]
		p.Spread = nil
		p.Volumes = slices.DeleteFunc(slices.Clone(p.Volumes), func(v model.Volume) bool { return v.Driver == freeDriver })
	}
	return w
}

func with(labels map[string]string, key, value string) map[string]string {
	all := map[string]string{key: value}
	for k, v := range labels {
		all[k] = v
	}
	return all
}

// crowded returns the world with one more pod, which is rejected and names so many labels and resources that those
// which no node has share a number.
func (w world) crowded() world {
	p := model.PodSpec{UID: "crowd", Name: "crowd", Namespace: "crowd", Created: epoch, Rejected: &model.Rejection{Reason: "is odd"},
		Alternatives: [][]label.Requirement{nil}}
	for i := range 100 {
		p.Alternatives[0] = append(p.Alternatives[0], label.Requirement{Key: fmt.Sprintf("crowd-%d", i), Operator: label.DoesNotExist})
		p.Requests = append(p.Requests, quantity.Amount{Name: fmt.Sprintf("crowd.io/r-%d", i), Value: 1})
	}
	w.pods = append(slices.Clone(w.pods), p)
	return w
}

// decided is a plan without its reasons.
type decided struct {
	Claims  []explain.Claim
	Placed  []explain.Placed
	Refused []string
}

func decisionOf(snap *model.Snapshot, p *plan.Provision) decided {
	a := explain.AnswerOf(snap, p)
	d := decided{Claims: a.Claims, Placed: a.Placed, Refused: []string{}}
	for _, r := range a.Refused {
		d.Refused = append(d.Refused, r.Pods...)
	}
	d.Refused = slices.DeleteFunc(d.Refused, func(key string) bool { return key == "crowd/crowd" })
	slices.Sort(d.Refused)
	return d
}

// TestUnknownNames audits plans of worlds in which the labels and resources that no node has have numbers of their own,
// and of the same worlds in which they share one, and checks that the plans are the same.
func TestUnknownNames(t *testing.T) {
	refused := 0
	for seed := range uint64(*worlds / 2) {
		for _, kind := range []uint8{plain, rich, foreign} {
			w := diceOf(seed, kind).world().odd(newDice(seed + 1<<33))
			if seed%2 == 0 {
				w = w.exact()
			}
			apart, together := w.snapshot(nil), w.crowded().snapshot(rand.New(rand.NewPCG(seed, 2)))
			if _, shared := apart.Space.Shared(); shared || slices.Contains(apart.Resources, model.Unknown) {
				t.Fatalf("seed %d: names share a number", seed)
			}
			if _, shared := together.Space.Shared(); !shared || !slices.Contains(together.Resources, model.Unknown) {
				t.Fatalf("seed %d: names share no number", seed)
			}
			p, q := placement.Schedule(apart, placement.Options{AskNodes: true}), placement.Schedule(together, placement.Options{AskNodes: true})
			check(t, apart, p)
			check(t, together, q)
			if diff := cmp.Diff(decisionOf(apart, p), decisionOf(together, q)); diff != "" && (seed%2 == 0 || kind == plain) {
				t.Fatalf("seed %d, kind %d: -numbers of their own +shared\n%s", seed, kind, diff)
			}
			for _, r := range q.Refused {
				for i := range r.Pools {
					refused++
					unnamed(t, together, r, r.Pools[i].Verdict)
				}
			}
		}
	}
	if refused == 0 {
		t.Error("no pool has refused a pod")
	}
}

// unnamed fails the test if the verdict shows the user the name that unknown labels or resources share.
func unnamed(t *testing.T, snap *model.Snapshot, r plan.Refusal, v plan.Verdict) {
	t.Helper()
	key, _ := snap.Space.Shared()
	switch v.Code {
	case plan.LabelUndefined, plan.LabelExcluded, plan.TypesExcluded:
		if v.Key == key && v.Name == "" {
			t.Errorf("%s: %s", r.Pods[0].Key(), explain.Verdict(snap, v))
		}
	case plan.ResourceTooLarge, plan.CombinationTooLarge:
		if snap.Resources[v.Resource] == model.Unknown && v.Name == "" {
			t.Errorf("%s: %s", r.Pods[0].Key(), explain.Verdict(snap, v))
		}
	}
}
