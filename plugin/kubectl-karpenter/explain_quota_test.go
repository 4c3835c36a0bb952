package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestExplainQuota checks that a quota of a cluster is explained like that of a capture of the cluster, that a pod that it
// excludes names it, and that the capture plans the same.
func TestExplainQuota(t *testing.T) {
	types := filepath.Join(files(t, map[string]string{"types.json": typesJSON}), "types.json")
	kubeconfig := served(t, map[string]string{
		"/apis/karpenter.sh/v1/nodepools": `metadata: {name: default, uid: pool-uid}
spec: {template: {spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}, requirements: []}}}
status: {conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}
`,
		"/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default": `{"apiVersion": "karpenter.kwok.sh/v1alpha1",
"kind": "KWOKNodeClass", "metadata": {"name": "default"}}`,
		"/apis/autoscaling.x-k8s.io/v1beta1/capacityquotas": "metadata: {name: none, uid: q1}\n" +
			"spec: {limits: {resources: {nodes: 0}}}\n",
		"/api/v1/pods": "metadata: {name: web, namespace: default, uid: uid-web}\n" +
			"spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}\n" +
			"status: {conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}\n",
	})
	cluster := []string{"--kubeconfig", kubeconfig, "--instance-types", types}
	explain := func(arguments ...string) string {
		t.Helper()
		text, err := runProgram(t, "", append([]string{"explain"}, arguments...)...)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	live := explain(append([]string{"quota", "none"}, cluster...)...)
	for _, want := range []string{"quota none: nodes 0 of 0 (100%); its nodes use 0 of the limit of 0 nodes; " +
		"no further node is launched in it; it excludes 1 unschedulable pod\n", "1 pod without a node: default/web\n"} {
		if !strings.Contains(live, want) {
			t.Errorf("the text lacks %q:\n%s", want, live)
		}
	}
	text := explain(append([]string{"pod", "default/web"}, cluster...)...)
	if !strings.Contains(text, "CapacityQuota none has 0 of nodes left") {
		t.Errorf("the text of the pod does not name the quota:\n%s", text)
	}
	file := captured(t, append([]string{"--live"}, cluster...)...)
	if out, err := runProgram(t, "", "replay", file); err != nil {
		t.Errorf("replay: %v\n%s", err, out)
	}
	if from := explain("cq/none", "--from", file); from != live {
		t.Errorf("from the capture: %s\nof the cluster: %s", from, live)
	}
}
