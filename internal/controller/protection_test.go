package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// testUnreadableProtection verifies that a pod with a do-not-disrupt annotation that cannot be parsed gets an event
// when it is bound to a managed node, or when the annotation changes, not only when the node is drained. A pod on
// another node does not.
func testUnreadableProtection(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	_, node := w.running("protected")
	with := func(value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: value} }
	}
	foreign := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	w.create(foreign)
	w.pod("elsewhere", foreign, with("never"))
	readable := w.pod("readable", node, with("30m"))
	w.pod("unreadable", node, with("soon"))
	var said []string
	heard := func(value string) func() bool {
		return func() bool {
			said = append(said, w.said()...)
			for _, e := range said {
				if e == `Warning InvalidDoNotDisruptAnnotation annotation karpenter.sh/do-not-disrupt is "`+value+`"; it must be "true" or a positive duration such as "30m"; it is ignored` {
					return true
				}
			}
			return false
		}
	}
	w.until("the pod is told", heard("soon"))
	w.read(readable)
	readable.Annotations[karpv1.AnnotationDoNotDisrupt] = "later"
	w.must(w.client.Update(t.Context(), readable))
	w.until("the other pod is told", heard("later"))
	if heard("never")() || heard("30m")() {
		t.Errorf("events %q", said)
	}
}
