package v1

import (
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// DaemonPod reports whether a DaemonSet created the pod. A DaemonSet creates one pod on every node that admits
// it, and the pod is removed with its node.
func DaemonPod(pod *corev1.Pod) bool {
	for i := range pod.OwnerReferences {
		if o := &pod.OwnerReferences[i]; o.Kind == "DaemonSet" && strings.HasPrefix(o.APIVersion, "apps/") {
			return true
		}
	}
	return false
}

// MirrorPod reports whether the kubelet created the pod from a manifest file on the machine (a static pod). It
// is removed with the machine.
func MirrorPod(pod *corev1.Pod) bool {
	for i := range pod.OwnerReferences {
		if o := &pod.OwnerReferences[i]; o.Kind == "Node" && o.APIVersion == "v1" {
			return true
		}
	}
	return false
}

// EndedPod reports whether the pod has terminated. It uses no resources anymore.
func EndedPod(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Protection is the effect of a pod's annotation karpenter.sh/do-not-disrupt, or of an annotation that
// ProtectionRules accept in its place. The zero value protects nothing.
//
// +kubebuilder:object:generate=false
type Protection struct {
	// By is the annotation that protects the pod, or "" if there is none.
	By string
	// Forever is set for "true", for a duration while the pod has not started, and for a duration that
	// overflows time.Duration.
	Forever bool
	// Until is the end of the protection: the pod's start plus the duration.
	Until time.Time
}

// durationForm matches the non-negative durations of the syntax of time.ParseDuration, of any length.
var durationForm = regexp.MustCompile(`^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`)

// ProtectionRules define which annotations protect a pod or a node in addition to karpenter.sh/do-not-disrupt. The
// zero value adds the old names of that annotation, karpenter.sh/do-not-evict and karpenter.sh/do-not-consolidate.
//
// +kubebuilder:object:generate=false
type ProtectionRules struct {
	// SafeToEvict enables the Cluster Autoscaler's annotations: cluster-autoscaler.kubernetes.io/safe-to-evict:
	// "false" also protects a pod, and cluster-autoscaler.kubernetes.io/scale-down-disabled: "true" a node.
	SafeToEvict bool
}

// ProtectionOf returns the protection of a pod under the zero ProtectionRules.
func ProtectionOf(pod *corev1.Pod) (p Protection, valid bool) { return ProtectionRules{}.Of(pod) }

// Of returns the protection of a pod. It reads the annotation karpenter.sh/do-not-disrupt: "true", or a
// positive duration from the pod's start. valid is false for any other value. A duration that overflows
// time.Duration (about 292 years) is invalid and protects forever, because that is the intent. Any other
// invalid value protects nothing. If the annotation is absent, the other annotations of the rules apply. They
// protect forever or not at all, and are always valid.
func (r ProtectionRules) Of(pod *corev1.Pod) (p Protection, valid bool) {
	text, there := pod.Annotations[AnnotationDoNotDisrupt]
	switch {
	case there && text == "true":
		return Protection{By: AnnotationDoNotDisrupt, Forever: true}, true
	case there:
		return duration(text, pod)
	case pod.Annotations[AnnotationDoNotEvict] == "true":
		return Protection{By: AnnotationDoNotEvict, Forever: true}, true
	case r.SafeToEvict && pod.Annotations[AnnotationSafeToEvict] == "false":
		return Protection{By: AnnotationSafeToEvict, Forever: true}, true
	}
	return Protection{}, true
}

func duration(text string, pod *corev1.Pod) (p Protection, valid bool) {
	p.By = AnnotationDoNotDisrupt
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || d <= 0:
		p.Forever = err != nil && durationForm.MatchString(text)
		return p, false
	case pod.Status.StartTime == nil:
		p.Forever = true
	default:
		p.Until = pod.Status.StartTime.Add(d)
	}
	return p, true
}

// Node reports whether the annotations of a node or its claim block voluntary disruption: if
// karpenter.sh/do-not-disrupt, or in its absence one of the other annotations of the rules, is "true".
func (r ProtectionRules) Node(annotations map[string]string) bool {
	if text, there := annotations[AnnotationDoNotDisrupt]; there {
		return text == "true"
	}
	return annotations[AnnotationDoNotConsolidate] == "true" ||
		r.SafeToEvict && annotations[AnnotationScaleDownDisabled] == "true"
}

// Holds reports whether the pod is protected at the given time.
func (p Protection) Holds(now time.Time) bool { return p.Forever || now.Before(p.Until) }

// ReadyCondition returns the node's condition Ready, or nil until its kubelet reports it.
func ReadyCondition(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return nil
}

// OwnsNode reports whether the node was registered as the node of this claim: an owner reference of the node
// has the UID of the claim. Unlike the provider ID, this reference is written by registration only.
func OwnsNode(claim *NodeClaim, node *corev1.Node) bool {
	for _, owner := range node.OwnerReferences {
		if owner.UID == claim.UID && owner.UID != "" {
			return true
		}
	}
	return false
}

// NodeReady reports whether the node's condition Ready is True.
func NodeReady(node *corev1.Node) bool {
	c := ReadyCondition(node)
	return c != nil && c.Status == corev1.ConditionTrue
}
