package telemetry

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Event reasons (core specification 7.2).
const (
	ReasonNominated                  = "Nominated"
	ReasonFailedScheduling           = "FailedScheduling"
	ReasonNoCompatibleInstanceTypes  = "NoCompatibleInstanceTypes"
	ReasonDisruptionBlocked          = "DisruptionBlocked"
	ReasonDisruptionLaunching        = "DisruptionLaunching"
	ReasonDisruptionWaitingReadiness = "DisruptionWaitingReadiness"
	ReasonDisruptionTerminating      = "DisruptionTerminating"
	ReasonUnconsolidatable           = "Unconsolidatable"
	ReasonConsolidationCandidate     = "ConsolidationCandidate"
	ReasonConsolidationApproved      = "ConsolidationApproved"
	ReasonConsolidationRejected      = "ConsolidationRejected"
	ReasonEvicted                    = "Evicted"
	ReasonDisrupted                  = "Disrupted"
	ReasonProtectedUntil             = "DoNotDisruptUntil"
	ReasonProtectionElapsed          = "DoNotDisruptGracePeriodElapsed"
	ReasonFailedDraining             = "FailedDraining"
	ReasonAwaitingVolumeDetachment   = "AwaitingVolumeDetachment"
	ReasonTerminationDeadline        = "TerminationGracePeriodExpiring"
	ReasonFailedConsistencyCheck     = "FailedConsistencyCheck"
	ReasonInsufficientCapacity       = "InsufficientCapacityError"
	ReasonNodeClassNotReady          = "NodeClassNotReady"
	ReasonUnregisteredTaintMissing   = "UnregisteredTaintMissing"
	ReasonInvalidDoNotDisrupt        = "InvalidDoNotDisruptAnnotation"
	ReasonNodeRepairBlocked          = "NodeRepairBlocked"
	ReasonSetAside                   = "SetAside"     // ours
	ReasonClaimRefused               = "ClaimRefused" // ours
	ReasonNodeGone                   = "NodeGone"     // ours
	ReasonLaunched                   = "Launched"
	ReasonRegistered                 = "Registered"
	ReasonInitialized                = "Initialized"
	ReasonDisrupting                 = "Disrupting"         // ours
	ReasonTerminated                 = "Terminated"         // ours
	ReasonNotApplied                 = "NotApplied"         // ours
	ReasonPartsLost                  = "PartsLost"          // ours
	ReasonOldName                    = "OldName"            // ours
	ReasonRemovalsPaused             = "RemovalsPaused"     // ours
	ReasonRemovalsResumed            = "RemovalsResumed"    // ours
	ReasonMachineDisputed            = "MachineDisputed"    // ours
	ReasonAnnotationsIgnored         = "AnnotationsIgnored" // ours
	ReasonTerminationFailed          = "TerminationFailed"  // ours
	ReasonStatusNotWritten           = "StatusNotWritten"   // ours
)

// longestError is the length, in bytes, to which a provider's message is cut in events and conditions.
const longestError = 300

// Truncate cuts a provider's message to 300 bytes and an ellipsis (core specification 1.6).
func Truncate(message string) string {
	if len(message) <= longestError {
		return message
	}
	return strings.ToValidUTF8(message[:longestError], "") + "..."
}

// Nominated says that a pod is planned onto a claim, a node, or a claim whose node is known; either name may be empty.
func Nominated(pod *corev1.Pod, claim, node string) Event {
	var targets []string
	if claim != "" {
		targets = append(targets, "nodeclaim/"+claim)
	}
	if node != "" {
		targets = append(targets, "node/"+node)
	}
	return event(pod, normal, ReasonNominated, "Pod should schedule on: "+strings.Join(targets, ", "), uid(pod))
}

// FailedScheduling says why a pod has no place. Another reason is news sooner.
func FailedScheduling(pod *corev1.Pod, why string) Event {
	e := event(pod, warning, ReasonFailedScheduling, "Failed to schedule pod, "+why, uid(pod))
	e.Window, e.Changes = 5*time.Minute, true
	return e
}

// NoCompatibleInstanceTypes says that a pool's requirements leave no instance type.
func NoCompatibleInstanceTypes(pool *karpv1.NodePool, why string) Event {
	e := event(pool, warning, ReasonNoCompatibleInstanceTypes, why, uid(pool))
	e.Window = time.Minute
	return e
}

// DisruptionBlocked says why a node or claim cannot be disrupted.
func DisruptionBlocked(object client.Object, why string) Event {
	return event(object, normal, ReasonDisruptionBlocked, why, uid(object))
}

