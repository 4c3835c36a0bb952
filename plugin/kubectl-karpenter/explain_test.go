package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shops is a cluster with pods in two namespaces. The kubeconfig's current context has the namespace shop; another
// context, plain, has none.
func shops(t *testing.T) (kubeconfig, types string) {
	t.Helper()
	pod := func(namespace, name string) string {
		return "metadata: {name: " + name + ", namespace: " + namespace + ", uid: uid-" + namespace + "-" + name + ", creationTimestamp: \"2026-01-01T00:00:00Z\"}\n" +
			"spec: {containers: [{name: c, image: i, resources: {requests: {cpu: \"100\"}}}]}\nstatus: {phase: Pending, conditions: [{type: PodScheduled, status: \"False\", reason: Unschedulable}]}\n---\n"
	}
	kubeconfig = served(t, map[string]string{
		"/apis/karpenter.sh/v1/nodepools": `metadata: {name: default, uid: pool-uid}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: []
status: {conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}
`,
		"/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default": `{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}`,
		"/apis/karpenter.sh/v1/nodeclaims":                         claimYAML("n1", "", ""),
		"/api/v1/nodes":                                            "metadata: {name: n1, uid: node-uid, labels: {kubernetes.io/hostname: n1, karpenter.sh/nodepool: default, node.kubernetes.io/instance-type: small}}\nspec: {providerID: \"test:///n1\"}\nstatus: {capacity: {cpu: 1, memory: 4Gi, pods: 20}, allocatable: {cpu: 1, memory: 4Gi, pods: 20}, conditions: [{type: Ready, status: \"True\"}]}\n",
		"/api/v1/pods": pod("shop", "frontend-1") + pod("shop",
			"frontend-2") + pod("default", "other") + pod("shop", "cart"),
	})
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(string(text), "contexts: [{name: c, context: {cluster: c, user: u}}]",
		"contexts: [{name: c, context: {cluster: c, user: u, namespace: shop}}, {name: plain, context: {cluster: c, user: u}}]", 1)
	if err := os.WriteFile(kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, filepath.Join(files(t, map[string]string{"types.json": typesJSON}), "types.json")
}

// TestExplainNames checks that objects are named as in kubectl: namespace of the context, -n, --context; kinds in
// singular, plural and short, and KIND/NAME. The error about a missing object suggests similar ones.
func TestExplainNames(t *testing.T) {
	kubeconfig, types := shops(t)
	for _, c := range []struct{ arguments, want string }{
		{"pod cart", "pod shop/cart cannot be scheduled"},
		{"pod cart -n shop --context plain", "pod shop/cart cannot be scheduled"},
		{"pod other --context plain", "pod default/other cannot be scheduled"},
		{"pod other -n default", "pod default/other cannot be scheduled"},
		{"pods cart", "pod shop/cart"},
		{"po default/other", "pod default/other"},
		{"pod pod/cart", "pod shop/cart"},
		{"pod/cart", "pod shop/cart"},
		{"po/other --namespace default", "pod default/other"},
		{"nodepool default", "pool default: 1 node"},
		{"nodepool/default", "pool default: 1 node"},
		{"nodepool nodepool.karpenter.sh/default", "pool default: 1 node"},
		{"np default", "pool default: 1 node"},
		{"node/n1", "node n1 (claim claim-n1)"},
		{"nodeclaims claim-n1", "node n1 (claim claim-n1)"},
		{"pod web", "there is no pod shop/web"},
		{"pod frontend", "there is no pod shop/frontend; pods whose names begin so: frontend-1, frontend-2"},
		{"pod other", "there is no pod shop/other; there is default/other"},
		{"pod crat", "there is no pod shop/crat; did you mean cart?"},
		{"pool defalt", "there is no pool defalt; did you mean default?"},
		{"node n11", "there is no node n11, and no claim of that name"},
		{"node clam-n1", "there is no node clam-n1, and no claim of that name; did you mean claim-n1?"},
		{"pod shop/cart -n default", "pod shop/cart is not in --namespace default"},
		{"nodepol x", `"nodepol" is not known, want pod, node, pool or a workload; did you mean nodepool?`},
		{"daemonset/web", `"daemonset" is not known, want pod, node, pool or a workload`},
		{"--output json", "nothing to explain: want pod, node, pool or a workload"},
		{"pod/cart --color", "unknown flag: --color (see `kubectl karpenter explain pod --help`)"},
		{"pod cart --context none", `context "none" does not exist`},
	} {
		arguments := append([]string{"explain"}, strings.Fields(c.arguments)...)
		out, err := runProgram(t, "", append(arguments, "--kubeconfig", kubeconfig, "--instance-types", types)...)
		if err != nil {
			out = err.Error()
		}
		if !strings.Contains(out, c.want) {
			t.Errorf("%s: want %q, got\n%s", c.arguments, c.want, out)
		}
	}
	for arguments, want := range map[string]string{"explian pod x": `unexpected argument "explian"; did you mean explain?`,
		"quux": `unexpected argument "quux" (see`, "simulat": "did you mean simulate?"} {
		if _, err := runProgram(t, "", strings.Fields(arguments)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arguments, err, want)
		}
	}
	if out, err := runProgram(t, "", "explain", "--help"); err != nil || !strings.Contains(out, "pool") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestNamespaceOfTopAndSimulate checks that -n restricts the pods of top, and that simulate --live assigns objects of
// files without a namespace to the namespace of the context.
func TestNamespaceOfTopAndSimulate(t *testing.T) {
	kubeconfig, types := shops(t)
	run := func(arguments ...string) string {
		t.Helper()
		out, err := runProgram(t, "", append(arguments, "--kubeconfig", kubeconfig, "--instance-types", types)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := run("top", "--once"); !strings.Contains(out, " 4  NoPlace") {
		t.Errorf("all namespaces:\n%s", out)
	}
	if out := run("top", "--once", "-n", "default"); !strings.Contains(out, "default/other") || !strings.Contains(out, " 1  NoPlace") {
		t.Errorf("namespace default:\n%s", out)
	}
	if _, err := runProgram(t, "", "top", "-A", "-n", "default"); err == nil || !strings.Contains(err.Error(), "give one of them") {
		t.Errorf("-A and -n: %v", err)
	}
	folder := files(t, map[string]string{"web.yaml": webYAML})
	capture := filepath.Join(t.TempDir(), "c.json")
	for _, c := range []struct{ flag, want string }{{"--context=c", "shop/web"}, {"--context=plain", "default/web"},
		{"--namespace=else", "else/web"}} {
		if out := run("simulate", "--live", "-f", folder, c.flag, "-o", "json", "--capture", capture); !strings.Contains(out, c.want) {
			t.Errorf("%s: want %s in\n%s", c.flag, c.want, out)
		}
		if out, err := runProgram(t, "", "replay", capture); err != nil {
			t.Errorf("%s: %v\n%s", c.flag, err, out)
		}
	}
}
