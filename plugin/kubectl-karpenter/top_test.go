package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/internal/testing/golden"
	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/top"
)

const shopJSON = `{"instanceTypes": [
 {"name": "m.large", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "4", "memory": "16Gi", "pods": "58"}, "overhead": {"cpu": "100m", "memory": "1Gi"},
  "offerings": [{"zone": "zone-a", "capacityType": "spot", "price": 0.06, "available": true}, {"zone": "zone-a", "capacityType": "on-demand", "price": 0.2, "available": true},
   {"zone": "zone-b", "capacityType": "spot", "price": 0.07, "available": true}, {"zone": "zone-b", "capacityType": "on-demand", "price": 0.2, "available": true}]},
 {"name": "c.xlarge", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "8", "memory": "16Gi", "pods": "58"}, "overhead": {"cpu": "100m", "memory": "1Gi"},
  "offerings": [{"zone": "zone-a", "capacityType": "spot", "price": 0.11, "available": true}, {"zone": "zone-b", "capacityType": "on-demand", "price": 0.34, "available": true}]}]}`

// shop is a cluster with four nodes of a pool, one node being launched, one node without a pool, and pending pods.
func shop(t *testing.T) (kubeconfig string) {
	t.Helper()
	return shopLaunching(t, "c.xlarge")
}

// shopLaunching is the cluster of shop with these types for the claim that is being launched.
func shopLaunching(t *testing.T, types string) (kubeconfig string) {
	t.Helper()
	node := func(name, pool, kind, zone, capacityType, status string) string {
		labels := fmt.Sprintf("kubernetes.io/hostname: %s, node.kubernetes.io/instance-type: %s, topology.kubernetes.io/zone: %s, karpenter.sh/capacity-type: %s", name, kind, zone, capacityType)
		if pool != "" {
			labels += ", karpenter.sh/nodepool: " + pool + ", karpenter.sh/initialized: \"true\", karpenter.sh/registered: \"true\""
		}
		cpu := map[string]string{"m.large": "3900m", "c.xlarge": "7900m"}[kind]
		return fmt.Sprintf(`metadata: {name: %[1]s, uid: uid-%[1]s, creationTimestamp: "2026-01-01T00:00:00Z", labels: {%[2]s}}
spec: {providerID: "test:///%[1]s"}
status: {capacity: {cpu: "8", memory: 16Gi, pods: "58"}, allocatable: {cpu: %[3]s, memory: 15Gi, pods: "58"}, conditions: [{type: Ready, status: "%[4]s"}]}
---
`, name, labels, cpu, status)
	}
	pod := func(name, on, cpu, memory, more string) string {
		status := `phase: Running, conditions: [{type: Ready, status: "True"}]`
		if on == "" {
			status = `phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]`
		}
		return fmt.Sprintf(`metadata: {name: %[1]s, namespace: shop, uid: uid-%[1]s, creationTimestamp: "2026-01-01T01:00:00Z", ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: r, controller: true}]}
spec: {nodeName: %[2]q, %[5]s containers: [{name: c, image: i, resources: {requests: {cpu: %[3]s, memory: %[4]s}}}]}
status: {%[6]s}
---
`, name, on, cpu, memory, more, status)
	}
	claim := func(name string) string {
		return strings.Replace(claimYAML(name, "", ""), "requirements: []",
			"requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]", 1)
	}
	return served(t, map[string]string{
		"/apis/karpenter.sh/v1/nodepools": `metadata: {name: default, uid: pool-uid}
spec:
  limits: {cpu: "100"}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand, spot]}]
status: {conditions: [{type: Ready, status: "True", reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}
`,
		"/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default": `{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}`,
		"/apis/karpenter.sh/v1/nodeclaims": claim("default-a") + claim("default-b") + claim("default-c") +
			strings.Replace(strings.Replace(claim("default-d"), "metadata: {",
				"metadata: {deletionTimestamp: \"2026-01-01T05:00:00Z\", finalizers: [karpenter.sh/termination], ", 1),
				"requirements: []", "requirements: []", 1) +
			`metadata: {name: default-e, uid: uid-default-e, creationTimestamp: "2026-01-01T05:59:30Z", labels: {karpenter.sh/nodepool: default}, annotations: {karpenter-go.github.io/pods: uid-orders-0}}
spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}, requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [` + types + `]}, {key: karpenter.sh/capacity-type, operator: In, values: [spot]}], resources: {requests: {cpu: 6}}}
`,
		"/api/v1/nodes": node("default-a", "default", "m.large", "zone-a", "spot", "True") + node("default-b", "default",
			"c.xlarge", "zone-b", "on-demand", "True") +
			node("default-c", "default", "m.large", "zone-b", "spot", "False") + node("default-d", "default", "m.large",
			"zone-a", "on-demand", "True") +
			strings.Replace(node("system-1", "", "m.large", "zone-a", "on-demand", "True"), "karpenter.sh/capacity-type: on-demand", "a: b", 1),
		"/api/v1/pods": pod("web-0", "default-a", "1500m", "4Gi", "") + pod("web-1", "default-a", "1500m", "4Gi",
			"") + pod("cache-0", "default-b", "1", "12Gi", "") +
			pod("batch-0", "default-c", "500m", "1Gi", "") + pod("dns", "system-1", "200m", "256Mi", "") +
			pod("orders-0", "", "6", "8Gi", "") + pod("search-0", "", "3", "6Gi", "") +
			pod("train-0", "", "16", "64Gi", "") + pod("pinned-0", "", "100m", "128Mi", "nodeSelector: {topology.kubernetes.io/zone: zone-z},"),
	})
}

