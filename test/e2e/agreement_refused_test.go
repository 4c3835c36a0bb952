package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud/kwok"
)

var zones = []string{"test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"}

// kind is an instance type of the random workloads.
type kind struct {
	family, arch string
	cpus         int64
}

func kinds() []kind {
	var all []kind
	for _, family := range []string{"c", "s", "m"} {
		for _, arch := range []string{"amd64", "arm64"} {
			for _, cpus := range []int64{2, 4, 8, 16} {
				all = append(all, kind{family, arch, cpus})
			}
		}
	}
	return all
}

func (k kind) name() string { return fmt.Sprintf("%s-%dx-%s", k.family, k.cpus, k.arch) }

// gib returns the memory: 2, 4 or 8 GiB for each CPU.
func (k kind) gib() int64 { return k.cpus * map[string]int64{"c": 2, "s": 4, "m": 8}[k.family] }

func (k kind) labels() map[string]string {
	return map[string]string{kwok.LabelFamily: k.family, kwok.LabelCPU: strconv.FormatInt(k.cpus, 10)}
}

// catalogFile writes the kinds in the format of --instance-types-file-path.
func catalogFile(t *testing.T) string {
	type offering struct {
		Zone         string  `json:"zone"`
		CapacityType string  `json:"capacityType"`
		Price        float64 `json:"price"`
	}
	var types []map[string]any
	for _, k := range kinds() {
		price := 0.02*float64(k.cpus) + 0.0025*float64(k.gib())
		if k.arch == "arm64" {
			price *= 0.9
		}
		var offerings []offering
		for i, zone := range zones {
			here := price * (1 + 0.01*float64(i))
			offerings = append(offerings, offering{zone, karpv1.CapacityTypeOnDemand, here}, offering{zone, karpv1.CapacityTypeSpot, here / 2})
		}
		types = append(types, map[string]any{
			"name": k.name(), "arch": k.arch, "os": []string{"linux"}, "labels": k.labels(), "offerings": offerings,
			"capacity":     map[string]string{"cpu": strconv.FormatInt(k.cpus, 10), "memory": fmt.Sprintf("%dGi", k.gib()), "pods": "40"},
			"attachLimits": map[string]int{csiDriver: attachLimit},
		})
	}
	content, err := json.Marshal(map[string]any{"instanceTypes": types})
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// emptyLabel is a label of the empty nodes; its value is the case.
const emptyLabel = "e2e.example.org/empty"

// poolOfEmpty is a label of the empty nodes; its value is the NodePool.
const poolOfEmpty = "e2e.example.org/empty-of"

// mostTried is the number of refused pods of a wave that are tried.
const mostTried = 5

// try creates refused pods again, beside an empty node of every pool, type, zone and capacity type. If kube-scheduler
// binds one of them, that is a disagreement.
func (a *agreement) try(refused []*corev1.Pod) {
	a.t.Helper()
	pods := a.someOf(refused)
	if len(pods) == 0 {
		return
	}
	nodes := a.emptyNodes()
	a.t.Cleanup(a.takeDown)
	a.each(len(nodes), func(ctx context.Context, i int) error { return a.putUp(ctx, nodes[i]) })
	await(a.t, patience, "the empty nodes to be ready", a.noneTainted(nodes))
	a.each(len(pods), func(ctx context.Context, i int) error { return a.Create(ctx, pods[i]) })
	await(a.t, patience, "the refused pods' claims to be there", a.claimsMade(pods))
	a.scheduler.start()
	await(a.t, patience, "kube-scheduler to look at the refused pods", a.lookedAt(pods))
	a.scheduler.stop()
	for _, p := range pods {
		var now corev1.Pod
		if err := a.Get(a.t.Context(), client.ObjectKeyFromObject(p), &now); err != nil {
			a.t.Fatal(err)
		}
		if now.Spec.NodeName != "" {
			a.t.Errorf("pod %s was refused, and kube-scheduler bound it to %s; the reasons were %q", p.Name, now.Spec.NodeName, a.ledger.saidOf(p.UID))
		}
	}
	a.tried += len(pods)
	a.goes(pods)
	a.takeDown()
}

// someOf returns pods like the refused ones: of as many workloads as possible, some of each.
func (a *agreement) someOf(refused []*corev1.Pod) []*corev1.Pod {
	turn := map[string]int{}
	order := map[*corev1.Pod]int{}
	for _, p := range refused {
		order[p] = turn[p.Labels["app"]]
		turn[p.Labels["app"]]++
	}
	slices.SortStableFunc(refused, func(p, q *corev1.Pod) int { return cmp.Compare(order[p], order[q]) })
	var again []*corev1.Pod
	for _, p := range refused[:min(mostTried, len(refused))] {
		again = append(again, a.fresh(p))
	}
	return again
}

// fresh returns the pod in its state before it was created.
func (a *agreement) fresh(p *corev1.Pod) *corev1.Pod {
	for _, wave := range a.world.waves {
		for _, w := range wave {
			for _, q := range w.pods() {
				if q.Name == p.Name {
					return q
				}
			}
		}
	}
	a.t.Fatalf("pod %s belongs to no workload", p.Name)
	return nil
}

// emptyNodes returns nodes of every kind that the pools can launch, as far as a pod of the world can tell them apart.
func (a *agreement) emptyNodes() []*corev1.Node {
	var nodes []*corev1.Node
	for i := range a.world.pools {
		for _, k := range kinds() {
			for _, zone := range zones {
				for _, capacityType := range []string{karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot} {
					node := emptyNode(&a.world.pools[i], k, zone, capacityType)
					if meets(node.Labels, a.world.pools[i].Spec.Template.Spec.Requirements) {
						nodes = append(nodes, node)
					}
				}
			}
		}
	}
	return a.largest(nodes)
}

// largest leaves out nodes beside which there is one of the same pool and the same zone that has no less capacity, and the
// same values of all labels that pods of the world name: kube-scheduler binds a pod to one of the latter if it binds it to
// one of the former. Volumes name zones.
func (a *agreement) largest(nodes []*corev1.Node) []*corev1.Node {
	named := a.namedLabels()
	alike := func(n, m *corev1.Node) bool {
		for key, value := range n.Labels {
			if key != corev1.LabelHostname && (key == corev1.LabelTopologyZone || named(key)) && m.Labels[key] != value {
				return false
			}
		}
		return n.Labels[poolOfEmpty] == m.Labels[poolOfEmpty]
	}
	covers := func(n, m *corev1.Node) bool {
		return n.Status.Capacity.Cpu().Cmp(*m.Status.Capacity.Cpu()) >= 0 && n.Status.Capacity.Memory().Cmp(*m.Status.Capacity.Memory()) >= 0
	}
	slices.SortStableFunc(nodes, func(n, m *corev1.Node) int {
		return cmp.Or(m.Status.Capacity.Cpu().Cmp(*n.Status.Capacity.Cpu()), m.Status.Capacity.Memory().Cmp(*n.Status.Capacity.Memory()))
	})
	var kept []*corev1.Node
	for _, n := range nodes {
		if !slices.ContainsFunc(kept, func(k *corev1.Node) bool { return alike(n, k) && covers(k, n) }) {
			kept = append(kept, n)
		}
	}
	return kept
}

// namedLabels returns a function that reports whether a pod of the world names the label: in a selector, an affinity or a
// spread constraint.
func (a *agreement) namedLabels() func(key string) bool {
	var specs []byte
	for _, wave := range a.world.waves {
		for _, w := range wave {
			for _, p := range w.pods() {
				spec, err := json.Marshal(p.Spec)
				if err != nil {
					a.t.Fatal(err)
				}
				specs = append(specs, spec...)
			}
		}
	}
	text := string(specs)
	return func(key string) bool { return strings.Contains(text, strconv.Quote(key)) }
}

func emptyNode(pool *karpv1.NodePool, k kind, zone, capacityType string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        strings.Join([]string{"empty", pool.Name, k.name(), zone, capacityType}, "-"),
		Labels:      k.labels(),
		Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}, // kwok simulates its kubelet
	}}
	maps.Copy(node.Labels, pool.Spec.Template.ObjectMeta.Labels)
	maps.Copy(node.Labels, map[string]string{
		corev1.LabelHostname: node.Name, corev1.LabelTopologyZone: zone, karpv1.LabelCapacityType: capacityType,
		corev1.LabelArchStable: k.arch, corev1.LabelOSStable: "linux", corev1.LabelInstanceTypeStable: k.name(),
	})
	node.Labels[emptyLabel], node.Labels[poolOfEmpty] = node.Labels[caseLabel], pool.Name
	node.Spec.Taints = pool.Spec.Template.Spec.Taints
	node.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(k.cpus, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(k.gib()<<30, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(40, resource.DecimalSI),
	}
	node.Status.Allocatable = node.Status.Capacity
	return node
}

