package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestWorkBudgetThatSuffices: a budget that is not spent changes nothing.
func TestWorkBudgetThatSuffices(t *testing.T) {
	for seed := range uint64(20) {
		snap := diceOf(seed, rich).world().snapshot(nil)
		want := explain.AnswerOf(snap, placement.Schedule(snap, placement.Options{}))
		got := explain.AnswerOf(snap, placement.Schedule(snap, placement.Options{WorkBudget: 1 << 40}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("seed %d (-without +with a budget):\n%s", seed, diff)
		}
	}
}

// TestWorkBudgetThatDoesNot: the unfinished plan is accepted by the audit, and is the same for every order of input.
func TestWorkBudgetThatDoesNot(t *testing.T) {
	unreached := 0
	for seed := range uint64(60) {
		for _, budget := range []int{1, 500, 5000} {
			w := diceOf(seed, uint8(seed%2)).world()
			snap, again := w.snapshot(nil), w.snapshot(rand.New(rand.NewPCG(seed, 2)))
			opts := placement.Options{WorkBudget: budget}
			p := placement.Schedule(snap, opts)
			check(t, snap, p)
			unreached += refusedFor(p, plan.NotReached)
			if diff := cmp.Diff(explain.AnswerOf(snap, p), explain.AnswerOf(again, placement.Schedule(again, opts))); diff != "" {
				t.Errorf("seed %d, budget %d: the plan depends on the order of input:\n%s", seed, budget, diff)
			}
		}
	}
	queue := crowd(0).snapshot(nil)
	if unreached += refusedFor(placement.Schedule(queue, placement.Options{WorkBudget: 1}), plan.NotReached); unreached == 0 {
		t.Error("every budget sufficed, want some that do not")
	}
}

// TestWorkOfLongRows checks that the values that pods name make queries cost more, and that they change no plan.
func TestWorkOfLongRows(t *testing.T) {
	w := crowd(0)
	for i := range w.nodes { // they have no zone
		w.nodes[i].Allocatable = w.nodes[i].Capacity
	}
	for i := range w.pods {
		w.pods[i].Alternatives = slices.Repeat([][]label.Requirement{
			{in(model.LabelZone, "a")}, {in(model.LabelZone, "a"), in(model.LabelType, "only")}}, 4)
	}
	short := w.snapshot(nil)
	for i := range 2 { // no pod may name all of these values
		name := fmt.Sprint("long-", i)
		r := label.Requirement{Key: model.LabelType, Operator: label.NotIn}
		for j := range 7500 {
			r.Values = append(r.Values, fmt.Sprintf("t-%d-%d", i, j))
		}
		w.pods = append(w.pods, model.PodSpec{UID: name, Name: name, Namespace: name, Created: epoch,
			Rejected: &model.Rejection{Reason: "is odd"}, Alternatives: [][]label.Requirement{{r}}})
	}
	snap := w.snapshot(nil)
	if words := snap.Space.Words(); words < 200 {
		t.Fatalf("rows have %d words", words)
	}
	p, q := placement.Schedule(short, placement.Options{}), placement.Schedule(snap, placement.Options{})
	if q.Work < p.Work+10_000 {
		t.Errorf("%d units of work with long rows, %d with short ones", q.Work, p.Work)
	}
	if diff := cmp.Diff(explain.AnswerOf(short, p).Claims, explain.AnswerOf(snap, q).Claims); diff != "" {
		t.Errorf("claims (-short +long rows):\n%s", diff)
	}
}

func refusedFor(p *plan.Provision, code plan.Code) int {
	n := 0
	for _, r := range p.Refused {
		if r.Verdict.Code == code {
			n += len(r.Pods)
		}
	}
	return n
}

// crowd has a pool, full nodes, many groups of high priority that fit nowhere and come first in the queue, and as many
// groups that fit.
func crowd(impossible int) world {
	amounts := func(cpu, pods int64) []quantity.Amount {
		return []quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "pods", Value: pods}}
	}
	c := &model.Catalog{WellKnown: wellKnown(), Types: []model.InstanceType{{Name: "only", Capacity: amounts(4000, 50), Allocatable: amounts(4000, 50),
		Requirements: []label.Requirement{in(model.LabelType, "only")},
		Offerings:    []model.Offering{{Zone: "a", CapacityType: "spot", Price: 1, Available: true}}}}}
	w := world{pools: []model.PoolSpec{{Name: "pool", UID: "pool", Catalog: c, Requirements: []label.Requirement{in(model.LabelPool, "pool")}}}}
	for i := range 50 {
		name := fmt.Sprintf("full-%d", i)
		w.nodes = append(w.nodes, model.NodeSpec{Name: name, UID: name, Stage: model.Initialized, Ready: true, Labels: map[string]string{model.LabelHostname: name},
			Capacity: amounts(4000, 50), Allocatable: amounts(0, 50), Created: epoch})
	}
	add := func(name string, cpu int64, priority int32) {
		w.pods = append(w.pods, model.PodSpec{UID: name, Namespace: "default", Name: name, Created: epoch, Priority: priority, Requests: amounts(cpu, 1), Reschedulable: true})
	}
	for i := range impossible {
		add(fmt.Sprintf("impossible-%d", i), 5000+int64(i), 1000)
	}
	for i := range 200 {
		add(fmt.Sprintf("possible-%d", i), 500+int64(i), 0)
	}
	return w
}

