package nodeclaim

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// catalog holds the instance types that the cloud currently has for a pool.
type catalog struct {
	types []cloud.InstanceType
	// reservation is the label of a reservation's ID, empty if the provider has none.
	reservation string
}

// errNoTypes means that the catalog is empty and cannot be used: a fault of the cloud's response is more likely than
// a cloud without instance types.
var errNoTypes = errors.New("the cloud provider lists no instance type for the pool")

// typeDrift reports whether the claim's instance type no longer exists, or has no offering, available or not, in the
// claim's zone and capacity type. A claim without a type has not drifted. A machine that was launched from a
// reservation may have become on-demand since, and reservations are created and deleted.
func typeDrift(claim *karpv1.NodeClaim, m catalog) (bool, error) {
	name := claim.Labels[corev1.LabelInstanceTypeStable]
	if name == "" {
		return false, nil
	}
	if len(m.types) == 0 {
		return false, errNoTypes
	}
	at := slices.IndexFunc(m.types, func(t cloud.InstanceType) bool { return t.Name == name })
	if at < 0 {
		return true, nil
	}
	need := needOfLabels(claim.Labels, m.reservation)
	reserved := claim.Labels[karpv1.LabelCapacityType] == karpv1.CapacityTypeReserved
	return !slices.ContainsFunc(m.types[at].Offerings, func(o cloud.Offering) bool {
		if reserved && o.CapacityType == karpv1.CapacityTypeReserved {
			o.Requirements = nil // they distinguish reservations
		}
		return need.AllowsOffering(&o)
	}), nil
}

// needOfLabels returns the need for a machine with exactly these labels, except that of the reservation.
func needOfLabels(labels map[string]string, reservation string) cloud.Need {
	need := cloud.Need{Labels: map[string]cloud.Values{}}
	for key, value := range labels {
		need.Labels[key] = cloud.AnyValue().Narrow("In", []string{value})
	}
	if labels[karpv1.LabelCapacityType] == karpv1.CapacityTypeReserved {
		need.Labels[karpv1.LabelCapacityType] = cloud.AnyValue().Narrow("In", []string{karpv1.CapacityTypeReserved, karpv1.CapacityTypeOnDemand})
		delete(need.Labels, reservation)
	}
	return need
}

// consolidatableFrom returns when the pool's consolidateAfter will have passed if no further pod event occurs. It
// counts from the last pod event, or else from the initialization of the node. guard.QuietFrom computes the same time
// from a snapshot. It returns false if consolidation does not apply to the claim: its node is not initialized, or the
// pool is static or has consolidateAfter: Never.
func consolidatableFrom(claim *karpv1.NodeClaim, pool *karpv1.NodePool) (time.Time, bool) {
	after := pool.Spec.Disruption.ConsolidateAfter
	initialized := claim.Condition(karpv1.ConditionInitialized)
	if pool.Static() || after.IsNever() || !initialized.IsTrue() {
		return time.Time{}, false
	}
	since := claim.Status.LastPodEventTime.Time
	if since.IsZero() {
		since = initialized.LastTransitionTime.Time
	}
	return since.Add(*after.Duration), true
}

// expiry returns the time at which expireAfter ends the claim, and false if it never expires.
func expiry(claim *karpv1.NodeClaim) (time.Time, bool) {
	if claim.Spec.ExpireAfter.IsNever() {
		return time.Time{}, false
	}
	return claim.CreationTimestamp.Add(*claim.Spec.ExpireAfter.Duration), true
}
