// Package page tests the page of kubectl karpenter web in a browser, on generated fleets.
package page

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/cloud/kwok"
)

// Fleet describes a generated fleet of the kwok provider.
type Fleet struct {
	// Nodes is the number of nodes, and Pods the mean number of pods on each.
	Nodes, Pods int
	// Hostile adds names that would be markup, which no API server accepts, but a file may have.
	Hostile bool
}

// object is an object of the Kubernetes API.
type object = map[string]any

// Write writes the fleet as a list of manifests, or as a capture if it has hostile names. The same fleet gives the same text.
func (f Fleet) Write(out io.Writer) error {
	g := &generator{Fleet: f, r: rand.New(rand.NewPCG(7, uint64(f.Nodes)))}
	g.pools()
	g.fleet()
	g.pending()
	document := object{"apiVersion": "v1", "kind": "List", "items": g.items}
	if f.Hostile { // as a capture of a cluster, whose names are not validated
		document = object{"apiVersion": "simulate.karpenter-go.github.io/v1alpha1", "kind": "Capture", "answer": object{},
			"input": object{"objects": []object{}, "cluster": g.items, "sale": object{"declared": object{}}},
			"options": object{"now": "2026-01-28T00:00:00Z", "preferencePolicy": "Respect", "minValuesPolicy": "Strict",
				"packingEffort": 1, "nodeOverheadPrice": 0}}
	}
	return json.NewEncoder(out).Encode(document)
}

type generator struct {
	Fleet
	r     *rand.Rand
	items []object
}

func (g *generator) add(o object) { g.items = append(g.items, o) }

var namespaces = []string{"shop", "search", "payments", "media", "batch", "platform"}

