package workload

import (
	"cmp"
	"fmt"
	"slices"
)

// object is a part of a manifest: JSON with sorted keys.
type object = map[string]any

const created = "2026-01-01T00:00:00Z"

// requirement returns a requirement of a pool, or an expression of a node affinity.
func requirement(key, operator string, values ...string) object {
	r := object{"key": key, "operator": operator}
	if len(values) > 0 {
		r["values"] = values
	}
	return r
}

// poolShape holds the fields in which the pools of a workload differ.
type poolShape struct {
	name         string
	weight       int
	budget       string // of nodes to disrupt; "" for all
	requirements []object
	taint        object
	labels       map[string]string
	limits       map[string]string
}

func (p poolShape) object() object {
	spec := object{
		"nodeClassRef": object{"group": "perf.example.com", "kind": "PerfNodeClass", "name": "default"},
		"requirements": append([]object{}, p.requirements...), "expireAfter": "Never",
	}
	if p.taint != nil {
		spec["taints"] = []object{p.taint}
	}
	template := object{"spec": spec}
	if p.labels != nil {
		template["metadata"] = object{"labels": p.labels}
	}
	pool := object{
		"template": template,
		"disruption": object{
			"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s",
			"budgets": []object{{"nodes": cmp.Or(p.budget, "100%")}},
		},
	}
	if p.weight > 0 {
		pool["weight"] = p.weight
	}
	if p.limits != nil {
		pool["limits"] = p.limits
	}
	return object{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": object{"name": p.name}, "spec": pool}
}

// openPool accepts any pod.
var openPool = []poolShape{{name: "default"}}

// podShape holds the fields in which pods differ.
type podShape struct {
	cpu    int // millicores
	memory int // MiB
	labels object
	owner  string // name of the ReplicaSet; "" for none
	gpu    bool
	spec   object // further fields of the spec
}

// podList numbers pods and gives them UIDs.
type podList struct {
	name  string
	uids  *random
	items []object
}

func newPodList(name string, seed int) *podList {
	return &podList{name: name, uids: newRandom("uid", name, seed)}
}

// add appends a pending pod that kube-scheduler has marked as unschedulable.
func (l *podList) add(p podShape) object {
	owner := p.owner
	if owner == "" {
		owner = l.name
	}
	metadata := object{
		"name": podName(owner, len(l.items)), "namespace": "default", "uid": l.uids.uid(),
		"labels": p.labels, "creationTimestamp": created,
	}
	if p.owner != "" {
		metadata["ownerReferences"] = []object{{
			"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": p.owner, "uid": newRandom("rs", p.owner).uid(), "controller": true,
		}}
	}
	requests := object{"cpu": fmt.Sprintf("%dm", p.cpu), "memory": fmt.Sprintf("%dMi", p.memory)}
	resources := object{"requests": requests}
	if p.gpu {
		requests[resourceGPU] = "1"
		resources["limits"] = object{resourceGPU: "1"}
	}
	spec := object{"containers": []object{{"name": "c", "image": "pause", "resources": resources}}}
	for key, value := range p.spec {
		spec[key] = value
	}
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": object{
		"phase": "Pending", "conditions": []object{{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}},
	}}
	l.items = append(l.items, pod)
	return pod
}

func podName(owner string, number int) string { return fmt.Sprintf("%s-%06d", owner, number) }

// bind sets the pod to run on a node.
func bind(pod object, node string) {
	pod["spec"].(object)["nodeName"] = node
	pod["status"] = object{"phase": "Running", "conditions": []object{
		{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"},
	}}
}

func spread(key string, labels object, skew int) object {
	return object{
		"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": object{"matchLabels": labels},
	}
}

// podAffinity returns a spec with one required term; kind is podAffinity or podAntiAffinity.
func podAffinity(kind, key string, labels object) object {
	return object{"affinity": object{kind: object{"requiredDuringSchedulingIgnoredDuringExecution": []object{
		{"labelSelector": object{"matchLabels": labels}, "topologyKey": key},
	}}}}
}

func nodeAffinity(expressions []object) object {
	return object{"nodeAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{
		"nodeSelectorTerms": []object{{"matchExpressions": expressions}},
	}}}
}

func taint(key, value, effect string) object {
	return object{"key": key, "value": value, "effect": effect}
}

func toleration(key, value string) object {
	return object{"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
}

var (
	someCPU    = []int{100, 250, 500, 1000, 1500}
	someMemory = []int{100, 256, 512, 1024, 2048, 4096}
	letters    = []string{"a", "b", "c", "d", "e", "f", "g"}
)

// someSize returns a random request of processor and memory.
func someSize(r *random) (cpu, memory int) {
	cpu = pick(r, someCPU)
	return cpu, pick(r, someMemory)
}

// distinct returns the elements of s in order without repetitions.
func distinct(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}
