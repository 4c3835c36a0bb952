package placement_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestRefusalsHaveReasons: every pool reports a reason for each refusal. A reason about types also holds when the pod
// is alone with the pool. Every suggested change helps.
func TestRefusalsHaveReasons(t *testing.T) {
	reasons, helped := 0, map[plan.Code]int{}
	for seed := range 2 * uint64(*worlds) {
		d := newDice(seed)
		d.rich = seed%2 == 0
		w := d.world()
		snap := w.snapshot(nil)
		p := placement.Schedule(snap, placement.Options{})
		for _, r := range p.Refused {
			if !r.Verdict.OK() {
				continue
			}
			if len(r.Pools) != len(snap.Pools) {
				t.Fatalf("seed %d: %d of %d pools report why %s is unschedulable", seed, len(r.Pools), len(snap.Pools), r.Pods[0].Key())
			}
			for _, v := range r.Pools {
				reasons++
				alone := aloneWith(w, snap.Pool(v.Pool).PoolSpec, r.Pods[0].UID)
				name := explain.Verdict(snap, v.Verdict)
				switch v.Verdict.Code {
				case plan.OK:
					t.Fatalf("seed %d: pool %s refuses %s without a reason", seed, v.Pool, r.Pods[0].Key())
				case plan.TaintNotTolerated, plan.LabelUndefined, plan.LabelExcluded, plan.TypesExcluded, plan.ResourceTooLarge, plan.CombinationTooLarge:
					if alone.fits() && !aboutTopology(snap, r.Pods[0], v.Verdict) {
						t.Fatalf("seed %d: pool %s refuses %s (%s), and admits it when it is alone", seed, v.Pool, r.Pods[0].Key(), name)
					}
				}
				for _, c := range v.Nearest {
					if changed, ok := alone.with(snap, c.Rule); ok {
						helped[c.Rule.Code]++
						if !changed.fits() {
							t.Fatalf("seed %d: pool %s refuses %s (%s), and dropping %s does not help\n%s\nthen\n%s", seed, v.Pool, r.Pods[0].Key(), name,
								explain.Verdict(snap, c.Rule), explain.Tree(snap, r), changed.tell())
						}
					}
				}
			}
		}
	}
	if reasons < *worlds {
		t.Errorf("only %d reasons: the worlds have too few refusals", reasons)
	}
	for _, code := range []plan.Code{plan.TaintNotTolerated, plan.LabelExcluded, plan.TypesExcluded, plan.ResourceTooLarge} {
		if helped[code] == 0 {
			t.Errorf("no change of %s was tried: %v", explain.Code(code), helped)
		}
	}
}

// aboutTopology reports whether the label is missing because a rule between pods counts by it.
func aboutTopology(snap *model.Snapshot, pod *model.Pod, v plan.Verdict) bool {
	key := snap.Space.Name(v.Key)
	return v.Code == plan.LabelUndefined && (slices.ContainsFunc(pod.Spread, func(s model.Spread) bool { return s.Key == key }) ||
		slices.ContainsFunc(pod.Terms, func(t model.Term) bool { return t.Key == key }))
}

// solo is a pod alone with a pool that has no limits, no nodes and no minValues.
type solo struct {
	w   world
	pod model.PodSpec
}

func aloneWith(w world, pool *model.PoolSpec, uid string) solo {
	at := slices.IndexFunc(w.pods, func(p model.PodSpec) bool { return p.UID == uid })
	s := solo{pod: w.pods[at]}
	s.pod.Spread, s.pod.Terms, s.pod.Nominated = nil, nil, ""
	open := *pool
	open.Limits = nil
	open.Requirements = slices.Clone(pool.Requirements)
	for i := range open.Requirements {
		open.Requirements[i].MinValues = 0
	}
	s.w = w
	s.w.pools, s.w.nodes = []model.PoolSpec{open}, nil
	return s
}

func (s solo) fits() bool { return strings.HasPrefix(s.tell(), "claim") }

// tell returns the plan for the pod alone, as text.
func (s solo) tell() string {
	s.w.pods = []model.PodSpec{s.pod}
	snap := s.w.snapshot(nil)
	return explain.Provision(snap, placement.Schedule(snap, placement.Options{}))
}

// with returns the pod without the rule; false for rules that the pod cannot drop.
func (s solo) with(snap *model.Snapshot, rule plan.Verdict) (solo, bool) {
	switch rule.Code {
	case plan.TaintNotTolerated:
		s.pod.Tolerations = append(slices.Clone(s.pod.Tolerations), model.Toleration{Key: rule.Taint.Key, Exists: true, Effect: rule.Taint.Effect})
	case plan.LabelUndefined, plan.LabelExcluded, plan.TypesExcluded:
		without := func(alternatives [][]label.Requirement) [][]label.Requirement {
			var changed [][]label.Requirement
			for _, reqs := range alternatives {
				changed = append(changed, slices.DeleteFunc(slices.Clone(reqs), func(q label.Requirement) bool {
					return label.Canonical(q.Key) == snap.Space.Name(rule.Key)
				}))
			}
			return changed
		}
		s.pod.Alternatives, s.pod.VolumeAlternatives = without(s.pod.Alternatives), without(s.pod.VolumeAlternatives)
	case plan.ResourceTooLarge, plan.CombinationTooLarge:
		requests := slices.Clone(s.pod.Requests)
		at := slices.IndexFunc(requests, func(a quantity.Amount) bool { return a.Name == snap.Resources[rule.Resource] })
		if at < 0 || rule.Resource > quantity.Pods {
			return s, false // without its device the pod may not use types with devices; volumes are not only requests
		}
		requests[at].Value = rule.Have
		s.pod.Requests = requests
	default:
		return s, false
	}
	return s, true
}
