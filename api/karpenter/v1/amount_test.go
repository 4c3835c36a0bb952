package v1

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestBoundQuantities verifies that quantities are bounded, and that only fields that hold quantities are taken for
// such: names, labels and other texts may consist of the same characters.
func TestBoundQuantities(t *testing.T) {
	const pod = `{"metadata":{"name":"1e98701","uid":"9e1234","labels":{"version":"1e98701"},"annotations":{"owner":"e123456"}},` +
		`"spec":{"nodeName":"1.5e98701","containers":[{"image":"1e98701","env":[{"name":"E1000","value":"1e98701"}],` +
		`"resources":{"requests":{"cpu":%}}}],"volumes":[{"emptyDir":{"sizeLimit":%}}]}}`
	for _, c := range []struct {
		text string
		into any
		want bool
	}{
		{`{"cpu":"1e-1000000000"}`, corev1.ResourceList{}, false},
		{`{"cpu": 1E+1000 }`, corev1.ResourceList{}, false},
		{`{"cpu":" .5e1000"}`, corev1.ResourceList{}, false},
		{`{"cpu":"1e-1000000000","cpu":"1"}`, corev1.ResourceList{}, false},
		{`["1.e-9999"]`, []resource.Quantity{}, false},
		{`1e1000`, &resource.Quantity{}, false},
		{`{"cpu":"1e999","memory":"1Ei"}`, corev1.ResourceList{}, true},
		{`{"id":"sg-0123e45678","other":"1e98701","number":1e1000}`, map[string]string{}, true},
		{filled(pod, `"1"`, `"1Gi"`), &corev1.Pod{}, true},
		{filled(pod, `"1e98701"`, `"1Gi"`), &corev1.Pod{}, false},
		{filled(pod, `"1"`, `1e98701`), &corev1.Pod{}, false},
		{`{"spec":{"template":{"metadata":{"labels":{"v":"1e98701"}}},"limits":{"cpu":"1e3"}}}`, &NodePool{}, true},
		{`{"spec":{"limits":{"cpu":"1e1000"}}}`, &NodePool{}, false},
		{`{"Spec":{"Limits":{"cpu":"1e1000"}}}`, &NodePool{}, false},
		{`{"unknown":[{"cpu":"1e1000"}],"spec":{"weight":1e1000}}`, &NodePool{}, true},
	} {
		if err := BoundQuantities([]byte(c.text), c.into); (err == nil) != c.want {
			t.Errorf("%s: %v, want an error: %t", c.text, err, !c.want)
		}
	}
}

func filled(text, first, second string) string {
	return strings.Replace(strings.Replace(text, "%", first, 1), "%", second, 1)
}
