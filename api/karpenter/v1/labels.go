package v1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Labels of claims and nodes.
const (
	// LabelNodePool names the pool that owns a claim and its node.
	LabelNodePool = Group + "/nodepool"
	// LabelCapacityType is how the machine is bought: one of the capacity types below.
	LabelCapacityType = Group + "/capacity-type"
	// LabelRegistered is "true" on a node that has been matched with its claim.
	LabelRegistered = Group + "/registered"
	// LabelInitialized is "true" on a node that is ready for its pods.
	LabelInitialized = Group + "/initialized"
	// LabelDoNotSyncTaints is "true" on a node whose taints its bootstrap has set:
	// registration does not copy those of the claim.
	LabelDoNotSyncTaints = Group + "/do-not-sync-taints"
	// LabelExcludeBalancers takes a node out of external load balancers; we set it to
	// ExcludeBalancersValue while the node is terminating.
	LabelExcludeBalancers = corev1.LabelNodeExcludeBalancers
	ExcludeBalancersValue = "karpenter"
)

// Values of LabelCapacityType.
const (
	CapacityTypeOnDemand = "on-demand" // at any time, at list price
	CapacityTypeSpot     = "spot"      // cheaper, may be taken back
	CapacityTypeReserved = "reserved"  // paid for already
)

// Values of the label kubernetes.io/arch.
const (
	ArchitectureAMD64 = "amd64"
	ArchitectureARM64 = "arm64"
)

// Annotations of the API: other tools and users know them.
const (
	// AnnotationDoNotDisrupt is "true", or on a pod a positive Go duration, and forbids
	// voluntary disruption.
	AnnotationDoNotDisrupt = Group + "/do-not-disrupt"
	// AnnotationNodePoolHash is the pool's drift hash; AnnotationNodePoolHashVersion says
	// which HashVersion made it. On pools and claims.
	AnnotationNodePoolHash        = Group + "/nodepool-hash"
	AnnotationNodePoolHashVersion = Group + "/nodepool-hash-version"
	// AnnotationTerminationTimestamp is the time (RFC 3339) at which draining ends, on claims.
	AnnotationTerminationTimestamp = Group + "/nodeclaim-termination-timestamp"
	// AnnotationMinValuesRelaxed says whether minValues were lowered to launch the claim.
	AnnotationMinValuesRelaxed = Group + "/nodeclaim-min-values-relaxed"
	// AnnotationRequestedDRADrivers lists the device drivers that the claim's pods wait
	// for, sorted, separated by commas.
	AnnotationRequestedDRADrivers = Group + "/requested-dra-drivers"
	// AnnotationPriceOverlayApplied and AnnotationCapacityOverlayApplied are "true" on
	// claims whose instance types carry a NodeOverlay.
	AnnotationPriceOverlayApplied    = Group + "/price-overlay-applied"
	AnnotationCapacityOverlayApplied = Group + "/capacity-overlay-applied"
	// AnnotationDoNotEvict, on a pod, and AnnotationDoNotConsolidate, on a node, are what AnnotationDoNotDisrupt was called
	// before v1beta1; "true" is the only value that they had. They count where today's name is absent.
	AnnotationDoNotEvict       = Group + "/do-not-evict"
	AnnotationDoNotConsolidate = Group + "/do-not-consolidate"
	// AnnotationSafeToEvict is what the Cluster Autoscaler goes by: "false" on a pod keeps its node.
	AnnotationSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	// AnnotationKubelet, on a pool or claim, are kubelet settings (JSON) that count in place of those of its node class. They
	// come from spec.template.spec.kubelet or spec.kubelet of v1beta1.
	AnnotationKubelet = "compatibility.karpenter.sh/v1beta1-kubelet-conversion"
	// AnnotationPodDeletionCost is read from pods: a number, higher is costlier to evict.
	AnnotationPodDeletionCost = corev1.PodDeletionCost
)

// OwnAnnotationPrefix begins the annotations that only this implementation knows.
const OwnAnnotationPrefix = "karpenter-go.github.io/"

// AnnotationCommand holds the disruption command that a claim takes part in, as JSON.
const AnnotationCommand = OwnAnnotationPrefix + "command"

// AnnotationUnreadable names a field that could not be read in bounded work, such as a quantity with an exponent of ten digits. It is put
// on the object as it is read, and never written.
const AnnotationUnreadable = OwnAnnotationPrefix + "unreadable"

// AnnotationNodeOverheadPrice, on a pool, is what each of its nodes costs beyond its price, in decimal USD per hour.
const AnnotationNodeOverheadPrice = OwnAnnotationPrefix + "node-overhead-price"

// AnnotationMaxSpotShare, on a pool, is the greatest part of its spot capacity (of its vCPUs), in percent, that may be of one
// instance type in one zone: what one interruption takes at a time.
const AnnotationMaxSpotShare = OwnAnnotationPrefix + "max-spot-share"

// The economics of a pool's consolidation, on the pool. AnnotationPayback is the time (a duration) over which what a
// change saves must exceed the price of the disruption; AnnotationMovePrice that price per unit of eviction cost, in
// decimal USD; AnnotationMinSaving the least saving, in decimal USD per hour. AnnotationMinStay is how long (a duration) a
// node that a consolidation launched, or sent pods to, is not consolidated; without it, AnnotationPayback says so too.
const (
	AnnotationMinStay   = OwnAnnotationPrefix + "min-stay"
	AnnotationPayback   = OwnAnnotationPrefix + "payback"
	AnnotationMovePrice = OwnAnnotationPrefix + "move-price"
	AnnotationMinSaving = OwnAnnotationPrefix + "min-saving"
)

