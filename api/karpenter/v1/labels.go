package v1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Labels of claims and nodes.
const (
	// LabelNodePool is the name of the NodePool that owns the claim and its node.
	LabelNodePool = Group + "/nodepool"
	// LabelCapacityType is the capacity type of the machine: on-demand, spot or reserved.
	LabelCapacityType = Group + "/capacity-type"
	// LabelRegistered is "true" on a node that has been matched with its claim.
	LabelRegistered = Group + "/registered"
	// LabelInitialized is "true" on a node that is ready for its pods.
	LabelInitialized = Group + "/initialized"
	// LabelDoNotSyncTaints is "true" on a node whose bootstrap process sets its taints. Registration does not
	// copy the claim's taints to such a node.
	LabelDoNotSyncTaints = Group + "/do-not-sync-taints"
	// LabelExcludeBalancers excludes a node from external load balancers. Karpenter sets it to "karpenter"
	// while the node is terminating.
	LabelExcludeBalancers = corev1.LabelNodeExcludeBalancers
	ExcludeBalancersValue = "karpenter"
)

// Values of LabelCapacityType.
const (
	CapacityTypeOnDemand = "on-demand" // not interruptible, at list price
	CapacityTypeSpot     = "spot"      // at a lower price, interruptible by the cloud provider
	CapacityTypeReserved = "reserved"  // prepaid, in a capacity reservation
)

// Values of the label kubernetes.io/arch.
const (
	ArchitectureAMD64 = "amd64"
	ArchitectureARM64 = "arm64"
)

// Annotations of Karpenter's API, which users and other tools also know.
const (
	// AnnotationDoNotDisrupt blocks voluntary disruption of a node or pod. The value is "true", or on a pod
	// also a positive Go duration, which counts from the pod's start.
	AnnotationDoNotDisrupt = Group + "/do-not-disrupt"
	// AnnotationNodePoolHash is the drift hash of a pool's template. AnnotationNodePoolHashVersion is the
	// version of the hash function. Both are set on pools and claims.
	AnnotationNodePoolHash        = Group + "/nodepool-hash"
	AnnotationNodePoolHashVersion = Group + "/nodepool-hash-version"
	// AnnotationTerminationTimestamp, on a claim, is the time (RFC 3339) at which draining ends. The remaining
	// pods are deleted at that time.
	AnnotationTerminationTimestamp = Group + "/nodeclaim-termination-timestamp"
	// AnnotationMinValuesRelaxed, on a claim, is "true" if minValues were lowered to launch its machine, else
	// "false".
	AnnotationMinValuesRelaxed = Group + "/nodeclaim-min-values-relaxed"
	// AnnotationRequestedDRADrivers, on a claim, lists the device drivers (DRA) that its pods need, sorted and
	// separated by commas.
	AnnotationRequestedDRADrivers = Group + "/requested-dra-drivers"
	// AnnotationPriceOverlayApplied and AnnotationCapacityOverlayApplied are "true" on claims whose instance
	// types are modified by a NodeOverlay.
	AnnotationPriceOverlayApplied    = Group + "/price-overlay-applied"
	AnnotationCapacityOverlayApplied = Group + "/capacity-overlay-applied"
	// AnnotationDoNotEvict, on a pod, and AnnotationDoNotConsolidate, on a node, are the names of
	// AnnotationDoNotDisrupt before v1beta1. Their only value is "true". They are read where
	// AnnotationDoNotDisrupt is absent.
	AnnotationDoNotEvict       = Group + "/do-not-evict"
	AnnotationDoNotConsolidate = Group + "/do-not-consolidate"
	// AnnotationSafeToEvict is an annotation of the Cluster Autoscaler: "false" on a pod protects its node from
	// removal.
	AnnotationSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	// AnnotationScaleDownDisabled is an annotation of the Cluster Autoscaler: "true" on a node protects it from
	// removal.
	AnnotationScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// AnnotationPodScaleUpDelay is an annotation of the Cluster Autoscaler: for how long after the creation of a pod no node
	// is launched for it, a duration. AnnotationProvisionAfter is the same by a name of its own.
	AnnotationPodScaleUpDelay = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
	AnnotationProvisionAfter  = OwnAnnotationPrefix + "provision-after"
	// AnnotationKubelet, on a pool or claim, holds kubelet settings (JSON) that replace those of the node
	// class. Conversion from v1beta1 writes it from spec.template.spec.kubelet of a pool or spec.kubelet of a
	// claim.
	AnnotationKubelet = "compatibility.karpenter.sh/v1beta1-kubelet-conversion"
	// AnnotationPodDeletionCost, on a pod, is a number. Pods with a higher number cost more to evict.
	AnnotationPodDeletionCost = corev1.PodDeletionCost
)