// atSix is six hours after the nodes of shop were created.
func atSix() time.Time { return time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC) }

func runTop(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	types := filepath.Join(files(t, map[string]string{"types.json": shopJSON}), "types.json")
	command := topCommandAt(atSix)
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SilenceUsage, command.SilenceErrors = true, true
	command.SetArgs(append([]string{"--kubeconfig", shop(t), "--instance-types", types}, arguments...))
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

// TestTopOnce checks that the page in docs/top.md contains the output of the verb.
func TestTopOnce(t *testing.T) {
	out, err := runTop(t, "--once")
	if err != nil {
		t.Fatal(err)
	}
	held(t, "../../docs/top.md", "<!-- top --once -->\n```text\n", "```\n<!-- end -->", out)
}

// held checks that a page has a text between two marks, or writes it there with -update.
func held(t *testing.T, page, begin, end, want string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	shown, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no section %q", page, begin)
	}
	if *golden.Update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if shown != want {
		t.Errorf("%s shows (make reference)\n%s\nthe verb prints\n%s", page, shown, want)
	}
}

// TestTopExplains checks what enter shows about a node, a claim without a node, a pending pod and a pool.
func TestTopExplains(t *testing.T) {
	v := view{now: atSix}
	v.addFlags(pflag.NewFlagSet("top", pflag.ContinueOnError))
	v.live.Kubeconfig, v.instanceTypes = shop(t), filepath.Join(files(t, map[string]string{"types.json": shopJSON}), "types.json")
	for of, want := range map[top.Subject]string{
		{Kind: "node", Name: "default-b"}:     "default-b",
		{Kind: "node", Name: "default-e"}:     "default-e",
		{Kind: "pod", Name: "shop/train-0"}:   "needs 16 of cpu",
		{Kind: "pool", Name: "default"}:       "USD per hour",
		{Kind: "node", Name: "default-bb"}:    "there is no node default-bb",
		{Kind: "pod", Name: "shop/no-such-0"}: "no-such-0",
	} {
		text, err := v.explain(t.Context(), of)
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want) {
			t.Errorf("enter on %s shows\n%s\nwant %q", of, text, want)
		}
	}
}

