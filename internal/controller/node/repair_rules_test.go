package node

import (
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// besides adds nodes of the pool, of which the first ones are unhealthy.
func besides(t *testing.T, r *Repair, nodes, unhealthy int) {
	t.Helper()
	for i := range nodes {
		status := corev1.ConditionFalse
		if i < unhealthy {
			status = corev1.ConditionTrue
		}
		n := sickNode(status, time.Hour)
		n.Name, n.UID, n.Spec.ProviderID = "beside-"+string(rune('a'+i)), "", "memory:///beside-"+string(rune('a'+i))
		if err := r.Client.Create(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRepairRules verifies what the annotations of a pool change.
func TestRepairRules(t *testing.T) {
	const p = karpv1.OwnAnnotationPrefix
	for name, c := range map[string]struct {
		annotations map[string]string
		// nodes are beside the unhealthy one, of which ill are unhealthy too. lasts is how long it has been unhealthy.
		nodes, ill int
		lasts      time.Duration
		// replaced is whether the node is replaced, blocked a part of the event that says why not.
		replaced bool
		blocked  string
	}{
		"RP-1: one of two":            {nil, 1, 0, time.Hour, true, ""},
		"RP-2: two of three":          {nil, 2, 1, time.Hour, false, "more than 20% nodes are unhealthy in the nodepool general: 2 of 3"},
		"RP-2: two of three, allowed": {map[string]string{p + "repair-threshold": "3"}, 2, 1, time.Hour, true, ""},
		"a number that is exceeded": {map[string]string{p + "repair-threshold": "1"}, 9, 1, time.Hour, false,
			"more than 1 nodes are unhealthy in the nodepool general: 2 of 10"},
		"off":                         {map[string]string{p + "node-repair": "off"}, 1, 0, time.Hour, false, ""},
		"a wrong value has no effect": {map[string]string{p + "node-repair": "never"}, 1, 0, time.Hour, true, ""},
		"tolerated for longer":        {map[string]string{p + "repair-conditions": "Broken=True:2h"}, 1, 0, time.Hour, false, ""},
		"RP-4: not yet": {map[string]string{p + "repair-conditions": "Broken=True:10m"}, 1, 0,
			10*time.Minute - time.Second, false, ""},
		"RP-4: due":         {map[string]string{p + "repair-conditions": "Broken=True:10m"}, 1, 0, 10 * time.Minute, true, ""},
		"never":             {map[string]string{p + "repair-conditions": "Broken=True:never"}, 1, 0, time.Hour, false, ""},
		"another condition": {map[string]string{p + "repair-conditions": "Hot=True:1m"}, 1, 0, time.Hour, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := repairBeside(t, sickNode("True", c.lasts), answers{node: sickNode("True", c.lasts)})
			sink := events.NewFakeRecorder(100)
			r.Recorder = telemetry.NewRecorder(sink, r.Clock)
			annotate(t, r, c.annotations)
			besides(t, r, c.nodes, c.ill)
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "n"}}); err != nil {
				t.Fatal(err)
			}
			left := r.Client.Get(t.Context(), client.ObjectKey{Name: "c"}, &karpv1.NodeClaim{})
			if replaced := apierrors.IsNotFound(left); replaced != c.replaced {
				t.Errorf("the claim is replaced: %t, want %t", replaced, c.replaced)
			}
			told := ""
			for len(sink.Events) > 0 {
				told += <-sink.Events + "\n"
			}
			if blocked := strings.Contains(told, "NodeRepairBlocked"); blocked != (c.blocked != "") || !strings.Contains(told, c.blocked) {
				t.Errorf("events:\n%swant %q", told, c.blocked)
			}
		})
	}
}

func annotate(t *testing.T, r *Repair, annotations map[string]string) {
	t.Helper()
	pool := &karpv1.NodePool{}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Name: "general"}, pool); err != nil {
		t.Fatal(err)
	}
	pool.Annotations = annotations
	if err := r.Client.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
}

