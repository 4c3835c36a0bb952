package telemetry

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// These are the event reasons. Those marked "not upstream" do not exist in upstream Karpenter.
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
	ReasonSetAside                   = "SetAside"     // not upstream
	ReasonClaimRefused               = "ClaimRefused" // not upstream
	ReasonNodeGone                   = "NodeGone"     // not upstream
	ReasonLaunched                   = "Launched"
	ReasonRegistered                 = "Registered"
	ReasonInitialized                = "Initialized"
	ReasonDisrupting                 = "Disrupting"                // not upstream
	ReasonTerminated                 = "Terminated"                // not upstream
	ReasonNotApplied                 = "NotApplied"                // not upstream
	ReasonPartsLost                  = "PartsLost"                 // not upstream
	ReasonOldName                    = "OldName"                   // not upstream
	ReasonRemovalsPaused             = "RemovalsPaused"            // not upstream
	ReasonRemovalsResumed            = "RemovalsResumed"           // not upstream
	ReasonPaused                     = "Paused"                    // not upstream
	ReasonMachineDisputed            = "MachineDisputed"           // not upstream
	ReasonVoluntaryDisruptionPaused  = "VoluntaryDisruptionPaused" // not upstream
	ReasonAnnotationsIgnored         = "AnnotationsIgnored"        // not upstream
	ReasonTerminationFailed          = "TerminationFailed"         // not upstream
	ReasonStatusNotWritten           = "StatusNotWritten"          // not upstream
	ReasonNotTriggerScaleUp          = "NotTriggerScaleUp"         // not upstream
	ReasonQuotaReached               = "QuotaReached"              // not upstream
)

// longestError is the length, in bytes, to which a provider's message is truncated in events and conditions.
const longestError = 300

// Truncate returns a provider's message, truncated to 300 bytes and an ellipsis.
func Truncate(message string) string {
	if len(message) <= longestError {
		return message
	}
	return strings.ToValidUTF8(message[:longestError], "") + "..."
}

// Nominated reports that a pod is planned onto a NodeClaim, a node, or a NodeClaim whose node is known; either name
// may be empty.
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

// FailedSchedulingPrefix precedes the reason in events about unschedulable pods.
const FailedSchedulingPrefix = "Failed to schedule pod, "

// FailedScheduling reports why a pod is unschedulable. A different reason is reported earlier.
func FailedScheduling(pod *corev1.Pod, why string) Event {
	e := event(pod, warning, ReasonFailedScheduling, FailedSchedulingPrefix+why, uid(pod))
	e.Window, e.Changes = 5*time.Minute, true
	return e
}

// NoCompatibleInstanceTypes reports that a pool's requirements exclude all instance types.
func NoCompatibleInstanceTypes(pool *karpv1.NodePool, why string) Event {
	e := event(pool, warning, ReasonNoCompatibleInstanceTypes, why, uid(pool))
	e.Window = time.Minute
	return e
}

// Paused reports what is paused for a pool, because it failed repeatedly, and until when. The text is the same for the
// whole pause.
func Paused(pool *karpv1.NodePool, text string) Event {
	text += ". To try again at once: kubectl annotate nodepool " + pool.Name + " " + karpv1.AnnotationPauses + "-"
	e := event(pool, warning, ReasonPaused, text, uid(pool), text)
	e.Window = time.Hour
	return e
}

// DisruptionBlocked reports why a node or NodeClaim cannot be disrupted.
func DisruptionBlocked(object client.Object, why string) Event {
	return event(object, normal, ReasonDisruptionBlocked, why, uid(object))
}

// PoolDisruptionBlocked reports that the budgets of a pool currently allow no disruption for the reason.
func PoolDisruptionBlocked(pool *karpv1.NodePool, reason karpv1.DisruptionReason) Event {
	e := event(pool, normal, ReasonDisruptionBlocked,
		fmt.Sprintf("No allowed disruptions for disruption reason %s due to blocking budget", reason), uid(pool), string(reason))
	e.Window = time.Minute
	return e
}

