package controller_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
)

func newPool(name string) *karpv1.NodePool {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pool.Spec.Disruption.ConsolidateAfter = karpv1.DurationOf(0)
	pool.Spec.Template.Spec = karpv1.NodeClaimTemplateSpec{
		NodeClassRef: karpv1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: "KWOKNodeClass", Name: className},
		Requirements: []karpv1.Requirement{},
		ExpireAfter:  karpv1.DurationOf(720 * time.Hour),
	}
	return pool
}

// untilPool waits until a condition of the pool has a status and reason.
func (w *world) untilPool(pool *karpv1.NodePool, condition, status, reason string) {
	w.t.Helper()
	w.until(pool.Name+" has "+condition+"="+status+" "+reason, func() bool {
		if !w.read(pool) {
			return false
		}
		c := pool.Condition(condition)
		return c != nil && string(c.Status) == status && (reason == "" || c.Reason == reason)
	})
}

func testPoolConditions(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.timers.ClassRecheck = 50 * time.Millisecond
	w.start()
	good, bad, classless := newPool("good"), newPool("bad"), newPool("classless")
	bad.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}, {Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule}}
	classless.Spec.Template.Spec.NodeClassRef.Name = "missing"
	for _, pool := range []*karpv1.NodePool{good, bad, classless} {
		w.create(pool)
	}
	w.untilPool(good, "Ready", "True", "")
	w.untilPool(good, karpv1.ConditionNodeRegistrationHealthy, "Unknown", "")
	w.untilPool(bad, karpv1.ConditionValidationSucceeded, "False", karpv1.ReasonNodePoolValidationFailed)
	w.untilPool(bad, "Ready", "False", "")
	w.untilPool(classless, karpv1.ConditionNodeClassReady, "False", karpv1.ReasonNodeClassNotFound)
	// The class appears.
	w.create(&kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "missing", Finalizers: []string{"example.com/hold"}}})
	w.untilPool(classless, "Ready", "True", "")
	// It is being deleted.
	w.remove(&kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "missing"}})
	w.untilPool(classless, karpv1.ConditionNodeClassReady, "False", karpv1.ReasonNodeClassTerminating)
	// The provider changes its result without any event.
	w.cloud.mu.Lock()
	w.cloud.ready = &cloud.NodeClassNotReadyError{Reason: "NoImages", Message: "no image"}
	w.cloud.mu.Unlock()
	w.untilPool(good, karpv1.ConditionNodeClassReady, "False", "NoImages")
	// An invalid pool that is corrected becomes ready.
	w.cloud.mu.Lock()
	w.cloud.ready = nil
	w.cloud.mu.Unlock()
	w.until("bad is corrected", func() bool {
		w.read(bad)
		bad.Spec.Template.Spec.Taints = nil
		return w.client.Update(t.Context(), bad) == nil
	})
	w.untilPool(bad, "Ready", "True", "")
}

func testPoolCounts(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	pool := newPool("general")
	pool.Spec.Limits = corev1.ResourceList{"cpu": resource.MustParse("100")}
	w.create(pool)
	counted := func(nodes int64, cpu string) func() bool {
		return func() bool {
			w.read(pool)
			have := pool.Status.Resources["cpu"]
			return pool.Status.Nodes == nodes && have.Cmp(resource.MustParse(cpu)) == 0 && len(pool.Status.Resources) >= 5
		}
	}
	foreign := newPool("foreign")
	foreign.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: className}
	w.create(foreign)
	w.until("an empty pool has zeros", counted(0, "0"))
	claim, _ := w.running("counted")
	flight := newClaim("flight")
	w.create(flight)
	w.until("a node and a claim in flight are counted", counted(2, "8"))
	if diff := cmp.Diff([]float64{8, 100}, []float64{
		testutil.ToFloat64(w.metrics.NodePoolsUsage.WithLabelValues("cpu", "general")),
		testutil.ToFloat64(w.metrics.NodePoolsLimit.WithLabelValues("cpu", "general")),
	}); diff != "" {
		t.Error(diff)
	}
	if w.read(foreign); foreign.Status.Resources != nil {
		t.Errorf("a pool of another provider was counted: %v", foreign.Status.Resources)
	}
	w.remove(claim)
	w.remove(flight)
	w.until("the pool is empty again", counted(0, "0"))
	w.remove(pool)
	w.until("its gauges are gone", func() bool { return testutil.CollectAndCount(w.metrics.NodePoolsUsage) == 0 })
}