// PoolDisruptionBlocked says that the budgets of a pool allow no disruption for the reason now.
func PoolDisruptionBlocked(pool *karpv1.NodePool, reason karpv1.DisruptionReason) Event {
	e := event(pool, normal, ReasonDisruptionBlocked,
		fmt.Sprintf("No allowed disruptions for disruption reason %s due to blocking budget", reason), uid(pool), string(reason))
	e.Window = time.Minute
	return e
}

// DisruptionLaunching says that a claim is launched to replace others.
func DisruptionLaunching(claim *karpv1.NodeClaim, reason karpv1.DisruptionReason) Event {
	return event(claim, normal, ReasonDisruptionLaunching, "Launching NodeClaim: "+string(reason), uid(claim), string(reason))
}

// DisruptionWaitingReadiness says that a disruption waits for a replacement.
func DisruptionWaitingReadiness(claim *karpv1.NodeClaim) Event {
	return event(claim, normal, ReasonDisruptionWaitingReadiness, "Waiting on readiness to continue disruption", uid(claim))
}

// DisruptionTerminating says that a node or claim leaves.
func DisruptionTerminating(object client.Object, reason karpv1.DisruptionReason) Event {
	return event(object, normal, ReasonDisruptionTerminating, "Disrupting "+kind(object)+": "+string(reason), uid(object), string(reason))
}

// Reasons of DisruptionTerminating that no budget can name.
const (
	EventExpired   karpv1.DisruptionReason = "Expired"
	EventUnhealthy karpv1.DisruptionReason = "Unhealthy"
)

// NodeRepairBlocked says why an unhealthy node, or its claim, is not replaced.
func NodeRepairBlocked(object client.Object, why string) Event {
	e := event(object, warning, ReasonNodeRepairBlocked, why, uid(object))
	e.Window = 15 * time.Minute
	return e
}

// Unconsolidatable says why consolidation keeps a node: the code of the obstacle, for machines, and its words. Another
// obstacle is news sooner.
func Unconsolidatable(object client.Object, code, why string) Event {
	e := event(object, normal, ReasonUnconsolidatable, code+": "+why, uid(object), code)
	e.Window = 15 * time.Minute
	return e
}

// ConsolidationCandidate says that a command is about to take a node, what it does, and what it saves in USD per hour.
func ConsolidationCandidate(object client.Object, command, summary string, saving float64) Event {
	return event(object, normal, ReasonConsolidationCandidate, fmt.Sprintf("Consolidation: %s, saving $%.2f per hour", summary, saving), uid(object), command)
}

// ConsolidationRejected says that a command that was about to take a node is not carried out: because of a budget, scheduling,
// churn (the node is no longer what it was), or for an unknown reason.
func ConsolidationRejected(object client.Object, command, reason, why string, saving float64) Event {
	return event(object, normal, ReasonConsolidationRejected, fmt.Sprintf("Consolidation dropped (%s): %s; it would have saved $%.2f per hour", reason, why, saving),
		uid(object), command, reason)
}

// Balance is what the policy Balanced weighs for a pool: its score and the least it wants, and which percent of the pool's
// cost a command saves and of its eviction cost it takes.
type Balance struct{ Score, Least, Saving, Disruption float64 }

// ConsolidationApproved says that the policy Balanced approves of a command, on the node and claim that it takes, or on the
// pool when it takes several.
func ConsolidationApproved(object client.Object, b Balance) Event {
	return event(object, normal, ReasonConsolidationApproved, fmt.Sprintf("Consolidation approved: score %.2f >= %.2f (k=%.0f), saving %.1f%% of the pool's cost for %.1f%% of its disruption",
		b.Score, b.Least, 1/b.Least, b.Saving, b.Disruption), uid(object))
}

// Evicted says that a pod was evicted from a node that leaves, and why it leaves.
func Evicted(pod *corev1.Pod, reason string) Event {
	return event(pod, normal, ReasonEvicted, "Evicted pod: "+reason, podKey(pod)...)
}

// FailedDraining says what a drain waits for.
func FailedDraining(node *corev1.Node, why string) Event {
	return event(node, warning, ReasonFailedDraining, "Failed to drain node, "+why, node.Name)
}

// EvictionRefused says which pod a drain waits for, what the API said, and which PodDisruptionBudgets select the pod.
func EvictionRefused(node *corev1.Node, pod *corev1.Pod, said string, budgets []string) Event {
	text := fmt.Sprintf("evicting pod %s/%s: %s", pod.Namespace, pod.Name, said)
	if len(budgets) > 0 {
		text += fmt.Sprintf(" (PodDisruptionBudgets of the pod: %s)", strings.Join(budgets, ", "))
	}
	e := FailedDraining(node, text)
	e.Related = pod
	if len(budgets) == 0 {
		budgets = podKey(pod)
	}
	e.Key = append(e.Key, budgets...) // once for all pods of a budget, and not silenced by the drain's own count of pods
	return e
}