// OwnAnnotationPrefix is the prefix of annotations that only this implementation defines.
const OwnAnnotationPrefix = "karpenter-go.github.io/"

// AnnotationCommand, on a claim, is the disruption command that the claim is part of, as JSON.
const AnnotationCommand = OwnAnnotationPrefix + "command"

// AnnotationNodeOverheadPrice, on a pool, is the cost of each node in addition to its price, in USD per hour,
// as a decimal number.
const AnnotationNodeOverheadPrice = OwnAnnotationPrefix + "node-overhead-price"

// AnnotationMaxSpotShare, on a pool, is the maximum share of the pool's spot capacity, in percent of its vCPUs,
// that one instance type in one zone may have. It limits the capacity that one interruption of a spot capacity
// pool removes.
const AnnotationMaxSpotShare = OwnAnnotationPrefix + "max-spot-share"

// AnnotationRebalance, on a pool, is RebalanceReplace if nodes for which the cloud recommends it are replaced within the
// pool's budgets, as if they had drifted. Without it, recommendations are only reported.
const AnnotationRebalance = OwnAnnotationPrefix + "rebalance"

// RebalanceReplace is the value of AnnotationRebalance.
const RebalanceReplace = "replace"

// Settings of a pool's consolidation, on the pool. AnnotationPayback is the time (a duration) within which the
// savings of a change must exceed the cost of its disruption. AnnotationMovePrice is that cost in USD per unit
// of eviction cost, as a decimal number. AnnotationMinSaving is the minimum saving in USD per hour, as a
// decimal number. AnnotationMinStay is the time (a duration) after a consolidation within which moving the same
// pods again has twenty times the price. It defaults to AnnotationPayback.
const (
	AnnotationMinStay   = OwnAnnotationPrefix + "min-stay"
	AnnotationPayback   = OwnAnnotationPrefix + "payback"
	AnnotationMovePrice = OwnAnnotationPrefix + "move-price"
	AnnotationMinSaving = OwnAnnotationPrefix + "min-saving"
)

// AnnotationBoughtBy, on a claim, is the reason why it was created, with the same values as in metrics:
// "provisioned", "underutilized", "drifted" ...
const AnnotationBoughtBy = OwnAnnotationPrefix + "bought-by"

// AnnotationClaimSeries, on a NodePool, is part of the names of its new claims: the same pods get the same name within a
// series. It holds the deletion time (RFC 3339) and the UID of the claim whose end began the series, so that no later
// claim gets the name of one that is gone.
const AnnotationClaimSeries = OwnAnnotationPrefix + "claim-series"

// AnnotationConsolidated, on a claim, is the last time (RFC 3339) at which consolidation moved pods to its
// node. The pods are not moved again until that move has paid for itself.
const AnnotationConsolidated = OwnAnnotationPrefix + "consolidated"

// AnnotationExpecting, on a claim, is the last time (RFC 3339) at which pods evicted from other nodes were
// assigned to its node. For one minute, the node does not count as empty while it waits for the first of them.
const AnnotationExpecting = OwnAnnotationPrefix + "expecting"

// AnnotationPauses, on a NodePool, records what failed repeatedly and waits before it is tried again: launches for
// the pods of a controller, for example. It holds the number of failures, the end of each pause and the last failure
// (JSON). Remove the annotation to retry at once.
const AnnotationPauses = OwnAnnotationPrefix + "pauses"

// AnnotationPods, on a claim, holds the UIDs of the pods that the claim was created for, separated by spaces.
// After a restart, the controller assigns these pods to the claim again. After the node is initialized, the
// annotation shows whether the pods that the node was launched for still exist.
const AnnotationPods = OwnAnnotationPrefix + "pods"

// AnnotationRepair, on a claim, is the node condition because of which the claim is about to be deleted: the
// node is unhealthy. The claim's AnnotationTerminationTimestamp was then set by node repair, and is removed if
// the node recovers before the deletion.
const AnnotationRepair = OwnAnnotationPrefix + "repair"

// Settings of node repair, on a pool. AnnotationNodeRepair is "off" if no node of the pool is repaired.
// AnnotationRepairThreshold is how many nodes of the pool may be unhealthy for one of them to be repaired: a number, or a
// share such as "20%", rounded up, which is the default. AnnotationRepairAtOnce is the maximum number of nodes that are
// repaired at the same time. AnnotationRepairGrace is how long (a duration, by default zero) the drain respects
// PodDisruptionBudgets and `karpenter.sh/do-not-disrupt`. AnnotationRepairConditions changes the conditions that require
// repair, and how long each is tolerated: "KernelDeadlock=True:10m,NetworkUnavailable=True:never".
const (
	AnnotationNodeRepair       = OwnAnnotationPrefix + "node-repair"
	AnnotationRepairThreshold  = OwnAnnotationPrefix + "repair-threshold"
	AnnotationRepairAtOnce     = OwnAnnotationPrefix + "repair-at-once"
	AnnotationRepairGrace      = OwnAnnotationPrefix + "repair-grace"
	AnnotationRepairConditions = OwnAnnotationPrefix + "repair-conditions"
)