func testPoolHash(t *testing.T, s *apiServer) {
	w := in(t, s)
	pool := newPool("general")
	w.create(pool)
	claims := map[string]*karpv1.NodeClaim{}
	for name, version := range map[string]string{"older": "v3", "drifted": "v3", "current": karpv1.HashVersion} {
		claim := newClaim(name)
		claim.Annotations[karpv1.AnnotationNodePoolHash] = "1"
		claim.Annotations[karpv1.AnnotationNodePoolHashVersion] = version
		w.create(claim)
		claims[name] = claim
	}
	drifted := claims["drifted"]
	base := drifted.DeepCopy()
	drifted.StatusConditions().SetTrueWithReason(karpv1.ConditionDrifted, karpv1.ReasonNodePoolDrifted, "")
	w.must(w.client.Status().Patch(t.Context(), drifted, client.MergeFrom(base)))
	w.start()
	w.until("the pool is stamped", func() bool {
		w.read(pool)
		return pool.Annotations[karpv1.AnnotationNodePoolHash] == pool.Hash() && pool.Annotations[karpv1.AnnotationNodePoolHashVersion] == karpv1.HashVersion
	})
	for name, want := range map[string]string{"older": pool.Hash(), "drifted": "1", "current": "1"} {
		claim := claims[name]
		w.read(claim) // stamped before the pool
		if got := claim.Annotations[karpv1.AnnotationNodePoolHash]; got != want || claim.Annotations[karpv1.AnnotationNodePoolHashVersion] != karpv1.HashVersion {
			t.Errorf("claim %s: hash %s of version %s, want %s", name, got, claim.Annotations[karpv1.AnnotationNodePoolHashVersion], want)
		}
	}
}

// testPoolPauses covers a pool with a pause: an event and a metric report it, and Ready does not depend on it.
func testPoolPauses(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	pool := newPool("general")
	list := pause.List{}.With(pause.Pause{Key: pause.Key{Reason: "Drifted", Scope: pool.Name}, Name: "replacements (drifted)"}.
		Fail(time.Now(), time.Now(), 0, "claim c is gone"))
	pool.Annotations = map[string]string{karpv1.AnnotationPauses: list.Text()}
	w.create(pool)
	w.untilPool(pool, "Ready", "True", "")
	w.untilSaid("replacements (drifted) are paused until")
	gauge := w.metrics.NodePoolsPaused.WithLabelValues(pool.Name, "Drifted")
	w.until("the metric shows the pause", func() bool { return testutil.ToFloat64(gauge) == 1 })
	base := pool.DeepCopy()
	delete(pool.Annotations, karpv1.AnnotationPauses)
	if err := w.client.Patch(t.Context(), pool, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	w.until("the metric shows none", func() bool { return testutil.CollectAndCount(w.metrics.NodePoolsPaused) == 0 })
}

func testPoolHealth(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.timers.Registration = 1500 * time.Millisecond
	w.start()
	pool := newPool("general")
	w.create(pool)
	w.untilPool(pool, karpv1.ConditionNodeRegistrationHealthy, "Unknown", "")
	owned := func(name string) *karpv1.NodeClaim {
		claim := newClaim(name)
		claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: karpv1.GroupVersion.String(), Kind: "NodePool", Name: pool.Name, UID: pool.UID}}
		w.create(claim)
		return claim
	}
	claim := owned("healthy")
	w.boot(claim)
	w.untilPool(pool, karpv1.ConditionNodeRegistrationHealthy, "True", "")
	owned("stuck-1")
	owned("stuck-2")
	w.untilPool(pool, karpv1.ConditionNodeRegistrationHealthy, "False", karpv1.ReasonRegistrationFailed)
	w.untilPool(pool, "Ready", "True", "") // it informs, and does not block
	pool.Spec.Template.ObjectMeta.Labels = map[string]string{"changed": "yes"}
	w.until("the pool is changed", func() bool {
		w.read(pool)
		pool.Spec.Template.ObjectMeta.Labels = map[string]string{"changed": "yes"}
		return w.client.Update(t.Context(), pool) == nil
	})
	w.untilPool(pool, karpv1.ConditionNodeRegistrationHealthy, "Unknown", "")
}