// DeadlineUnreadable says that the end of a claim's grace period cannot be read off it.
func DeadlineUnreadable(node *corev1.Node, claim *karpv1.NodeClaim) Event {
	const key = karpv1.AnnotationTerminationTimestamp
	e := FailedDraining(node, fmt.Sprintf("annotation %s of NodeClaim %s is %q; it should be a time such as 2026-01-31T12:00:00Z", key, claim.Name, claim.Annotations[key]))
	e.Related, e.Key = claim, append(e.Key, key) // not silenced by the drain's own count of pods
	return e
}

// Disrupted says that a pod was deleted because its node has a deadline, and how many seconds it was given of its own
// grace period.
func Disrupted(pod *corev1.Pod, deadline time.Time, grace int64) Event {
	own := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		own = *s
	}
	return event(pod, normal, ReasonDisrupted, fmt.Sprintf(
		"Deleted the pod because its node is removed at %s; it was given %d seconds of its grace period of %d seconds, past PodDisruptionBudgets and do-not-disrupt",
		deadline.UTC().Format(time.RFC3339), grace, own), podKey(pod)...)
}

// ProtectedUntil says until when a pod's do-not-disrupt keeps its node.
func ProtectedUntil(pod *corev1.Pod, until time.Time) Event {
	at := until.UTC().Format(time.RFC3339)
	return event(pod, normal, ReasonProtectedUntil, "Pod must not be disrupted until "+at, uid(pod), at)
}

// ProtectionElapsed says that the time for which a pod forbade to disrupt it is over.
func ProtectionElapsed(pod *corev1.Pod, duration string) Event {
	return event(pod, normal, ReasonProtectionElapsed, "Pod may be disrupted: its do-not-disrupt of "+duration+" has elapsed", uid(pod))
}

// AwaitingVolumeDetachment says which VolumeAttachments a node waits for; at most five are named.
func AwaitingVolumeDetachment(node *corev1.Node, attachments []string) Event {
	const most = 5
	named, rest := attachments, ""
	if len(named) > most {
		named, rest = named[:most], fmt.Sprintf(" and %d more", len(attachments)-most)
	}
	return event(node, normal, ReasonAwaitingVolumeDetachment, "Awaiting deletion of bound volumeattachments "+strings.Join(named, ", ")+rest, node.Name)
}

// TerminationDeadline says when a node or claim will be removed by force.
func TerminationDeadline(object client.Object, deadline time.Time) Event {
	return event(object, warning, ReasonTerminationDeadline, "All pods will be deleted by "+deadline.UTC().Format(time.RFC3339), kind(object), object.GetName())
}

// FailedConsistencyCheck says how a node differs from what was promised.
func FailedConsistencyCheck(claim *karpv1.NodeClaim, why string) Event {
	return event(claim, warning, ReasonFailedConsistencyCheck, why, uid(claim), why)
}

// SetAside says why a claim or node takes no part in planning.
func SetAside(object client.Object, why string) Event {
	return event(object, warning, ReasonSetAside, why, uid(object), why)
}

// InsufficientCapacity says that a claim cannot be launched because the cloud has none left.
func InsufficientCapacity(claim *karpv1.NodeClaim, err error) Event {
	return event(claim, warning, ReasonInsufficientCapacity, "NodeClaim event: "+Truncate(err.Error()), uid(claim))
}

// NodeClassNotReady says that a claim cannot be launched because its node class cannot be used.
func NodeClassNotReady(claim *karpv1.NodeClaim, err error) Event {
	return event(claim, warning, ReasonNodeClassNotReady, "NodeClaim event: "+Truncate(err.Error()), uid(claim))
}

// ClaimRefused says that the API server refuses claims of the pool, from which nothing is bought for a while.
func ClaimRefused(pool *karpv1.NodePool, why string) Event {
	e := event(pool, warning, ReasonClaimRefused, "The API server refused a claim of the pool; others are used for a while: "+why, uid(pool))
	e.Window = time.Minute
	return e
}

// NodeGone says that the machine of a claim lost its node, and that the claim is deleted for that.
func NodeGone(claim *karpv1.NodeClaim) Event {
	return event(claim, warning, ReasonNodeGone,
		fmt.Sprintf("Node %s is gone from the cluster and its machine is not; deleting the claim and the machine", claim.Status.NodeName), uid(claim))
}

// RemovalsPaused says why the machines of a pool are not removed that neither a user nor a plan asked to remove.
func RemovalsPaused(pool *karpv1.NodePool, why, pause string) Event {
	e := event(pool, warning, ReasonRemovalsPaused, why, uid(pool), pause)
	e.Window = 15 * time.Minute
	return e
}