// WrittenOnClaims reports whether the controller itself writes the annotation on claims to store its state.
// Such annotations are not taken from the template of a pool.
func WrittenOnClaims(key string) bool {
	switch key {
	case AnnotationPriceOverlayApplied, AnnotationCapacityOverlayApplied,
		AnnotationTerminationTimestamp, AnnotationCommand, AnnotationBoughtBy, AnnotationConsolidated,
		AnnotationExpecting, AnnotationPods, AnnotationRepair:
		return true
	}
	return false
}

// AnnotationRemovalsAllowedUntil, on a pool, is a time (RFC 3339) that the operator sets, at most 24 hours ahead. Until
// then, removals that neither a user nor a plan requested are not limited.
const AnnotationRemovalsAllowedUntil = OwnAnnotationPrefix + "removals-allowed-until"

// AnnotationActive, on a CapacityBuffer, limits it to times: a schedule and a duration as in the budgets of a NodePool, with
// a slash between, such as "0 7 * * 1-5/11h". Times are UTC. Outside of them, the buffer asks for no room.
const AnnotationActive = OwnAnnotationPrefix + "active"

// AnnotationStack, on a NodeOverlay, is "true" if its price adjustment is applied to the outcome of the overlays before
// it in the order of weights, instead of losing to them.
const AnnotationStack = OwnAnnotationPrefix + "stack"

// AnnotationMadeFrom, on a pool or a node class, is the kind and name of the older object that it is generated
// from: "Provisioner/default". The controller keeps it in sync with that object.
const AnnotationMadeFrom = OwnAnnotationPrefix + "made-from"

// FinalizerMadeFrom keeps an older object in the API until the objects generated from it are released: the
// garbage collector deletes the objects that it owns, or, if the older object is deleted without its
// dependents, they are separated from it permanently.
const FinalizerMadeFrom = OwnAnnotationPrefix + "made-from"

// FinalizerTermination keeps a claim or a node in the API until its machine is terminated.
const FinalizerTermination = Group + "/termination"

// Keys of the taints that Karpenter sets or removes.
const (
	// TaintKeyDisrupted is the key of the taint of nodes that are being removed.
	TaintKeyDisrupted = Group + "/disrupted"
	// TaintKeyUnregistered is the key of the taint of nodes that are not registered yet.
	TaintKeyUnregistered = Group + "/unregistered"
)

// DisruptedTaint returns the taint that prevents new pods from being scheduled to a node that is being removed.
func DisruptedTaint() corev1.Taint {
	return corev1.Taint{Key: TaintKeyDisrupted, Effect: corev1.TaintEffectNoSchedule}
}

// UnregisteredTaint returns the taint that a node's bootstrap process sets and registration removes.
func UnregisteredTaint() corev1.Taint {
	return corev1.Taint{Key: TaintKeyUnregistered, Effect: corev1.TaintEffectNoExecute}
}

// KnownEphemeralTaint reports whether a starting node carries the taint temporarily until Kubernetes or
// Karpenter removes it. Planning ignores such taints until the node is initialized, and initialization waits
// for their removal. Values of taints are not compared.
func KnownEphemeralTaint(taint corev1.Taint) bool {
	if strings.HasPrefix(taint.Key, ReadinessTaintPrefix) {
		return true
	}
	for _, known := range knownEphemeralTaints() {
		if taint.MatchTaint(&known) {
			return true
		}
	}
	return false
}

func knownEphemeralTaints() [5]corev1.Taint {
	return [...]corev1.Taint{
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
		{Key: TaintKeyExternalCloudProvider, Effect: corev1.TaintEffectNoSchedule},
		UnregisteredTaint(),
	}
}

// TaintKeyExternalCloudProvider is the key of the taint of a kubelet that waits for its cloud controller.
const TaintKeyExternalCloudProvider = "node.cloudprovider.kubernetes.io/uninitialized"

// ReadinessTaintPrefix is the prefix of the keys of taints that node readiness rules set on a node and remove
// when their condition holds.
const ReadinessTaintPrefix = "readiness.k8s.io/"

// NodeClassLabel returns the key of the label that names the node class of a claim and its node, for example
// karpenter.kwok.sh/kwoknodeclass.
func NodeClassLabel(group, kind string) string {
	return group + "/" + strings.ToLower(kind)
}