// AnnotationBoughtBy, on a claim, is why it was created, as in metrics: "provisioned", "underutilized", "drifted" ...
const AnnotationBoughtBy = OwnAnnotationPrefix + "bought-by"

// AnnotationConsolidated, on a claim, is when a consolidation last sent pods to its node (RFC 3339): they are not moved again
// before that has paid back.
const AnnotationConsolidated = OwnAnnotationPrefix + "consolidated"

// AnnotationExpecting, on a claim, is when pods that had to leave their nodes were last sent to its node (RFC 3339): for a
// minute the node is not taken for empty before somebody has come.
const AnnotationExpecting = OwnAnnotationPrefix + "expecting"

// AnnotationBackoff, on a NodePool, says for which reasons of disruption replacements failed, how often in a row and when
// last (JSON): the reason backs off. To remove it is to try again at once.
const AnnotationBackoff = OwnAnnotationPrefix + "disruption-backoff"

// AnnotationLaunchBackoff, on a NodePool, says for which controllers of pods launches wait, because nodes that were launched
// for their pods did not come to run them: until when, and what became of the nodes (JSON). To remove it is to try again at
// once.
const AnnotationLaunchBackoff = OwnAnnotationPrefix + "launch-backoff"

// AnnotationPods holds the UIDs of the pods that a claim was created for, separated by spaces, so that they are planned
// onto it again after a restart of the controller. Once the node is initialized it tells whether what the node was
// bought for is still there.
const AnnotationPods = OwnAnnotationPrefix + "pods"

// AnnotationReserved, on a claim, holds the UIDs of the pods that the newest plan puts onto its node beside those that the claim was
// created for and those that are nominated, separated by spaces. A pod that a newer claim was created for too is among them. A plan
// made after a restart of the controller finds their places by it.
const AnnotationReserved = OwnAnnotationPrefix + "reserved"

// AnnotationRepair, on a claim that is about to be deleted because its node is unhealthy, is the node's condition. The
// claim's AnnotationTerminationTimestamp is then ours, to take back if the node recovers before the deletion.
const AnnotationRepair = OwnAnnotationPrefix + "repair"

// WrittenOnClaims reports whether the annotation is one that the controller itself writes on claims, to remember what it does with
// them. The template of a pool does not set it.
func WrittenOnClaims(key string) bool {
	switch key {
	case AnnotationTerminationTimestamp, AnnotationCommand, AnnotationUnreadable, AnnotationBoughtBy, AnnotationConsolidated,
		AnnotationExpecting, AnnotationPods, AnnotationReserved, AnnotationRepair:
		return true
	}
	return false
}

// AnnotationRemovals, on a pool, is how many of its machines were removed in each of the last minutes though neither a user nor
// a plan asked for it: "2026-01-02T15:04:00Z=3 2026-01-02T15:06:00Z=1". AnnotationRemovalsPaused says that such removals are
// paused, because too many were asked for: "nodepool" or "fleet", which names what the machines were counted in.
const (
	AnnotationRemovals       = OwnAnnotationPrefix + "removals"
	AnnotationRemovalsPaused = OwnAnnotationPrefix + "removals-paused"
)

// AnnotationRemovalsAllowedUntil, on a pool, is a time (RFC 3339) that the operator sets: until then removals that neither a
// user nor a plan asked for are not paused.
const AnnotationRemovalsAllowedUntil = OwnAnnotationPrefix + "removals-allowed-until"

// AnnotationMadeFrom, on a pool or a node class, names the older object that it is made from and kept as: "Provisioner/default".
const AnnotationMadeFrom = OwnAnnotationPrefix + "made-from"

// FinalizerMadeFrom keeps an older object in the API until what was made from it is let go of: owned for the garbage collector
// to delete, or free of it for good.
const FinalizerMadeFrom = OwnAnnotationPrefix + "made-from"

// FinalizerTermination keeps a claim or a node in the API until its machine is gone.
const FinalizerTermination = Group + "/termination"

// Keys of the taints that we set or remove.
const (
	TaintKeyDisrupted    = Group + "/disrupted"
	TaintKeyUnregistered = Group + "/unregistered"
)

// DisruptedTaint keeps new pods off a node that is being removed.
func DisruptedTaint() corev1.Taint {
	return corev1.Taint{Key: TaintKeyDisrupted, Effect: corev1.TaintEffectNoSchedule}
}

// UnregisteredTaint is set by a node's bootstrap and removed when we register it.
func UnregisteredTaint() corev1.Taint {
	return corev1.Taint{Key: TaintKeyUnregistered, Effect: corev1.TaintEffectNoExecute}
}

// KnownEphemeralTaint says whether a starting node carries this taint for a while and
// Kubernetes or we remove it: planning ignores such taints until the node is
// initialized, and initialization waits for their end. Values are not compared.
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

// NotReadyTaint reports whether Kubernetes or the cloud controller keeps a taint on a node
// until it can run pods, and takes it off itself. Unlike KnownEphemeralTaint it leaves aside
// Karpenter's own taint and those of node readiness rules.
func NotReadyTaint(taint corev1.Taint) bool {
	switch taint.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeNetworkUnavailable, TaintKeyExternalCloudProvider:
		return true
	}
	return false
}

// TaintKeyExternalCloudProvider is set by a kubelet that waits for its cloud controller.
const TaintKeyExternalCloudProvider = "node.cloudprovider.kubernetes.io/uninitialized"

// ReadinessTaintPrefix begins the keys of taints that node readiness rules put on a
// node and take off when their condition holds.
const ReadinessTaintPrefix = "readiness.k8s.io/"

// NodeClassLabel is the key of the label that names the node class of a claim and its
// node, for example karpenter.kwok.sh/kwoknodeclass.
func NodeClassLabel(group, kind string) string {
	return group + "/" + strings.ToLower(kind)
}
