package controller_test

import (
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
)

// lying describes wrong responses of a cloud. The zero value has none.
type lying struct {
	// list changes the result of Machines, and absent makes Machine return that a machine does not exist.
	list   func([]cloud.Machine) []cloud.Machine
	absent func(id string) bool
	// silent makes Machine fail, and unlisted makes Machines fail.
	silent, unlisted bool
}

// lie sets the wrong responses of the cloud from now on.
func (c *memoryCloud) lie(how lying) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lying = how
}

// listed returns the number of calls of Machines.
func (c *memoryCloud) listed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists
}

// rounds waits for n further complete runs of garbage collection.
func (w *world) rounds(n int) {
	w.t.Helper()
	from := w.cloud.listed()
	w.until(fmt.Sprintf("%d rounds of garbage collection", n), func() bool { return w.cloud.listed() > from+n })
}

// herd creates a NodePool with n running nodes.
func (w *world) herd(n int) (*karpv1.NodePool, []*karpv1.NodeClaim, []*corev1.Node) {
	w.t.Helper()
	pool := newPool("general")
	w.create(pool)
	var claims []*karpv1.NodeClaim
	var nodes []*corev1.Node
	for i := range n {
		claim, node := w.running(fmt.Sprintf("herd-%d", i))
		claims, nodes = append(claims, claim), append(nodes, node)
	}
	return pool, claims, nodes
}

// allStay fails for each claim that is gone or being deleted.
func (w *world) allStay(claims []*karpv1.NodeClaim) {
	w.t.Helper()
	for _, claim := range claims {
		if !w.read(claim) || !claim.DeletionTimestamp.IsZero() {
			w.t.Errorf("claim %s was deleted", claim.Name)
		}
	}
}

// removalsPaused reports whether involuntary removals of the NodePool's machines are paused.
func removalsPaused(pool *karpv1.NodePool) bool {
	paused := pause.Parse(pool.Annotations[karpv1.AnnotationPauses]).Of(pause.Key{Reason: pause.Removal, Scope: pool.Name})
	return paused.Active(time.Now())
}

