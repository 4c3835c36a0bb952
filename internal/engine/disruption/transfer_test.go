package disruption_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// settled is what is compared of a fleet.
type settled struct {
	Now     time.Time
	Nodes   []settledNode
	Pending []string
	// Next is what is proposed for it.
	Next string
}

type settledNode struct {
	model.NodeSpec
	Price int64
	Used  quantity.Vector
	Pods  []string
}

func settledOf(snap *model.Snapshot) settled {
	s := settled{Now: snap.Now}
	for _, n := range snap.Nodes {
		s.Nodes = append(s.Nodes, settledNode{*n.NodeSpec, n.Price, n.Used, keysOf(n.Pods)})
	}
	for _, g := range snap.Groups {
		s.Pending = append(s.Pending, keysOf(g.Pods)...)
	}
	slices.Sort(s.Pending)
	s.Next = told(disruption.Propose(snap, disruption.Options{}))
	return s
}

// TestTransfer checks that a snapshot of the same objects becomes what commands, carried out one by one, make of the first,
// after some of them and at rest.
func TestTransfer(t *testing.T) {
	steps := 0
	for seed := range uint64(60) {
		f := fleetOf(seed)
		first := f.snapshot(nil)
		last := first
		for range 6 {
			p := disruption.Propose(last, disruption.Options{})
			for _, c := range p.Commands {
				last = disruption.After(last, c)
			}
			later := *last
			later.Now = later.Now.Add(time.Hour)
			last = &later
			steps += len(p.Commands)
			got := disruption.Transfer(first, last, f.snapshot(nil))
			if diff := cmp.Diff(settledOf(last), settledOf(got)); diff != "" {
				t.Fatalf("seed %d: (-one by one +transferred)\n%s", seed, diff)
			}
		}
	}
	if steps < 300 {
		t.Errorf("%d commands in all, want many", steps)
	}
}

// TestTransferElsewhere checks what becomes of a launched node, and of its pods, where its pool does not exist.
func TestTransferElsewhere(t *testing.T) {
	for seed := range uint64(60) {
		f := fleetOf(seed)
		first := f.snapshot(nil)
		last := first
		for _, c := range disruption.Propose(first, disruption.Options{}).Commands {
			last = disruption.After(last, c)
		}
		at := slices.IndexFunc(last.Nodes, func(n *model.Node) bool { return first.Node(n.Name) == nil && len(n.Pods) > 0 })
		if at < 0 {
			continue
		}
		launched := last.Nodes[at]
		f.pools = slices.DeleteFunc(f.pools, func(p model.PoolSpec) bool { return p.Name == launched.Pool })
		got := disruption.Transfer(first, last, f.snapshot(nil))
		if got.Node(launched.Name) != nil {
			t.Fatalf("seed %d: node %s is there, and its pool %s is not", seed, launched.Name, launched.Pool)
		}
		var pending []string
		for _, g := range got.Groups {
			pending = append(pending, keysOf(g.Pods)...)
		}
		for _, key := range keysOf(launched.Pods) {
			if !slices.Contains(pending, key) {
				t.Errorf("seed %d: pod %s is not pending", seed, key)
			}
		}
		return
	}
	t.Fatal("no fleet launches a node")
}
