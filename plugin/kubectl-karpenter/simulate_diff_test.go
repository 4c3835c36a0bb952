package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/karpenter-go/karpenter/plugin/offline"
)

// diffPool is a pool of the name with a label of its nodes and a maximum of their cpu.
func diffPool(name, team string, cpu int) string {
	return fmt.Sprintf(`---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  limits: {cpu: %d}
  disruption: {consolidateAfter: 0s, budgets: [{nodes: "100%%"}]}
  template:
    metadata: {labels: {team: %s}}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
`, name, cpu, team)
}

// diffFleet is a node of pool general with a pod, and a pending pod.
const diffFleet = `
apiVersion: v1
kind: Node
metadata: {name: one, creationTimestamp: "2026-01-01T00:00:00Z", labels: {team: a, karpenter.sh/nodepool: general,
  node.kubernetes.io/instance-type: m-2x-amd64-linux, topology.kubernetes.io/zone: test-zone-a,
  karpenter.sh/capacity-type: on-demand, kubernetes.io/arch: amd64, kubernetes.io/os: linux, kubernetes.io/hostname: one}}
status: {capacity: {cpu: "2", memory: 16Gi, pods: "110"}, allocatable: {cpu: 1900m, memory: 15Gi, pods: "110"},
  conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-0, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: web, controller: true}]}
spec: {nodeName: one, containers: [{name: c, image: i, resources: {requests: {cpu: "1500m"}}}]}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: new-0}
spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]}
`

// diffOf runs the verb on the fleet with two texts of manifests.
func diffOf(t *testing.T, old, now string, arguments ...string) (string, error) {
	t.Helper()
	folder := files(t, map[string]string{"fleet.yaml": diffFleet + diffPool("general", "base", 999), "old.yaml": old, "new.yaml": now})
	return simulate(t, "", append([]string{"-f", filepath.Join(folder, "fleet.yaml"), "--diff", filepath.Join(folder, "old.yaml"),
		filepath.Join(folder, "new.yaml")}, arguments...)...)
}

