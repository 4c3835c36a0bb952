package controller_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// TestAging runs all scenarios of aging claims on one API server. Each has its own controllers and cloud.
func TestAging(t *testing.T) {
	s := startServer(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *apiServer)
	}{
		{"every kind of drift comes and goes", testDrift},
		{"an unknown result leaves the condition", testDriftInDoubt},
		{"fifty machines drift at once", testManyDrift},
		{"quiet for consolidateAfter", testConsolidatable},
		{"expired claims go", testExpires},
		{"an unhealthy node is replaced, and not before its time", testRepair},
		{"too many unhealthy nodes are none", testRepairThreshold},
		{"a repair that was not carried out is taken back", testRepairTakenBack},
		{"one broken object of each kind, and everything else goes on", testNeverWedged},
		{"a machine shown by two claims is the elder's", testTwoClaims},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

// small is the instance type of the in-memory cloud.
func small() cloud.InstanceType {
	return cloud.InstanceType{Name: "m-4x", Offerings: []cloud.Offering{{Zone: "zone-a", CapacityType: "spot"}}}
}

// aging returns a world with a pool and a short period of drift checks.
func aging(t *testing.T, s *apiServer) (*world, *karpv1.NodePool) {
	w := in(t, s)
	w.drift = true
	w.timers.Drift, w.timers.Catalog, w.timers.CatalogRetry = 30*time.Millisecond, 10*time.Millisecond, 10*time.Millisecond
	w.cloud.types = []cloud.InstanceType{small()}
	pool := newPool("general")
	w.create(pool)
	return w, pool
}

// change changes the pool.
func (w *world) change(pool *karpv1.NodePool, change func(*karpv1.NodePool)) {
	w.t.Helper()
	w.until("the pool is changed", func() bool {
		w.read(pool)
		change(pool)
		return w.client.Update(w.t.Context(), pool) == nil
	})
}

// untilNo waits until the claim does not have the condition.
func (w *world) untilNo(claim *karpv1.NodeClaim, condition string) {
	w.t.Helper()
	w.until(claim.Name+" has no "+condition, func() bool {
		w.read(claim)
		for _, c := range claim.Status.Conditions {
			if c.Type == condition {
				return false
			}
		}
		return true
	})
}

func testDrift(t *testing.T, s *apiServer) {
	w, pool := aging(t, s)
	w.timers.TypeDrift = time.Nanosecond
	w.start()
	claim, _ := w.running("drifter")
	w.untilCondition(claim, karpv1.ConditionConsolidatable, "True", "") // it has been evaluated
	w.untilNo(claim, karpv1.ConditionDrifted)
	drifts := func(reason string) {
		t.Helper()
		w.untilCondition(claim, karpv1.ConditionDrifted, "True", reason)
		if c := claim.Condition(karpv1.ConditionDrifted); c.Message != reason {
			t.Errorf("message %q, want the reason, %q", c.Message, reason)
		}
	}

	w.change(pool, func(p *karpv1.NodePool) { p.Spec.Template.ObjectMeta.Labels = map[string]string{"team": "b"} })
	drifts(karpv1.ReasonNodePoolDrifted)
	w.change(pool, func(p *karpv1.NodePool) { p.Spec.Template.ObjectMeta.Labels = nil })
	w.untilNo(claim, karpv1.ConditionDrifted)

	w.change(pool, func(p *karpv1.NodePool) {
		p.Spec.Template.Spec.Requirements = []karpv1.Requirement{{Key: corev1.LabelTopologyZone, Operator: karpv1.OperatorIn,
			Values: []string{"zone-b"}}}
	})
	drifts(karpv1.ReasonRequirementsDrifted)
	w.change(pool, func(p *karpv1.NodePool) { p.Spec.Template.Spec.Requirements = []karpv1.Requirement{} })
	w.untilNo(claim, karpv1.ConditionDrifted)

	w.cloud.sell(nil, cloud.InstanceType{Name: "other"})
	drifts(karpv1.ReasonInstanceTypeNotFound)
	w.cloud.sell(func(*karpv1.NodeClaim) (string, error) { return "ImageDrift", nil }, small())
	drifts("ImageDrift")
	w.cloud.sell(nil, small())
	w.untilNo(claim, karpv1.ConditionDrifted)

	// A hash of another version is written again, not compared.
	w.until("the claim has a foreign hash", func() bool {
		w.read(claim)
		claim.Annotations[karpv1.AnnotationNodePoolHash], claim.Annotations[karpv1.AnnotationNodePoolHashVersion] = "12345", "v3"
		return w.client.Update(t.Context(), claim) == nil
	})
	w.change(pool, func(p *karpv1.NodePool) { p.Spec.Weight = new(int32(7)) })
	w.until("the hash is stamped again", func() bool {
		w.read(claim)
		return claim.Annotations[karpv1.AnnotationNodePoolHashVersion] == karpv1.HashVersion
	})
	w.change(pool, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{} })
	w.untilNo(claim, karpv1.ConditionConsolidatable) // it has been evaluated since
	w.untilNo(claim, karpv1.ConditionDrifted)
}