// RemovalsResumed says that such removals are no longer paused.
func RemovalsResumed(pool *karpv1.NodePool, pause string) Event {
	return event(pool, normal, ReasonRemovalsResumed, "Involuntary removals are no longer paused", uid(pool), pause)
}

// MachineDisputed says that a claim stays whose machine the cloud cannot find, because its node reports.
func MachineDisputed(claim *karpv1.NodeClaim) Event {
	e := event(claim, warning, ReasonMachineDisputed,
		fmt.Sprintf("The cloud does not find machine %s, and node %s reports: the NodeClaim stays. Delete it if the machine is really gone", claim.Status.ProviderID, claim.Status.NodeName), uid(claim))
	e.Window = 15 * time.Minute
	return e
}

// AnnotationsIgnored names annotations of a pool's template that its claims do not get, because the controller itself writes them.
func AnnotationsIgnored(pool *karpv1.NodePool, keys []string) Event {
	e := event(pool, warning, ReasonAnnotationsIgnored,
		"spec.template.metadata.annotations: not copied to NodeClaims, the controller writes them itself: "+strings.Join(keys, ", "), uid(pool))
	e.Window = time.Hour
	return e
}

// TerminationFailed says why the machine of a deleted claim is not terminated. The termination is tried again.
func TerminationFailed(claim *karpv1.NodeClaim, machine, reason string, err error) Event {
	e := event(claim, warning, ReasonTerminationFailed, fmt.Sprintf("Machine %s is not terminated (%s): %s", machine, reason, Truncate(err.Error())), uid(claim), reason)
	e.Window = 15 * time.Minute
	return e
}

// StatusNotWritten says why the API server refuses the status of a claim, which therefore does not show how far it is.
func StatusNotWritten(claim *karpv1.NodeClaim, err error) Event {
	e := event(claim, warning, ReasonStatusNotWritten, "The API server refuses the status of this NodeClaim: "+Truncate(err.Error()), uid(claim))
	e.Window = 15 * time.Minute
	return e
}

// NotApplied says why a Provisioner or an AWSNodeTemplate has not become what it should.
func NotApplied(object client.Object, why string) Event {
	e := event(object, warning, ReasonNotApplied, why, uid(object), why)
	e.Window = 15 * time.Minute
	return e
}

// PartsLost says which fields of a Provisioner or an AWSNodeTemplate cannot be said today.
func PartsLost(object client.Object, fields string) Event {
	e := event(object, warning, ReasonPartsLost, fields, uid(object), fields)
	e.Window = time.Hour
	return e
}

// OldName says that a pod or DaemonSet uses names of before v1, and what they are called today; lost means that one of them
// cannot be honoured. It is told once an hour for all pods of one owner.
func OldName(user client.Object, owner types.UID, what string, lost bool) Event {
	e := event(user, normal, ReasonOldName, "Old names are honoured, write the new ones: "+what, string(owner), what)
	if lost {
		e.Type, e.Message = warning, "Names of before v1: "+what
	}
	e.Window = time.Hour
	return e
}

// UnregisteredTaintMissing says that a node joined without the taint that keeps pods away until it is set up.
func UnregisteredTaintMissing(claim *karpv1.NodeClaim, node string) Event {
	return event(claim, warning, ReasonUnregisteredTaintMissing,
		fmt.Sprintf("Missing taint %s on node %s: pods may start there before its labels and taints are complete", karpv1.Group+"/unregistered", node), uid(claim))
}

// InvalidDoNotDisrupt says that a pod's karpenter.sh/do-not-disrupt is neither "true" nor a positive duration, or one that
// is too long to count and so protects for ever.
func InvalidDoNotDisrupt(pod *corev1.Pod, value string, forever bool) Event {
	is := "it is ignored"
	if forever {
		is = "that is longer than can be counted, so it protects for ever"
	}
	return event(pod, warning, ReasonInvalidDoNotDisrupt,
		fmt.Sprintf("annotation karpenter.sh/do-not-disrupt is %q; it must be \"true\" or a positive duration such as \"30m\"; %s", value, is), uid(pod), value)
}

func event(object client.Object, kind, reason, message string, key ...string) Event {
	return Event{Object: object, Type: kind, Reason: reason, Message: message, Key: key}
}

func uid(object client.Object) string { return string(object.GetUID()) }

func podKey(pod *corev1.Pod) []string { return []string{pod.Namespace, pod.Name} }

// kind names the object's kind; objects that were read from the API have no TypeMeta.
func kind(object client.Object) string {
	switch object.(type) {
	case *corev1.Node:
		return "Node"
	case *karpv1.NodeClaim:
		return "NodeClaim"
	case *karpv1.NodePool:
		return "NodePool"
	}
	return object.GetObjectKind().GroupVersionKind().Kind
}
