package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/plugin/offline"
)

// claimYAML returns the initialized claim of a node of nodeYAML, with annotations and further conditions.
func claimYAML(name, annotations, conditions string) string {
	ready := func(kind string) string {
		return fmt.Sprintf(`{type: %s, status: "True", reason: %[1]s, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}, `, kind)
	}
	return fmt.Sprintf(`metadata: {name: claim-%[1]s, uid: uid-claim-%[1]s, creationTimestamp: "2026-01-01T00:00:00Z", labels: {karpenter.sh/nodepool: default}, annotations: {%[2]s}}
spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}, requirements: [], expireAfter: Never}
status: {providerID: "test:///%[1]s", nodeName: %[1]s, conditions: [%[3]s%[4]s]}
---
`, name, annotations, ready("Launched")+ready("Registered")+ready("Initialized"), conditions)
}

// disruptedCluster is a pool with a budget of one node at a time, and nodes that are kept for every kind of reason.
// If leaving is set, one of them has a command in progress.
func disruptedCluster(t *testing.T, leaving bool) string {
	t.Helper()
	command := plan.NewCommand(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), plan.Underutilized, "single",
		[]plan.Candidate{{Claim: "claim-taken", ClaimUID: "uid-claim-taken", Node: "taken", NodeUID: "uid-taken", Pool: "default"}})
	command.Phase, command.Worth = plan.Launching, plan.Worth{Saving: 250_000_000, Pods: 1}
	annotation := ""
	if leaving {
		annotation = fmt.Sprintf("karpenter-go.github.io/command: %q", command.Encode())
	}
	node := func(name, kind string) string {
		text := strings.TrimPrefix(nodeYAML(name, kind), "---\napiVersion: v1\nkind: Node\n")
		return strings.Replace(text, "status:\n", fmt.Sprintf("spec: {providerID: \"test:///%s\"}\nstatus:\n", name), 1) + "---\n"
	}
	pod := func(name, on, annotations string) string {
		text := strings.TrimPrefix(podYAML(name, on, "500m", annotations), "---\napiVersion: v1\nkind: Pod\n")
		text = strings.Replace(text, "phase: Running", `phase: Running, conditions: [{type: Ready, status: "True"}]`, 1)
		return strings.Replace(text, "  labels:", fmt.Sprintf("  namespace: default\n  uid: uid-%s\n  labels:", name), 1) + "---\n"
	}
	const drifted = `{type: Drifted, status: "True", reason: NodePoolDrifted, message: "", lastTransitionTime: "2026-02-01T00:00:00Z"}`
	return served(t, map[string]string{
		"/apis/karpenter.sh/v1/nodepools": `metadata: {name: default, uid: pool-uid}
spec:
  disruption:
    consolidateAfter: 0s
    consolidationPolicy: WhenEmptyOrUnderutilized
    budgets: [{nodes: "1"}, {nodes: "0", reasons: [Empty], schedule: "0 0 29 2 *", duration: 10m}, {nodes: "7", reasons: [Underutilized], schedule: "0 0 1 3 *", duration: 1s}]
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
status: {conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}
`,
		"/apis/karpenter.sh/v1/nodeclaims": claimYAML("big", "", "") + claimYAML("held", "", "") + claimYAML("guarded",
			"", drifted) + claimYAML("taken", annotation, ""),
		"/api/v1/nodes": node("big", "large") + node("held", "large") + node("guarded", "small") + node("taken", "large") +
			"metadata: {name: other, uid: uid-other, labels: {kubernetes.io/hostname: other}}\nstatus: {capacity: {cpu: 1, memory: 4Gi, pods: 20}, allocatable: {cpu: 1, memory: 4Gi, pods: 20}}\n",
		"/api/v1/pods": pod("web", "big", "") + pod("db", "held", `karpenter.sh/do-not-disrupt: "true"`) + pod("quorum",
			"guarded", "") + pod("app", "taken", `karpenter.sh/do-not-disrupt: "true"`),
		"/apis/policy/v1/poddisruptionbudgets": `metadata: {name: quorum, namespace: default, uid: pdb}
spec: {minAvailable: 1, selector: {matchLabels: {app: quorum}}}
status: {disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1}
`,
		"/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default": `{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}`,
	})
}

