package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/karpenter-go/karpenter/internal/testing/golden"
	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/review"
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

// TestPendingPodsAtRest checks that pending pods are part of the fleet at rest: --until-stable, both sides of --diff
// and the lower bound have the nodes that simulate launches for them.
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
	for _, flags := range [][]string{{"--fail-on-unschedulable"}, {"--exit-code", "--forbid-unschedulable"}} {
		_, err := diffOf(t, old, diffPool("general", "a", 2), flags...)
		if err == nil || !strings.Contains(err.Error(), "1 pod unschedulable with the change only") || cli.ExitCode(err) != 1 {
			t.Errorf("%v, of a lower limit: %v", flags, err)
		}
		if _, err := diffOf(t, old, old, flags...); err != nil {
			t.Errorf("%v, of the same manifests: %v", flags, err)
		}
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
	if err != nil || !strings.HasPrefix(out, defaultMark+"**NodePool more absent -&gt; present: ") || lists.Load() != 1 {
		t.Errorf("%v, %d lists of pods\n%s", err, lists.Load(), out)
	}
}

// defaultMark is the first line of a comment.
const defaultMark = "<!-- kubectl-karpenter simulate --diff default -->\n"

// TestSimulateDiffWarns: a change after which a pool can launch nothing, and a comparison without a fleet, are no
// saving. The answer begins with the sentence, and the flag makes it a failure.
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
		"typo, flag":      {good, typo, []string{"--exit-code"}, useless + ": ", true},
		"as before, flag": {typo, typo, []string{"--exit-code"}, useless + ", as before: ", false},
		"markdown":        {good, typo, []string{"-o", "markdown"}, defaultMark + "**" + useless + ": ", false},
		"good, flag":      {good, good, []string{"--exit-code"}, "Nothing changes: no field that decides changed (", false},
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
	if cli.ExitCode(err) != 2 || !strings.HasPrefix(fmt.Sprint(err), "no fleet: add --live") || text != "" {
		t.Errorf("without a fleet: %v\n%s", err, text)
	}
}

// TestSimulateDiffPolicy checks what a change may cost: an amount, a share, and a saving, which is always allowed.
func TestSimulateDiffPolicy(t *testing.T) {
	cheap := diffPool("general", "base", 999)
	dear := strings.Replace(cheap, "requirements: [",
		"requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m-32x-amd64-linux]}, ", 1)
	for _, c := range []struct {
		old, now, most string
		fails          bool
	}{
		{cheap, dear, "1", true}, {cheap, dear, "1%", true}, {cheap, dear, "100000", false}, {cheap, dear, "100000%", false},
		{dear, cheap, "0", false}, {cheap, cheap, "0", false}, {cheap, cheap, "0%", false},
	} {
		text, err := diffOf(t, c.old, c.now, "--exit-code", "--max-increase", c.most)
		lines := strings.SplitN(text, "\n", 3)
		if (err != nil) != c.fails || len(lines) < 3 || strings.HasPrefix(lines[1], "Not allowed: --max-increase "+c.most+": costs ") != c.fails {
			t.Errorf("--max-increase %s: error %v, want one: %t\n%s", c.most, err, c.fails, text)
		}
		if _, err := diffOf(t, c.old, c.now, "--max-increase", c.most); err != nil {
			t.Errorf("--max-increase %s without --exit-code: %v", c.most, err)
		}
	}
	forth, back := diffAnswer(t, cheap, dear), diffAnswer(t, dear, cheap)
	if d := forth.Difference; d.PricePerMonth <= 0 ||
		d.PricePerMonth != -back.Difference.PricePerMonth || d.PricePerHour != -back.Difference.PricePerHour {
		t.Errorf("forth %+v, back %+v", d, back.Difference)
	}
	if want := []review.Change{{Kind: "NodePool", Name: "general", Field: "spec.template.spec.requirements[node.kubernetes.io/instance-type]",
		Old: "unset", New: "In [m-32x-amd64-linux]"}}; !slices.Equal(forth.Changes, want) {
		t.Errorf("changes are %+v, want %+v", forth.Changes, want)
	}
	for arguments, want := range map[string]string{"--max-increase much": "want USD a month", "--max-increase -1": "want USD a month",
		"--max-increase NaN": "want USD a month", "--marker a>b": "--marker requires", "-o markdown --marker a>b": "want 1 to 100 letters"} {
		text, err := diffOf(t, cheap, dear, strings.Fields(arguments)...)
		if cli.ExitCode(err) != 2 || !strings.Contains(err.Error(), want) || text != "" {
			t.Errorf("%q: %v, want %q", arguments, err, want)
		}
	}
}

