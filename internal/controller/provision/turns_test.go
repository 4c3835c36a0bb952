package provision_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/testing/loopcluster"
)

// TestProvisionBatchesByNamespace verifies that a batch ends when no more pods are created in one namespace, although
// they still are in another.
func TestProvisionBatchesByNamespace(t *testing.T) {
	w := loopcluster.New()
	passes := loopcluster.NewTicks()
	bell := make(chan struct{}, 1)
	p := newLoop(w, func(*model.Snapshot) *plan.Provision {
		passes.Add(w.Clock.Now())
		return &plan.Provision{}
	})
	p.Pending = bell
	asleep := loopcluster.Started(t, w.Clock, p.Start)
	asleep()
	begin := w.Clock.Now()
	w.Lock()
	w.Pending("harmless", "")
	w.Pods["uid-harmless"].Namespace = "other"
	w.Unlock()
	for i := range 5 {
		w.Lock()
		w.Pending(fmt.Sprint("p", i), "")
		w.Unlock()
		bell <- struct{}{}
		loopcluster.Until(t, "the bell is heard", func() bool { return len(bell) == 0 })
		loopcluster.WaitForTimers(t, w.Clock, 3)
		w.Clock.Step(900 * time.Millisecond)
		if passes.Len() > 0 {
			break
		}
	}
	if at := passes.Next(t).Sub(begin); at > 3*time.Second {
		t.Errorf("pass %s after the first event, want one as soon as no other pod was created in the small namespace for a second", at)
	}
}

// TestProvisionWritesInTurns verifies that the claims of a large plan are created in portions, alternating between
// namespaces, and no further when pods of a namespace are pending that the plan does not contain: those are planned
// at once.
func TestProvisionWritesInTurns(t *testing.T) {
	const many = 150
	for _, late := range []bool{false, true} {
		w := loopcluster.New()
		for i := range many {
			w.Pending(fmt.Sprintf("a%03d", i), "")
		}
		w.Pending("b", "")
		w.Pods["uid-b"].Namespace = "small"
		p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
			decided := &plan.Provision{}
			for _, g := range snap.Groups {
				for _, pod := range g.Pods {
					decided.Order = append(decided.Order, pod)
					decided.Claims = append(decided.Claims, plan.NewClaim{Name: "claim-" + pod.Name, Pool: "p", PoolUID: "pool-uid", Pods: []*model.Pod{pod}})
				}
			}
			if late {
				w.Pending("late", "")
				w.Pods["uid-late"].Namespace = "late"
			}
			return decided
		})
		p.Tick(t.Context())
		all := many + 1
		if late {
			all = 100
		}
		if len(w.Nodes) != all {
			t.Errorf("late %v: %d claims, want %d", late, len(w.Nodes), all)
		}
		if at := slices.IndexFunc(w.Log, func(l string) bool { return strings.HasSuffix(l, "claim-b") || strings.Contains(l, "claim-b ") }); at < 0 || at > 2 {
			t.Errorf("late %v: the claim of the small namespace was created at place %d, want it among the first", late, at)
		}
	}
}

// killed is a writer whose process ends after a number of portions: later writes are dropped.
type killed struct {
	*loopcluster.Cluster
	portions int
}

func (k *killed) Provision(ctx context.Context, newest func() *model.Snapshot, p *plan.Provision) execute.Provisioned {
	if k.portions--; k.portions < 0 {
		return execute.Provisioned{Plan: &plan.Provision{}}
	}
	return k.Cluster.Provision(ctx, newest, p)
}

// TestProvisionReservesBeforeTurns covers a process that is killed between two portions of a plan. It leaves the
// reservations of the whole plan: those for pods that join a claim in flight, and none for pods of a created claim.
// Reservations of earlier portions are kept by later ones.
func TestProvisionReservesBeforeTurns(t *testing.T) {
	const many = 250
	for portions := 1; portions <= 3; portions++ {
		w := loopcluster.New()
		w.Node("coming", model.Launched)
		w.Nodes["c-coming"].ReservedFor = model.ParsePodRefs("uid-p000 uid-p249 uid-stays")
		for i := range many {
			w.Pending(fmt.Sprintf("p%03d", i), "")
		}
		for _, joins := range []string{"stays", "joins"} {
			w.Pending(joins, "")
		}
		p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
			decided := &plan.Provision{Placed: []plan.Placement{{Node: "coming", Pods: loopcluster.PodsOf(snap, "stays", "joins")}}}
			for _, g := range snap.Groups {
				decided.Order = append(decided.Order, g.Pods...)
			}
			for i := range many {
				name := fmt.Sprintf("p%03d", i)
				decided.Claims = append(decided.Claims, plan.NewClaim{Name: "claim-" + name, Pool: "p", PoolUID: "pool-uid", Pods: loopcluster.PodsOf(snap, name)})
			}
			return decided
		})
		p.Writer = &killed{w, portions}
		p.Tick(t.Context())
		if n := len(w.Nodes) - 1; n != min(100*portions, many) {
			t.Errorf("%d claims after %d portions", n, portions)
		}
		reserved := strings.Fields(model.JoinPodRefs(w.Nodes["c-coming"].ReservedFor))
		slices.Sort(reserved)
		if diff := cmp.Diff([]string{"uid-joins", "uid-stays"}, reserved); diff != "" {
			t.Errorf("reserved after %d portions (-want +got):\n%s", portions, diff)
		}
	}
}
