package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/plugin/top"
)

// twoProviders is a cluster with a pool of simulated nodes, which has a node and a pending pod, and an AWS pool.
func twoProviders(t *testing.T, class string) (kubeconfig string) {
	t.Helper()
	ready := `status: {conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}` + "\n"
	lists := map[string]string{
		"/apis/karpenter.sh/v1/nodepools": `metadata: {name: default, uid: pool-uid}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: []
` + ready + "---\n" + `metadata: {name: cloud, uid: cloud-uid}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: general}
      requirements: []
` + ready,
		"/apis/karpenter.k8s.aws/v1/ec2nodeclasses":                class,
		"/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default": `{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}`,
		"/apis/karpenter.sh/v1/nodeclaims":                         claimYAML("n1", "", ""),
		"/api/v1/nodes": `metadata: {name: n1, uid: node-uid, creationTimestamp: "2026-01-01T00:00:00Z", labels: {kubernetes.io/hostname: n1, kubernetes.io/arch: amd64, kubernetes.io/os: linux, node.kubernetes.io/instance-type: c-4x-amd64-linux, topology.kubernetes.io/zone: test-zone-a, karpenter.sh/capacity-type: on-demand, karpenter.sh/nodepool: default, karpenter.sh/registered: "true", karpenter.sh/initialized: "true"}}
spec: {providerID: "test:///n1"}
status: {capacity: {cpu: 4, memory: 8Gi, pods: 110}, allocatable: {cpu: 3900m, memory: 8Gi, pods: 110}, conditions: [{type: Ready, status: "True"}]}
`,
		"/api/v1/pods": `metadata: {name: big, namespace: default, uid: uid-big, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {nodeSelector: {karpenter.sh/nodepool: default}, containers: [{name: c, image: i, resources: {requests: {cpu: "6", memory: 1Gi}}}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
---
metadata: {name: cloudy, namespace: default, uid: uid-cloudy, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {nodeSelector: {karpenter.k8s.aws/instance-category: m}, containers: [{name: c, image: i, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
`,
	}
	return served(t, lists)
}

// TestLiveTwoProviders checks that each pool uses its own provider: an AWS pool beside it changes nothing about a
// pool of simulated nodes, whether AWS is reachable or not, and labels of one provider do not exist for the other.
func TestLiveTwoProviders(t *testing.T) {
	noAWS(t)
	sound := awsClassYAML[strings.Index(awsClassYAML, "metadata:"):] + awsStatusYAML
	for _, c := range []struct {
		name, class string
		flags       []string
		cloudy      string // message about the pod that only AWS can serve
		prices      string
	}{
		{"both are known", sound, nil, "needs a new node: m", builtIn},
		{"the class is not there", "", nil, `pool cloud: spec.template: EC2NodeClass "general" does not exist`, builtIn},
		{"AWS is left out", sound, []string{"--cloud-provider=kwok"},
			"pool cloud: spec.template: what the pool can launch is not known: --cloud-provider=kwok excludes pools of the kind EC2NodeClass",
			"those of pools of the kind EC2NodeClass are not known: --cloud-provider=kwok excludes pools of the kind EC2NodeClass"},
	} {
		kubeconfig := twoProviders(t, c.class)
		run := func(arguments ...string) string {
			t.Helper()
			out, err := runProgram(t, "", append(append(arguments, "--kubeconfig", kubeconfig), c.flags...)...)
			if err != nil {
				t.Errorf("%s: %v: %v", c.name, arguments, err)
			}
			return out
		}
		const price = "pool default: 1 node for 0."
		switch out := run("explain", "pool", "default"); {
		case strings.Contains(out, "buys nothing"):
			t.Errorf("%s: the pool launches nothing:\n%s", c.name, out)
		case !strings.Contains(out, price), strings.Contains(out, price+"0000"):
			t.Errorf("%s: want %q and a price that is not 0, in\n%s", c.name, price, out)
		}
		if out := run("explain", "pod", "big"); !strings.Contains(out, "needs a new node: ") || !strings.Contains(out, "of pool default") {
			t.Errorf("%s:\n%s", c.name, out)
		}
		if out := run("explain", "pod", "cloudy"); !strings.Contains(out, c.cloudy) || strings.Contains(out, "of pool default in") {
			t.Errorf("%s: want %q in\n%s", c.name, c.cloudy, out)
		}
		var fleet top.Fleet
		switch out := run("top", "-o", "json"); {
		case json.Unmarshal([]byte(out), &fleet) != nil:
			t.Errorf("%s: no JSON of a %T:\n%s", c.name, fleet, out)
		case len(fleet.Nodes) != 1:
			t.Errorf("%s: %d nodes, want 1: %+v", c.name, len(fleet.Nodes), fleet.Nodes)
		case fleet.Nodes[0].PricePerHour <= 0:
			t.Errorf("%s: fleet.Nodes[0].PricePerHour is %v, want more than 0", c.name, fleet.Nodes[0].PricePerHour)
		case fleet.PriceSource != c.prices:
			t.Errorf("%s: fleet.PriceSource is %v, want %v", c.name, fleet.PriceSource, c.prices)
		}
		capture := filepath.Join(t.TempDir(), "capture.json")
		if out := run("simulate", "--live", "--capture", capture); !strings.Contains(out, "of pool default") && !strings.Contains(out,
			"default") {
			t.Errorf("%s:\n%s", c.name, out)
		}
		if out, err := runProgram(t, "", "replay", capture); err != nil {
			t.Errorf("%s: %v\n%s", c.name, err, out)
		}
	}
}

// TestLiveTwoProvidersAWSFails checks that a failure to query AWS makes only the AWS pools unknown, with the reason.
func TestLiveTwoProvidersAWSFails(t *testing.T) {
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	awsAt(t, down.URL)
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	kubeconfig := twoProviders(t, awsClassYAML[strings.Index(awsClassYAML, "metadata:"):]+awsStatusYAML)
	for pod, want := range map[string]string{
		"big":    "pod default/big needs a new node: ",
		"cloudy": "pool cloud: spec.template: what the pool can launch is not known: ",
	} {
		out, err := runProgram(t, "", "explain", "pod", pod, "--kubeconfig", kubeconfig, "--cloud-provider=aws")
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, want %q in\n%s", pod, err, want, out)
		}
	}
}

// TestPoolWithoutTypes checks that every verb that prints a pool reports a retired or mistyped instance type.
func TestPoolWithoutTypes(t *testing.T) {
	text := `metadata: {name: default, uid: pool-uid}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [lagre]}]
status: {conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}
`
	types := filepath.Join(files(t, map[string]string{"types.json": typesJSON}), "types.json")
	kubeconfig := served(t, map[string]string{
		"/apis/karpenter.sh/v1/nodepools":                          text,
		"/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default": `{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}`,
		"/api/v1/pods": `metadata: {name: waits, namespace: default, uid: uid-waits, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {containers: [{name: c, image: i}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
`,
	})
	const want = "the pool's own requirement node.kubernetes.io/instance-type In [lagre] matches none of 2 instance types"
	for _, arguments := range [][]string{{"explain", "pool", "default"}, {"explain", "pod", "waits"}, {"top", "--once"},
		{"simulate", "--live"}} {
		out, err := runProgram(t, "", append(arguments, "--kubeconfig", kubeconfig, "--instance-types", types)...)
		if err != nil {
			t.Errorf("%v: unexpected error: %v", arguments, err)
		}
		for _, want := range []string{want, "did you mean large?"} {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", arguments, want, out)
			}
		}
	}
}