func TestExplainNode(t *testing.T) {
	types := filepath.Join(files(t, map[string]string{"types.json": typesJSON}), "types.json")
	busy, quiet := disruptedCluster(t, true), disruptedCluster(t, false)
	large := func(name string) string {
		return fmt.Sprintf("node %[1]s (claim claim-%[1]s) of pool default: large in a as on-demand, 0.5000 USD per hour; 368.65 USD a month including per-node overhead\n", name)
	}
	const moves = "  has 1 pod to move, at a price of 0.0010 USD\n"
	held := large("held") + "  is kept\n" + moves + `  Underutilized: node held is protected by the annotation karpenter.sh/do-not-disrupt of pod default/db
  also keeps it: the pool's budget allows at most 1 node at once
  removing only this node: saves 0.5050 USD per hour, 368.65 a month; its pods fit on other nodes
`
	march := time.Date(time.Now().UTC().Year(), 3, 1, 0, 0, 0, 0, time.UTC)
	if !march.After(time.Now()) {
		march = march.AddDate(1, 0, 0)
	}
	for _, c := range []struct{ kubeconfig, name, outcome, code, text string }{
		{busy, "big", "Kept", "BudgetExhausted", large("big") + "  is kept\n" + moves + "  Underutilized: the pool's budget allows at most 1 node at once\n    may change at " +
			march.Format(time.RFC3339) + "\n  removing only this node: saves 0.5050 USD per hour, 368.65 a month; its pods fit on other nodes\n"},
		{quiet, "big", "Proposed", "", large("big") + "  would be removed now: Underutilized, remove big, launch nothing, 1 pod moved, saves 0.5050 USD per hour\n" + moves},
		{busy, "held", "Kept", "NodeProtected", held},
		{busy, "claim-held", "Kept", "NodeProtected", held},
		{busy, "guarded", "Kept", "PDBBlocks", `node guarded (claim claim-guarded) of pool default: small in a as on-demand, 0.1000 USD per hour; 76.65 USD a month including per-node overhead
  is kept
  has 1 pod to move, at a price of 0.0010 USD
  Drifted: PodDisruptionBudget default/quorum allows no eviction of pod default/quorum on node guarded now
  Underutilized: PodDisruptionBudget default/quorum allows no eviction of pod default/quorum on node guarded now
  also keeps it: the pool's budget allows at most 1 node at once
  has drifted: NodePoolDrifted
  removing only this node: saves 0.1050 USD per hour, 76.65 a month; its pods fit on other nodes
`},
		{busy, "taken", "UnderWay", "", large("taken") + "  is being removed: command in phase launching: Underutilized, remove taken, launch nothing, 1 pod moved, saves 0.2500 USD per hour\n" + moves},
		{busy, "other", "Foreign", "", "node other has no NodeClaim and is not managed\n"},
	} {
		arguments := []string{"explain", "node", c.name, "--kubeconfig", c.kubeconfig, "--instance-types", types}
		out, err := runProgram(t, "", arguments...)
		if err != nil || out != c.text {
			t.Errorf("%s: %v\ngot  %s\nwant %s", c.name, err, out, c.text)
		}
		var outcome offline.NodeOutcome
		out, err = runProgram(t, "", append(arguments, "-o", "json")...)
		switch {
		case err != nil:
			t.Errorf("%s: unexpected error: %v", c.name, err)
		case json.Unmarshal([]byte(out), &outcome) != nil:
			t.Errorf("%s: no JSON of a %T:\n%s", c.name, outcome, out)
		case outcome.Outcome != c.outcome:
			t.Errorf("%s: outcome.Outcome is %v, want %v", c.name, outcome.Outcome, c.outcome)
		}
		if c.code != "" {
			switch {
			case len(outcome.Reasons) == 0:
				t.Errorf("%s: no reasons, want %s", c.name, c.code)
			case outcome.Reasons[0].Code != c.code:
				t.Errorf("%s: the first reason is %+v, want %s", c.name, outcome.Reasons[0], c.code)
			}
		}
	}
}

