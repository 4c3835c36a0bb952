package podusage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/plugin/podusage"
)

// podOf returns a pod of YAML, which must be valid.
func podOf(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func usageOf(t *testing.T, list ...string) podusage.Usage {
	t.Helper()
	u := podusage.Usage{}
	for _, text := range list {
		m := &podusage.PodMetrics{}
		if err := yaml.UnmarshalStrict([]byte(text), m); err != nil {
			t.Fatal(err)
		}
		u.Add(m)
	}
	return u
}

// TestOf checks the sums of containers, rounded up, and that no usage is not zero usage.
func TestOf(t *testing.T) {
	u := usageOf(t, `{metadata: {namespace: a, name: p}, containers: [{name: x, usage: {cpu: 1500001n, memory: 10Ki}}, {name: y, usage: {cpu: 3m, memory: 1}}]}`,
		`{metadata: {namespace: a, name: starting}, containers: []}`)
	if cpu, memory, known := u.Of("a", "p"); cpu != 2+3 || memory != 10241 || !known {
		t.Errorf("a/p uses %d, %d, %v, want 5 millicores and 10241 bytes", cpu, memory, known)
	}
	huge := usageOf(t, `{metadata: {namespace: a, name: much}, containers: [{name: x, usage: {cpu: 9e18, memory: 9e18}}]}`)
	if cpu, memory, _ := huge.Of("a", "much"); cpu != 1<<55 || memory != 1<<55 {
		t.Errorf("a/much uses %d and %d, want the most that counts", cpu, memory)
	}
	for _, name := range []string{"starting", "other"} {
		if _, _, known := u.Of("a", name); known {
			t.Errorf("the usage of a/%s is known", name)
		}
	}
}

// TestRightSize checks the requests that each pod has then: cpu and memory of its containers, the sidecar included.
func TestRightSize(t *testing.T) {
	const two = `containers: [{name: main, resources: {requests: {cpu: "2", memory: 4Gi, nvidia.com/gpu: "1"}, limits: {cpu: "2", memory: 4Gi, nvidia.com/gpu: "1"}}},
  {name: quiet, resources: {requests: {cpu: 100m, memory: 64Mi}}}], initContainers: [{name: side, restartPolicy: Always}, {name: setup,
    resources: {requests: {cpu: "1"}}}]`
	pods := []*corev1.Pod{
		podOf(t, `{metadata: {namespace: a, name: web-1}, spec: {`+two+`}}`),
		podOf(t, `{metadata: {namespace: a, name: web-2}, spec: {`+two+`}}`), // no usage of its own
		podOf(t, `{metadata: {namespace: a, name: agent}, spec: {`+two+`}}`), // not to be changed
		podOf(t, `{metadata: {namespace: a, name: job}, spec: {`+two+`}}`),   // no usage of its workload
		podOf(t, `{metadata: {namespace: a, name: resized, managedFields: [{manager: vpa, subresource: resize}]}, spec: {resources: {requests: {cpu: "9"}}, containers: [{name: main}]},
  status: {resources: {requests: {cpu: "9"}},
    containerStatuses: [{name: main, allocatedResources: {cpu: "9"}, resources: {requests: {cpu: "9"}}, ready: true, image: i,
    imageID: i, restartCount: 0}]}}`),
	}
	u := usageOf(t, `{metadata: {namespace: a, name: web-1}, containers: [{name: main, usage: {cpu: 333m, memory: 1Gi}}, {name: quiet, usage: {cpu: 1m, memory: 1Mi}},
  {name: side, usage: {cpu: 100m, memory: 100Mi}}]}`,
		`{metadata: {namespace: a, name: agent}, containers: [{name: main, usage: {cpu: 1m}}]}`,
		`{metadata: {namespace: a, name: resized}, containers: [{name: main, usage: {cpu: "3", memory: 1Gi}}]}`,
		`{metadata: {namespace: a, name: gone}, containers: [{name: main, usage: {cpu: "64", memory: 1Gi}}]}`)
	workloads := map[string]string{"web-1": "web", "web-2": "web", "job": "job", "resized": "resized", "agent": ""}
	before := make([]*corev1.Pod, len(pods))
	for i := range pods {
		before[i] = pods[i].DeepCopy()
	}
	sized, changed := u.RightSize(pods, func(p *corev1.Pod) string { return workloads[p.Name] })
	if changed != 3 {
		t.Errorf("%d pods have other requests, want web-1, web-2 and resized", changed)
	}
	if diff := cmp.Diff(before, pods); diff != "" {
		t.Errorf("the given pods changed:\n%s", diff)
	}
	web := map[string]string{"main": "400m 1288490189 1", "quiet": "10m 32Mi 0", "side": "120m 120Mi 0",
		"setup": "1 0 0"} // 1.2 x 333 is 399.6
	same := map[string]string{"main": "2 4Gi 1", "quiet": "100m 64Mi 0", "side": "0 0 0", "setup": "1 0 0"}
	for i, want := range []map[string]string{web, web, same, same, {"main": "3600m 1288490189 0"}} {
		got := map[string]string{}
		for _, c := range append(sized[i].Spec.Containers, sized[i].Spec.InitContainers...) {
			r := c.Resources.Requests
			gpu := r["nvidia.com/gpu"]
			got[c.Name] = r.Cpu().String() + " " + r.Memory().String() + " " + gpu.String()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pods[i].Name, diff)
		}
	}
	if diff := cmp.Diff(corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
		sized[0].Spec.Containers[0].Resources.Limits); diff != "" {
		t.Errorf("limits:\n%s", diff)
	}
	if r := sized[4]; r.Spec.Resources != nil || r.Status.Resources != nil ||
		r.Status.ContainerStatuses[0].AllocatedResources != nil || r.ManagedFields != nil {
		t.Errorf("a pod that was resized still has what was in effect: %+v", r)
	}
}

// TestDeepCopy checks that a copy shares nothing.
func TestDeepCopy(t *testing.T) {
	m := podusage.PodMetrics{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "b"}},
		Containers: []podusage.ContainerMetrics{
			{Name: "main", Usage: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
	list := &podusage.PodMetricsList{Items: []podusage.PodMetrics{m}}
	c := list.DeepCopyObject().(*podusage.PodMetricsList)
	if diff := cmp.Diff(list, c); diff != "" {
		t.Fatal(diff)
	}
	c.Items[0].Labels["a"], c.Items[0].Containers[0].Name = "c", "other"
	delete(c.Items[0].Containers[0].Usage, "cpu")
	if m.Labels["a"] != "b" || m.Containers[0].Name != "main" || len(m.Containers[0].Usage) != 1 {
		t.Errorf("the copy shares parts: %+v", m)
	}
}