// meets reports whether the requirements allow a node with the labels.
func meets(have map[string]string, requirements []karpv1.Requirement) bool {
	operators := map[karpv1.Operator]selection.Operator{
		karpv1.OperatorIn: selection.In, karpv1.OperatorNotIn: selection.NotIn, karpv1.OperatorExists: selection.Exists,
		karpv1.OperatorDoesNotExist: selection.DoesNotExist, karpv1.OperatorGt: selection.GreaterThan, karpv1.OperatorLt: selection.LessThan,
	}
	return !slices.ContainsFunc(requirements, func(r karpv1.Requirement) bool {
		wanted, err := labels.NewRequirement(r.Key, operators[r.Operator], r.Values)
		return err != nil || !wanted.Matches(labels.Set(have))
	})
}

// putUp creates an empty node, and its CSINode with the volume limit.
func (a *agreement) putUp(ctx context.Context, node *corev1.Node) error {
	if err := a.Create(ctx, node.DeepCopy()); err != nil {
		return err
	}
	var made corev1.Node
	if err := a.Get(ctx, client.ObjectKeyFromObject(node), &made); err != nil {
		return err
	}
	holds := (&csi{limit: attachLimit}).csiNode(&made)
	holds.Labels = map[string]string{emptyLabel: a.name}
	return a.Create(ctx, holds)
}