// diffAnswer is diffOf as JSON.
func diffAnswer(t *testing.T, old, now string) (a offline.DiffAnswer) {
	t.Helper()
	out, err := diffOf(t, old, now, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestSimulateDiff compares manifests: the same ones, a changed template, a limit, and a pool that is gone.
func TestSimulateDiff(t *testing.T) {
	old := diffPool("general", "a", 99)
	if a := diffAnswer(t, old, old); len(a.Drifted) != 0 || a.Old.Nodes != a.New.Nodes || a.Old.PricePerHour != a.New.PricePerHour ||
		a.New.PricePerHour == 0 || a.Today.Nodes != 1 || len(a.New.Unschedulable) != 0 {
		t.Errorf("of the same manifests: %+v", a)
	}
	a := diffAnswer(t, old, diffPool("general", "b", 99))
	if len(a.Drifted) != 1 || a.Drifted[0] != (offline.DriftedNode{Node: "one", NodePool: "general", Reason: "NodePoolDrifted"}) ||
		a.Old.NodesReplaced != 0 || a.New.NodesReplaced != 1 || a.New.PodsMoved < 1 {
		t.Errorf("of a changed template: %+v", a)
	}
	if a = diffAnswer(t, old, diffPool("general", "a", 2)); len(a.Drifted) != 0 || len(a.NewlyUnschedulable()) != 1 ||
		a.NewlyUnschedulable()[0].Pod != "default/new-0" {
		t.Errorf("of a lower limit: %+v", a)
	}
	if a = diffAnswer(t, old, diffPool("other", "b", 99)); len(a.Removed) != 1 || a.Removed[0] != "one" || a.New.PodsMoved != 1 ||
		len(a.New.Unschedulable) != 0 {
		t.Errorf("of a pool in the place of another: %+v", a)
	}
	for format, want := range map[string]string{"text": "nodes replaced (drift)", "yaml": "reason: NodePoolDrifted",
		"md": "| nodes replaced (drift) | 0 | 1 | +1 |"} {
		if out, err := diffOf(t, old, diffPool("general", "b", 99), "-o", format); err != nil || !strings.Contains(out, want) {
			t.Errorf("-o %s: %v\n%s", format, err, out)
		}
	}
}

// TestPendingPodsAtRest checks that pending pods are part of the fleet at rest: --until-stable, both sides of --diff and
// the lower bound have the nodes that simulate launches for them.
func TestPendingPodsAtRest(t *testing.T) {
	folder := files(t, map[string]string{"pool.yaml": poolYAML, "web.yaml": webYAML})
	pool, web := filepath.Join(folder, "pool.yaml"), filepath.Join(folder, "web.yaml")
	read := func(answer any, arguments ...string) {
		t.Helper()
		out, err := simulate(t, "", append(arguments, "-o", "json")...)
		if err == nil {
			err = json.Unmarshal([]byte(out), answer)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var launched offline.LaunchAnswer
	read(&launched, "-f", pool, "-f", web)
	price, nodes := float64(launched.PricePerHour), len(launched.Nodes)
	if price <= 0 || nodes == 0 {
		t.Fatalf("%d nodes for %v USD per hour", nodes, price)
	}
	var rest offline.DisruptAnswer
	read(&rest, "-f", pool, "-f", web, "--disrupt", "--until-stable")
	if float64(rest.After.PricePerHour) != price || rest.After.Nodes != nodes || rest.Before.Nodes != 0 || len(rest.Steps) != 1 ||
		rest.Steps[0].Reason != "Provisioning" || rest.LowerBoundPerHour <= 0 || rest.LowerBoundPerHour > price {
		t.Errorf("at rest: %+v, simulate launches %d nodes for %v USD per hour", rest, nodes, price)
	}
	var diff offline.DiffAnswer
	read(&diff, "-f", web, "--diff", pool, pool)
	for side, at := range map[string]offline.AtRest{"old": diff.Old, "new": diff.New} {
		if at.PricePerHour != price || at.FreshPerHour != price || at.Nodes != nodes {
			t.Errorf("%s: %+v, simulate launches %d nodes for %v USD per hour", side, at, nodes, price)
		}
	}
}

// TestSimulateDiffFails checks exit by unschedulable pods, manifests that the API server would refuse, and usage.
func TestSimulateDiffFails(t *testing.T) {
	old := diffPool("general", "a", 99)
	_, err := diffOf(t, old, diffPool("general", "a", 2), "--fail-on-unschedulable")
	if err == nil || !strings.Contains(err.Error(), "1 pod unschedulable with the new objects only") {
		t.Errorf("of a lower limit: %v", err)
	}
	if _, err := diffOf(t, old, old, "--fail-on-unschedulable"); err != nil {
		t.Errorf("of the same manifests: %v", err)
	}
	refused := strings.Replace(old, "operator: In", "operator: Among", 1)
	if out, err := diffOf(t, old, refused); err == nil || !strings.Contains(err.Error(), "operator") || out != "" {
		t.Errorf("of a pool that is refused: %v\n%s", err, out)
	}
	for arguments, want := range map[string]string{
		"--diff": "0 files or folders to compare", "--diff a": "1 files", "--diff a b c": "3 files", "-o markdown -f a": "0 files",
		"--diff a b --disrupt": "no --disrupt", "--diff a b --capture c": "no --capture", "--diff a b -o html": "--output is",
		"a b":                              "argument",
		"--diff missing.yaml missing.yaml": "missing.yaml",
	} {
		if _, err := simulate(t, "", strings.Fields(arguments)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", arguments, err, want)
		}
	}
}

// counted returns the kubeconfig of a proxy in front of a cluster that counts the lists of pods.
func counted(t *testing.T, kubeconfig string, lists *atomic.Int32) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Clusters["c"].Server)
	if err != nil {
		t.Fatal(err)
	}
	to := httputil.NewSingleHostReverseProxy(server)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) == "pods" && r.URL.Query().Get("continue") == "" {
			lists.Add(1)
		}
		to.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	config.Clusters["c"].Server = proxy.URL
	file := filepath.Join(t.TempDir(), "counted")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSimulateDiffLive compares a cluster with one more pool. The cluster is read once.
func TestSimulateDiffLive(t *testing.T) {
	var lists atomic.Int32
	folder := files(t, map[string]string{"types.json": shopJSON, "new.yaml": diffPool("more", "b", 99)})
	out, err := simulate(t, "", "--kubeconfig", counted(t, shop(t), &lists), "--instance-types", filepath.Join(folder, "types.json"), "--live",
		"-f", filepath.Join(folder, "new.yaml"), "-o", "markdown")
	if err != nil || !strings.Contains(out, "### Effect on the nodes") || lists.Load() != 1 {
		t.Errorf("%v, %d lists of pods\n%s", err, lists.Load(), out)
	}
}

// TestSimulateDiffWarns: a change after which a pool can launch nothing, and a comparison without a fleet, are no saving.
// The answer begins with the sentence, and the flag makes it a failure.
func TestSimulateDiffWarns(t *testing.T) {
	good := diffPool("general", "base", 999)
	typo := strings.Replace(good, "requirements: [", "requirements: [{key: kubernetes.io/arch, operator: In, values: [amd46]}, ", 1)
	useless := "NodePool general can launch nothing"
	for name, c := range map[string]struct {
		old, now string
		flags    []string
		first    string
		fails    bool
	}{
		"typo":            {good, typo, nil, useless + ": ", false},
		"typo, flag":      {good, typo, []string{"--fail-on-useless-pool"}, useless + ": ", true},
		"as before, flag": {typo, typo, []string{"--fail-on-useless-pool"}, useless + ", as before: ", false},
		"markdown":        {good, typo, []string{"-o", "markdown"}, "### Effect on the nodes\n\n**" + useless + ": ", false},
		"good, flag":      {good, good, []string{"--fail-on-useless-pool"}, "AT REST", false},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := diffOf(t, c.old, c.now, c.flags...)
			if !strings.HasPrefix(text, c.first) || (err != nil) != c.fails {
				t.Errorf("error %v, want one: %t; the answer begins %q, want %q", err, c.fails, text[:min(len(text), 200)], c.first)
			}
			if strings.HasPrefix(text, useless) && !strings.Contains(text, "did you mean amd64?") {
				t.Errorf("the answer does not name the nearest value:\n%s", text)
			}
		})
	}
	folder := files(t, map[string]string{"old.yaml": good, "new.yaml": diffPool("general", "other", 999)})
	text, err := simulate(t, "", "--diff", filepath.Join(folder, "old.yaml"), filepath.Join(folder, "new.yaml"))
	if err != nil || !strings.HasPrefix(text, "There is no fleet: add --live") {
		t.Errorf("without a fleet: %v\n%s", err, text)
	}
}
