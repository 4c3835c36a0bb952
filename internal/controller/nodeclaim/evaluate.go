package nodeclaim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// unmet is why a claim is not registered or not initialized. The zero value means that it is.
type unmet struct {
	reason, message string
	// final means that the condition cannot become true any more.
	final bool
}

// pick returns the node of a claim's machine among all nodes with its provider ID, or why there is none.
func pick(nodes []corev1.Node) (*corev1.Node, unmet) {
	switch len(nodes) {
	case 0:
		return nil, unmet{reason: karpv1.ReasonNodeNotFound, message: "Node not registered with cluster"}
	case 1:
		return &nodes[0], unmet{}
	}
	return nil, unmet{
		reason:  karpv1.ReasonMultipleNodesFound,
		message: fmt.Sprintf("%d nodes have the provider id of this claim: %s, %s, ...", len(nodes), nodes[0].Name, nodes[1].Name),
		final:   true,
	}
}

// initialized returns what prevents a registered node from being initialized.
func initialized(claim *karpv1.NodeClaim, node *corev1.Node) unmet {
	if why := notReady(node); why != "" {
		return unmet{reason: karpv1.ReasonNodeNotReady, message: why}
	}
	for _, taint := range claim.Spec.StartupTaints {
		if hasTaint(node.Spec.Taints, taint) {
			return unmet{reason: karpv1.ReasonStartupTaintsExist, message: "Startup taint " + taint.ToString() + " still exists"}
		}
	}
	if i := slices.IndexFunc(node.Spec.Taints, karpv1.KnownEphemeralTaint); i >= 0 {
		return unmet{reason: karpv1.ReasonKnownEphemeralTaintsExist, message: "Known ephemeral taint " + node.Spec.Taints[i].ToString() + " still exists"}
	}
	for _, name := range resourceNames(claim.Spec.Resources.Requests) {
		requested, there := claim.Spec.Resources.Requests[name], node.Status.Allocatable[name]
		if !requested.IsZero() && there.IsZero() {
			return unmet{reason: karpv1.ReasonResourceNotRegistered, message: fmt.Sprintf("Resource %q was requested but not registered", name)}
		}
	}
	return unmet{}
}

// resourceNames returns the keys in a fixed order, so that a message does not change between two evaluations.
func resourceNames(list corev1.ResourceList) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// notReady returns why a node is not Ready, or an empty string if it is.
func notReady(node *corev1.Node) string {
	switch c := karpv1.ReadyCondition(node); {
	case c == nil:
		return "Node status is NotReady: the kubelet has not reported"
	case c.Status != corev1.ConditionTrue:
		return fmt.Sprintf("Node status is NotReady: %s %s", c.Reason, c.Message)
	}
	return ""
}

// overdue returns the metric's reason if a claim exceeded its time limit to launch or to register. Otherwise it
// returns the time that is left. Zero time left means that no limit applies any more. The time to register begins
// with the launch: a claim that was launched late, after a downtime of the controller, still has the whole time to
// register.
func overdue(claim *karpv1.NodeClaim, now time.Time, timers controller.Timers) (reason string, left time.Duration) {
	conditions := claim.StatusConditions()
	launched, registered := conditions.Get(karpv1.ConditionLaunched), conditions.Get(karpv1.ConditionRegistered)
	since, limit, reason := launched.LastTransitionTime.Time, timers.Launch, telemetry.DisruptedLaunchTimeout
	if launched.IsTrue() {
		if registered.IsTrue() {
			return "", 0
		}
		limit, reason = timers.Registration, telemetry.DisruptedRegistrationTimeout
		if registered.LastTransitionTime.After(since) {
			since = registered.LastTransitionTime.Time
		}
	}
	left = since.Add(limit).Sub(now)
	if left > 0 {
		return "", left
	}
	return reason, 0
}