// VoluntaryDisruptionPaused reports that no node of the pool is removed voluntarily, because too many nodes are not ready.
func VoluntaryDisruptionPaused(pool *karpv1.NodePool, why string) Event {
	e := event(pool, warning, ReasonVoluntaryDisruptionPaused, why, uid(pool))
	e.Window = 10 * time.Minute
	return e
}

// DisruptionLaunching reports that a NodeClaim is launched to replace others.
func DisruptionLaunching(claim *karpv1.NodeClaim, reason karpv1.DisruptionReason) Event {
	return event(claim, normal, ReasonDisruptionLaunching, "Launching NodeClaim: "+string(reason), uid(claim), string(reason))
}

// DisruptionWaitingReadiness reports that a disruption waits for a replacement.
func DisruptionWaitingReadiness(claim *karpv1.NodeClaim) Event {
	return event(claim, normal, ReasonDisruptionWaitingReadiness, "Waiting on readiness to continue disruption", uid(claim))
}

// DisruptionTerminating reports that a node or NodeClaim is being removed.
func DisruptionTerminating(object client.Object, reason karpv1.DisruptionReason) Event {
	return event(object, normal, ReasonDisruptionTerminating, "Disrupting "+kind(object)+": "+string(reason), uid(object), string(reason))
}

// These are the reasons of DisruptionTerminating that no budget can name.
const (
	EventExpired   karpv1.DisruptionReason = "Expired"
	EventUnhealthy karpv1.DisruptionReason = "Unhealthy"
)

// NodeRepairBlocked reports why an unhealthy node, or its NodeClaim, is not replaced.
func NodeRepairBlocked(object client.Object, why string) Event {
	e := event(object, warning, ReasonNodeRepairBlocked, why, uid(object))
	e.Window = 15 * time.Minute
	return e
}

// Unconsolidatable reports why consolidation keeps a node: a machine-readable code of the obstacle, and its
// description. A different obstacle is reported earlier.
func Unconsolidatable(object client.Object, code, why string) Event {
	e := event(object, normal, ReasonUnconsolidatable, code+": "+why, uid(object), code)
	e.Window = 15 * time.Minute
	return e
}

// ConsolidationCandidate reports that a command is about to remove a node, its effect, and its savings in USD per
// hour.
func ConsolidationCandidate(object client.Object, command, summary string, saving float64) Event {
	return event(object, normal, ReasonConsolidationCandidate, fmt.Sprintf("Consolidation: %s, saving $%.2f per hour", summary, saving),
		uid(object), command)
}

// ConsolidationRejected reports that a command that was about to remove a node is dropped: because of a budget,
// scheduling, churn (the state of the node has changed), or for an unknown reason.
func ConsolidationRejected(object client.Object, command, reason, why string, saving float64) Event {
	return event(object, normal, ReasonConsolidationRejected,
		fmt.Sprintf("Consolidation dropped (%s): %s; it would have saved $%.2f per hour", reason, why, saving),
		uid(object), command, reason)
}

// Balance holds the values that the policy Balanced compares for a pool: the score and its threshold, the percentage
// of the pool's cost that a command saves, and the percentage of the pool's eviction cost that it causes.
type Balance struct{ Score, Least, Saving, Disruption float64 }

// ConsolidationApproved reports that the policy Balanced approves a command, on the node and NodeClaim that it
// removes, or on the pool when it removes several.
func ConsolidationApproved(object client.Object, b Balance) Event {
	return event(object, normal, ReasonConsolidationApproved,
		fmt.Sprintf("Consolidation approved: score %.2f >= %.2f (k=%.0f), saving %.1f%% of the pool's cost for %.1f%% of its disruption",
			b.Score, b.Least, 1/b.Least, b.Saving, b.Disruption), uid(object))
}