func TestExplainPool(t *testing.T) {
	march := time.Date(time.Now().UTC().Year(), 3, 1, 0, 0, 0, 0, time.UTC)
	if !march.After(time.Now()) {
		march = march.AddDate(1, 0, 0)
	}
	types := filepath.Join(files(t, map[string]string{"types.json": typesJSON}), "types.json")
	for name, c := range map[string]struct {
		leaving bool
		want    []string
	}{
		"a command under way": {true, []string{
			"pool default: 4 nodes for 1.6000 USD per hour, 1.6200 including per-node overhead\n  lower bound 1.1000 USD per hour, 1.1150 including per-node overhead, with protected nodes kept",
			"budgets allow now: Empty 0 more of 1, Underutilized 0 more of 1, Drifted 0 more of 1, Expired 0 more of 1; 1 node not ready, being deleted or in a command\n",
			"  up to date: 3 of 4 nodes\n    1 node drifted, NodePoolDrifted: guarded, the first at 2026-02-01T00:00:00Z\n",
			"  1 node being removed: Underutilized, phase launching\n",
			"  1 node is kept (Underutilized), 0.5050 USD per hour: the pool's budget allows at most 1 node at once\n    may change at " + march.Format(time.RFC3339) + "\n",
			"  1 node is kept (Drifted), 0.1050 USD per hour: PodDisruptionBudget default/quorum allows no eviction",
		}},
		"nothing under way": {false, []string{"Underutilized 1 more of 1", "  1 step would start now: saves 0.5050 USD per hour\n",
			"  at rest: 3 nodes for 1.1000 USD per hour, 1.1150 including per-node overhead, after 1 step (kubectl",
			"2 nodes are kept (Underutilized), 1.0100 USD per hour: for example, node held is protected"}},
	} {
		arguments := []string{"explain", "pool", "default", "--kubeconfig", disruptedCluster(t, c.leaving), "--instance-types", types}
		out, err := runProgram(t, "", arguments...)
		for _, want := range c.want {
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%s: %v, no %q in\n%s", name, err, want, out)
			}
		}
		var outcome offline.PoolOutcome
		out, err = runProgram(t, "", append(arguments, "-o", "json")...)
		switch {
		case err != nil:
			t.Errorf("%s: unexpected error: %v", name, err)
		case json.Unmarshal([]byte(out), &outcome) != nil:
			t.Errorf("%s: no JSON of a %T:\n%s", name, outcome, out)
		case outcome.Nodes != 4:
			t.Errorf("%s: outcome.Nodes is %v, want 4", name, outcome.Nodes)
		case outcome.Changes == nil:
			t.Errorf("%s: outcome.Changes is nil", name)
		case len(outcome.Budgets) != 4:
			t.Errorf("%s: %d budgets, want 4: %+v", name, len(outcome.Budgets), outcome.Budgets)
		case outcome.Rollout.Current != 3:
			t.Errorf("%s: outcome.Rollout.Current is %v, want 3", name, outcome.Rollout.Current)
		}
		// simulate makes the same steps, from the same cluster.
		simulated, err := runProgram(t, "", append([]string{"simulate", "--live", "--disrupt", "--until-stable", "-o", "json"}, arguments[3:7]...)...)
		var until offline.DisruptAnswer
		if err != nil || json.Unmarshal([]byte(simulated), &until) != nil {
			t.Fatalf("%s: simulate: %v:\n%s", name, err, simulated)
		}
		if rest := outcome.AtRest; rest == nil || rest.FleetFigures != until.After || rest.Steps != len(until.Steps) || rest.Partial {
			t.Errorf("%s: at rest %+v, but simulate ends with %+v after %d steps", name, rest, until.After, len(until.Steps))
		}
		if outcome.LowerBoundCostPerHour > float64(outcome.CostPerHour-outcome.Saving)+1e-9 {
			t.Errorf("%s: the bound %v is above %v less %v", name, outcome.LowerBoundCostPerHour, outcome.CostPerHour, outcome.Saving)
		}
	}
}

// TestExplainAll checks that nodes and pools are explained without a name, and that a namespace is ignored.
func TestExplainAll(t *testing.T) {
	kubeconfig := disruptedCluster(t, false)
	types := filepath.Join(files(t, map[string]string{"types.json": typesJSON}), "types.json")
	for arguments, want := range map[string][]string{
		"pools -n shop":              {"pool default: 4 nodes for 1.6000 USD per hour", "budgets allow now"},
		"nodes -n shop":              {"STEP  REASON", "KEPT 2 nodes such as held", "1 step: 4 nodes become 3"},
		"node/held -n shop":          {"node held (claim claim-held) of pool default"},
		"nodes -o name":              {"node/big\nnode/guarded\nnode/held\n"},
		"pools -o name":              {"nodepool.karpenter.sh/default\n"},
		"pools -o json":              {`"pools": [`, `"nodePool": "default"`},
		"pool default --namespace=x": {"pool default: 4 nodes"},
	} {
		out, err := runProgram(t, "", append(append([]string{"explain"}, strings.Fields(arguments)...), "--kubeconfig",
			kubeconfig, "--instance-types", types)...)
		for _, part := range want {
			if err != nil || !strings.Contains(out, part) {
				t.Errorf("%s: %v, no %q in\n%s", arguments, err, part, out)
			}
		}
	}
}

