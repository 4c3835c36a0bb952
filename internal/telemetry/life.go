package telemetry

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Instance describes the machine of a claim.
type Instance struct {
	ID, Type, Zone, CapacityType string
	// Price is in USD per hour, 0 if unknown.
	Price float64
}

// String returns the ID of the instance, with its type, zone and capacity type if known.
func (i Instance) String() string {
	var words []string
	for _, word := range []string{i.Type, i.Zone, i.CapacityType} {
		if word != "" {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return i.ID
	}
	return strings.TrimSpace(i.ID + " (" + strings.Join(words, ", ") + ")")
}

// These are reasons of lines of the log about claims that were deleted, beside those of the metric.
const (
	// DeletedWithNode is for a claim whose node a user deleted.
	DeletedWithNode = "node_deleted"
	// DeletedSurplus is for a claim that its static pool does not need.
	DeletedSurplus = "surplus"
)

// MostPodNames is how many pods a line of the log names. Most nodes have fewer.
const MostPodNames = 64

// PodNames returns the names for a line of the log: at most MostPodNames, and never nil.
func PodNames(names []string) []string {
	return append([]string{}, names[:min(len(names), MostPodNames)]...)
}

// InstanceID returns the last part of a provider ID: i-0abc for aws:///us-west-2a/i-0abc.
func InstanceID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}

// Launched reports the instance of a NodeClaim, its price, why the NodeClaim was created and for how many pods.
func Launched(claim *karpv1.NodeClaim, i Instance, reason string, pods int) Event {
	text := "Launched instance " + i.String()
	if i.Price > 0 {
		text += " for " + strconv.FormatFloat(i.Price, 'g', 6, 64) + " USD per hour"
	}
	text += ", reason: " + reason
	if pods > 0 {
		text += ", for " + Count(pods, "pod")
	}
	return event(claim, normal, ReasonLaunched, text, uid(claim))
}

// Registered reports that the node of a NodeClaim has joined the cluster, and the time since the creation of the
// NodeClaim.
func Registered(claim *karpv1.NodeClaim, elapsed time.Duration) Event {
	return event(claim, normal, ReasonRegistered,
		fmt.Sprintf("Node %s joined the cluster after %s", claim.Status.NodeName, elapsed.Round(time.Second)), uid(claim))
}

// Initialized reports that the node of a NodeClaim is ready for its pods, and the time since the creation of the
// NodeClaim.
func Initialized(claim *karpv1.NodeClaim, elapsed time.Duration) Event {
	return event(claim, normal, ReasonInitialized,
		fmt.Sprintf("Node %s is ready for its pods after %s", claim.Status.NodeName, elapsed.Round(time.Second)), uid(claim))
}

// Disrupting reports that a node is cordoned for removal, the reason, and the destination of its pods.
func Disrupting(object client.Object, command, summary string) Event {
	return event(object, normal, ReasonDisrupting, "Disrupting "+kind(object)+": "+summary, uid(object), command)
}

// Terminated reports that the instance of a NodeClaim is gone, and the time since the deletion of the NodeClaim.
func Terminated(claim *karpv1.NodeClaim, i Instance, elapsed time.Duration) Event {
	text := "Removed; no instance was launched"
	if i.ID != "" {
		text = fmt.Sprintf("Terminated instance %s after %s", i, elapsed.Round(time.Second))
	}
	return event(claim, normal, ReasonTerminated, text, uid(claim))
}

// Count formats a number of things: "1 pod", "2 pods".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
