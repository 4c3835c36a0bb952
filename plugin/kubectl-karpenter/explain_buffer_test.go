package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bufferCluster has a pool without nodes, a buffer that the controller keeps room for, one of another autoscaler, and the
// Deployment that both refer to.
func bufferCluster(t *testing.T) string {
	t.Helper()
	const ref = "spec: {scalableRef: {apiGroup: apps, kind: Deployment, name: web}, percentage: 50}\n"
	return served(t, map[string]string{
		"/apis/karpenter.sh/v1/nodepools": `metadata: {name: default, uid: pool-uid}
spec: {template: {spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}, requirements: []}}}
status: {conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}
`,
		"/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default": `{"apiVersion": "karpenter.kwok.sh/v1alpha1",
"kind": "KWOKNodeClass", "metadata": {"name": "default"}}`,
		"/apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers": "metadata: {name: spare, namespace: shop, uid: b1}\n" +
			ref + "status: {readyReplicas: 0}\n---\n" +
			"metadata: {name: foreign, namespace: shop, uid: b2}\n" + ref + "status: {replicas: 3}\n",
		"/api/v1/resourcequotas": "metadata: {name: team, namespace: shop}\nspec: {}\nstatus: {hard: {pods: 3}, used: {pods: 1}}\n",
		"/apis/apps/v1/namespaces/shop/deployments/web": `{"apiVersion": "apps/v1", "kind": "Deployment",
"metadata": {"name": "web", "namespace": "shop"},
"spec": {"replicas": 6, "selector": {}, "template": {"spec": {"containers": [{"name": "c", "image": "i",
"env": [{"name": "PASSWORD", "value": "secret"}],
"resources": {"requests": {"cpu": "1"}}}]}}}}`,
	})
}

// TestExplainBuffer checks that a buffer of a cluster is explained like that of a capture of the cluster, and that a
// buffer that another autoscaler processes has no room.
func TestExplainBuffer(t *testing.T) {
	types := filepath.Join(files(t, map[string]string{"types.json": typesJSON}), "types.json")
	kubeconfig := bufferCluster(t)
	live, err := runProgram(t, "", "explain", "buffer", "spare", "-n", "shop", "--kubeconfig", kubeconfig, "--instance-types", types)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"buffer shop/spare: 2 virtual pods (asks for 3: ResourceQuota team allows 2 of 3): 0 on nodes that are ready, " +
			"0 on nodes being launched or launched for pods, 2 on new nodes, 0 nowhere\n",
		"status False, RequiresNewCapacity: 2/2 virtual pods required new capacity, 0 failed\n",
		"ROOM ON ", "price of the room: 0.0000 USD per hour, 0.",
	} {
		if !strings.Contains(live, want) {
			t.Errorf("the text lacks %q:\n%s", want, live)
		}
	}
	if _, err := runProgram(t, "", "explain", "cb/foreign", "-n", "shop", "--kubeconfig", kubeconfig, "--instance-types", types); err == nil ||
		!strings.Contains(err.Error(), "there is no CapacityBuffer shop/foreign") {
		t.Errorf("of another autoscaler's buffer: %v", err)
	}
	file := captured(t, "--live", "--kubeconfig", kubeconfig, "--instance-types", types)
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("the capture has environments of containers, or cannot be read: %v", err)
	}
	if out, err := runProgram(t, "", "replay", file); err != nil {
		t.Errorf("replay: %v\n%s", err, out)
	}
	from, err := runProgram(t, "", "explain", "buffer/spare", "--from", file)
	if err != nil || from != live {
		t.Errorf("%v\nfrom the capture: %s\nof the cluster: %s", err, from, live)
	}
}

// TestExplainFrom checks that a capture is explained as the cluster was, and that an unreadable object of files is named and
// sets nothing else aside.
func TestExplainFrom(t *testing.T) {
	types := filepath.Join(files(t, map[string]string{"types.json": typesJSON}), "types.json")
	kubeconfig := bufferCluster(t)
	file := captured(t, "--live", "--kubeconfig", kubeconfig, "--instance-types", types)
	for _, verb := range [][]string{{"explain", "pool", "default"}, {"explain", "pools"}, {"explain", "nodes"}, {"explain", "pods", "-A"}} {
		live, err := runProgram(t, "", append(verb, "--kubeconfig", kubeconfig, "--instance-types", types)...)
		if err != nil {
			t.Fatal(err)
		}
		if from, err := runProgram(t, "", append(verb, "--from", file)...); err != nil || from != live {
			t.Errorf("%v: %v\nfrom the capture: %s\nof the cluster: %s", verb, err, from, live)
		}
	}
	bad := "apiVersion: v1\nkind: Pod\nmetadata: {name: bad, namespace: shop}\nspec: {containers: 7}\n"
	folder := files(t, map[string]string{"pool.yaml": poolYAML, "instance-types.json": typesJSON, "web.yaml": webYAML, "bad.yaml": bad})
	out, said, err := runBoth(t, "", "explain", "pods", "--from", folder)
	if err == nil || !strings.Contains(err.Error()+said, "bad.yaml") || !strings.Contains(out, "pod default/web-0") {
		t.Errorf("%v, it printed %q and said %q, want the pods of web, and the file that is wrong as an error", err, out, said)
	}
	if _, err := runProgram(t, "", "explain", "pods", "--from", filepath.Join(folder, "bad.yaml")); err == nil {
		t.Error("with nothing readable there is no error")
	}
}