// testCloudFindsNothing covers a cloud that finds no machine, by list and by ID, while every node reports. All nodes
// stay, the disagreement is reported, and nodes are provisioned meanwhile.
func testCloudFindsNothing(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.collect = true
	w.timers.SecondLook = time.Millisecond
	w.start()
	_, claims, _ := w.herd(5)
	w.cloud.lie(lying{list: func([]cloud.Machine) []cloud.Machine { return nil }, absent: func(string) bool { return true }})
	w.rounds(3)
	w.allStay(claims)
	w.counted("machines in dispute", 5, w.metrics.NodeClaimsDisputed.WithLabelValues("general"))
	w.untilSaid("MachineDisputed")
	// The Lease comes first: a node that has never reported, of a machine that the cloud does not find, is removed.
	w.beat(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-meanwhile"}}, time.Now())
	more, _ := w.running("meanwhile")
	w.cloud.lie(lying{})
	w.until("nothing is in dispute", func() bool { return w.value(w.metrics.NodeClaimsDisputed.WithLabelValues("general")) == 0 })
	w.allStay(append(claims, more))
}

// testDisputeWithoutAnswers verifies that failed queries about disputed machines keep them disputed, and that held
// removals stay held meanwhile.
func testDisputeWithoutAnswers(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.collect = true
	w.start()
	_, claims, _ := w.herd(5)
	none := func([]cloud.Machine) []cloud.Machine { return nil }
	disputed := func() float64 { return w.value(w.metrics.NodeClaimsDisputed.WithLabelValues("general")) }
	w.cloud.lie(lying{list: none, absent: func(string) bool { return true }})
	w.until("all are in dispute", func() bool { return disputed() == 5 })
	w.cloud.lie(lying{list: none, silent: true})
	w.rounds(3)
	if got := disputed(); got != 5 {
		t.Errorf("%v machines are disputed while the cloud does not respond, want 5", got)
	}
	w.allStay(claims)
	w.cloud.lie(lying{unlisted: true})
	w.until("nothing is in dispute while the list alone fails", func() bool { return disputed() == 0 })
	w.cloud.lie(lying{list: none, absent: func(string) bool { return true }})
	w.until("all are in dispute again", func() bool { return disputed() == 5 })
	w.cloud.lie(lying{})
	w.until("nothing is in dispute", func() bool { return disputed() == 0 })
}

// testCloudListsHalf covers a list with every second machine only: a direct query finds the others.
func testCloudListsHalf(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.collect = true
	w.start()
	_, claims, nodes := w.herd(4)
	for _, node := range nodes {
		w.report(node, corev1.ConditionUnknown) // only the cloud shows the machine
	}
	w.cloud.lie(lying{list: func(all []cloud.Machine) []cloud.Machine { return all[:len(all)/2] }})
	w.rounds(3)
	w.allStay(claims)
}

// testCloudOfOthers covers credentials of another account: the list contains machines of others and none of this
// cluster. None is terminated, and the NodePool reports it, until the operator allows the removal.
func testCloudOfOthers(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.collect = true
	w.start()
	pool, claims, _ := w.herd(4)
	ours := map[string]bool{}
	for _, claim := range claims {
		ours[claim.Status.ProviderID] = true
	}
	w.cloud.lie(lying{
		absent: func(id string) bool { return ours[id] },
		list: func(all []cloud.Machine) (foreign []cloud.Machine) {
			for _, m := range all {
				if !ours[m.ProviderID] {
					foreign = append(foreign, m)
				}
			}
			return foreign
		},
	})
	w.rounds(2)
	for i := range 3 { // as many as could be terminated if the machines were not disputed
		w.cloud.put(machine(fmt.Sprintf("memory:///foreign-%d", i), "theirs", time.Now().Add(-time.Hour)))
	}
	w.rounds(3)
	w.allStay(claims)
	for i := range 3 {
		if id := fmt.Sprintf("memory:///foreign-%d", i); !w.cloud.has(id) {
			t.Errorf("%s was terminated", id)
		}
	}
	w.until("the NodePool says so", func() bool { return w.read(pool) && removalsPaused(pool) })
	w.untilSaid("RemovalsPaused")
	w.until("the operator allows it", func() bool {
		w.read(pool)
		metav1.SetMetaDataAnnotation(&pool.ObjectMeta, karpv1.AnnotationRemovalsAllowedUntil, time.Now().Add(time.Hour).Format(time.RFC3339))
		return w.client.Update(t.Context(), pool) == nil
	})
	w.until("the strays are gone", func() bool { machines, _ := w.cloud.count(); return machines == len(claims) })
	w.allStay(claims)
}

// testCloudAndNodesAgree verifies that machines that neither the cloud nor their nodes show are replaced at once, all of
// them.
func testCloudAndNodesAgree(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.collect = true
	w.start()
	_, claims, nodes := w.herd(6)
	for i, node := range nodes {
		w.report(node, corev1.ConditionUnknown)
		w.cloud.lose(claims[i].Status.ProviderID)
	}
	for _, claim := range claims {
		w.gone(claim)
	}
}

// testFreshLease covers a node with a condition that its kubelet is silent, and with a fresh Lease. It counts as
// reporting.
func testFreshLease(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.collect = true
	w.start()
	_, claims, nodes := w.herd(2)
	w.beat(nodes[0], time.Now().Add(time.Hour)) // fresh for the duration of the test
	w.beat(nodes[1], time.Now().Add(-time.Hour))
	for i, node := range nodes {
		w.report(node, corev1.ConditionUnknown)
		w.cloud.lose(claims[i].Status.ProviderID)
	}
	w.gone(claims[1])
	w.rounds(2)
	w.allStay(claims[:1])
	// A drain evicts the pods, because a kubelet is there to end them.
	pod := w.pod("spoken-for", nodes[0], nil)
	w.remove(claims[0])
	w.until("the pod is evicted", func() bool { return w.podGone(pod) })
	w.gone(claims[0])
}

// beat writes the Lease of a node, as its kubelet does.
func (w *world) beat(node *corev1.Node, at time.Time) {
	w.t.Helper()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}}
	if err := w.client.Create(w.t.Context(), space); err != nil && !apierrors.IsAlreadyExists(err) {
		w.t.Fatal(err)
	}
	renewed := metav1.NewMicroTime(at)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: space.Name, Name: node.Name},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &renewed, LeaseDurationSeconds: new(int32(40)), HolderIdentity: &node.Name},
	}
	w.create(lease)
	w.t.Cleanup(func() { _ = w.client.Delete(w.t.Context(), lease) })
}

