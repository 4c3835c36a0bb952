package main

import (
	"path/filepath"
	"strings"
	"testing"

	"time"

	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// wordsCluster is a pool with nodes that are cordoned, empty and being removed, and a pod that waits for its volume.
func wordsCluster(t *testing.T) (kubeconfig, types string) {
	t.Helper()
	node := func(name, metadata, spec string) string {
		return `metadata: {name: ` + name + `, uid: uid-` + name + `, creationTimestamp: "2026-01-01T00:00:00Z", ` + metadata + `labels: {kubernetes.io/hostname: ` + name + `, kubernetes.io/arch: amd64, kubernetes.io/os: linux, node.kubernetes.io/instance-type: small, topology.kubernetes.io/zone: a, karpenter.sh/capacity-type: on-demand, karpenter.sh/nodepool: default, karpenter.sh/registered: "true", karpenter.sh/initialized: "true"}}
spec: {providerID: "test:///` + name + `"` + spec + `}
status: {capacity: {cpu: 2, memory: 4Gi, pods: 20}, allocatable: {cpu: 1900m, memory: 3Gi, pods: 20}, conditions: [{type: Ready, status: "True"}]}
---
`
	}
	command := plan.NewCommand(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), plan.Empty, "empty",
		[]plan.Candidate{{Claim: "claim-leaving", ClaimUID: "uid-claim-leaving", Node: "leaving", NodeUID: "uid-leaving", Pool: "default"}})
	leaving := strings.Replace(claimYAML("leaving", `karpenter-go.github.io/command: '`+command.Encode()+`'`, ""),
		"metadata: {", `metadata: {deletionTimestamp: "2026-01-01T05:00:00Z", finalizers: [karpenter.sh/termination], `, 1)
	pod := `metadata: {name: db-0, namespace: default, uid: uid-db-0, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data-db-0}}], containers: [{name: c, image: i}]}
status: {phase: Pending, nominatedNodeName: empty, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
---
`
	kubeconfig = served(t, map[string]string{
		"/apis/karpenter.sh/v1/nodepools": `metadata: {name: default, uid: pool-uid}
spec:
  disruption: {consolidateAfter: Never}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: []
status: {conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}
---
metadata: {name: fixed, uid: fixed-uid}
spec:
  replicas: 3
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: []
status: {conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}
`,
		"/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default": `{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}`,
		"/apis/karpenter.sh/v1/nodeclaims":                         claimYAML("closed", "", "") + claimYAML("empty", "", "") + leaving,
		"/api/v1/nodes": node("closed", "", ", unschedulable: true") + node("empty", "", "") +
			node("leaving", `deletionTimestamp: "2026-01-01T05:00:00Z", finalizers: [karpenter.sh/termination], `, ""),
		"/api/v1/pods": pod + strings.NewReplacer("db-0",
			"db-1").Replace(strings.Replace(pod, "volumes: [{name: data, persistentVolumeClaim: {claimName: data-db-0}}], ", "", 1)),
		"/api/v1/persistentvolumeclaims": `metadata: {name: data-db-0, namespace: default, uid: pvc}
status: {phase: Pending}
`,
	})
	return kubeconfig, filepath.Join(files(t, map[string]string{"types.json": typesJSON}), "types.json")
}

// TestExplainWords checks what the verbs print about cordoned and empty nodes, commands in progress, pools with a
// fixed number of nodes, and pods that are nominated to a node.
func TestExplainWords(t *testing.T) {
	kubeconfig, types := wordsCluster(t)
	for _, c := range []struct {
		arguments    string
		want, absent string
	}{
		{"top --once", "cordoned", ""},
		{"explain node closed", "  is cordoned: no new pods are placed on it; kubectl uncordon closed reverts this\n", "fit on other nodes"},
		{"explain node closed -o json", `"cordoned": true`, ""},
		{"explain node empty", "; it has no pods to move\n", "cordoned"},
		{"explain pool default", "  1 node being removed: Empty, phase draining\n", "phase proposed"},
		{"explain pool fixed", "  has 3 replicas, and none of them is launched while the feature gate StaticCapacity is off", ""},
		{"explain pool fixed --feature-gates StaticCapacity=true", "  has a fixed number of nodes: 0 nodes of 3 replicas\n", "is off"},
		{"explain pod db-0", "kube-scheduler has chosen node empty for it and waits for PersistentVolumeClaim data-db-0, which is not bound yet", "making room"},
		{"explain pod db-1", "kube-scheduler has chosen node empty for it: preempted pods have to terminate there first, or the pod is being bound", "making room"},
	} {
		out, err := runProgram(t, "", append(strings.Fields(c.arguments), "--kubeconfig", kubeconfig, "--instance-types", types)...)
		switch {
		case err != nil:
			t.Errorf("%s: unexpected error: %v", c.arguments, err)
		case !strings.Contains(out, c.want):
			t.Errorf("%s: no %q in\n%s", c.arguments, c.want, out)
		case c.absent != "" && strings.Contains(out, c.absent):
			t.Errorf("%s: unexpected %q in\n%s", c.arguments, c.absent, out)
		}
	}
}

// TestSimulateUnreadable checks that input without any readable object gives an error and no answer.
func TestSimulateUnreadable(t *testing.T) {
	folder := files(t, map[string]string{"bad.yaml": "a: [b\n"})
	out, progress, err := runBoth(t, "", "simulate", "-f", filepath.Join(folder, "bad.yaml"))
	switch {
	case err == nil:
		t.Error("no error, want one about bad.yaml")
	case !strings.Contains(err.Error(), "bad.yaml"):
		t.Errorf("got error %q, want bad.yaml in it", err)
	}
	if out != "" {
		t.Errorf("it prints %q, want nothing", out)
	}
	if strings.Contains(progress, "no pod waits") {
		t.Errorf("the progress claims that no pod waits:\n%s", progress)
	}
}
