package neutral

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

const perHour = "karpenter-go.github.io/usd-per-hour"

// limitChanges are limits and quotas that no plan for so few pods reaches.
func limitChanges() []Change {
	return []Change{
		{Name: "far limit of cpu", edit: limited("cpu", "1000")},
		{Name: "far limit of memory", edit: limited("memory", "8000Gi")},
		{Name: "far limit of nodes", edit: limited("nodes", "200")},
		{Name: "far limit of USD", edit: limited(perHour, "100")},
		{Name: "limit of a resource that does not exist", edit: limited("example.org/gadget", "3")},
		{Name: "far limits of all", edit: limited("cpu", "1000", "memory", "8000Gi", "nodes", "200", perHour, "100")},
		{Name: "far quota of cpu", edit: quota("cpu", "1000", nil)},
		{Name: "far quota of nodes", edit: quota("nodes", "200", nil)},
		{Name: "quota of no node", edit: quota("nodes", "1",
			&metav1.LabelSelector{MatchLabels: map[string]string{"example.org/none": "true"}})},
	}
}

// limited adds limits, each a name and an amount, to pools that have no limit of the name.
func limited(namesAndAmounts ...string) func(*Input) bool {
	return func(in *Input) bool {
		changed := false
		for _, p := range of[*karpv1.NodePool](in) {
			for i := 0; i < len(namesAndAmounts); i += 2 {
				name := corev1.ResourceName(namesAndAmounts[i])
				if _, ok := p.Spec.Limits[name]; ok {
					continue
				}
				if p.Spec.Limits == nil {
					p.Spec.Limits = corev1.ResourceList{}
				}
				p.Spec.Limits[name], changed = resource.MustParse(namesAndAmounts[i+1]), true
			}
		}
		return changed
	}
}

// fittingChanges are limits of what the plan without them has: it is within them.
func fittingChanges() []Change {
	nodes := func(Node, map[string]int) int64 { return 1 }
	dollars := func(n Node, _ map[string]int) int64 { return int64(math.Ceil(n.Price * 1e9)) }
	chosen := func(n Node, cpus map[string]int) int64 { return int64(cpus[n.Type]) }
	largest := func(n Node, cpus map[string]int) int64 {
		most := 0
		for _, name := range n.Types {
			most = max(most, cpus[name])
		}
		return int64(most)
	}
	return []Change{
		{Name: "limit of nodes that the plan has", fit: fitting("nodes", 0, nodes)},
		{Name: "limit of USD that the plan has", fit: fitting(perHour, resource.Nano, dollars)},
		{Name: "limit of cpu that the plan has", fit: fitting("cpu", 0, chosen)},
		{Name: "limit of cpu that the largest types of the plan have", fit: fitting("cpu", 0, largest)},
	}
}

// fitting limits each pool of the pods to the sum of an amount, in units of the scale, over its nodes in the plan. The
// amount of a node may depend on the processors of types.
func fitting(name corev1.ResourceName, scale resource.Scale, amount func(Node, map[string]int) int64) func(*Input, Outcome) bool {
	return func(in *Input, without Outcome) bool {
		cpus := map[string]int{}
		for _, t := range in.Types {
			cpus[t.Name] = t.cpus()
		}
		sums := map[string]int64{}
		for _, n := range without.Nodes {
			sums[n.Pool] += amount(n, cpus)
		}
		for _, p := range in.open() {
			if p.Spec.Limits == nil {
				p.Spec.Limits = corev1.ResourceList{}
			}
			p.Spec.Limits[name] = *resource.NewScaledQuantity(sums[p.Name], scale)
		}
		return len(without.Nodes) > 0
	}
}

func quota(name corev1.ResourceName, amount string, selector *metav1.LabelSelector) func(*Input) bool {
	return always(func(in *Input) {
		q := &autoscalingv1beta1.CapacityQuota{TypeMeta: kind(autoscalingv1beta1.GroupVersion.String(), autoscalingv1beta1.KindQuota)}
		q.Name = "quota"
		q.Spec.Selector = selector
		q.Spec.Limits.Resources = map[corev1.ResourceName]resource.Quantity{name: resource.MustParse(amount)}
		in.add(q)
	})
}