// Evicted reports that a pod was evicted from a node that is being removed, and the reason of the removal.
func Evicted(pod *corev1.Pod, reason string) Event {
	return event(pod, normal, ReasonEvicted, "Evicted pod: "+reason, podKey(pod)...)
}

// FailedDraining reports what a drain waits for, and for how long.
func FailedDraining(node *corev1.Node, why string, waited time.Duration) Event {
	e := event(node, warning, ReasonFailedDraining,
		fmt.Sprintf("Failed to drain node, %s; the drain has lasted %s", why, waited.Round(time.Second)), node.Name)
	e.Window = 10 * time.Minute
	return e
}

// EvictionRefused reports which pod blocks a drain, the response of the API server, the PodDisruptionBudgets that
// select the pod, and the duration of the drain.
func EvictionRefused(node *corev1.Node, pod *corev1.Pod, said string, budgets []string, waited time.Duration) Event {
	text := fmt.Sprintf("evicting pod %s/%s: %s", pod.Namespace, pod.Name, said)
	if len(budgets) > 0 {
		text += fmt.Sprintf(" (PodDisruptionBudgets of the pod: %s)", strings.Join(budgets, ", "))
	}
	e := FailedDraining(node, text, waited)
	e.Related = pod
	if len(budgets) == 0 {
		budgets = podKey(pod)
	}
	e.Key = append(e.Key, budgets...) // once for all pods of a budget, and not suppressed by the drain's own event
	return e
}

// DeadlineUnreadable reports that the end of a NodeClaim's grace period cannot be parsed.
func DeadlineUnreadable(node *corev1.Node, claim *karpv1.NodeClaim) Event {
	const key = karpv1.AnnotationTerminationTimestamp
	e := event(node, warning, ReasonFailedDraining,
		fmt.Sprintf("Failed to drain node, annotation %s of NodeClaim %s is %q; it should be a time such as 2026-01-31T12:00:00Z",
			key, claim.Name, claim.Annotations[key]), node.Name, key) // not suppressed by the drain's own event
	e.Related = claim
	return e
}

// Disrupted reports that a pod was deleted because its node has a deadline, and how many seconds of its own grace
// period it was given.
func Disrupted(pod *corev1.Pod, deadline time.Time, grace int64) Event {
	own := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		own = *s
	}
	return event(pod, normal, ReasonDisrupted, fmt.Sprintf(
		"Deleted the pod because its node is removed at %s; it was given %d seconds of its grace period of %d seconds, past PodDisruptionBudgets and do-not-disrupt",
		deadline.UTC().Format(time.RFC3339), grace, own), podKey(pod)...)
}

// ProtectedUntil reports until when a pod's do-not-disrupt annotation protects its node.
func ProtectedUntil(pod *corev1.Pod, until time.Time) Event {
	at := until.UTC().Format(time.RFC3339)
	return event(pod, normal, ReasonProtectedUntil, "Pod must not be disrupted until "+at, uid(pod), at)
}

// ProtectionElapsed reports that the time for which a pod's do-not-disrupt annotation protected it is over.
func ProtectionElapsed(pod *corev1.Pod, duration string) Event {
	return event(pod, normal, ReasonProtectionElapsed, "Pod may be disrupted: its do-not-disrupt of "+duration+" has elapsed", uid(pod))
}

// AwaitingVolumeDetachment reports which VolumeAttachments a node waits for; at most five are named.
func AwaitingVolumeDetachment(node *corev1.Node, attachments []string) Event {
	const most = 5
	named, rest := attachments, ""
	if len(named) > most {
		named, rest = named[:most], fmt.Sprintf(" and %d more", len(attachments)-most)
	}
	return event(node, normal, ReasonAwaitingVolumeDetachment,
		"Awaiting deletion of bound volumeattachments "+strings.Join(named, ", ")+rest, node.Name)
}

