package offline

import (
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// podRulesYAML is an old node with a pod of a low priority, a pending pod of a lower one, and a new one.
const podRulesYAML = `apiVersion: v1
kind: Node
metadata: {name: a, creationTimestamp: "2026-01-01T00:00:00Z", labels: {kubernetes.io/hostname: a, karpenter.sh/nodepool: default,
  node.kubernetes.io/instance-type: small, topology.kubernetes.io/zone: a, karpenter.sh/capacity-type: on-demand}}
status: {capacity: {cpu: 2, memory: 4Gi, pods: 20}, allocatable: {cpu: 1900m, memory: 4Gi, pods: 20},
  conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: batch, creationTimestamp: "2026-01-01T00:00:00Z",
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]}
spec: {priority: -100, nodeName: a, containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: waits, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {priority: -11, containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: fresh, creationTimestamp: "2026-01-02T00:00:00Z", annotations: {karpenter-go.github.io/provision-after: 30s,
  cluster-autoscaler.kubernetes.io/pod-scale-up-delay: soon}}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 7}}}]}
`

// TestPodRules verifies (EP-2) that a node with expendable pods only is empty, and what is said of pods for which no node is
// launched, or not yet; and that a capture repeats it.
func TestPodRules(t *testing.T) {
	folder := files(t, map[string]string{"instance-types.json": typesJSON, "pool.yaml": poolYAML, "pods.yaml": podRulesYAML})
	cutoff := int32(-10)
	for name, c := range map[string]struct {
		rules         convert.PodRules
		now           string
		unschedulable []string
		reason        plan.Reason
	}{
		"by default": {convert.PodRules{}, "2026-01-02T00:01:00Z", nil, ""},
		"with a cutoff": {convert.PodRules{PriorityCutoff: &cutoff}, "2026-01-02T00:01:00Z",
			[]string{"default/waits: its priority is below -10 (--expendable-pods-priority-cutoff): no node is launched for it"}, plan.Empty},
		"within the delay of the pod": {convert.PodRules{Delay: 10 * time.Second}, "2026-01-02T00:00:20Z",
			[]string{"default/fresh: no node is launched for it before 2026-01-02T00:00:30Z"}, ""},
		"within the delay of all": {convert.PodRules{Delay: time.Minute}, "2026-01-02T00:00:40Z",
			[]string{"default/fresh: no node is launched for it before 2026-01-02T00:01:00Z"}, ""},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		policy := DefaultPolicy()
		policy.PodRules = c.rules
		source := Source{Paths: []string{folder}, Cluster: &Cluster{}, Now: now, Keep: true}
		w, err := source.Read(t.Context(), policy)
		if err != nil || len(w.Problems) > 0 {
			t.Fatal(err, w.Problems)
		}
		a := w.Decide(&policy, 1).Answer()
		var got []string
		for _, u := range a.Unschedulable {
			got = append(got, u.Pod+": "+u.Reasons[0].Message)
		}
		if strings.Join(got, "\n") != strings.Join(c.unschedulable, "\n") {
			t.Errorf("%s: unschedulable are %q, want %q", name, got, c.unschedulable)
		}
		const ignored = `pod-scale-up-delay is "soon", want a duration such as 30s; it is ignored`
		if lines := strings.Join(w.notices(), "\n"); !strings.Contains(lines, ignored) {
			t.Errorf("%s: no notice about the annotation: %s", name, lines)
		}
		var reason plan.Reason
		for _, s := range w.Disrupt(&policy, 1).steps {
			reason = s.Reason
		}
		if reason != c.reason {
			t.Errorf("%s: the node is removed as %q, want %q", name, reason, c.reason)
		}
		file := t.TempDir() + "/capture.json"
		if err := WriteCapture(file, w, policy, a); err != nil {
			t.Fatal(err)
		}
		if r, err := Replay(file); err != nil || len(r.Differs) > 0 {
			t.Errorf("%s: replay: %v, %+v", name, err, r)
		}
	}
}
