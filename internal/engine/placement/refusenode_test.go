package placement_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
)

const refusingNodes = `apiVersion: v1
kind: Pod
metadata: {name: db, labels: {app: db}}
spec:
  nodeSelector: {disk: fast}
  containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}], resources: {requests: {cpu: 4, memory: 1Gi}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: busy}
spec: {nodeName: port, containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}]}]}
---
apiVersion: v1
kind: Node
metadata: {name: tainted, labels: {disk: fast}}
spec: {taints: [{key: dedicated, value: web, effect: NoSchedule}]}
status: {allocatable: {cpu: 8, memory: 16Gi, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: slow, labels: {disk: slow}}
status: {allocatable: {cpu: 8, memory: 16Gi, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: port, labels: {disk: fast}}
status: {allocatable: {cpu: 8, memory: 16Gi, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: small, labels: {disk: fast}}
status: {allocatable: {cpu: 1, memory: 16Gi, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: smaller, labels: {disk: fast}}
status: {allocatable: {cpu: 500m, memory: 16Gi, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: cordoned, labels: {disk: fast}}
spec: {unschedulable: true}
status: {allocatable: {cpu: 8, memory: 16Gi, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: leaving, labels: {disk: fast}, deletionTimestamp: "2026-01-01T00:00:00Z"}
status: {allocatable: {cpu: 8, memory: 16Gi, pods: 10}}
`

// TestNodesAnswer: each existing node counts once, by the rule that refuses.
func TestNodesAnswer(t *testing.T) {
	snap := readWorld(t, []byte("small cpu=2 memory=8Gi price=0.1\n"), []byte(refusingNodes)).snapshot(nil)
	p := placement.Schedule(snap, placement.Options{AskNodes: true})
	if len(p.Refused) != 1 {
		t.Fatalf("got\n%s", explain.Provision(snap, p))
	}
	want := `there is no node pool
2 of 7 nodes: needs 4 of cpu, at most 1 is free
1 of 7 nodes: taint dedicated=web:NoSchedule is not tolerated
1 of 7 nodes: taint node.kubernetes.io/unschedulable:NoSchedule is not tolerated
1 of 7 nodes: label disk is not as required (pod: In [fast])
1 of 7 nodes: a pod there uses the host port
1 of 7 nodes: being removed
`
	if diff := cmp.Diff(want, explain.Tree(snap, p.Refused[0])); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if quiet := placement.Schedule(snap, placement.Options{}); quiet.Refused[0].Nodes != nil {
		t.Error("nodes were evaluated without a request")
	}
}

const keptApartTwice = `apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}}}]}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec: {template: {spec: {requirements: [{key: karpenter.sh/capacity-type, operator: In, values: ["on-demand"]}]}}}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: a, kubernetes.io/arch: amd64, kubernetes.io/hostname: n1}}
status: {allocatable: {cpu: 2, memory: 4Gi, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: loner-KEY}
spec:
  nodeName: n1
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: web}}}]}}
  containers: [{name: c}]
---
apiVersion: v1
kind: Pod
metadata: {name: hermit}
spec:
  nodeName: n1
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/arch, labelSelector: {matchLabels: {app: web}}}]}}
  containers: [{name: c}]
`

// TestNamedRuleIsAlwaysTheSame: of several rules between pods the one that excludes the most domains is reported, then
// the first by name, for every order of input.
func TestNamedRuleIsAlwaysTheSame(t *testing.T) {
	w := readWorld(t, []byte("small cpu=2 memory=8Gi price=0.1 zones=a\n"), []byte(keptApartTwice))
	for seed := range uint64(40) {
		snap := w.snapshot(rand.New(rand.NewPCG(seed, 1)))
		p := placement.Schedule(snap, placement.Options{AskNodes: true})
		if len(p.Refused) != 1 {
			t.Fatalf("got\n%s", explain.Provision(snap, p))
		}
		for _, reason := range explain.Reasons(snap, p.Refused[0]) {
			if !strings.Contains(reason, "anti-affinity on label kubernetes.io/arch") {
				t.Fatalf("seed %d: %s", seed, reason)
			}
		}
	}
}

const manyLabels = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    metadata: {labels: {team: red}}
    spec: {requirements: [{key: karpenter.sh/capacity-type, operator: In, values: ["on-demand"]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  nodeSelector: {team: blue, karpenter.sh/capacity-type: spot, rack: "7", floor: "2"}
  containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}}}]
`

// TestAllLabelsAreNamed: all unsatisfied labels are reported at once, not one after the other.
func TestAllLabelsAreNamed(t *testing.T) {
	snap := readWorld(t, []byte("small cpu=2 memory=8Gi price=0.1\n"), []byte(manyLabels)).snapshot(nil)
	p := placement.Schedule(snap, placement.Options{})
	want := "pool default: labels floor (pod: In [2]) and rack (pod: In [7]) are required, and the pool does not define them, and " +
		"no value of labels karpenter.sh/capacity-type (pod: In [spot], pool: In [on-demand]) and team (pod: In [blue], pool: In [red]) satisfies both pod and pool"
	if got := explain.Refusal(snap, p.Refused[0]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestNodesAnswerInRandomWorlds: every node is counted once, for every order of input, and the evaluation of nodes does
// not change the plan.
func TestNodesAnswerInRandomWorlds(t *testing.T) {
	codes := map[string]int{}
	for seed := range uint64(*worlds) {
		d := newDice(seed)
		d.rich = seed%2 == 0
		w := d.world()
		snap := w.snapshot(nil)
		p := placement.Schedule(snap, placement.Options{AskNodes: true})
		again := w.snapshot(rand.New(rand.NewPCG(seed, 2)))
		if diff := cmp.Diff(explain.AnswerOf(snap, p),
			explain.AnswerOf(again, placement.Schedule(again, placement.Options{AskNodes: true}))); diff != "" {
			t.Fatalf("seed %d: the plan depends on the order of input:\n%s", seed, diff)
		}
		for i, r := range p.Refused {
			n := 0
			for _, c := range r.Nodes {
				n += c.Nodes
				codes[explain.Code(c.Rule.Code)] += c.Nodes
			}
			if r.Verdict.OK() && n != len(snap.Nodes) {
				t.Fatalf("seed %d: %d of %d nodes have a verdict for %s", seed, n, len(snap.Nodes), r.Pods[0].Key())
			}
			p.Refused[i].Nodes = nil
		}
		if diff := cmp.Diff(explain.AnswerOf(snap, p), explain.AnswerOf(snap, placement.Schedule(snap, placement.Options{}))); diff != "" {
			t.Fatalf("seed %d: the evaluation of nodes changes the plan:\n%s", seed, diff)
		}
	}
	for _, code := range []string{"NodeFull", "TaintNotTolerated", "LabelExcluded", "NodeLeaving"} {
		if codes[code] == 0 {
			t.Errorf("no node has the verdict %s: %v", code, codes)
		}
	}
}
