package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/plugin/offline"
)

// staticPool is a pool of a number of nodes of a type, with a label.
func staticPool(replicas int, label string) string {
	return fmt.Sprintf(`apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: fixed}
spec:
  replicas: %d
  disruption: {consolidateAfter: 0s, budgets: [{nodes: "100%%"}]}
  template:
    metadata: {labels: {team: %s}}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: node.kubernetes.io/instance-type, operator: In, values: [m-4x-amd64-linux, m-8x-amd64-linux]}
---
`, replicas, label)
}

// staticFleet has nodes of the pool, each with a pod.
func staticFleet(nodes int) string {
	var b strings.Builder
	for i := range nodes {
		fmt.Fprintf(&b, `apiVersion: v1
kind: Node
metadata: {name: fixed-%[1]d, creationTimestamp: "2026-01-01T00:00:00Z", labels: {team: a, karpenter.sh/nodepool: fixed,
  node.kubernetes.io/instance-type: m-4x-amd64-linux, topology.kubernetes.io/zone: test-zone-a, kubernetes.io/hostname: fixed-%[1]d,
  karpenter.sh/capacity-type: on-demand, kubernetes.io/arch: amd64, kubernetes.io/os: linux}}
status: {capacity: {cpu: "4", memory: 16Gi, pods: "110"}, allocatable: {cpu: 3900m, memory: 15Gi, pods: "110"},
  conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-%[1]d, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: web, controller: true}]}
spec: {nodeName: fixed-%[1]d, containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
---
`, i)
	}
	return b.String()
}

// TestStaticPoolsInAnswers: at rest, a static pool has its number of nodes: missing ones are launched, those above it
// are removed, and a drifted one is replaced by the cheapest node of the pool. No pod loses its place.
func TestStaticPoolsInAnswers(t *testing.T) {
	const gate = "--feature-gates=StaticCapacity=true"
	for _, c := range []struct {
		name            string
		nodes, replicas int
		steps           []string
	}{
		{"as many as wanted", 3, 3, nil},
		{"one missing", 2, 3, []string{"Provisioning"}},
		{"one too many", 3, 2, []string{"Surplus", "Provisioning"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := files(t, map[string]string{"fleet.yaml": staticPool(c.replicas, "a") + staticFleet(c.nodes)})
			out, err := simulate(t, "", "-f", filepath.Join(folder, "fleet.yaml"), "--disrupt", "--until-stable", "-o", "json", gate)
			if err != nil {
				t.Fatal(err)
			}
			var a offline.DisruptAnswer
			if err := json.Unmarshal([]byte(out), &a); err != nil {
				t.Fatal(err)
			}
			var steps []string
			for i := range a.Steps {
				steps = append(steps, a.Steps[i].Reason)
			}
			if fmt.Sprint(steps) != fmt.Sprint(c.steps) || a.After.Nodes != c.replicas {
				t.Errorf("steps %v, %d nodes at rest; want %v, %d\n%s", steps, a.After.Nodes, c.steps, c.replicas, out)
			}
			each := float64(a.Before.PricePerHour) / float64(c.nodes)
			if got, want := float64(a.After.PricePerHour), each*float64(c.replicas); got < want-1e-9 || got > want+1e-9 {
				t.Errorf("at rest for %v USD per hour, want %v", got, want)
			}
		})
	}
	folder := files(t, map[string]string{"fleet.yaml": staticFleet(2), "old.yaml": staticPool(2, "a"), "new.yaml": staticPool(2, "b"),
		"more.yaml": staticPool(5, "a")})
	of := func(now string) (a offline.DiffAnswer) {
		out, err := simulate(t, "", "-f", filepath.Join(folder, "fleet.yaml"), "--diff", filepath.Join(folder, "old.yaml"),
			filepath.Join(folder, now), "-o", "json", gate)
		if err == nil {
			err = json.Unmarshal([]byte(out), &a)
		}
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := of("new.yaml"); len(a.Drifted) != 2 || a.New.NodesReplaced != 2 || a.New.Nodes != 2 || a.Difference.PricePerHour != 0 ||
		len(a.New.Unschedulable) != 0 || a.New.PodsMoved != 2 {
		t.Errorf("of a changed template: %s, %+v", a.Verdict, a.New)
	}
	a := of("more.yaml")
	if times := a.Difference.PricePerHour / a.Old.PricePerHour; a.New.Nodes != 5 || times < 1.49 || times > 1.51 {
		t.Errorf("of more replicas: %s", a.Verdict)
	}
}

// TestPodsGetFreedLimits: a pod that a limit excludes gets its node once consolidation has freed the limit.
func TestPodsGetFreedLimits(t *testing.T) {
	pool := strings.Replace(diffPool("general", "a", 4), "values: [on-demand]}",
		"values: [on-demand]}, {key: node.kubernetes.io/instance-type, operator: In, values: [c-2x-amd64-linux]}", 1)
	fleet := diffFleet[:strings.LastIndex(diffFleet, "---")]
	for i := range 2 {
		renamed := strings.NewReplacer("name: one", fmt.Sprintf("name: empty-%d", i), "hostname: one", fmt.Sprintf("hostname: empty-%d", i))
		fleet += "---\n" + renamed.Replace(fleet[:strings.Index(fleet, "---")])
	}
	waiting := "---\napiVersion: v1\nkind: Pod\nmetadata: {name: wide}\nspec: {nodeSelector: {topology.kubernetes.io/zone: test-zone-b}, " +
		"containers: [{name: c, image: i, resources: {requests: {cpu: \"1\"}}}]}\n"
	folder := files(t, map[string]string{"fleet.yaml": fleet + waiting + "---\n" + strings.TrimPrefix(pool, "---\n")})
	out, err := simulate(t, "", "-f", filepath.Join(folder, "fleet.yaml"), "--disrupt", "--until-stable", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var a offline.DisruptAnswer
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatal(err)
	}
	removed, launched := -1, -1
	for i := range a.Steps {
		switch a.Steps[i].Reason {
		case "Empty":
			removed = i
		case "Provisioning":
			launched = i
		}
	}
	if removed < 0 || launched <= removed || a.Steps[launched].Add[0].Zone != "test-zone-b" {
		t.Errorf("empty nodes are removed in step %d, the pod gets a node in step %d\n%s", removed, launched, out)
	}
}