func testDriftInDoubt(t *testing.T, s *apiServer) {
	w, _ := aging(t, s)
	w.timers.RetryMax = 50 * time.Millisecond
	w.start()
	first, _ := w.running("first")
	second, _ := w.running("second")
	w.cloud.sell(func(claim *karpv1.NodeClaim) (string, error) { return "ImageDrift", nil }, small())
	w.untilCondition(first, karpv1.ConditionDrifted, "True", "ImageDrift")
	w.untilCondition(second, karpv1.ConditionDrifted, "True", "ImageDrift")
	w.cloud.sell(func(claim *karpv1.NodeClaim) (string, error) {
		if claim.Name == "first" || claim.Name == "second" {
			return "", errors.New("the cloud is silent")
		}
		return "", nil
	}, small())
	w.counted("claims in doubt", 2, w.metrics.NodeClaimsUnjudged.WithLabelValues("general", "provider"))
	third, _ := w.running("third")
	w.untilCondition(third, karpv1.ConditionConsolidatable, "True", "") // it has been evaluated, when the others were checked again
	for _, claim := range []*karpv1.NodeClaim{first, second} {
		w.untilCondition(claim, karpv1.ConditionDrifted, "True", "ImageDrift")
	}
	w.untilNo(third, karpv1.ConditionDrifted)
	named := 0
	for _, e := range w.said() {
		if strings.Contains(e, "Cannot determine whether it has drifted: the cloud is silent") {
			named++
		}
	}
	if named != 1 {
		t.Errorf("%d events name the problem, want 1", named)
	}
	w.cloud.sell(nil, small())
	w.untilNo(first, karpv1.ConditionDrifted)
	w.untilNo(second, karpv1.ConditionDrifted)
	w.until("no claim is in doubt", func() bool { return testutil.CollectAndCount(w.metrics.NodeClaimsUnjudged) == 0 })
}

func testManyDrift(t *testing.T, s *apiServer) {
	w, pool := aging(t, s)
	w.timers.Drift = 2 * time.Second // the change of the pool requeues all of them
	w.start()
	const many = 50
	var claims []*karpv1.NodeClaim
	for i := range many {
		claim := newClaim(fmt.Sprintf("many-%d", i))
		w.create(claim)
		claims = append(claims, claim)
	}
	for _, claim := range claims {
		w.launched(claim)
		w.until(claim.Name+" is stamped with the pool as it is", func() bool {
			w.read(claim)
			return claim.Annotations[karpv1.AnnotationNodePoolHash] != ""
		})
	}
	w.change(pool, func(p *karpv1.NodePool) { p.Spec.Template.ObjectMeta.Annotations = map[string]string{"owner": "b"} })
	for _, claim := range claims {
		w.untilCondition(claim, karpv1.ConditionDrifted, "True", karpv1.ReasonNodePoolDrifted)
	}
}

func testConsolidatable(t *testing.T, s *apiServer) {
	w, pool := aging(t, s)
	w.timers.Drift = time.Hour // the end of the time has a timer of its own
	w.change(pool, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidateAfter = karpv1.DurationOf(2 * time.Second) })
	w.start()
	claim, _ := w.running("quiet")
	w.untilCondition(claim, karpv1.ConditionConsolidatable, "True", "")
	conditions := claim.StatusConditions()
	since := conditions.Get(karpv1.ConditionInitialized).LastTransitionTime
	if waited := conditions.Get(karpv1.ConditionConsolidatable).LastTransitionTime.Sub(since.Time); waited < 2*time.Second {
		t.Errorf("quiet after %s, want at least 2s", waited)
	}
	// A pod is bound.
	base := claim.DeepCopy()
	claim.Status.LastPodEventTime = metav1.Now()
	w.must(w.client.Status().Patch(t.Context(), claim, client.MergeFrom(base)))
	w.untilNo(claim, karpv1.ConditionConsolidatable)
	w.untilCondition(claim, karpv1.ConditionConsolidatable, "True", "")
	w.change(pool, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{} })
	w.untilNo(claim, karpv1.ConditionConsolidatable)
	w.change(pool, func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidateAfter = karpv1.DurationOf(0) })
	w.untilCondition(claim, karpv1.ConditionConsolidatable, "True", "")
	// A claim without a node is not consolidatable.
	early := newClaim("early")
	w.create(early)
	w.launched(early)
	w.untilNo(early, karpv1.ConditionConsolidatable)
}