// testRepairsAddUp covers more unhealthy nodes, one after the other, than may be replaced within the window, with
// never more than a fifth at a time.
func testRepairsAddUp(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.policies = notReadyFor(time.Minute)
	w.timers.RepairRetry = 50 * time.Millisecond
	w.start()
	pool, claims, nodes := w.herd(5)
	long := time.Now().Add(-time.Hour)
	for i := range 3 {
		w.sickens(nodes[i], long)
		w.gone(claims[i])
		w.running(fmt.Sprintf("successor-%d", i))
	}
	w.sickens(nodes[3], long)
	w.untilSaid("RemovalsPaused")
	w.allStay(claims[3:])
	if !w.read(pool) || !removalsPaused(pool) {
		t.Errorf("the NodePool's pauses are %q", pool.Annotations[karpv1.AnnotationPauses])
	}
	w.report(nodes[3], corev1.ConditionTrue)
	w.allStay(claims[3:])
}

// testNodesVanish covers Node objects that disappear, finalizers included, while the cloud shows their machines. No more
// machines are terminated than the limit on removals allows. The others are kept until the operator allows it, except
// one that the cloud reports as gone too.
func testNodesVanish(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.collect = true
	w.timers.NodeGone = time.Millisecond
	w.start()
	pool, claims, nodes := w.herd(6)
	for _, node := range nodes {
		w.force(node)
	}
	w.until("the NodePool says so", func() bool { return w.read(pool) && removalsPaused(pool) })
	w.rounds(3)
	kept := claims[:0:0]
	for _, claim := range claims {
		if w.read(claim) && claim.DeletionTimestamp.IsZero() {
			kept = append(kept, claim)
		}
	}
	if len(kept) < 3 { // how many disappear before the limit is reached depends on when the collector looks
		t.Fatalf("%d of 6 claims are kept, want 3 or more", len(kept))
	}
	w.cloud.lose(kept[0].Status.ProviderID)
	w.gone(kept[0])
	w.rounds(2)
	w.allStay(kept[1:])
	w.until("the operator allows it", func() bool {
		w.read(pool)
		metav1.SetMetaDataAnnotation(&pool.ObjectMeta, karpv1.AnnotationRemovalsAllowedUntil, time.Now().Add(time.Hour).Format(time.RFC3339))
		return w.client.Update(t.Context(), pool) == nil
	})
	for _, claim := range kept[1:] {
		w.gone(claim)
	}
}

// testEditedProviderID covers a claim whose provider ID is changed to that of a younger claim, or removed. The claim
// keeps its machine and its node, and the change is reported. The younger claim keeps its own machine, which ends
// with it.
func testEditedProviderID(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.collect = true
	w.timers.Leak, w.timers.LeakUnnoted, w.timers.NodeGone, w.timers.SecondLook = time.Millisecond, time.Millisecond,
		time.Millisecond, time.Millisecond
	w.start()
	edited, node := w.running("a-edited")
	other, otherNode := w.running("b-other")
	machine, others := edited.Status.ProviderID, other.Status.ProviderID
	show := func(id string) {
		t.Helper()
		w.until("the provider ID is edited", func() bool {
			w.read(edited)
			edited.Status.ProviderID = id
			return w.client.Status().Update(t.Context(), edited) == nil
		})
	}
	for _, id := range []string{others, "memory:///none"} {
		show(id)
		w.untilSaid("machine " + machine + " was launched for this claim")
		w.rounds(5)
		w.allStay([]*karpv1.NodeClaim{edited, other})
		switch {
		case !w.read(node):
			t.Errorf("a node was deleted: w.read(node) is false")
		case !node.DeletionTimestamp.IsZero():
			t.Errorf("a node was deleted: node.DeletionTimestamp.IsZero() is false")
		case !w.read(otherNode):
			t.Errorf("a node was deleted: w.read(otherNode) is false")
		case !otherNode.DeletionTimestamp.IsZero():
			t.Errorf("a node was deleted: otherNode.DeletionTimestamp.IsZero() is false")
		}
		if !w.cloud.has(machine) || !w.cloud.has(others) {
			t.Fatal("a machine was terminated")
		}
	}
	show(others)
	w.remove(other)
	w.gone(other)
	w.gone(otherNode)
	if w.cloud.has(others) || !w.cloud.has(machine) {
		t.Errorf("the deleted claim left its machine: %v; the edited claim keeps its own: %v", w.cloud.has(others), w.cloud.has(machine))
	}
	show(machine)
	w.rounds(3)
	w.allStay([]*karpv1.NodeClaim{edited})
}
