package convert

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestSiblings checks that a pod that shares the conversion of a sibling gets the same result as alone, whatever was
// converted before.
func TestSiblings(t *testing.T) {
	owner := "ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]"
	selector := "labelSelector: {matchLabels: {app: a}, matchExpressions: [{key: b, operator: In, values: [x, y]}]}"
	var pods []*corev1.Pod
	for i, spread := range []string{
		"{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, " + selector + "}",
		"{maxSkew: 2, topologyKey: z, whenUnsatisfiable: DoNotSchedule, " + selector + "}",
		"{maxSkew: 2, topologyKey: z, whenUnsatisfiable: ScheduleAnyway, " + selector + "}",
		"{maxSkew: 2, topologyKey: y, whenUnsatisfiable: DoNotSchedule, " + selector + "}",
		"{maxSkew: 2, topologyKey: y, whenUnsatisfiable: DoNotSchedule, minDomains: 2, " + selector + "}",
		"{maxSkew: 2, topologyKey: y, whenUnsatisfiable: DoNotSchedule, minDomains: 3, " + selector + "}",
		"{maxSkew: 2, topologyKey: y, whenUnsatisfiable: DoNotSchedule, nodeAffinityPolicy: Ignore, " + selector + "}",
		"{maxSkew: 2, topologyKey: y, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Honor, " + selector + "}",
		"{maxSkew: 2, topologyKey: y, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [own], " + selector + "}",
		"{maxSkew: 2, topologyKey: y, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: b}}}",
		"{maxSkew: 2, topologyKey: y, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchExpressions: [{key: b, operator: NotIn, values: [x, y]}]}}",
		"{maxSkew: 2, topologyKey: y, whenUnsatisfiable: DoNotSchedule}",
		"",
	} {
		for _, namespace := range []string{"one", "two"} {
			pods = append(pods, decode[corev1.Pod](t, fmt.Sprintf("metadata: {namespace: %s, name: p%d, labels: {app: a, own: p%d}, %s}\nspec: {topologySpreadConstraints: [%s]}", namespace, i, i, owner, spread)+unschedulableStatus))
		}
	}
	around := &Around{}
	for _, before := range pods {
		for _, pod := range pods {
			Pod(before, words(), around)
			got, _ := Pod(pod, words(), around)
			want, _ := Pod(pod, words(), nil)
			if diff := cmp.Diff(want.Spread, got.Spread); diff != "" {
				t.Fatalf("pod %s after %s (-alone +sharing):\n%s", pod.Name, before.Name, diff)
			}
		}
	}
	again, _ := Pod(pods[0], words(), around)
	once, _ := Pod(pods[0], words(), around)
	if &again.Spread[0] != &once.Spread[0] {
		t.Error("equal constraints are converted twice")
	}
}
