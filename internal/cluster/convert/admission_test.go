package convert

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// admission holds the objects of the plugins in a test.
type admission struct {
	ranges []*corev1.LimitRange
	class  *nodev1.RuntimeClass
}

func (a admission) LimitRanges(string) []*corev1.LimitRange  { return a.ranges }
func (a admission) RuntimeClass(string) *nodev1.RuntimeClass { return a.class }

// TestAdmittedDaemon checks that a DaemonSet counts as its pods after admission. The expected values are those of
// LimitRanger and RuntimeClass in Kubernetes.
func TestAdmittedDaemon(t *testing.T) {
	for _, test := range []struct {
		name, ranges, class, spec string
		want                      string
	}{
		{name: "no LimitRange", spec: "containers: [{name: a}]", want: "pods=1"},
		{name: "default limits become requests", ranges: "limits: [{type: Container, default: {cpu: 2, memory: 1Gi}}]",
			spec: "containers: [{name: a}]", want: "cpu=2000 memory=1073741824 pods=1"},
		{name: "a default request comes before the default limit",
			ranges: "limits: [{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 100m}}]",
			spec:   "containers: [{name: a}, {name: b}]", want: "cpu=200 pods=1"},
		{name: "what the container states comes first", ranges: "limits: [{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 100m}}]",
			spec: "containers: [{name: a, resources: {requests: {cpu: 10m}}}, {name: b, resources: {limits: {cpu: 500m}}}]", want: "cpu=510 pods=1"},
		{name: "a request of 0 is a request", ranges: "limits: [{type: Container, default: {cpu: 2}}]",
			spec: "containers: [{name: a, resources: {requests: {cpu: 0}}}]", want: "pods=1"},
		{name: "init containers too", ranges: "limits: [{type: Container, default: {cpu: 2}}]",
			spec: "containers: [{name: a, resources: {requests: {cpu: 1}}}], initContainers: [{name: b}]", want: "cpu=2000 pods=1"},
		{name: "max and min fill in what is not stated", ranges: "limits: [{type: Container, max: {cpu: 3}, min: {memory: 1Mi}}]",
			spec: "containers: [{name: a}]", want: "cpu=3000 memory=1048576 pods=1"},
		{name: "items of the type Pod have no defaults", ranges: "limits: [{type: Pod, max: {cpu: 3}, min: {cpu: 1}}]",
			spec: "containers: [{name: a}]", want: "pods=1"},
		{name: "requests of the pod stand beside those of containers", ranges: "limits: [{type: Container, default: {cpu: 2}}]",
			spec: "containers: [{name: a}], resources: {requests: {cpu: 500m}}", want: "cpu=500 pods=1"},
		{name: "limits of the pod become requests where containers state none",
			spec: "containers: [{name: a, resources: {requests: {cpu: 100m}}}], resources: {limits: {cpu: 1, memory: 1Gi}}",
			want: "cpu=100 memory=1073741824 pods=1"},
		{name: "overhead", class: "metadata: {name: vm}\nhandler: vm\noverhead: {podFixed: {cpu: 250m}}",
			spec: "runtimeClassName: vm, containers: [{name: a, resources: {requests: {cpu: 1}}}]", want: "cpu=1250 pods=1"},
		{name: "an amount out of range counts as nothing", ranges: "limits: [{type: Container, default: {cpu: 1e100000000}}]",
			spec: "containers: [{name: a}]", want: "pods=1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var by admission
			if test.ranges != "" {
				by.ranges = append(by.ranges, decode[corev1.LimitRange](t, "spec: {"+test.ranges+"}"))
			}
			if test.class != "" {
				by.class = decode[nodev1.RuntimeClass](t, test.class)
			}
			set := decode[appsv1.DaemonSet](t, "metadata: {name: d, namespace: n, uid: d1}\nspec: {template: {spec: {"+test.spec+"}}}")
			if got := inWords(Daemon(set, words(), &Around{Admission: by}, nil).Requests); got != test.want {
				t.Errorf("requests %s, want %s", got, test.want)
			}
			again := &corev1.Pod{Spec: *set.Spec.Template.Spec.DeepCopy()}
			Admit(again, by)
			once := again.DeepCopy()
			if Admit(again, by); !cmp.Equal(once, again) {
				t.Errorf("admitted twice (-once +twice):\n%s", cmp.Diff(once, again))
			}
		})
	}
}

// TestSeveralLimitRanges checks that the larger default counts, because the order in which LimitRanges are applied is
// unspecified.
func TestSeveralLimitRanges(t *testing.T) {
	small := decode[corev1.LimitRange](t, "spec: {limits: [{type: Container, default: {cpu: 1, memory: 2Gi}}]}")
	large := decode[corev1.LimitRange](t, "spec: {limits: [{type: Container, default: {cpu: 2, memory: 1Gi}}]}")
	set := decode[appsv1.DaemonSet](t, "metadata: {name: d, uid: d1}\nspec: {template: {spec: {containers: [{name: a}]}}}")
	for _, ranges := range [][]*corev1.LimitRange{{small, large}, {large, small}} {
		got := inWords(Daemon(set, words(), &Around{Admission: admission{ranges: ranges}}, nil).Requests)
		if want := "cpu=2000 memory=2147483648 pods=1"; got != want {
			t.Errorf("requests %s, want %s", got, want)
		}
	}
}