func testExpires(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.cloud.refuse = func(claim *karpv1.NodeClaim) error {
		if claim.Name == "unlaunched" {
			return errors.New("the cloud is silent")
		}
		return nil
	}
	w.start()
	brief := newClaim("brief")
	brief.Spec.ExpireAfter = karpv1.DurationOf(3 * time.Second)
	unlaunched := brief.DeepCopy()
	unlaunched.Name = "unlaunched"
	lasting := newClaim("lasting")
	lasting.Spec.ExpireAfter = karpv1.NillableDuration{}
	for _, claim := range []*karpv1.NodeClaim{brief, unlaunched, lasting} {
		w.create(claim)
	}
	node := w.boot(brief)
	w.report(node, corev1.ConditionTrue)
	// Expiration applies although the node must not be disrupted voluntarily.
	w.gone(brief)
	w.gone(node)
	w.gone(unlaunched)
	w.launched(lasting)
	if !lasting.DeletionTimestamp.IsZero() {
		t.Error("a claim that never expires was deleted")
	}
	w.counted("expired, launched", 1, w.metrics.NodeClaimsDisrupted.WithLabelValues(telemetry.DisruptedExpired,
		"general", "spot", "", "graceful"))
	w.counted("expired, not launched", 1, w.metrics.NodeClaimsDisrupted.WithLabelValues(telemetry.DisruptedExpired,
		"general", "", "", "graceful"))
	if age := brief.DeletionTimestamp; age != nil && age.Sub(brief.CreationTimestamp.Time) < 3*time.Second {
		t.Errorf("expired after %s, want 3s", age.Sub(brief.CreationTimestamp.Time))
	}
	w.untilSaid("Disrupting NodeClaim: Expired")
}

// sickens sets the node's Ready condition to False since the given time.
func (w *world) sickens(node *corev1.Node, since time.Time) {
	w.t.Helper()
	w.until(node.Name+" is unhealthy", func() bool {
		w.read(node)
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse,
			Reason: "Test", LastTransitionTime: metav1.NewTime(since)}}
		return w.client.Status().Update(w.t.Context(), node) == nil
	})
}

func notReadyFor(tolerated time.Duration) []cloud.RepairPolicy {
	return []cloud.RepairPolicy{{ConditionType: "Ready", ConditionStatus: "False", Toleration: tolerated}}
}

func testRepair(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.policies = notReadyFor(time.Hour)
	w.timers.PodStuck = 100 * time.Millisecond // no kubelet runs here that could end a pod
	w.start()
	claim, node := w.running("ill")
	young, other := w.running("ill-lately")
	_, well := w.running("well")
	for i := range 6 { // so that two may be unhealthy
		w.running(fmt.Sprintf("well-%d", i))
	}
	pod := w.pod("guarded", node, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(600)) })
	w.budget("guarded") // blocks voluntary evictions, which a repair does not need
	w.sickens(other, time.Now().Add(-59*time.Minute))
	w.sickens(node, time.Now().Add(-2*time.Hour))
	w.until("the claim is deleted with a deadline", func() bool {
		if !w.read(claim) {
			return true
		}
		return !claim.DeletionTimestamp.IsZero() && claim.Annotations[karpv1.AnnotationTerminationTimestamp] != ""
	})
	w.gone(claim)
	w.gone(node)
	if w.read(pod) {
		switch {
		case pod.DeletionTimestamp.IsZero():
			t.Error("the pod was not evicted")
		case *pod.DeletionGracePeriodSeconds > 1:
			t.Errorf("the pod has %d s to end, want at most 1", *pod.DeletionGracePeriodSeconds)
		}
	}
	if w.read(young); !young.DeletionTimestamp.IsZero() {
		t.Error("a node was replaced within its toleration")
	}
	if !w.read(well) || !well.DeletionTimestamp.IsZero() {
		t.Error("a healthy node was replaced")
	}
	w.counted("unhealthy", 1, w.metrics.NodeClaimsDisrupted.WithLabelValues(telemetry.DisruptedUnhealthy, "general", "spot", "", "graceful"))
	w.counted("pods of unhealthy nodes", 1,
		w.metrics.PodsDisruptionInitiated.WithLabelValues(telemetry.DisruptedUnhealthy, "general", "spot", "", "graceful"))
	w.counted("unhealthy by condition", 1, w.metrics.NodeClaimsUnhealthyDisrupted.WithLabelValues("ready", "general", "spot", "image-1"))
	w.untilSaid("Disrupting NodeClaim: Unhealthy")
}