// noneTainted fails until the nodes are ready and have no taints except those of their pools.
func (a *agreement) noneTainted(nodes []*corev1.Node) func(context.Context) error {
	return func(context.Context) error {
		ready := map[string]bool{}
		for _, n := range a.ledger.nodesOf(a.name) {
			ready[n.Name] = !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady }) &&
				slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
					return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
				})
		}
		for _, n := range nodes {
			if !ready[n.Name] {
				return fmt.Errorf("node %s is not", n.Name)
			}
		}
		return nil
	}
}

// claimsMade fails until the claims of the pods' ephemeral volumes exist.
func (a *agreement) claimsMade(pods []*corev1.Pod) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, p := range pods {
			for _, v := range p.Spec.Volumes {
				if v.Ephemeral == nil {
					continue
				}
				key := client.ObjectKey{Namespace: p.Namespace, Name: p.Name + "-" + v.Name}
				var claim corev1.PersistentVolumeClaim
				if err := a.Get(ctx, key, &claim); err != nil {
					return err
				}
				if !metav1.IsControlledBy(&claim, p) {
					return fmt.Errorf("claim %s is not of the pod %s", claim.Name, p.UID)
				}
			}
		}
		return nil
	}
}

// lookedAt fails until kube-scheduler has bound each pod, or marked it as unschedulable.
func (a *agreement) lookedAt(pods []*corev1.Pod) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, p := range pods {
			var now corev1.Pod
			if err := a.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
				return err
			}
			if now.Spec.NodeName == "" && !slices.ContainsFunc(now.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
			}) {
				return fmt.Errorf("it has said nothing of pod %s", p.Name)
			}
		}
		return nil
	}
}

// takeDown deletes the empty nodes. The API server deletes the objects of one request one after the other, and ends
// requests that take a minute, which happens with hundreds of nodes on a busy machine. The next request continues.
func (a *agreement) takeDown() {
	for _, kind := range []client.Object{&corev1.Node{}, &storagev1.CSINode{}} {
		var last error
		err := wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, 5*patience, true, func(ctx context.Context) (bool, error) {
			last = a.DeleteAllOf(ctx, kind, client.MatchingLabels{emptyLabel: a.name})
			return last == nil, nil
		})
		if err != nil {
			a.t.Errorf("deleting empty nodes: %v: %v", err, last)
		}
	}
}
