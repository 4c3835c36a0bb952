package convert

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// FuzzPod: no pod that can be decoded makes the conversion panic, change the pod, or contradict itself.
func FuzzPod(f *testing.F) {
	for _, seed := range []string{
		"spec: {nodeName: node-1}",
		"metadata: {name: a}" + unschedulableStatus,
		"spec: {nodeSelector: {a: b}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}, {matchExpressions: [{key: a, operator: Gt, values: ['1']}]}]}}}}" + unschedulableStatus,
		"spec: {priority: -5, containers: [{name: a, resources: {requests: {cpu: 1e30}}}], overhead: {cpu: -1}}" + unschedulableStatus,
		"spec: {nodeName: node-1, resources: {requests: {cpu: 1}}}\nstatus: {resources: {requests: {cpu: 2}}}",
		"metadata: {managedFields: [{manager: karpenter-nominate, subresource: status, fieldsV1: {}}]}" + unschedulableStatus + "  nominatedNodeName: b\n",
	} {
		f.Add([]byte(seed))
	}
	v := words()
	f.Fuzz(func(t *testing.T, text []byte) {
		pod := &corev1.Pod{}
		if yaml.Unmarshal(text, pod) != nil {
			return
		}
		before := pod.DeepCopy()
		spec, disposition := Pod(pod, v, nil)
		if diff := cmp.Diff(before, pod); diff != "" {
			t.Fatalf("the pod was changed:\n%s", diff)
		}
		if (disposition == Bound) != (spec.Node != "") {
			t.Errorf("disposition %d on node %q", disposition, spec.Node)
		}
		if again, _ := Pod(pod, v, nil); !cmp.Equal(spec, again) {
			t.Errorf("a second conversion differs:\n%s", cmp.Diff(spec, again))
		}
	})
}
