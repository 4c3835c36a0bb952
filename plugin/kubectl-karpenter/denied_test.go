package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karpenter-go/karpenter/internal/cluster/capture"
)

// refusing returns the kubeconfig of a proxy in front of a cluster. It refuses lists of the resources, named as in a
// role, as an API server refuses them.
func refusing(t *testing.T, kubeconfig string, resources ...string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Clusters["c"].Server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resource, group := path.Base(r.URL.Path), ""
		if parts := strings.Split(r.URL.Path, "/"); parts[1] == "apis" {
			group = parts[2]
		}
		w.Header().Set("Content-Type", "application/json")
		if slices.Contains(resources, strings.TrimSuffix(resource+"."+group, ".")) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
				"message": "%s is forbidden: User \"ann\" cannot list resource \"%s\" in API group \"%s\" at the cluster scope"}`, resource, resource, group)
			return
		}
		to := *r.URL
		to.Scheme, to.Host = server.Scheme, server.Host
		answer, err := http.Get(to.String())
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		w.WriteHeader(answer.StatusCode)
		if _, err := io.Copy(w, answer.Body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(proxy.Close)
	config.Clusters["c"].Server = proxy.URL
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

const grant = "the ClusterRole karpenter-view of the chart allows it: kubectl create clusterrolebinding NAME --clusterrole=karpenter-view --user=ann"

// TestDeniedKinds checks that the answer is given without the kinds that the user may not list, that one line names
// all of them, and that the answer is marked in each format.
func TestDeniedKinds(t *testing.T) {
	types := filepath.Join(files(t, map[string]string{"types.json": typesJSON}), "types.json")
	kubeconfig := refusing(t, liveCluster(t), "daemonsets.apps", "poddisruptionbudgets.policy", "persistentvolumes")
	flags := []string{"--kubeconfig", kubeconfig, "--instance-types", types}
	const said = `the answer is incomplete: user "ann" may not list daemonsets.apps, persistentvolumes, poddisruptionbudgets.policy in the whole cluster; ` + grant + "\n"
	const marked = `incomplete without daemonsets.apps: DaemonSet pods that do not run yet use no capacity of new nodes
incomplete without persistentvolumes: pending pods with a bound PersistentVolumeClaim are ignored
incomplete without poddisruptionbudgets.policy: no PodDisruptionBudget keeps a node
`
	for _, verb := range []string{"explain pod small", "explain pods", "explain node n1", "explain pool default", "top", "simulate --live", "simulate --live --disrupt"} {
		out, progress, err := runBoth(t, "", append(strings.Fields(verb), flags...)...)
		if err != nil {
			t.Errorf("%s: %v", verb, err)
		}
		if !strings.HasSuffix(out, marked) {
			t.Errorf("%s: the text does not end with the kinds:\n%s", verb, out)
		}
		if !strings.HasSuffix(progress, said) || strings.Count(progress, "may not list") != 1 {
			t.Errorf("%s: standard error is\n%s", verb, progress)
		}
		out, _, err = runBoth(t, "", append(strings.Fields(verb), append(flags, "-o", "json")...)...)
		var answer struct {
			Incomplete []capture.Denied `json:"incomplete"`
		}
		if err != nil || json.Unmarshal([]byte(out), &answer) != nil {
			t.Errorf("%s: %v\n%s", verb, err, out)
		}
		var resources []string
		for _, d := range answer.Incomplete {
			resources = append(resources, d.Verb+" "+d.Resource)
		}
		if diff := cmp.Diff([]string{"list daemonsets.apps", "list persistentvolumes", "list poddisruptionbudgets.policy"}, resources); diff != "" {
			t.Errorf("%s: -want +got:\n%s", verb, diff)
		}
	}
	if _, progress, err := runBoth(t, "", append([]string{"explain", "pods", "-o", "name"}, flags...)...); err != nil || progress != plugin+": "+said {
		t.Errorf("with names only: %v, standard error is\n%s", err, progress)
	}
}

// TestDeniedRequiredKinds checks that one error names all kinds without which there is no answer.
func TestDeniedRequiredKinds(t *testing.T) {
	kubeconfig := refusing(t, liveCluster(t), "nodepools.karpenter.sh", "nodes", "pods", "services")
	const want = `user "ann" may not list nodepools.karpenter.sh, nodes, pods in the whole cluster, and there is no answer without them; nor may it list services; ` + grant
	for _, verb := range []string{"explain pod small", "explain pods", "explain node n1", "explain pool default", "top", "simulate --live"} {
		out, err := runProgram(t, "", append(strings.Fields(verb), "--kubeconfig", kubeconfig)...)
		if err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", verb, err, want)
		}
		if out != "" {
			t.Errorf("%s prints, want nothing:\n%s", verb, out)
		}
	}
}

// TestDeniedCapture checks that a capture of an incomplete answer replays.
func TestDeniedCapture(t *testing.T) {
	folder := files(t, map[string]string{"types.json": typesJSON})
	capture := filepath.Join(folder, "capture.json")
	kubeconfig := refusing(t, liveCluster(t), "daemonsets.apps")
	if out, err := runProgram(t, "", "simulate", "--live", "--kubeconfig", kubeconfig, "--instance-types", filepath.Join(folder, "types.json"), "--capture", capture); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(capture)
	if err != nil || !strings.Contains(string(text), `"denied"`) {
		t.Errorf("%v, the capture does not name the kind", err)
	}
	if out, err := runProgram(t, "", "replay", capture); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestDeniedNodeClasses checks that pods get the reason why it is not known what an AWS pool can launch.
func TestDeniedNodeClasses(t *testing.T) {
	kubeconfig := refusing(t, served(t, map[string]string{
		"/apis/karpenter.sh/v1/nodepools": `metadata: {name: cloud, uid: pool-uid}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: []}}}
