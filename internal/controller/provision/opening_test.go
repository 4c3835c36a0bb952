package provision_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/provision"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/testing/loopcluster"
)

// mixture is a plan with unlimited pods (see nominate.Order) on nodes a and b and three limited pods on node c, all of
// them closed.
type mixture struct {
	*loopcluster.Cluster
	t *testing.T
	p *provision.Loop
}

func newMixture(t *testing.T) *mixture {
	w := loopcluster.New()
	placed := map[string][]string{"a": {"db-a"}, "b": {"db-b"}, "c": {"web-0", "web-1", "web-2"}}
	for node, pods := range placed {
		n := w.Node(node, model.Launched)
		n.Labels = map[string]string{model.LabelPool: "p", model.LabelZone: node}
		for _, pod := range pods {
			w.Pending(pod, "")
			if node == "c" {
				w.Pods["uid-"+pod].Labels = map[string]string{"app": "web"}
				w.Pods["uid-"+pod].Spread = []model.Spread{{Key: model.LabelZone, MaxSkew: 1, Selector: model.Selector{
					Namespaces: []string{"default"}, Requirements: []label.Requirement{{Key: "app", Operator: label.In, Values: []string{"web"}}}}}}
			}
		}
	}
	p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
		return &plan.Provision{Placed: []plan.Placement{{Node: "a", Pods: loopcluster.PodsOf(snap, "db-a")}, {Node: "b", Pods: loopcluster.PodsOf(snap, "db-b")},
			{Node: "c", Pods: loopcluster.PodsOf(snap, "web-0", "web-1", "web-2")}}}
	})
	return &mixture{w, t, p}
}

// asks calls NominateFor for the node and reports whether the node may open.
func (m *mixture) asks(node string, taints ...corev1.Taint) bool {
	m.t.Helper()
	claim, n := claimNamed("c-"+node), nodeNamed(node)
	claim.UID, n.Spec.Taints = types.UID("uid-c-"+node), taints
	err := m.p.NominateFor(m.t.Context(), claim, n)
	if notYet := (*controller.NotYetError)(nil); err != nil && !errors.As(err, &notYet) {
		m.t.Fatal(err)
	}
	return err == nil
}

func (m *mixture) opens(node string) {
	m.Nodes["c-"+node].Stage = model.Registered
	m.changed()
}

// changed advances the clock beyond the time for which nodes share an order.
func (m *mixture) changed() { m.Clock.Step(m.p.Timers.HookRetry) }

// may checks which nodes may open.
func (m *mixture) may(when string, want map[string]bool) {
	m.t.Helper()
	for _, node := range []string{"c", "b", "a"} {
		if wanted, asked := want[node]; asked {
			if got := m.asks(node); got != wanted {
				m.t.Errorf("%s: node %s may open: %v, want %v", when, node, got, wanted)
			}
		}
	}
}

// TestNominateForInOrder verifies that nodes with unlimited pods open one after the other, each when kube-scheduler
// has tried its pods since the previous one opened. Nodes with limited pods alone open after them. Nominations that
// were cleared are written again before each.
func TestNominateForInOrder(t *testing.T) {
	m := newMixture(t)
	m.may("at first", map[string]bool{"c": false, "b": true, "a": false})
	if got := m.Pods["uid-db-a"].Nominated; got != "a" {
		t.Errorf("before the first node opens, the pod of another node is nominated to %q, want its node", got)
	}
	m.may("a node is opening", map[string]bool{"c": false, "a": false, "b": true}) // b again, after a conflict
	m.opens("b")
	m.may("its pods were not tried yet", map[string]bool{"c": false, "a": false})
	for _, pod := range m.Pods { // kube-scheduler has tried all
		pod.Nominated = ""
	}
	m.changed()
	m.may("tried", map[string]bool{"a": true, "c": false})
	m.opens("a")
	for _, pod := range []string{"db-a", "db-b"} {
		if got := m.Pods["uid-"+pod].Nominated; got == "" {
			t.Errorf("pod %s is not nominated again", pod)
		}
		m.Pods["uid-"+pod].Nominated = ""
	}
	m.may("the last of the others is just open", map[string]bool{"c": false})
	m.Clock.Step(m.p.Timers.OpeningPause)
	m.may("those of the others are open", map[string]bool{"c": true})
	if m.Pods["uid-db-a"].Nominated != "a" || m.Pods["uid-db-b"].Nominated != "b" {
		t.Error("the unlimited pods are not nominated when the last node opens")
	}
}

// TestNominateForObservesWithoutOrder verifies that every node opens at once where kube-scheduler is only observed,
// as before Kubernetes 1.35.
func TestNominateForObservesWithoutOrder(t *testing.T) {
	m := newMixture(t)
	m.p.Nominate = false
	m.may("at first", map[string]bool{"a": true, "b": true, "c": true})
	loopcluster.Expect(t, m.Cluster, "")
}