// TestRepairGrace verifies that the drain ends after the grace of the pool (RP-3), and that as many nodes are repaired at
// once as the pool allows.
func TestRepairGrace(t *testing.T) {
	r := repairBeside(t, sickNode("True", time.Hour), nil)
	r.Live = r.Client
	annotate(t, r, map[string]string{karpv1.AnnotationRepairGrace: "10m", karpv1.AnnotationRepairAtOnce: "1"})
	claim, other := &karpv1.NodeClaim{}, &karpv1.NodeClaim{}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Name: "c"}, claim); err != nil {
		t.Fatal(err)
	}
	claim.Finalizers = []string{karpv1.FinalizerTermination}
	if err := r.Client.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	other.ObjectMeta = metav1.ObjectMeta{Name: "other", UID: "other", Finalizers: claim.Finalizers, Labels: claim.Labels,
		Annotations: map[string]string{karpv1.AnnotationRepair: "Broken"}}
	if err := r.Client.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	reconcile := func() *karpv1.NodeClaim {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "n"}}); err != nil {
			t.Fatal(err)
		}
		claim := &karpv1.NodeClaim{}
		if err := r.Client.Get(t.Context(), client.ObjectKey{Name: "c"}, claim); err != nil {
			t.Fatal(err)
		}
		return claim
	}
	if claim := reconcile(); !claim.DeletionTimestamp.IsZero() {
		t.Fatal("two nodes are repaired at once, want one")
	}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Name: "other"}, other); err != nil {
		t.Fatal(err)
	}
	other.Finalizers = nil
	if err := r.Client.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	claim = reconcile()
	if ends, has := claim.DrainEnds(); claim.DeletionTimestamp.IsZero() || !has || !ends.Equal(noon.Add(10*time.Minute)) {
		t.Errorf("deleted at %v, the drain ends at %v, want %v", claim.DeletionTimestamp, ends, noon.Add(10*time.Minute))
	}
}

// TestRepairFollowsItsPool verifies that the nodes of a pool are examined again when its rules change, and that a condition
// that only the rules name is an event of the node.
func TestRepairFollowsItsPool(t *testing.T) {
	r := repairBeside(t, sickNode("True", time.Hour), answers{})
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	if requests := r.nodesOf(t.Context(), pool); len(requests) != 1 || requests[0].Name != "n" {
		t.Errorf("%v, want the node n", requests)
	}
	changed := pool.DeepCopy()
	changed.Annotations = map[string]string{karpv1.AnnotationNodeRepair: "off"}
	if !rulesChanged().Update(event.UpdateEvent{ObjectOld: pool, ObjectNew: changed}) {
		t.Error("a change of the rules is no event")
	}
	changed.Annotations = map[string]string{"other": "off"}
	if rulesChanged().Update(event.UpdateEvent{ObjectOld: pool, ObjectNew: changed}) {
		t.Error("a change of other annotations is an event")
	}
	before, after := sickNode("False", time.Hour), sickNode("False", time.Hour)
	after.Status.Conditions = append(after.Status.Conditions, corev1.NodeCondition{Type: "Hot", Status: "True"})
	after.Labels[karpv1.NodeClassLabel(kwokv1alpha1.Group, "KWOKNodeClass")] = "default"
	if r.healthChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("a condition that nothing names is an event")
	}
	annotate(t, r, map[string]string{karpv1.AnnotationRepairConditions: "Hot=True:1m"})
	if !r.healthChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("a condition that the pool names is no event")
	}
}

// TestRepairAtOnceByManyWorkers verifies that nodes that become due at the same moment are not repaired beyond the number
// of their pool, also if the cache does not show yet what another worker has deleted.
func TestRepairAtOnceByManyWorkers(t *testing.T) {
	r := repairBeside(t, sickNode("True", time.Hour), nil)
	r.Live = r.Client
	annotate(t, r, map[string]string{karpv1.AnnotationRepairAtOnce: "1", karpv1.AnnotationRepairThreshold: "100%"})
	besides(t, r, 5, 5)
	claim := &karpv1.NodeClaim{}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Name: "c"}, claim); err != nil {
		t.Fatal(err)
	}
	claim.Finalizers = []string{karpv1.FinalizerTermination}
	if err := r.Client.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	names := []string{"n"}
	for i := range 5 {
		other := claim.DeepCopy()
		other.Name, other.UID, other.ResourceVersion = "c-"+string(rune('a'+i)), "", ""
		other.Status.ProviderID = "memory:///beside-" + string(rune('a'+i))
		if err := r.Client.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		names = append(names, "beside-"+string(rune('a'+i)))
	}
	var workers sync.WaitGroup
	for _, name := range names {
		workers.Go(func() {
			_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: name}}) // conflicts are retried
		})
	}
	workers.Wait()
	var claims karpv1.NodeClaimList
	if err := r.Client.List(t.Context(), &claims); err != nil {
		t.Fatal(err)
	}
	deleted := 0
	for i := range claims.Items {
		if !claims.Items[i].DeletionTimestamp.IsZero() {
			deleted++
		}
	}
	if deleted != 1 {
		t.Errorf("%d of %d nodes are repaired at once, want 1", deleted, len(claims.Items))
	}
}