status: {conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}
`,
		"/api/v1/pods": pendingYAML("waiting", "{}"),
	}), "ec2nodeclasses.karpenter.k8s.aws")
	out, progress, err := runBoth(t, "", "explain", "pod", "waiting", "--kubeconfig", kubeconfig)
	for _, want := range []string{"what the pool can launch is not known: the user may not list objects of the kind EC2NodeClass",
		"incomplete without ec2nodeclasses.karpenter.k8s.aws: what pools of the kind EC2NodeClass can launch is not known"} {
		if !strings.Contains(out, want) {
			t.Errorf("%v: no %q in\n%s", err, want, out)
		}
	}
	if !strings.Contains(progress, "list ec2nodeclasses.karpenter.k8s.aws in the whole cluster") {
		t.Errorf("standard error is\n%s", progress)
	}
}

// pendingYAML returns an unschedulable pod with metadata beside its name.
func pendingYAML(name, more string) string {
	more = strings.Trim(more, "{}")
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf(`metadata: {name: %[1]s, namespace: default, uid: uid-%[1]s, creationTimestamp: "2026-01-01T00:00:00Z"%[2]s}
spec: {containers: [{name: c, image: i}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
---
`, name, more)
}

// TestDeniedJobs checks that the pods of a CronJob are found by the names of its Jobs.
func TestDeniedJobs(t *testing.T) {
	owned := func(job string) string {
		return "{ownerReferences: [{apiVersion: batch/v1, kind: Job, name: " + job + ", uid: u, controller: true}]}"
	}
	kubeconfig := refusing(t, served(t, map[string]string{
		"/api/v1/pods": pendingYAML("nightly-1", owned("nightly-29384756")) + pendingYAML("other-1", owned("nightly-manual")),
	}), "jobs.batch")
	out, err := runProgram(t, "", "explain", "cj/nightly", "-o", "name", "--kubeconfig", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if out != "pod/nightly-1\n" {
		t.Errorf("pods %q, want pod/nightly-1", out)
	}
}

// TestDeniedReplicaSets checks that the pods of a Deployment are found by the names of its ReplicaSets.
func TestDeniedReplicaSets(t *testing.T) {
	owned := func(set string) string {
		return "{labels: {pod-template-hash: 5d4f}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: " + set + ", uid: u, controller: true}]}"
	}
	kubeconfig := refusing(t, served(t, map[string]string{
		"/api/v1/pods": pendingYAML("web-1", owned("web-5d4f")) + pendingYAML("other-1", owned("other-5d4f")),
	}), "replicasets.apps")
	if out, err := runProgram(t, "", "explain", "deploy/web", "-o", "name", "--kubeconfig", kubeconfig); err != nil || out != "pod/web-1\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