// TestWorkBudgetStarvesNoPod: plan after plan, with launched claims in flight, every pod that fits is placed, although
// the first pods of the queue never are and cost most of the work.
func TestWorkBudgetStarvesNoPod(t *testing.T) {
	w := crowd(200)
	for round := range 200 {
		b := model.NewBuilder()
		for _, p := range w.pools {
			b.UpsertPool(p)
		}
		for _, n := range w.nodes {
			b.UpsertNode(n)
		}
		for _, p := range w.pods {
			b.UpsertPod(p)
		}
		snap := b.Snapshot(epoch.Add(time.Duration(round) * 10 * time.Second))
		p := placement.Schedule(snap, placement.Options{WorkBudget: 12_000})
		check(t, snap, p)
		if len(p.Order) == 200 {
			if round < 3 {
				t.Fatal("three plans sufficed: this shows nothing")
			}
			return
		}
		w = w.launching(p.Claims)
	}
	t.Error("after 200 plans a pod that fits is not placed")
}

// beside adds a pod of another namespace that fits on any node.
func (w world) beside(priority int32) world {
	w.pods = append(w.pods, model.PodSpec{UID: "harmless", Namespace: "harmless", Name: "harmless", Created: epoch, Priority: priority, Reschedulable: true,
		Requests: []quantity.Amount{{Name: "cpu", Value: 100}, {Name: "pods", Value: 1}}})
	return w
}

func isPlaced(p *plan.Provision, uid string) bool {
	return slices.ContainsFunc(p.Order, func(pod *model.Pod) bool { return pod.UID == uid })
}

// TestWorkBudgetIsSharedByNamespaces: beside 1,500 pods of another namespace that exclude each other from their hosts,
// and for which the budget does not suffice, a pod of a small namespace is placed in the first plan, and the work
// remains near the budget.
func TestWorkBudgetIsSharedByNamespaces(t *testing.T) {
	const budget = 1_000_000
	snap := mutuallyApart(1_500).beside(0).snapshot(nil)
	p := placement.Schedule(snap, placement.Options{WorkBudget: budget})
	if !p.Unfinished() {
		t.Fatal("the budget suffices: this shows nothing")
	}
	if !isPlaced(p, "harmless") {
		t.Error("the harmless pod is not placed")
	}
	if len(p.Claims) < 100 {
		t.Errorf("%d claims, want a plan that uses its budget", len(p.Claims))
	}
	if p.Work > 2*budget {
		t.Errorf("%d evaluations, want no more than twice the budget of %d", p.Work, budget)
	}
}

// TestWorkBudgetStarvesNoNamespace: groups of a higher priority that fit nowhere and use the whole budget do not
// prevent the placement of a pod of another namespace forever.
func TestWorkBudgetStarvesNoNamespace(t *testing.T) {
	w := crowd(400).beside(0)
	for round := range 50 {
		b := model.NewBuilder()
		for _, p := range w.pools {
			b.UpsertPool(p)
		}
		for _, n := range w.nodes {
			b.UpsertNode(n)
		}
		for _, p := range w.pods {
			b.UpsertPod(p)
		}
		p := placement.Schedule(b.Snapshot(epoch.Add(time.Duration(round)*7*time.Second)), placement.Options{WorkBudget: 12_000})
		if isPlaced(p, "harmless") {
			return
		}
		if !p.Unfinished() {
			t.Fatal("the budget suffices: this shows nothing")
		}
	}
	t.Error("after 50 plans the harmless pod is not placed")
}