func testRepairThreshold(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.policies = notReadyFor(time.Minute)
	w.timers.RepairRetry = 50 * time.Millisecond
	w.start()
	first, one := w.running("one")
	second, two := w.running("two")
	w.running("three")
	// Of three nodes, one may be unhealthy: ceil(20%).
	long := time.Now().Add(-time.Hour)
	w.sickens(one, time.Now()) // counts, although it is within its toleration
	w.sickens(two, long)
	w.untilSaid("more than 20% nodes are unhealthy in the nodepool general: 2 of 3")
	for _, claim := range []*karpv1.NodeClaim{first, second} {
		if w.read(claim); !claim.DeletionTimestamp.IsZero() {
			t.Errorf("%s was deleted", claim.Name)
		}
	}
	w.report(one, corev1.ConditionTrue)
	w.gone(second)
	if w.read(first); !first.DeletionTimestamp.IsZero() {
		t.Error("a node that recovered was replaced")
	}
}

// testRepairTakenBack covers a process that stopped after it wrote the deadline and before the deletion. Meanwhile
// the node recovered.
func testRepairTakenBack(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.policies = notReadyFor(time.Nanosecond)
	claim := newClaim("recovered")
	claim.Annotations[karpv1.AnnotationRepair] = "Ready"
	claim.Annotations[karpv1.AnnotationTerminationTimestamp] = "2026-01-01T00:00:00Z"
	theirs := newClaim("theirs")
	theirs.Annotations[karpv1.AnnotationTerminationTimestamp] = "2026-01-01T00:00:00Z"
	w.create(claim)
	w.create(theirs)
	w.start()
	for _, c := range []*karpv1.NodeClaim{claim, theirs} {
		w.launched(c)
		// The node is Ready from the start: a node that never reported is not unhealthy either.
		w.report(w.boot(c), corev1.ConditionTrue)
		w.untilCondition(c, karpv1.ConditionInitialized, "True", "")
	}
	w.until("the deadline is taken back", func() bool {
		w.read(claim)
		return claim.Annotations[karpv1.AnnotationTerminationTimestamp] == "" && claim.Annotations[karpv1.AnnotationRepair] == ""
	})
	if w.read(theirs); theirs.Annotations[karpv1.AnnotationTerminationTimestamp] == "" {
		t.Error("the deadline of another writer was removed")
	}
}