// TestRuntimeClassOfDaemon checks that the scheduling of the class applies to the daemon.
func TestRuntimeClassOfDaemon(t *testing.T) {
	class := decode[nodev1.RuntimeClass](t, "metadata: {name: vm}\nhandler: vm\nscheduling: {nodeSelector: {vm: \"yes\"}, tolerations: [{key: vm, operator: Exists}]}")
	set := decode[appsv1.DaemonSet](t, "metadata: {name: d, uid: d1}\nspec: {template: {spec: {runtimeClassName: vm, containers: [{name: a}]}}}")
	got := Daemon(set, words(), &Around{Admission: admission{class: class}}, nil)
	switch {
	case len(got.Alternatives) != 1:
		t.Errorf("len(got.Alternatives) is %v, want 1, alternatives %v", len(got.Alternatives), got.Alternatives)
	case got.Alternatives[0][0].Key != "vm":
		t.Errorf(`got.Alternatives[0][0].Key is %v, want "vm"`, got.Alternatives[0][0].Key)
	case got.Tolerations[0].Key != "vm":
		t.Errorf(`got.Tolerations[0].Key is %v, want "vm"`, got.Tolerations[0].Key)
	}
	if set.Spec.Template.Spec.NodeSelector != nil {
		t.Error("the DaemonSet was changed")
	}
}

// TestRunningDaemonPods checks that, for each resource, the maximum of the requests of the template and of its pods
// counts.
func TestRunningDaemonPods(t *testing.T) {
	const owner = "ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: d1, controller: true}]"
	pod := func(generation, revision, requests, more string) *corev1.Pod {
		return decode[corev1.Pod](t, fmt.Sprintf("metadata: {name: p, labels: {pod-template-generation: %q, controller-revision-hash: %q}, %s}\nspec: {containers: [{name: a, resources: {requests: {%s}}}]}\n%s",
			generation, revision, owner, requests, more))
	}
	annotated := decode[appsv1.DaemonSet](t, "metadata: {name: d, uid: d1, annotations: {deprecated.daemonset.template.generation: \"2\"}}\nspec: {template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1}}}]}}}")
	for _, test := range []struct {
		name string
		pods []*corev1.Pod
		want string
	}{
		{"none", nil, "cpu=1000 pods=1"},
		{"a webhook adds memory and takes cpu", []*corev1.Pod{pod("2", "b", "cpu: 100m, memory: 1Mi", "")}, "cpu=1000 memory=1048576 pods=1"},
		{"two that differ", []*corev1.Pod{pod("2", "b", "cpu: 2", ""), pod("2", "b", "memory: 1Mi", "")}, "cpu=2000 memory=1048576 pods=1"},
		{"of an older template", []*corev1.Pod{pod("1", "a", "cpu: 4", "")}, "cpu=1000 pods=1"},
		{"of an older generation that was rolled back to", []*corev1.Pod{pod("1", "a", "cpu: 4", ""), pod("2", "a", "cpu: 2", "")},
			"cpu=4000 pods=1"},
		{"one that has ended", []*corev1.Pod{pod("2", "b", "cpu: 4", "status: {phase: Failed}")}, "cpu=1000 pods=1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var running DaemonPods
			var shapes []*DaemonShape
			for _, p := range test.pods {
				shapes = append(shapes, running.Add(p))
			}
			if got := inWords(Daemon(annotated, words(), nil, &running).Requests); got != test.want {
				t.Errorf("requests %s, want %s", got, test.want)
			}
			for _, s := range shapes {
				running.Remove(s)
			}
			if len(running.shapes["d1"]) > 1 {
				t.Errorf("shapes remain: %v", running.shapes)
			}
			running.Forget("d1")
			if len(running.shapes) > 0 {
				t.Errorf("shapes remain after Forget: %v", running.shapes)
			}
		})
	}
	t.Run("the last has gone", func(t *testing.T) {
		var running DaemonPods
		running.Remove(running.Add(pod("2", "b", "cpu: 4", "")))
		if got := inWords(Daemon(annotated, words(), nil, &running).Requests); got != "cpu=4000 pods=1" {
			t.Errorf("requests %s, want those of the last pod", got)
		}
		running.Add(pod("2", "b", "cpu: 3", ""))
		if got := inWords(Daemon(annotated, words(), nil, &running).Requests); got != "cpu=3000 pods=1" {
			t.Errorf("requests %s, want those of the current pod", got)
		}
	})
	bare := annotated.DeepCopy()
	bare.Annotations = nil
	var running DaemonPods
	running.Add(pod("", "old", "cpu: 8", ""))
	newest := pod("", "new", "cpu: 3", "")
	newest.CreationTimestamp.Time = newest.CreationTimestamp.AddDate(2000, 0, 0)
	running.Add(newest)
	if got, want := inWords(Daemon(bare, words(), nil, &running).Requests), "cpu=3000 pods=1"; got != want {
		t.Errorf("without the annotation: requests %s, want those of the newest pod's revision, %s", got, want)
	}
}

func inWords(requests []quantity.Amount) string {
	text := ""
	for _, a := range requests {
		text += fmt.Sprintf(" %s=%d", a.Name, a.Value)
	}
	return text[1:]
}
