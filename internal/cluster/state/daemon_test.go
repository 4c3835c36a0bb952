package state

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"

	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

// TestDaemonAsAdmitted checks that the requests of a DaemonSet follow the LimitRanges of its namespace, its
// RuntimeClass and its current pods.
func TestDaemonAsAdmitted(t *testing.T) {
	s := newState(Config{})
	now := start
	cpu := func() int64 {
		snap := s.Snapshot(now)
		for i, name := range snap.Resources {
			if name == "cpu" && i < len(snap.Daemons[0].Requests) {
				return snap.Daemons[0].Requests[i]
			}
		}
		return 0
	}
	set := objecttest.Parse[appsv1.DaemonSet](t, `
metadata: {name: d, namespace: default, uid: d1, resourceVersion: "1", annotations: {deprecated.daemonset.template.generation: "1"}}
spec: {template: {spec: {runtimeClassName: vm, containers: [{name: a}]}}}
`)
	limits := func(namespace, version, cpu string) *corev1.LimitRange {
		return objecttest.Parse[corev1.LimitRange](t,
			"metadata: {name: l, namespace: "+namespace+", uid: l-"+namespace+", resourceVersion: \""+version+"\"}\nspec: {limits: [{type: "+
				"Container, default: {cpu: "+cpu+"}}]}")
	}
	pod := func(name, version, cpu string) *corev1.Pod {
		p := objecttest.Pod(t, name, name, version, "n")
		p.Labels = map[string]string{"pod-template-generation": "1"}
		p.OwnerReferences = objecttest.Parse[corev1.Pod](t, "metadata: {ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: d1, controller: true}]}").OwnerReferences
		p.Spec.Containers = objecttest.Parse[corev1.Pod](t, "spec: {containers: [{name: a, resources: {requests: {cpu: "+cpu+"}}}]}").Spec.Containers
		return p
	}
	class := objecttest.Parse[nodev1.RuntimeClass](t, "metadata: {name: vm, uid: r, resourceVersion: \"5\"}\nhandler: vm\noverhead: {podFixed: {cpu: 100m}}")
	var got []int64
	for _, step := range []func(){
		func() { s.Saw(set) },
		func() { s.Saw(limits("other", "2", "7")) },
		func() { s.Saw(limits("default", "3", "2")) },
		func() { s.Saw(class) },
		func() { s.Saw(pod("p", "6", "3")) },
		func() { s.Saw(pod("q", "7", "3")) },
		func() { s.Saw(pod("p", "8", "5")) },
		func() { lost(s, pod("p", "9", "5")) },
		func() { lost(s, pod("q", "10", "3")) },
		func() { now = now.Add(59 * time.Minute) }, // kept: a fleet may be empty for a while
		func() { s.Saw(pod("r", "11", "3")) },
		func() { lost(s, pod("r", "12", "3")) },
		func() { now = now.Add(59 * time.Minute) },
		func() { now = now.Add(time.Minute) }, // a webhook that increased the requests may be gone
		func() { s.Saw(pod("r", "13", "4")) },
		func() { lost(s, pod("r", "14", "4")) },
		func() { lost(s, limits("default", "15", "2")) },
		func() { lost(s, class) },
	} {
		step()
		got = append(got, cpu())
	}
	want := []int64{0, 0, 2000, 2100, 3000, 3000, 5000, 3000, 3000, 3000, 3000, 3000, 3000, 2100, 4000, 4000, 100, 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cpu after each step (-want +got):\n%s", diff)
	}
}

// TestDaemonAside checks that the store lists a DaemonSet with too many terms while it has them.
func TestDaemonAside(t *testing.T) {
	s := newState(Config{})
	set := func(version string, terms int) *appsv1.DaemonSet {
		d := objecttest.Parse[appsv1.DaemonSet](t, `
metadata: {name: d, namespace: default, uid: d1}
spec: {template: {spec: {containers: [{name: a}]}}}
`)
		d.ResourceVersion = version
		required := &corev1.NodeSelector{}
		for i := range terms {
			expressions := []corev1.NodeSelectorRequirement{
				{Key: "a", Operator: corev1.NodeSelectorOpNotIn, Values: []string{fmt.Sprint(i)}},
				{Key: "b", Operator: corev1.NodeSelectorOpNotIn, Values: []string{fmt.Sprint(i)}},
			}
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: expressions})
		}
		affinity := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: affinity}
		return d
	}
	for i, terms := range []int{2, 3000, 3000, 2} {
		s.Saw(set(fmt.Sprint(i+1), terms))
		s.Snapshot(start)
		var names []string
		for _, o := range s.Rejected() {
			names = append(names, o.Kind+" "+o.Name)
		}
		var want []string
		if terms > 100 {
			want = []string{"DaemonSet default/d"}
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("with %d terms (-want +got):\n%s", terms, diff)
		}
	}
	s.Saw(set("5", 3000))
	s.Snapshot(start)
	lost(s, set("6", 3000))
	s.Snapshot(start)
	if list := s.Rejected(); len(list) > 0 {
		t.Errorf("after the deletion: %v", list)
	}
}
