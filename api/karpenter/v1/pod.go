package v1

import (
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// DaemonPod reports whether a DaemonSet made the pod: one is on every node that admits it, and goes with its node.
func DaemonPod(pod *corev1.Pod) bool {
	for i := range pod.OwnerReferences {
		if o := &pod.OwnerReferences[i]; o.Kind == "DaemonSet" && strings.HasPrefix(o.APIVersion, "apps/") {
			return true
		}
	}
	return false
}

// MirrorPod reports whether the kubelet made the pod from a file on the machine; it goes with the machine.
func MirrorPod(pod *corev1.Pod) bool {
	for i := range pod.OwnerReferences {
		if o := &pod.OwnerReferences[i]; o.Kind == "Node" && o.APIVersion == "v1" {
			return true
		}
	}
	return false
}

// EndedPod reports whether the pod has run to its end: it uses nothing any more.
func EndedPod(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Protection is what a pod's annotation karpenter.sh/do-not-disrupt says, or one of those that ProtectionRules read in its
// place. The zero value protects nothing.
//
// +kubebuilder:object:generate=false
type Protection struct {
	// By is the annotation that says so, empty if there is none.
	By string
	// Forever is set by "true", by a duration as long as the pod has not started, and by one that is too long to count.
	Forever bool
	// Until is the end of a duration from the pod's start.
	Until time.Time
}

// durationForm is what time.ParseDuration reads, of any length and not negative.
var durationForm = regexp.MustCompile(`^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`)

// ProtectionRules say which annotations protect a pod, beside karpenter.sh/do-not-disrupt. The zero value adds that
// annotation's old name, karpenter.sh/do-not-evict.
//
// +kubebuilder:object:generate=false
type ProtectionRules struct {
	// SafeToEvict: the Cluster Autoscaler's cluster-autoscaler.kubernetes.io/safe-to-evict protects too, when it is "false".
	SafeToEvict bool
}

// ProtectionOf is what the zero ProtectionRules say of a pod.
func ProtectionOf(pod *corev1.Pod) (p Protection, valid bool) { return ProtectionRules{}.Of(pod) }

// Of reads the annotation karpenter.sh/do-not-disrupt: "true", or a positive duration from the pod's start. valid is false
// for a value that is neither: a duration of more than time.Duration holds, some 292 years, protects for ever, because that
// is what was meant; anything else protects nothing. Where that annotation is absent, the others of the rules count: they
// protect for ever or not at all, and are always valid.
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

// ProtectedNode reports whether the annotations, of a node or of its claim, forbid voluntary disruption:
// karpenter.sh/do-not-disrupt, or where that is absent its old name, karpenter.sh/do-not-consolidate, is "true".
func ProtectedNode(annotations map[string]string) bool {
	text, there := annotations[AnnotationDoNotDisrupt]
	if !there {
		text = annotations[AnnotationDoNotConsolidate]
	}
	return text == "true"
}

// Holds reports whether the pod is protected now.
func (p Protection) Holds(now time.Time) bool { return p.Forever || now.Before(p.Until) }

// ReadyCondition is the node's condition Ready; nil as long as its kubelet has not reported.
func ReadyCondition(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c
		}
	}
	return nil
}

// OwnsNode reports whether the node was registered as the node of this claim: its owner references name the claim by UID.
// Unlike the provider ID, nothing but registration writes that reference.
func OwnsNode(claim *NodeClaim, node *corev1.Node) bool {
	for _, owner := range node.OwnerReferences {
		if owner.UID == claim.UID && owner.UID != "" {
			return true
		}
	}
	return false
}

// NodeReady reports whether the kubelet says that the node is ready.
func NodeReady(node *corev1.Node) bool {
	c := ReadyCondition(node)
	return c != nil && c.Status == corev1.ConditionTrue
}
