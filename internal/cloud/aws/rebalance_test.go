package aws

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption"
)

// rebalanced is a claim with a spot instance, and its pool.
type rebalanced struct {
	*world
	*Provider
	pool *karpv1.NodePool
}

// recommend passes a recommendation for the claim, and returns the claim and its drift.
func (r *rebalanced) recommend(t *testing.T, name string) (*karpv1.NodeClaim, string) {
	t.Helper()
	claim := &karpv1.NodeClaim{}
	check(t, r.api.Get(t.Context(), types.NamespacedName{Name: name}, claim))
	id, _ := instanceOf(claim.Status.ProviderID)
	found, err := r.claimsOf(t.Context(), []string{id})
	check(t, err)
	check(t, r.act(t.Context(), interruption.Decide(interruption.Notice{Kind: interruption.RebalanceRecommendation,
		Instances: []string{id}}, id,
		found[id], interruption.Rules{Now: time.Now()})))
	return r.drift(t, name)
}

func (r *rebalanced) drift(t *testing.T, name string) (*karpv1.NodeClaim, string) {
	t.Helper()
	claim := &karpv1.NodeClaim{}
	check(t, r.api.Get(t.Context(), types.NamespacedName{Name: name}, claim))
	if claim.DeletionTimestamp != nil {
		t.Fatalf("claim %s is deleted because of a recommendation", name)
	}
	reason, err := r.Drifted(t.Context(), claim, r.pool)
	check(t, err)
	return claim, reason
}

func (r *rebalanced) avoided(zone, class string) bool {
	return r.unavailable.Has(instance.Offer{CapacityType: "spot", Type: "m5.large", Zone: zone, Class: class})
}

func newRebalanced(t *testing.T, annotations map[string]string) *rebalanced {
	w := newWorld(t, "m5.large")
	pool := poolOf("default")
	pool.ObjectMeta = metav1.ObjectMeta{Name: "pool", UID: "uid-pool", Annotations: annotations}
	check(t, w.api.Create(t.Context(), pool))
	return &rebalanced{world: w, Provider: w.provider(t), pool: pool}
}

// In a pool that asks for it, a claim drifts for an hour after a recommendation, and its offering is avoided for ten
// minutes by claims of the class. Recommendations within the hour change nothing.
func TestRebalance(t *testing.T) {
	r := newRebalanced(t, map[string]string{karpv1.AnnotationRebalance: karpv1.RebalanceReplace})
	spot := karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In", Values: []string{"spot"}}
	r.launched(t, r.Provider, "one", spot)
	r.launched(t, r.Provider, "other", spot)
	claim, reason := r.recommend(t, "one")
	zone := claim.Labels["topology.kubernetes.io/zone"]
	switch {
	case reason != awsv1.ReasonRebalanceRecommended:
		t.Errorf("drift %q, want RebalanceRecommended", reason)
	case !r.avoided(zone, "default"):
		t.Error("the offering is not avoided")
	case r.avoided(zone, "another"):
		t.Error("the offering is avoided by another class")
	}
	if _, reason := r.drift(t, "other"); reason != "" {
		t.Errorf("the claim without a recommendation drifts: %s", reason)
	}
	r.clock.ahead.Store(int64(9 * time.Minute))
	if again, _ := r.recommend(t, "one"); again.ResourceVersion != claim.ResourceVersion || !r.avoided(zone, "default") {
		t.Errorf("a second recommendation: written %t, avoided %t", again.ResourceVersion != claim.ResourceVersion, r.avoided(zone, "default"))
	}
	r.clock.ahead.Store(int64(11 * time.Minute))
	if _, reason = r.drift(t, "one"); reason != awsv1.ReasonRebalanceRecommended || r.avoided(zone, "default") {
		t.Errorf("after 11 minutes: drift %q, avoided %t", reason, r.avoided(zone, "default"))
	}
	r.clock.ahead.Store(int64(61 * time.Minute))
	if _, reason = r.drift(t, "one"); reason != "" {
		t.Errorf("after an hour: drift %q", reason)
	}
	if again, reason := r.recommend(t, "one"); reason != awsv1.ReasonRebalanceRecommended || again.ResourceVersion == claim.ResourceVersion {
		t.Errorf("a recommendation after an hour: drift %q", reason)
	}
	delete(r.pool.Annotations, karpv1.AnnotationRebalance)
	if _, reason = r.drift(t, "one"); reason != "" {
		t.Errorf("when the pool does not ask for it any more: drift %q", reason)
	}
}

// Without the annotation, and for on-demand instances, a recommendation is only reported.
func TestRebalanceIsOptional(t *testing.T) {
	for name, test := range map[string]struct{ value, capacityType string }{
		"no annotation": {"", "spot"}, "another value": {"yes", "spot"}, "on demand": {karpv1.RebalanceReplace, "on-demand"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRebalanced(t, map[string]string{karpv1.AnnotationRebalance: test.value})
			before := r.launched(t, r.Provider, "one",
				karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In", Values: []string{test.capacityType}})
			check(t, r.api.Get(t.Context(), client.ObjectKeyFromObject(before), before))
			claim, reason := r.recommend(t, "one")
			if reason != "" || claim.ResourceVersion != before.ResourceVersion || r.avoided(claim.Labels["topology.kubernetes.io/zone"], "default") {
				t.Errorf("drift %q, written %t", reason, claim.ResourceVersion != before.ResourceVersion)
			}
		})
	}
}
