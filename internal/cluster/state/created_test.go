package state

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

// TestSuccessorsOfResizedPods checks what the pods of a controller use on their node, and what they request where they
// move: after a resize, what the controller gives to new pods, as far as that was seen.
func TestSuccessorsOfResizedPods(t *testing.T) {
	type seen struct {
		name    string
		cpu     int
		created int
		resized bool
	}
	const gone = -1
	for name, c := range map[string]struct {
		seen        []seen
		used, moved int64
	}{
		"never resized":                     {[]seen{{"a", 3700, 0, false}}, 3700, 3700},
		"smaller from the beginning":        {[]seen{{"a", 300, 0, false}, {"b", 3700, 1, false}}, 4000, 4000},
		"resized":                           {[]seen{{"a", 3700, 0, false}, {"a", 300, 0, true}}, 300, 3700},
		"resized twice":                     {[]seen{{"a", 3700, 0, false}, {"a", 300, 0, true}, {"a", 500, 0, true}}, 500, 3700},
		"enlarged":                          {[]seen{{"a", 300, 0, false}, {"a", 3700, 0, true}}, 3700, 3700},
		"resized before it was seen":        {[]seen{{"a", 300, 0, true}}, 300, 300},
		"a sibling shows it, before":        {[]seen{{"b", 3700, 0, false}, {"a", 300, 0, true}}, 4000, 7400},
		"a sibling shows it, after":         {[]seen{{"a", 300, 0, true}, {"b", 3700, 1, false}}, 4000, 7400},
		"a new sibling is smaller":          {[]seen{{"a", 3700, 0, false}, {"a", 300, 0, true}, {"b", 200, 1, false}}, 500, 500},
		"an older sibling is smaller":       {[]seen{{"a", 3700, 1, false}, {"a", 300, 1, true}, {"b", 200, 0, false}}, 500, 3900},
		"the sibling is gone":               {[]seen{{"a", 300, 0, true}, {"b", 3700, 1, false}, {"b", gone, 1, false}}, 300, 3700},
		"all were gone":                     {[]seen{{"b", 3700, 0, false}, {"b", gone, 0, false}, {"a", 300, 1, true}}, 300, 300},
		"the same name, another pod":        {[]seen{{"a", 3700, 0, false}, {"a", 300, 0, true}, {"a", 3600, 2, false}}, 3600, 3600},
		"seen again without the allocation": {[]seen{{"a", 3700, 0, false}, {"a", 300, 0, true}, {"a", 300, 0, true}}, 300, 3700},
	} {
		t.Run(name, func(t *testing.T) {
			s := newState(Config{})
			s.Saw(objecttest.Parse[corev1.Node](t, "metadata: {name: node-1, uid: node-1}\nspec: {providerID: node-1}\n"+
				"status: {allocatable: {cpu: 16, memory: 64Gi, pods: 110}}"))
			for i, one := range c.seen {
				managed := ""
				if one.resized {
					managed = "managedFields: [{manager: vpa, operation: Update, subresource: resize}]"
				}
				pod := objecttest.Parse[corev1.Pod](t, fmt.Sprintf(`
metadata: {name: %[1]s, namespace: default, uid: %[1]s-%[2]d, resourceVersion: '%[3]d', creationTimestamp: "2026-11-20T11:0%[2]d:00Z",
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: web, controller: true}], %[4]s}
spec: {nodeName: node-1, containers: [{name: a, resources: {requests: {cpu: %[5]dm, memory: 1Gi}}}]}
status: {phase: Running}`, one.name, one.created, i+1, managed, max(one.cpu, 0)))
				convert.Trim(pod)
				if one.cpu == gone {
					lost(s, pod)
				} else {
					s.Saw(pod)
				}
			}
			snap := s.Snapshot(start)
			var moved int64
			for _, g := range snap.Without("node-1").Groups {
				moved += g.Requests.At(quantity.CPU) * int64(len(g.Pods))
			}
			if used := snap.Node("node-1").Used.At(quantity.CPU); used != c.used || moved != c.moved {
				t.Errorf("the pods use %d and request %d where they move, want %d and %d", used, moved, c.used, c.moved)
			}
		})
	}
}

// TestSuccessorsAreForgotten checks that nothing remains of controllers without pods.
func TestSuccessorsAreForgotten(t *testing.T) {
	s := newState(Config{})
	for i := range 3 {
		pod := objecttest.Parse[corev1.Pod](t, strings.ReplaceAll(`
metadata: {name: p-I, namespace: default, uid: p-I, resourceVersion: '1',
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j-I, uid: j-I, controller: true}]}
spec: {nodeName: node-1, containers: [{name: a, resources: {requests: {cpu: 1}}}]}`, "I", fmt.Sprint(i)))
		s.Saw(pod)
		lost(s, pod)
	}
	if diff := cmp.Diff(0, len(s.pods.created)); diff != "" {
		t.Errorf("controllers that are remembered (-want +got):\n%s", diff)
	}
}
