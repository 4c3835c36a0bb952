// Package bound computes a lower bound of the price of any fleet for a workload's pending pods.
//
//	workload.World -> Of -> Bound.PricePerHour    USD per hour
//
// It relaxes the problem: nodes and pods are divisible, and constraints between pods are ignored. As an exception,
// pods that exclude each other from their nodes force that many nodes. The relaxation keeps the offerings that each
// pod may use, the requirement that a pod fits its node, and the processor, memory, pod slots and GPUs of each node.
//
// The bound is a dual of that relaxation. For each class c of types (GiB per processor, with GPU or without) pick
// weights w[c] over the four resources that sum to 1, and a rent for each node. A node of price p then charges a pod
// with requests r
//
//	(p - rent) * sum over resources k of w[c][k] * r[k] / allocatable[k]
//
// and each pod pays its cheapest compatible charge. The sum over the pods plus rent times the forced nodes is at most
// the price of any fleet, whatever the weights. A grid and then an ascent search for weights with a large value. The
// bound is valid however good these weights are. The cost of a node beyond its offering's price is not counted.
//
// The package shares no code with the engine, because it is compared with the engine's own bound.
package bound

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// Bound is the result.
type Bound struct {
	PricePerHour float64 `json:"pricePerHour"` // USD
	ForcedNodes  int     `json:"forcedNodes"`
	Infeasible   int     `json:"infeasible"` // pods that no offering holds; they are excluded
}

// resources in the order of a vector: cores, bytes, slots, GPUs.
var resources = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, "nvidia.com/gpu"}

type vector [4]float64

func (v vector) fits(in vector) bool {
	for k := range v {
		if v[k] > in[k] {
			return false
		}
	}
	return true
}

// class identifies types that share weights.
type class struct {
	ratio int // GiB per processor
	gpu   bool
}

// offer is the price and the capacity of a node.
type offer struct {
	price  float64
	free   vector
	class  int
	labels map[string]string
	taints []corev1.Taint
}

// group is a set of pods with the same offers and requests, with the cheapest offer of each type that holds one.
type group struct {
	count  float64
	wants  vector
	offers []offer
}

// problem is the relaxed problem.
type problem struct {
	classes []class
	groups  []group
}

// Of computes the bound.
func Of(w *workload.World) (Bound, error) {
	offers, classes, err := offersOf(w)
	if err != nil {
		return Bound{}, fmt.Errorf("bounding the price of %s: %w", w.Name, err)
	}
	p, infeasible, err := newProblem(w, offers, classes)
	if err != nil {
		return Bound{}, fmt.Errorf("bounding the price of %s: %w", w.Name, err)
	}
	forced := forcedNodes(w.Pods)
	rents := []float64{0}
	if forced > 1 {
		cheapest := p.cheapest()
		rents = append(rents, 0.25*cheapest, 0.5*cheapest, 0.75*cheapest, 0.999*cheapest)
	}
	best := 0.0
	for _, rent := range rents {
		best = max(best, p.solve(rent)+rent*float64(forced))
	}
	return Bound{PricePerHour: best, ForcedNodes: forced, Infeasible: infeasible}, nil
}

// offersOf returns the offers of every pool.
func offersOf(w *workload.World) ([]offer, []class, error) {
	var offers []offer
	var of []class
	for i := range w.Types {
		t := &w.Types[i]
		free, class, err := sizeOf(t)
		if err != nil {
			return nil, nil, fmt.Errorf("instance type %s: %w", t.Name, err)
		}
		for _, o := range t.Offerings {
			if !o.Available {
				continue
			}
			for j := range w.Pools {
				template := &w.Pools[j].Spec.Template
				labels := labelsOf(t, o)
				if !allowed(labels, w, j) {
					continue
				}
				for key, value := range template.ObjectMeta.Labels {
					labels[key] = value
				}
				labels[workload.LabelPool] = w.Pools[j].Name
				offers = append(offers, offer{price: float64(o.Price), free: free, labels: labels, taints: template.Spec.Taints})
				of = append(of, class)
			}
		}
	}
	classes := slices.Clone(of)
	slices.SortFunc(classes, compareClasses)
	classes = slices.Compact(classes)
	for i := range offers {
		offers[i].class, _ = slices.BinarySearchFunc(classes, of[i], compareClasses)
	}
	return offers, classes, nil
}

func compareClasses(a, b class) int {
	switch {
	case a.ratio != b.ratio:
		return a.ratio - b.ratio
	case a.gpu == b.gpu:
		return 0
	case b.gpu:
		return -1
	}
	return 1
}