func testNeverWedged(t *testing.T, s *apiServer) {
	w, pool := aging(t, s)
	w.collect = true
	w.policies = notReadyFor(time.Hour)
	w.timers.TypeDrift = time.Nanosecond
	w.timers.RetryMax = 50 * time.Millisecond
	w.cloud.outdated = func(claim *karpv1.NodeClaim) (string, error) {
		if claim.Name == "classless" {
			return "", fmt.Errorf("reading the class: %w", cloud.ErrNotFound)
		}
		return "", nil
	}
	// The objects exist before any controller runs: a claim with a missing pool, a pool and a claim with a missing
	// class, a claim that is marked launched and has no machine, a claim with an unknown instance type, annotations
	// that cannot be parsed, and a node of this provider without a machine.
	poolless, classless, idless, typeless := newClaim("poolless"), newClaim("classless"), newClaim("idless"), newClaim("typeless")
	poolless.Labels[karpv1.LabelNodePool] = "not-there"
	classless.Spec.NodeClassRef.Name = "not-there"
	typeless.Labels[corev1.LabelInstanceTypeStable] = "not-made"
	nonsense := newClaim("nonsense")
	nonsense.Annotations[karpv1.AnnotationCommand] = "{"
	nonsense.Annotations[karpv1.AnnotationTerminationTimestamp] = "soon"
	nonsense.Annotations[karpv1.AnnotationNodePoolHash], nonsense.Annotations[karpv1.AnnotationNodePoolHashVersion] = "what", "?"
	for _, claim := range []*karpv1.NodeClaim{poolless, classless, idless, typeless, nonsense} {
		w.create(claim)
	}
	idless.Finalizers = []string{karpv1.FinalizerTermination}
	w.must(w.client.Update(t.Context(), idless))
	idless.StatusConditions().SetTrue(karpv1.ConditionLaunched)
	w.must(w.client.Status().Update(t.Context(), idless))
	stray := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "stray", Labels: map[string]string{
		karpv1.LabelNodePool: "general", karpv1.LabelRegistered: "true", karpv1.NodeClassLabel(kwokv1alpha1.Group, "KWOKNodeClass"): className,
	}}}
	w.create(stray)
	lame := newPool("lame")
	lame.Spec.Template.Spec.NodeClassRef.Name = "not-there"
	w.create(lame)
	w.start()

	// All other objects are processed.
	claim, node := w.running("sound")
	w.untilCondition(claim, karpv1.ConditionConsolidatable, "True", "")
	w.untilPool(pool, "Ready", "True", "")
	w.until("the pool counts its nodes", func() bool { w.read(pool); return pool.Status.Nodes > 0 })
	w.remove(claim)
	w.gone(claim)
	w.gone(node)

	// Each problem is reported.
	w.untilPool(lame, karpv1.ConditionNodeClassReady, "False", karpv1.ReasonNodeClassNotFound)
	w.counted("claims of no pool", 1, w.metrics.NodeClaimsUnjudged.WithLabelValues("not-there", "nodepool_missing"))
	w.counted("claims of no class", 1, w.metrics.NodeClaimsUnjudged.WithLabelValues("general", "nodeclass_missing"))
	w.untilCondition(idless, karpv1.ConditionRegistered, "Unknown", karpv1.ReasonNodeNotFound)
	w.untilCondition(typeless, karpv1.ConditionDrifted, "True", karpv1.ReasonInstanceTypeNotFound)
	w.until("the hash that was nonsense is stamped again", func() bool {
		w.read(nonsense)
		return nonsense.Annotations[karpv1.AnnotationNodePoolHashVersion] == karpv1.HashVersion
	})
	// Each of the objects can be removed.
	for _, broken := range []*karpv1.NodeClaim{poolless, classless, idless, typeless, nonsense} {
		w.remove(broken)
		w.gone(broken)
	}
	w.remove(stray)
	w.gone(stray)
}

func testTwoClaims(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	claim, node := w.running("a-first")
	twin := newClaim("b-second")
	twin.Finalizers = []string{karpv1.FinalizerTermination}
	w.cloud.mu.Lock()
	w.cloud.refuse = func(*karpv1.NodeClaim) error { return errors.New("not now") }
	w.cloud.mu.Unlock()
	w.create(twin)
	w.until("the twin shows the machine", func() bool {
		w.read(twin)
		twin.Status.ProviderID = claim.Status.ProviderID
		twin.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4")}
		twin.StatusConditions().SetTrue(karpv1.ConditionLaunched)
		return w.client.Status().Update(t.Context(), twin) == nil
	})
	w.untilCondition(twin, karpv1.ConditionRegistered, "False", karpv1.ReasonMachineTaken)
	w.remove(twin)
	w.gone(twin)
	switch w.read(node); {
	case !node.DeletionTimestamp.IsZero():
		t.Errorf("the removal of the twin affected the older claim: node.DeletionTimestamp.IsZero() is false, node deleted at %v",
			node.DeletionTimestamp)
	case len(node.OwnerReferences) != 1:
		t.Errorf("the removal of the twin affected the older claim: len(node.OwnerReferences) is %v, want 1, owners %v",
			len(node.OwnerReferences), node.OwnerReferences)
	case !w.cloud.has(claim.Status.ProviderID):
		t.Errorf("the removal of the twin affected the older claim: w.cloud.has(claim.Status.ProviderID) is false")
	}
	w.remove(claim)
	w.gone(claim)
	w.gone(node)
}
