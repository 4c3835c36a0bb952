package convert

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Disposition says what the controller does with a pod.
type Disposition uint8

// The dispositions of a pod.
const (
	// Ignore: it uses no node and needs none from this controller.
	Ignore Disposition = iota
	// Pending: it is unschedulable, and the controller may launch a node for it. Its spec may still carry a
	// Rejection.
	Pending
	// Bound: it is bound to a node and uses its resources.
	Bound
)

// Pod converts a pod. The spec is empty if the pod is ignored. It shares maps with the pod, which must not be changed
// afterwards.
//
// Rejected is set on pending pods, and on bound pods that would have to be placed again if their node were removed.
func Pod(pod *corev1.Pod, v *Vocabulary, around *Around) (model.PodSpec, Disposition) {
	if around == nil {
		around = &Around{}
	}
	disposition, expendable := dispositionOf(pod), v.Pods.Expendable(pod)
	if disposition == Ignore || disposition == Pending && expendable {
		return model.PodSpec{}, Ignore
	}
	daemon := isDaemon(pod)
	requests, refused := podRequests(pod)
	spec := model.PodSpec{
		UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Created: utc(pod.CreationTimestamp),
		Node: pod.Spec.NodeName, Labels: pod.Labels, Requests: requests, Tolerations: tolerations(pod.Spec.Tolerations),
		Controller: controllerOf(pod), Daemon: daemon,
		EvictionCost: evictionCost(pod), ProtectedUntil: protectedUntil(pod, v.Protection),
	}
	if pod.Spec.Priority != nil {
		spec.Priority = *pod.Spec.Priority
	}
	spec.Reschedulable = !daemon && !expendable && (pod.DeletionTimestamp == nil || spec.Controller.Kind == "StatefulSet")
	if disposition == Bound {
		spec.State = model.Bound
	} else {
		spec.State = model.Pending
		spec.Nominated = pod.Status.NominatedNodeName
	}
	spec.Terminating, spec.Ready = pod.DeletionTimestamp != nil, podReady(pod)
	spec.HostPorts = hostPorts(pod)
	if daemon {
		return spec, disposition
	}
	spec.Alternatives = alternatives(&pod.Spec, v)
	spec.Spread, spec.Terms, spec.Preferred = spreads(pod, v, around), terms(pod, v, around), preferred(pod, v)
	if spec.Rejected = refused; refused == nil && (disposition == Pending || spec.Reschedulable) {
		spec.Rejected = reject(pod, spec.Alternatives, v)
	}
	refused = addVolumes(&spec, pod, v, around)
	keepTogether(&spec)
	if spec.Rejected == nil && (disposition == Pending || spec.Reschedulable) {
		spec.Rejected = refused
	}
	return spec, disposition
}

// dispositionOf classifies a pod as upstream Karpenter does (pkg/utils/pod, IsProvisionable), with one exception: a
// pod that this controller nominated stays in the plan. A pending pod that is being deleted will never run.
func dispositionOf(pod *corev1.Pod) Disposition {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return Ignore
	case pod.Spec.NodeName != "":
		return Bound
	case pod.DeletionTimestamp != nil, !unschedulable(pod), isDaemon(pod):
		return Ignore
	case pod.Status.NominatedNodeName != "" && !NominatedByUs(pod):
		return Ignore
	}
	return Pending
}

// NeedsNode reports whether the controller may launch a node for the pod, if not at once.
func NeedsNode(pod *corev1.Pod, v *Vocabulary) bool {
	return dispositionOf(pod) == Pending && !v.Pods.Expendable(pod)
}

func unschedulable(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled {
			return c.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

func podReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// isDaemon reports whether the pod belongs to a DaemonSet or mirrors a static pod.
func isDaemon(pod *corev1.Pod) bool {
	for i := range pod.OwnerReferences {
		owner := &pod.OwnerReferences[i]
		if owner.Kind == "Node" && owner.APIVersion == "v1" ||
			owner.Kind == "DaemonSet" && strings.HasPrefix(owner.APIVersion, "apps/") {
			return true
		}
	}
	return false
}

func controllerOf(pod *corev1.Pod) model.Owner {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return model.Owner{}
	}
	return model.Owner{Kind: owner.Kind, Name: owner.Name, UID: string(owner.UID)}
}

func tolerations(from []corev1.Toleration) []model.Toleration {
	if len(from) == 0 {
		return nil
	}
	to := make([]model.Toleration, 0, len(from))
	for i := range from {
		t := &from[i]
		switch t.Operator {
		case "", corev1.TolerationOpEqual, corev1.TolerationOpExists:
		default: // a comparison of integers (KEP-5471): tolerating too little is safer than too much
			continue
		}
		effect, known := effectOf(t.Effect)
		if !known && t.Effect != "" {
			continue
		}
		to = append(to, model.Toleration{Key: t.Key, Exists: t.Operator == corev1.TolerationOpExists, Value: t.Value, Effect: effect})
	}
	return to
}

func effectOf(effect corev1.TaintEffect) (model.Effect, bool) {
	switch effect {
	case corev1.TaintEffectNoSchedule:
		return model.NoSchedule, true
	case corev1.TaintEffectPreferNoSchedule:
		return model.PreferNoSchedule, true
	case corev1.TaintEffectNoExecute:
		return model.NoExecute, true
	}
	return model.AnyEffect, false
}

func utc(t metav1.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}