// TestExplainWithoutPool checks that a node whose NodePool was the only one and is gone has the price that its
// provider asks for its machine.
func TestExplainWithoutPool(t *testing.T) {
	node := strings.TrimPrefix(nodeYAML("left", "large"), "---\napiVersion: v1\nkind: Node\n")
	kubeconfig := served(t, map[string]string{
		"/apis/karpenter.sh/v1/nodeclaims": claimYAML("left", "", ""),
		"/api/v1/nodes":                    strings.Replace(node, "status:\n", "spec: {providerID: \"test:///left\"}\nstatus:\n", 1),
		"/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default": `{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
			"metadata": {"name": "default"}}`,
	})
	types := filepath.Join(files(t, map[string]string{"types.json": typesJSON}), "types.json")
	for arguments, want := range map[string]string{
		"explain node left":         "of pool default, which does not exist: large in a as on-demand, 0.5000 USD per hour; ",
		"explain pool default":      "there is no pool default; 1 node of it: left",
		"top --once":                "\ndefault      1     0  gone   -      0.5000 ",
		"simulate --live --disrupt": "price 0.5000 USD per hour becomes 0.5000",
	} {
		out, err := runProgram(t, "", append(strings.Fields(arguments), "--kubeconfig", kubeconfig, "--instance-types", types)...)
		if err != nil {
			out += err.Error()
		}
		if !strings.Contains(out, want) {
			t.Errorf("%s: no %q in\n%s", arguments, want, out)
		}
	}
}

func TestExplainMissing(t *testing.T) {
	kubeconfig := disruptedCluster(t, false)
	for want, arguments := range map[string][]string{
		"there is no node none":                  {"node", "none", "--kubeconfig", kubeconfig},
		"there is no pool none":                  {"pool", "none", "--kubeconfig", kubeconfig},
		"the name of the node, or none, for all": {"node", "a", "b"},
		"the name of the pool":                   {"pool", "a", "b"},
		"--payback is -1s":                       {"node", "big", "--kubeconfig", kubeconfig, "--payback", "-1s"},
		`--output is "table", want`:              {"pool", "default", "--kubeconfig", kubeconfig, "-o", "table"},
	} {
		if _, err := runProgram(t, "", append([]string{"explain"}, arguments...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", arguments, err, want)
		}
	}
}

func TestExplainUnreadyPool(t *testing.T) {
	kubeconfig := served(t, map[string]string{"/apis/karpenter.sh/v1/nodepools": `metadata: {name: default, uid: pool-uid}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: gone}
      requirements: []
status:
  conditions:
  - {type: NodeClassReady, status: "False", reason: NodeClassNotFound, message: there is no class gone, lastTransitionTime: "2026-01-01T00:00:00Z"}
  - {type: Ready, status: "False", reason: UnhealthyDependents, message: NodeClassReady=False, lastTransitionTime: "2026-01-01T00:00:00Z"}
`})
	out, err := runProgram(t, "", "explain", "pool", "default", "--kubeconfig", kubeconfig)
	if want := "  launches nothing: status.conditions[Ready]: the pool is not ready: NodeClassReady is false: NodeClassNotFound: there is no class gone\n"; err != nil || !strings.Contains(out, want) {
		t.Errorf("%v, no %q in\n%s", err, want, out)
	}
}

// TestExplainWithoutCRDs checks that a cluster without the definitions is distinguished from one that cannot be read.
func TestExplainWithoutCRDs(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\nusers: [{name: u}]\n", server.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{{"explain", "pool", "p"}, {"simulate", "--live"}} {
		_, err := runProgram(t, "", append(arguments, "--kubeconfig", file)...)
		if err == nil || !strings.Contains(err.Error(), "does not serve karpenter.sh/v1; install the CRDs first") {
			t.Errorf("%v: got %v, want a hint at the CRDs", arguments, err)
		}
	}
}