func TestTopJSON(t *testing.T) {
	out, err := runTop(t, "-o", "json", "--sort", "price", "--filter", "zone-a")
	if err != nil {
		t.Fatal(err)
	}
	var fleet top.Fleet
	if err := json.Unmarshal([]byte(out), &fleet); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range fleet.Nodes {
		names = append(names, n.Name+" "+n.State)
	}
	if got, want := strings.Join(names, ", "), "default-d leaving, default-a ready, system-1 ready"; got != want {
		t.Errorf("nodes of zone a by price: %s, want %s", got, want)
	}
	// The counts cover the filtered objects; the total is given beside them.
	if diff := cmp.Diff(&top.Whole{Nodes: 6, Pods: 5, PricePerHour: 0.78}, fleet.Of); diff != "" {
		t.Errorf("the whole fleet (-want +got):\n%s", diff)
	}
	switch {
	case fleet.Pods != 3:
		t.Errorf("%d pods, want 3", fleet.Pods)
	case fleet.PricePerHour != 0.26:
		t.Errorf("the nodes cost %v, want 0.26", fleet.PricePerHour)
	case fleet.LowerBoundPerHour != 0:
		t.Errorf("the lower bound is %v, want none for a part of the fleet", fleet.LowerBoundPerHour)
	case fleet.CPU <= 0 || fleet.CPU >= 1:
		t.Errorf("the used share of CPU is %v, want more than 0 and less than 1", fleet.CPU)
	}
	if out, err = runTop(t, "-o", "json"); err != nil || json.Unmarshal([]byte(out), &fleet) != nil {
		t.Errorf("got error %v, want JSON of a fleet:\n%s", err, out)
	}
	if fleet.LowerBoundPerHour <= 0 || fleet.LowerBoundPerHour > float64(fleet.PricePerHour) {
		t.Errorf("the lower bound is %v, want more than 0 and at most the price of %v", fleet.LowerBoundPerHour, fleet.PricePerHour)
	}
	if out, err = runTop(t, "--once", "--filter", "zone-a"); err != nil {
		t.Errorf("unexpected error: %v", err)
	}
	for _, want := range []string{"3 of 6 nodes, 3 of 5 pods;", "0.2600 of 0.7800 USD per hour, 189.80 per month\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestTopRefusesFlags(t *testing.T) {
	for want, arguments := range map[string][]string{
		"--interval is 10ms, want 1s or more": {"--interval", "10ms"}, `--sort is "color", want name, cpu`: {"--sort", "color"},
		"--output is \"yml\", want text, wide, name, json or yaml; did you mean yaml?": {"-o", "yml"},
	} {
		if _, err := runTop(t, arguments...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", arguments, err, want)
		}
	}
}

// TestSimulateTellsClaimsInFlight checks that a node that is being launched is distinguished from existing nodes.
func TestSimulateTellsClaimsInFlight(t *testing.T) {
	types := filepath.Join(files(t, map[string]string{"types.json": shopJSON}), "types.json")
	kubeconfig := shop(t)
	out, _, err := runBoth(t, "", "simulate", "--live", "--kubeconfig", kubeconfig, "--instance-types", types,
		"--now", atSix().Format(time.RFC3339))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"default-e  1 (being launched)\n",
		"4 pods: 0 on 0 new nodes, 1 on existing nodes, 1 on nodes that are being launched, 2 unschedulable\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	out, _, err = runBoth(t, "", "simulate", "--live", "--kubeconfig", kubeconfig, "--instance-types", types,
		"--now", atSix().Format(time.RFC3339), "-o", "json")
	var a offline.LaunchAnswer
	if err := errors.Join(err, json.Unmarshal([]byte(out), &a)); err != nil {
		t.Fatal(err)
	}
	if want := (offline.PodCounts{Total: 4, Existing: 2, InFlight: 1, Unschedulable: 2}); a.Pods != want {
		t.Errorf("%+v, want %+v", a.Pods, want)
	}
	for _, n := range a.ExistingNodes {
		if n.InFlight != (n.Name == "default-e") {
			t.Errorf("%+v", n)
		}
	}
}

// TestClaimsAtTheirCheapest checks that a claim that is not launched counts everywhere as the cheapest offering that
// it may get, with the type and the price of one offering.
func TestClaimsAtTheirCheapest(t *testing.T) {
	types := filepath.Join(files(t, map[string]string{"types.json": shopJSON}), "types.json")
	ask := func(types, listed string, into any, arguments ...string) {
		t.Helper()
		flags := []string{"--kubeconfig", shopLaunching(t, listed), "--instance-types", types, "-o", "json"}
		command := topCommandAt(atSix)
		var out bytes.Buffer
		command.SetOut(&out)
		command.SetArgs(append([]string{"--once"}, flags...))
		text, err := "", command.ExecuteContext(t.Context())
		if text = out.String(); len(arguments) > 0 {
			text, _, err = runBoth(t, "", append(arguments, flags...)...)
		}
		if err := errors.Join(err, json.Unmarshal([]byte(text), into)); err != nil {
			t.Fatal(err)
		}
	}
	for listed, want := range map[string]struct {
		kind  string
		price float64
	}{"c.xlarge": {"c.xlarge", 0.11}, "c.xlarge, m.large": {"m.large", 0.06}, "m.large, c.xlarge": {"m.large", 0.06}} {
		const others = 0.06 + 0.34 + 0.07 + 0.2
		var fleet top.Fleet
		ask(types, listed, &fleet)
		at := slices.IndexFunc(fleet.Nodes, func(n top.Node) bool { return n.Name == "default-e" })
		if n := fleet.Nodes[at]; n.InstanceType != want.kind || n.PricePerHour != want.price {
			t.Errorf("%s: top shows %s at %v; want %+v", listed, n.InstanceType, n.PricePerHour, want)
		}
		if math.Abs(float64(fleet.PricePerHour)-others-want.price) > 1e-6 {
			t.Errorf("%s: top shows %v for all nodes; want %v", listed, fleet.PricePerHour, others+want.price)
		}
		var node offline.NodeOutcome
		ask(types, listed, &node, "explain", "node", "default-e")
		if node.InstanceType != want.kind || node.PricePerHour != want.price {
			t.Errorf("%s: explain node shows %s at %v; want %+v", listed, node.InstanceType, node.PricePerHour, want)
		}
		var pool offline.PoolOutcome
		ask(types, listed, &pool, "explain", "pool", "default")
		if math.Abs(float64(pool.PricePerHour)-others-want.price) > 1e-6 || fleet.LowerBoundPerHour > float64(fleet.PricePerHour) {
			t.Errorf("%s: explain pool shows %v, want %v; top at least %v", listed, pool.PricePerHour, others+want.price, fleet.LowerBoundPerHour)
		}
	}
}