func sizeOf(t *workload.InstanceType) (vector, class, error) {
	amount := func(of map[string]string, name corev1.ResourceName) (int64, error) {
		text, ok := of[string(name)]
		if !ok {
			return 0, nil
		}
		q, err := resource.ParseQuantity(text)
		return q.MilliValue(), err
	}
	var free, capacity vector
	for k, name := range resources {
		full, err := amount(t.Capacity, name)
		if err != nil {
			return vector{}, class{}, err
		}
		overhead, err := amount(t.Overhead, name)
		if err != nil {
			return vector{}, class{}, err
		}
		capacity[k], free[k] = float64(full)/1000, float64(max(0, full-overhead))/1000
	}
	return free, class{int(math.RoundToEven(capacity[1] / capacity[0] / (1 << 30))), free[3] > 0}, nil
}

func labelsOf(t *workload.InstanceType, o workload.Offering) map[string]string {
	labels := map[string]string{
		workload.LabelType: t.Name, workload.LabelArch: t.Arch, workload.LabelOS: t.OS[0], workload.LabelZone: o.Zone, workload.LabelCapacity: o.CapacityType,
	}
	for key, value := range t.Labels {
		labels[key] = value
	}
	return labels
}

func allowed(labels map[string]string, w *workload.World, pool int) bool {
	for _, r := range w.Pools[pool].Spec.Template.Spec.Requirements {
		value, has := labels[r.Key]
		if !meets(string(r.Operator), r.Values, value, has) {
			return false
		}
	}
	return true
}

// newProblem groups the pods. The second result counts the pods that no offer holds.
func newProblem(w *workload.World, offers []offer, classes []class) (*problem, int, error) {
	type shape struct {
		wants vector
		rules string
	}
	counts := map[shape]int{}
	sample := map[string]*corev1.PodSpec{}
	var order []shape
	for i := range w.Pods {
		spec := &w.Pods[i].Spec
		rules, err := json.Marshal([]any{spec.NodeSelector, spec.Tolerations, nodeTerms(spec)})
		if err != nil {
			return nil, 0, err
		}
		s := shape{wantsOf(spec), string(rules)}
		if counts[s] == 0 {
			order = append(order, s)
		}
		counts[s]++
		sample[s.rules] = spec
	}
	p, infeasible := &problem{classes: classes}, 0
	admitted := map[string][]offer{}
	for _, s := range order {
		if _, ok := admitted[s.rules]; !ok {
			admitted[s.rules] = slices.DeleteFunc(slices.Clone(offers), func(o offer) bool { return !admits(sample[s.rules], &o) })
		}
		if g := (group{float64(counts[s]), s.wants, cheapestOfType(admitted[s.rules], s.wants)}); len(g.offers) > 0 {
			p.groups = append(p.groups, g)
		} else {
			infeasible += counts[s]
		}
	}
	return p, infeasible, nil
}

func wantsOf(spec *corev1.PodSpec) vector {
	var v vector
	for k, name := range resources {
		var sum int64
		for i := range spec.Containers {
			q := spec.Containers[i].Resources.Requests[name]
			sum += q.MilliValue()
		}
		v[k] = float64(sum) / 1000
	}
	v[2] = 1
	return v
}

func cheapestOfType(offers []offer, wants vector) []offer {
	var best []offer
	at := map[string]int{}
	for _, o := range offers {
		if !wants.fits(o.free) {
			continue
		}
		name := o.labels[workload.LabelType]
		i, known := at[name]
		switch {
		case !known:
			at[name] = len(best)
			best = append(best, o)
		case o.price < best[i].price:
			best[i] = o
		}
	}
	return best
}

// forcedNodes returns the size of the largest set of pods of which no two can share a node: they exclude each other
// from the host, or spread over hosts with a skew of 1 (an empty node is always possible).
func forcedNodes(pods []corev1.Pod) int {
	sets, most := map[string]int{}, 0
	count := func(kind string, labels map[string]string) {
		key := kind + fmt.Sprintf("%q", labels)
		sets[key]++
		most = max(most, sets[key])
	}
	own := func(p *corev1.Pod, labels map[string]string) bool {
		for key, value := range labels {
			if p.Labels[key] != value {
				return false
			}
		}
		return true
	}
	for i := range pods {
		p := &pods[i]
		if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
			for _, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				if t.TopologyKey == workload.LabelHost && plain(t.LabelSelector) && own(p, t.LabelSelector.MatchLabels) {
					count("apart", t.LabelSelector.MatchLabels)
				}
			}
		}
		for _, c := range p.Spec.TopologySpreadConstraints {
			if c.TopologyKey == workload.LabelHost && c.WhenUnsatisfiable == corev1.DoNotSchedule && c.MaxSkew == 1 &&
				plain(c.LabelSelector) && len(c.LabelSelector.MatchLabels) == 1 && own(p, c.LabelSelector.MatchLabels) {
				count("spread", c.LabelSelector.MatchLabels)
			}
		}
	}
	return most
}