// TerminationDeadline reports when a node or NodeClaim will be removed by force.
func TerminationDeadline(object client.Object, deadline time.Time) Event {
	return event(object, warning, ReasonTerminationDeadline, "All pods will be deleted by "+deadline.UTC().Format(time.RFC3339),
		kind(object), object.GetName())
}

// FailedConsistencyCheck reports how a node differs from the resources that its NodeClaim declares.
func FailedConsistencyCheck(claim *karpv1.NodeClaim, why string) Event {
	return event(claim, warning, ReasonFailedConsistencyCheck, why, uid(claim), why)
}

// SetAside reports why a NodeClaim, node or DaemonSet is excluded from planning.
func SetAside(object client.Object, why string) Event {
	return event(object, warning, ReasonSetAside, why, uid(object), why)
}

// InsufficientCapacity reports that a NodeClaim cannot be launched because the cloud has no capacity.
func InsufficientCapacity(claim *karpv1.NodeClaim, err error) Event {
	return event(claim, warning, ReasonInsufficientCapacity, "NodeClaim event: "+Truncate(err.Error()), uid(claim))
}

// NodeClassNotReady reports that a NodeClaim cannot be launched because its node class cannot be used.
func NodeClassNotReady(claim *karpv1.NodeClaim, err error) Event {
	return event(claim, warning, ReasonNodeClassNotReady, "NodeClaim event: "+Truncate(err.Error()), uid(claim))
}

// ClaimRefused reports that the API server rejects NodeClaims of the pool, from which temporarily no node is
// launched.
func ClaimRefused(pool *karpv1.NodePool, why string) Event {
	e := event(pool, warning, ReasonClaimRefused,
		"The API server refused a claim of the pool; temporarily, other pools are used: "+why, uid(pool))
	e.Window = time.Minute
	return e
}

// NodeGone reports that the node of a NodeClaim's machine is gone, and that the NodeClaim is deleted for this reason.
func NodeGone(claim *karpv1.NodeClaim) Event {
	return event(claim, warning, ReasonNodeGone,
		fmt.Sprintf("Node %s is gone from the cluster and its machine is not; deleting the claim and the machine", claim.Status.NodeName),
		uid(claim))
}

// RemovalsPaused reports why machines of a pool are not removed whose removal neither a user nor a plan requested.
func RemovalsPaused(pool *karpv1.NodePool, why, pause string) Event {
	e := event(pool, warning, ReasonRemovalsPaused, why, uid(pool), pause)
	e.Window = 15 * time.Minute
	return e
}

// RemovalsResumed reports that such removals are no longer paused.
func RemovalsResumed(pool *karpv1.NodePool, pause string) Event {
	return event(pool, normal, ReasonRemovalsResumed, "Involuntary removals are no longer paused", uid(pool), pause)
}

// MachineDisputed reports that a NodeClaim whose machine the cloud cannot find is kept, because its node reports.
func MachineDisputed(claim *karpv1.NodeClaim) Event {
	e := event(claim, warning, ReasonMachineDisputed,
		fmt.Sprintf("The cloud does not find machine %s, and node %s reports: the NodeClaim is kept. Delete it if the machine is really gone",
			claim.Status.ProviderID, claim.Status.NodeName), uid(claim))
	e.Window = 15 * time.Minute
	return e
}

// AnnotationsIgnored reports annotations of a pool's template that are not copied to its NodeClaims, because the
// controller itself writes them.
func AnnotationsIgnored(pool *karpv1.NodePool, keys []string) Event {
	e := event(pool, warning, ReasonAnnotationsIgnored,
		"spec.template.metadata.annotations: not copied to NodeClaims, the controller writes them itself: "+strings.Join(keys, ", "), uid(pool))
	e.Window = time.Hour
	return e
}

// TerminationFailed reports why the machine of a deleted NodeClaim is not terminated. The termination is retried.
func TerminationFailed(claim *karpv1.NodeClaim, machine, reason string, err error) Event {
	e := event(claim, warning, ReasonTerminationFailed,
		fmt.Sprintf("Machine %s is not terminated (%s): %s", machine, reason, Truncate(err.Error())), uid(claim), reason)
	e.Window = 15 * time.Minute
	return e
}