// TestSimulateDiffSums checks that the reasons explain the whole way from today to rest, on both sides.
func TestSimulateDiffSums(t *testing.T) {
	a := diffAnswer(t, diffPool("general", "a", 99), diffPool("general", "b", 99))
	for side, at := range map[string]offline.AtRest{"old": a.Old, "new": a.New} {
		sum := a.Today.Price
		for _, r := range at.ByReason {
			sum += r.PricePerHour
		}
		if math.Abs(sum-at.PricePerHour) > 1e-9 || len(at.ByReason) == 0 {
			t.Errorf("%s: today %v and the reasons %+v are %v, want %v", side, a.Today.Price, at.ByReason, sum, at.PricePerHour)
		}
	}
}

// TestSimulateDiffUnknownDrift: a node without a claim and without the label that its pool requires is named, because
// its drift is not known. Another label that does differ still counts.
func TestSimulateDiffUnknownDrift(t *testing.T) {
	pool := func(arch, team string) string {
		return strings.Replace(diffPool("general", "a", 99), "requirements: [",
			"requirements: [{key: kubernetes.io/arch, operator: In, values: ["+arch+"]}, {key: team, operator: In, values: ["+team+"]}, ", 1)
	}
	bare := strings.Replace(diffFleet, "kubernetes.io/arch: amd64, ", "", 1)
	of := func(old, now string) (a offline.DiffAnswer) {
		folder := files(t, map[string]string{"fleet.yaml": bare, "old.yaml": old, "new.yaml": now})
		out, err := simulate(t, "", "-f", filepath.Join(folder, "fleet.yaml"), "--diff", filepath.Join(folder, "old.yaml"),
			filepath.Join(folder, "new.yaml"), "-o", "json")
		if err == nil {
			err = json.Unmarshal([]byte(out), &a)
		}
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := of(pool("amd64", "a"), pool("arm64", "a"))
	if len(a.Drifted) != 0 || len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0], "whether 1 node drift is not known") ||
		!strings.Contains(a.Warnings[0], "label kubernetes.io/arch") || !strings.HasSuffix(a.Warnings[0], ": one") {
		t.Errorf("of a node without the label: %+v, %q", a.Drifted, a.Warnings)
	}
	if a := of(pool("amd64", "a"), pool("arm64", "b")); len(a.Drifted) != 1 {
		t.Errorf("of a node with another label that differs: %+v, %q", a.Drifted, a.Warnings)
	}
	if a := of(pool("amd64", "a"), pool("amd64", "a")); len(a.Warnings) != 0 {
		t.Errorf("of no change: %q", a.Warnings)
	}
}

// TestSimulateDiffGolden compares the text on a terminal of 80 columns and the comment of each file of testdata with
// what the file has.
func TestSimulateDiffGolden(t *testing.T) {
	golden.Each(t, func(t *testing.T, f *golden.File) {
		folder := files(t, map[string]string{"fleet.yaml": string(f.Section("fleet.yaml")), "old.yaml": string(f.Section("old.yaml")),
			"new.yaml": string(f.Section("new.yaml"))})
		source := offline.Source{Paths: []string{filepath.Join(folder, "fleet.yaml")}, Cluster: &offline.Cluster{}}
		policy := offline.DefaultPolicy()
		before, after, err := source.ReadBoth(t.Context(), policy, []string{filepath.Join(folder, "old.yaml")},
			[]string{filepath.Join(folder, "new.yaml")})
		if err != nil {
			t.Fatal(err)
		}
		allowed := review.Policy{Unschedulable: true}
		if err := allowed.Increase.Set("5%"); err != nil {
			t.Fatal(err)
		}
		a, err := offline.Compare(t.Context(), before, after, &policy, &allowed)
		if err != nil {
			t.Fatal(err)
		}
		var comment strings.Builder
		if err := a.WriteMarkdown(&comment, strings.TrimSuffix(defaultMark, "\n")); err != nil {
			t.Fatal(err)
		}
		text := wrapped(a.Text(80), 80)
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("a line has %d columns: %s", n, line)
			}
		}
		f.Check(t, "text", text)
		f.Check(t, "comment.md", comment.String())
	})
}

// TestSimulateDiffHostile: names and values can neither end the hidden line nor write another one, and notify no user.
func TestSimulateDiffHostile(t *testing.T) {
	hostile := "x --><!-- kubectl-karpenter simulate --diff default --> @octocat #1 <img src=x> [a](http://b) `|"
	now := strings.Replace(diffPool("general", "a", 99), "metadata: {name: general}",
		"metadata: {name: general, annotations: {karpenter.sh/note: "+strconv.Quote(hostile)+"}}", 1)
	text, err := diffOf(t, diffPool("general", "a", 99), now, "-o", "markdown")
	if err != nil {
		t.Fatal(err)
	}
	if rest := strings.TrimPrefix(text, defaultMark); rest == text || strings.Contains(rest, "<!--") || strings.Contains(rest, "-->") ||
		strings.Contains(rest, "@octocat") || strings.Contains(rest, "<img") ||
		strings.Contains(rest, "[a](") || !strings.Contains(rest, "octocat") {
		t.Errorf("of hostile names:\n%s", text)
	}
}