// TestNominateForWaitsForATime verifies that the timers bound the wait for nodes that do not register and for a node
// that is not ready.
func TestNominateForWaitsForATime(t *testing.T) {
	m := newMixture(t)
	m.may("at first", map[string]bool{"c": false})
	m.Clock.Step(m.p.Timers.Opening - time.Millisecond)
	m.may("soon", map[string]bool{"c": false})
	m.Clock.Step(time.Millisecond)
	m.may("in time", map[string]bool{"c": true})
	m.may("again, after a conflict", map[string]bool{"c": true})

	m = newMixture(t)
	unready := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	other := karpv1.DisruptedTaint()
	if m.asks("a", unready) || m.Pods["uid-db-a"].Nominated != "" {
		t.Error("a node that is not ready opens, or its pods are nominated already")
	}
	if !m.asks("a", other) {
		t.Error("a node that is ready waits")
	}
	m = newMixture(t)
	m.asks("a", unready)
	m.Clock.Step(m.p.Timers.OpeningUnready)
	if !m.asks("a", unready) {
		t.Error("a node that is not ready waits forever")
	}
}

// counting counts the writes of each nomination, and concurrent calls.
type counting struct {
	provision.Writer
	mu            sync.Mutex
	running, most int
	nominated     map[string]int
}

func (c *counting) Do(ctx context.Context, actions []plan.Action) []execute.Outcome {
	c.mu.Lock()
	if len(actions) > 0 {
		c.running++
		c.most = max(c.most, c.running)
	}
	for _, action := range actions {
		c.nominated[action.String()]++
	}
	c.mu.Unlock()
	runtime.Gosched() // other goroutines run in between
	outcomes := c.Writer.Do(ctx, actions)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(actions) > 0 {
		c.running--
	}
	return outcomes
}

// TestNominateForManyNodesThatWait verifies that with any number of waiting nodes and pods, the order is computed
// once for all concurrent calls, one of them writes the missing nominations once, and no call computes a plan.
func TestNominateForManyNodesThatWait(t *testing.T) {
	m := newMixture(t)
	schedule, plans, looks := m.p.Schedule, atomic.Int32{}, atomic.Int32{}
	for i := range 16 {
		n := m.Node(fmt.Sprint("d", i), model.Launched)
		n.Labels = map[string]string{model.LabelPool: "p", model.LabelZone: "d"}
		m.Pending(fmt.Sprint("d-", i), "")
	}
	for i := range 500 {
		m.Pending(fmt.Sprint("refused-", i), "")
	}
	m.p.Schedule = func(snap *model.Snapshot) *plan.Provision {
		plans.Add(1)
		decided := schedule(snap)
		for i := range 16 {
			decided.Placed = append(decided.Placed, plan.Placement{Node: fmt.Sprint("d", i), Pods: loopcluster.PodsOf(snap, fmt.Sprint("d-", i))})
		}
		return decided
	}
	writer := &counting{Writer: m.Cluster, nominated: map[string]int{}}
	m.p.Writer, m.p.Snapshot = writer, func() *model.Snapshot { looks.Add(1); return m.Cluster.Snapshot() }
	if !m.asks("a") {
		t.Fatal("the first node does not open")
	}
	m.opens("a")
	m.Pods["uid-db-a"].Nominated = "" // kube-scheduler tried it without success
	before := looks.Load()
	clear(writer.nominated)
	var group errgroup.Group
	for range 20 {
		group.Go(func() error { m.asks("c"); return nil })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := looks.Load() - before; got > 2 {
		t.Errorf("20 concurrent calls took %d snapshots, want one, and one after the nominations are written", got)
	}
	if diff := cmp.Diff(map[string]int{"nominate pod default/db-a to node a": 1}, writer.nominated); diff != "" {
		t.Errorf("nominations while nodes wait (-want +got):\n%s", diff)
	}
	if writer.most > 1 {
		t.Errorf("%d nodes write nominations concurrently, want one", writer.most)
	}
	m.changed()
	for range 40 { // all others open in the end
		m.Clock.Step(m.p.Timers.Opening)
		for i := range 16 {
			if node := fmt.Sprint("d", i); m.Nodes["c-"+node].Stage < model.Registered && m.asks(node) {
				m.opens(node)
			}
		}
	}
	for i := range 16 {
		if m.Nodes[fmt.Sprint("c-d", i)].Stage < model.Registered {
			t.Errorf("node d%d does not open", i)
		}
	}
	if plans.Load() != 1 {
		t.Errorf("%d plans were computed, want only the first", plans.Load())
	}
}
