package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestVirtualWorlds requires in random worlds with virtual pods: the plan of the other pods is the same as without them,
// the audit finds no problem, the order of input makes no difference, and room in flight is not launched again.
func TestVirtualWorlds(t *testing.T) {
	for seed := range uint64(*worlds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { virtualProperties(t, seed, []uint8{plain, rich, foreign}[seed%3]) })
	}
}

func virtualProperties(t *testing.T, seed uint64, kind uint8) {
	w := diceOf(seed, kind).world()
	room := diceOf(seed+1<<33, kind)
	for i := range 1 + room.IntN(3) {
		w.buffer(room, i)
	}
	w.mention()
	bare := w
	bare.pods = slices.DeleteFunc(slices.Clone(w.pods), func(p model.PodSpec) bool { return p.Virtual != "" })
	alone, snap := bare.snapshot(nil), w.snapshot(nil)
	p := placement.Schedule(snap, placement.Options{})
	want := placement.Schedule(alone, placement.Options{})
	sameButVirtual(t, alone, want, snap, p)
	check(t, snap, p)

	again := w.snapshot(rand.New(rand.NewPCG(seed, 4)))
	if diff := cmp.Diff(explain.AnswerOf(snap, p), explain.AnswerOf(again, placement.Schedule(again, placement.Options{}))); diff != "" {
		t.Fatalf("seed %d: the plan depends on the order of input:\n%s", seed, diff)
	}

	next := w.launching(slices.Concat(p.Claims, p.Virtual.Claims))
	next = next.nominated(next.snapshot(nil), p)
	after := keeping(next.snapshot(nil), p)
	q := placement.Schedule(after, placement.Options{})
	check(t, after, q)
	if n := boughtAgain(p.Virtual, q.Virtual); n > 0 && samePlaces(p, q) {
		t.Fatalf("seed %d: with the plan's claims in flight %d are launched again:\n%s\nafter\n%s", seed, n,
			explain.Provision(after, q), explain.Provision(snap, p))
	}
}

// sameButVirtual requires that two plans differ in the virtual pods only.
func sameButVirtual(t *testing.T, a *model.Snapshot, p *plan.Provision, b *model.Snapshot, q *plan.Provision) {
	t.Helper()
	real := *q
	real.Virtual = nil
	if diff := cmp.Diff(explain.AnswerOf(a, p), explain.AnswerOf(b, &real)); diff != "" {
		t.Fatalf("virtual pods change the plan of other pods:\n%s", diff)
	}
	uids := func(pods []*model.Pod) (all []string) {
		for _, pod := range pods {
			all = append(all, pod.UID)
		}
		return all
	}
	if diff := cmp.Diff(uids(p.Order), uids(q.Order)); diff != "" {
		t.Fatalf("virtual pods change the order of binding:\n%s", diff)
	}
}

// samePlaces reports whether the later plan places exactly the pods that the first one placed.
func samePlaces(first, later *plan.Provision) bool {
	placed := map[string]bool{}
	for _, pod := range first.Order {
		placed[pod.UID] = true
	}
	return len(first.Order) == len(later.Order) && !slices.ContainsFunc(later.Order, func(p *model.Pod) bool { return !placed[p.UID] })
}

// buffer adds virtual pods: with the template of a workload, or with one of their own.
func (w *world) buffer(d dice, i int) {
	p := w.pods[d.IntN(len(w.pods))]
	if p.Daemon || d.chance(50) {
		other := world{}
		other.deployment(d, fmt.Sprintf("app-%d", d.IntN(8)), 1)
		p = other.pods[0]
	}
	p.State, p.Node, p.Terminating, p.Rejected, p.Virtual, p.Priority = model.Pending, "", false, nil, model.VirtualBuffer, -1<<31
	p.Volumes, p.VolumeAlternatives = nil, nil
	custom := func(key string) bool { return key == keyRack || key == keyTeam } // see mention
	p.Terms = slices.DeleteFunc(slices.Clone(p.Terms), func(t model.Term) bool { return t.Together || custom(t.Key) })
	p.Spread = slices.DeleteFunc(slices.Clone(p.Spread), func(s model.Spread) bool { return custom(s.Key) })
	for k := range 1 + d.IntN(5) {
		p.Name = fmt.Sprintf("buffer-%d-%d", i, k)
		p.UID, p.Created = "uid-"+p.Name, epoch.Add(time.Duration(i)*time.Second)
		w.pods = append(w.pods, p)
	}
}

// mention adds pods that are ignored and mention the label values of the virtual pods: a node gets the smallest of all
// values that are mentioned for a custom label that its pods leave open.
func (w *world) mention() {
	for _, p := range w.pods {
		if p.Virtual != "" {
			p.Virtual, p.Name, p.UID = "", "mentions-"+p.Name, "mentions-"+p.UID
			p.Rejected = &model.Rejection{Field: "spec", Reason: "is only a mention", Silent: true}
			p.Spread, p.Terms = nil, nil
			w.pods = append(w.pods, p)
		}
	}
}
