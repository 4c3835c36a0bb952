package aws

import (
	"strings"
	"testing"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Two pools of one class, one of them with kubelet settings of its own from the days of v1beta1.
func TestKubeletOfAPool(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	pool := &karpv1.NodePool{}
	pool.Name = "pool"
	pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	pods := func(annotations map[string]string) int64 {
		t.Helper()
		pool.Annotations = annotations
		types, err := p.Catalogue(t.Context(), pool)
		check(t, err)
		if len(types) != 1 {
			t.Fatalf("%d types", len(types))
		}
		return types[0].Capacity["pods"]
	}
	plain := pods(nil)
	if got := pods(map[string]string{karpv1.AnnotationKubelet: `{"maxPods":7}`}); got != 7 {
		t.Errorf("%d pods with maxPods 7", got)
	}
	if got := pods(map[string]string{karpv1.AnnotationKubelet: `{"maxPods":8}`}); got != 8 {
		t.Errorf("%d pods with maxPods 8", got)
	}
	if got := pods(nil); got != plain || plain == 7 {
		t.Errorf("%d pods without, %d before", got, plain)
	}
	for text, want := range map[string]string{
		`[]`: "want a JSON object", `{`: "reading the annotation", `{"clusterDNS":["a"]}`: "is not an IP address",
	} {
		pool.Annotations = map[string]string{karpv1.AnnotationKubelet: text}
		if _, err := p.Catalogue(t.Context(), pool); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one that mentions %q", text, err, want)
		}
	}
}

// The claim has the settings of its pool, and its machine gets them.
func TestKubeletOfAClaim(t *testing.T) {
	w := newWorld(t, "m5.large")
	p := w.provider(t)
	claim := w.claim(t, "old")
	claim.Annotations = map[string]string{karpv1.AnnotationKubelet: `{"maxPods":7}`}
	check(t, w.api.Update(t.Context(), claim))
	machine, err := p.Launch(t.Context(), claim)
	check(t, err)
	if machine.Capacity["pods"] != 7 {
		t.Errorf("%d pods, want 7", machine.Capacity["pods"])
	}
}