// pools are three pools with nodes: two that are consolidated, one of spot nodes of which only empty ones are removed; and
// one without nodes, whose limit fits no instance type.
func (g *generator) pools() {
	pool := func(name, capacity string, disruption, limits object) {
		g.add(object{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": object{"name": name, "uid": "pool-" + name},
			"spec": object{"disruption": disruption, "limits": limits, "template": object{"spec": object{
				"nodeClassRef": object{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
				"requirements": []object{{"key": "karpenter.sh/capacity-type", "operator": "In", "values": []string{capacity}},
					{"key": "kubernetes.io/arch", "operator": "In", "values": []string{"amd64"}}}}}}})
	}
	pool("general", "on-demand", object{"consolidateAfter": "0s", "budgets": []object{{"nodes": "10%"}}},
		object{"cpu": fmt.Sprint(20 * g.Nodes)})
	pool("spot", "spot", object{"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty", "budgets": []object{{"nodes": "20%"}}}, nil)
	pool("stateful", "on-demand", object{"consolidateAfter": "0s", "budgets": []object{{"nodes": "10%"}}},
		object{"nodes": fmt.Sprint(4 + g.Nodes/4), "memory": fmt.Sprintf("%dGi", 64*(1+g.Nodes))})
	pool("reserve", "on-demand", object{"consolidateAfter": "0s"}, object{"cpu": "500m"})
}

// sizes are the types of the fleet: those of the catalog with 4 to 32 cores and 4 GB for each.
func sizes() []cloud.InstanceType {
	types, _ := kwok.EmbeddedTypes()
	list := slices.DeleteFunc(slices.Clone(types), func(t cloud.InstanceType) bool {
		cores := t.Capacity["cpu"] / 1000
		arm := slices.ContainsFunc(t.Requirements, func(r cloud.Requirement) bool {
			return r.Key == "kubernetes.io/arch" && !slices.Contains(r.Values, "amd64")
		})
		return arm || strings.Contains(t.Name, "windows") || cores < 4 || cores > 32 || t.Capacity["memory"]>>30 != 4*cores
	})
	slices.SortFunc(list, func(a, b cloud.InstanceType) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (g *generator) fleet() {
	types := sizes()
	for i := range g.Nodes {
		pool := []string{"general", "general", "general", "spot", "spot", "stateful"}[i%6]
		capacity := map[string]string{"general": "on-demand", "spot": "spot", "stateful": "on-demand"}[pool]
		t := types[g.r.IntN(len(types))]
		zone := t.Offerings[g.r.IntN(len(t.Offerings))].Zone
		name := fmt.Sprintf("%s-%s", pool, g.suffix())
		g.node(name, pool, capacity, zone, &t)
		g.pods(name, pool, &t)
	}
	for _, name := range []string{"web-0", "db-1", "db-2"} {
		app := strings.Split(name, "-")[0]
		g.add(object{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": object{"namespace": namespaces[0], "name": name},
			"spec":   object{"maxUnavailable": 0, "selector": object{"matchLabels": object{"app": app, "shard": name}}},
			"status": object{"disruptionsAllowed": 0}})
	}
}

func (g *generator) suffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	var b strings.Builder
	for range 6 {
		b.WriteByte(letters[g.r.IntN(len(letters))])
	}
	return b.String()
}

func (g *generator) node(name, pool, capacity, zone string, t *cloud.InstanceType) {
	created := fmt.Sprintf("2026-01-%02dT%02d:00:00Z", 1+g.r.IntN(28), g.r.IntN(24))
	annotations := object{}
	if g.r.IntN(40) == 0 {
		annotations["karpenter.sh/do-not-disrupt"] = "true"
	}
	resources := object{"cpu": fmt.Sprintf("%dm", t.Capacity["cpu"]), "memory": fmt.Sprint(t.Capacity["memory"]),
		"pods": fmt.Sprint(t.Capacity["pods"])}
	allocatable := object{"cpu": fmt.Sprintf("%dm", t.Capacity["cpu"]-t.Overhead["cpu"]),
		"memory": fmt.Sprint(t.Capacity["memory"] - t.Overhead["memory"]),
		"pods":   fmt.Sprint(t.Capacity["pods"])}
	g.add(object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": name, "uid": "node-" + name,
		"creationTimestamp": created, "annotations": annotations,
		"labels": object{"karpenter.sh/nodepool": pool, "node.kubernetes.io/instance-type": t.Name, "topology.kubernetes.io/zone": zone,
			"karpenter.sh/capacity-type": capacity, "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64",
			"kubernetes.io/os":        "linux",
			"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}},
		"status": object{"capacity": resources, "allocatable": allocatable, "conditions": []object{{"type": "Ready", "status": "True"}}}})
}

// pods fills a node to a share that differs by pool.
func (g *generator) pods(node, pool string, t *cloud.InstanceType) {
	free := float64(t.Capacity["cpu"]-t.Overhead["cpu"]) * (0.35 + 0.6*g.r.Float64())
	if g.r.IntN(12) == 0 {
		free *= 0.3
	}
	count := max(1, g.Pods/2+g.r.IntN(g.Pods+1))
	for i := range count {
		app := []string{"web", "api", "worker", "cache", "indexer", "db", "queue", "reports"}[g.r.IntN(8)]
		namespace, labels := namespaces[g.r.IntN(len(namespaces))], object{"app": app}
		if pool == "stateful" {
			app, namespace, labels = "db", namespaces[0], object{"app": "db", "shard": fmt.Sprintf("db-%d", g.r.IntN(9))}
		}
		cpu := int(free / float64(count) * (0.6 + 0.8*g.r.Float64()))
		g.pod(object{"namespace": namespace, "name": fmt.Sprintf("%s-%s-%d", app, node, i), "labels": labels,
			"annotations": g.protection()}, app, node, cpu)
	}
}

func (g *generator) protection() object {
	if g.r.IntN(600) == 0 {
		return object{"karpenter.sh/do-not-disrupt": "true"}
	}
	return nil
}

func (g *generator) pod(metadata object, app, node string, cpu int) object {
	metadata["uid"] = fmt.Sprint(metadata["namespace"], metadata["name"])
	metadata["creationTimestamp"] = "2026-01-28T00:00:00Z"
	metadata["ownerReferences"] = []object{{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": app,
		"uid": fmt.Sprint(metadata["namespace"], app), "controller": true}}
	p := object{"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
		"spec": object{"nodeName": node, "containers": []object{{"name": "main", "image": "none",
			"resources": object{"requests": object{"cpu": fmt.Sprintf("%dm", cpu), "memory": fmt.Sprintf("%dMi", cpu*3)}}}}},
		"status": object{"phase": "Running", "conditions": []object{{"type": "Ready", "status": "True"}}}}
	if node == "" {
		delete(p["spec"].(object), "nodeName")
		p["status"] = object{"phase": "Pending"}
	}
	g.add(p)
	return p
}

// pending are pods that have no node yet, and some that no node can run.
func (g *generator) pending() {
	for i := range 6 {
		g.pod(object{"namespace": "batch", "name": fmt.Sprintf("render-%d", i)}, "render", "", 3500)
	}
	g.pod(object{"namespace": "batch", "name": "train-0"}, "train", "", 900_000)
	arm := g.pod(object{"namespace": "media", "name": "encode-0"}, "encode", "", 1000)
	arm["spec"].(object)["nodeSelector"] = object{"kubernetes.io/arch": "arm64"}
	gone := g.pod(object{"namespace": "payments", "name": "ledger-0"}, "ledger", "", 500)
	gone["spec"].(object)["nodeSelector"] = object{"topology.kubernetes.io/zone": "test-zone-z"}
	if g.Hostile {
		waiting := g.pod(object{"namespace": "batch", "name": hostile}, hostile, "", 100)
		waiting["status"] = object{"phase": "Pending", "conditions": []object{{"type": "PodScheduled", "status": "False",
			"reason": "Unschedulable"}}}
		t := sizes()[0]
		g.node(hostile, hostile, hostile, hostile, &t)
	}
}

// hostile is a name that runs a script where it becomes markup.
const hostile = `<img src=x onerror="window.hostile=1"><script>window.hostile=1</script>'"&`