// StatusNotWritten reports why the API server rejects the status of a NodeClaim, which therefore does not show its
// progress.
func StatusNotWritten(claim *karpv1.NodeClaim, err error) Event {
	e := event(claim, warning, ReasonStatusNotWritten, "The API server refuses the status of this NodeClaim: "+Truncate(err.Error()),
		uid(claim))
	e.Window = 15 * time.Minute
	return e
}

// NotTriggerScaleUp reports why no node can have the room that a CapacityBuffer asks for, or why none is launched now.
func NotTriggerScaleUp(buffer *autoscalingv1beta1.CapacityBuffer, why string) Event {
	e := event(buffer, warning, ReasonNotTriggerScaleUp, "No node is launched for the room of this buffer: "+Truncate(why), uid(buffer))
	e.Window, e.Changes = 15*time.Minute, true
	return e
}

// QuotaReached reports which limits of a CapacityQuota are used up.
func QuotaReached(quota *autoscalingv1beta1.CapacityQuota, used string) Event {
	e := event(quota, warning, ReasonQuotaReached, "Nodes use "+used+": no node is launched that would exceed this quota", uid(quota))
	e.Window = time.Hour
	return e
}

// NotApplied reports why a Provisioner or an AWSNodeTemplate was not converted.
func NotApplied(object client.Object, why string) Event {
	e := event(object, warning, ReasonNotApplied, why, uid(object), why)
	e.Window = 15 * time.Minute
	return e
}

// PartsLost reports which fields of a Provisioner or an AWSNodeTemplate have no equivalent today.
func PartsLost(object client.Object, fields string) Event {
	e := event(object, warning, ReasonPartsLost, fields, uid(object), fields)
	e.Window = time.Hour
	return e
}

// OldName reports that a pod or DaemonSet uses names from before v1, and the current names; lost means that one of
// them cannot be honored. It is reported once an hour for all pods of one owner.
func OldName(user client.Object, owner types.UID, what string, lost bool) Event {
	e := event(user, normal, ReasonOldName, "Old names are honored, use the new ones: "+what, string(owner), what)
	if lost {
		e.Type, e.Message = warning, "Names from before v1: "+what
	}
	e.Window = time.Hour
	return e
}

// UnregisteredTaintMissing reports that a node joined without the taint that keeps pods away until it is set up.
func UnregisteredTaintMissing(claim *karpv1.NodeClaim, node string) Event {
	return event(claim, warning, ReasonUnregisteredTaintMissing,
		fmt.Sprintf("Missing taint %s on node %s: pods may start there before its labels and taints are complete",
			karpv1.Group+"/unregistered", node), uid(claim))
}

// InvalidDoNotDisrupt reports that a pod's karpenter.sh/do-not-disrupt is neither "true" nor a positive duration, or
// is a duration that is too long to be represented and so protects forever.
func InvalidDoNotDisrupt(pod *corev1.Pod, value string, forever bool) Event {
	is := "it is ignored"
	if forever {
		is = "it exceeds the longest duration, so it protects forever"
	}
	return event(pod, warning, ReasonInvalidDoNotDisrupt,
		fmt.Sprintf("annotation karpenter.sh/do-not-disrupt is %q; it must be \"true\" or a positive duration such as \"30m\"; %s",
			value, is), uid(pod), value)
}

func event(object client.Object, kind, reason, message string, key ...string) Event {
	return Event{Object: object, Type: kind, Reason: reason, Message: message, Key: key}
}

func uid(object client.Object) string { return string(object.GetUID()) }

func podKey(pod *corev1.Pod) []string { return []string{pod.Namespace, pod.Name} }

// kind returns the object's kind. Objects that were read from the API have no TypeMeta.
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
