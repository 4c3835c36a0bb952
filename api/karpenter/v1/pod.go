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

// Protection is what a pod's annotation karpenter.sh/do-not-disrupt says. The zero value protects nothing.
//
// +kubebuilder:object:generate=false
type Protection struct {
	// Forever is set by "true", by a duration as long as the pod has not started, and by one that is too long to count.
	Forever bool
	// Until is the end of a duration from the pod's start.
	Until time.Time
}

// durationForm is what time.ParseDuration reads, of any length and not negative.
var durationForm = regexp.MustCompile(`^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`)

// ProtectionOf reads the annotation: "true", or a positive duration from the pod's start. valid is false for a value
// that is neither: a duration of more than time.Duration holds, some 292 years, protects for ever, because that is what was
// meant; anything else protects nothing.
func ProtectionOf(pod *corev1.Pod) (p Protection, valid bool) {
	text, there := pod.Annotations[AnnotationDoNotDisrupt]
	if !there || text == "true" {
		return Protection{Forever: there}, true
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return Protection{Forever: err != nil && durationForm.MatchString(text)}, false
	}
	if pod.Status.StartTime == nil {
		return Protection{Forever: true}, true
	}
	return Protection{Until: pod.Status.StartTime.Add(d)}, true
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

// NodeReady reports whether the kubelet says that the node is ready.
func NodeReady(node *corev1.Node) bool {
	c := ReadyCondition(node)
	return c != nil && c.Status == corev1.ConditionTrue
}
