package bound

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// TestLikeTwin compares the bounds with those of an implementation in another language, to its four digits.
func TestLikeTwin(t *testing.T) {
	for _, c := range []struct {
		name   string
		price  float64
		forced int
	}{
		{"antiaffinity-120", 0.8876, 20}, {"diverse-200", 1.2898, 40}, {"heterogeneous-300", 10.0122, 0}, {"inflate-200", 0.2507, 0},
		{"spread-200", 1.8455, 40}, {"heterogeneous-1k", 40.6280, 0}, {"spread-1k", 6.3886, 50}, {"antiaffinity-500", 2.9704, 41},
	} {
		b, err := Of(world(t, c.name))
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(b.PricePerHour-c.price) > 0.0001 {
			t.Errorf("%s: the bound is %g, want %g", c.name, b.PricePerHour, c.price)
		}
		if b.ForcedNodes != c.forced || b.Infeasible != 0 {
			t.Errorf("%s: %d forced nodes and %d infeasible pods, want %d and 0", c.name, b.ForcedNodes, b.Infeasible, c.forced)
		}
	}
}

func world(t *testing.T, name string) *workload.World {
	t.Helper()
	set, err := workload.Named(name, 1)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := set.Write(folder); err != nil {
		t.Fatal(err)
	}
	w, err := workload.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// shop is a workload with two types: 4 cores for 1 USD and 8 cores for 1.5 USD an hour, both with more memory than
// any pod requests.
func shop(pods ...corev1.Pod) *workload.World {
	sell := func(name, cpu string, price workload.USD) workload.InstanceType {
		return workload.InstanceType{
			Name: name, Arch: "amd64", OS: []string{"linux"}, Capacity: map[string]string{"cpu": cpu, "memory": "64Gi", "pods": "100"},
			Offerings: []workload.Offering{{Available: true, CapacityType: "spot", Price: price, Zone: "a"}},
		}
	}
	return &workload.World{
		Types: []workload.InstanceType{sell("small", "4", 1), sell("large", "8", 1.5)},
		Pools: []karpv1.NodePool{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}, Pods: pods,
	}
}

func pods(n int, cpu string, change func(*corev1.PodSpec)) []corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
	}}}}
	if change != nil {
		change(&p.Spec)
	}
	all := make([]corev1.Pod, n)
	for i := range all {
		all[i] = p
	}
	return all
}

// TestByHand has workloads that are small enough to compute the bound by hand.
func TestByHand(t *testing.T) {
	apart := func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: workload.LabelHost, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
		}}}
	}
	small := func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{workload.LabelType: "small"} }
	for name, c := range map[string]struct {
		pods []corev1.Pod
		want Bound
	}{
		"nothing":                                 {nil, Bound{}},
		"half a large node":                       {pods(4, "1", nil), Bound{PricePerHour: 0.75}},
		"half a small node, which it asks for":    {pods(2, "1", small), Bound{PricePerHour: 0.5}},
		"too large for small":                     {pods(1, "6", small), Bound{Infeasible: 1}},
		"a part of each":                          {append(pods(8, "1", nil), pods(2, "1", small)...), Bound{PricePerHour: 2}},
		"each on a node of its own, nearly empty": {pods(3, "10m", apart), Bound{PricePerHour: 3, ForcedNodes: 3}},
	} {
		got, err := Of(shop(c.pods...))
		if err != nil {
			t.Fatal(err)
		}
		// A rent of 0.999 of the cheapest node leaves a thousandth. No weights may exceed the correct value.
		if got.PricePerHour > c.want.PricePerHour+1e-9 || got.PricePerHour < 0.995*c.want.PricePerHour {
			t.Errorf("%s: the bound is %g, want %g or at most 0.5 %% less", name, got.PricePerHour, c.want.PricePerHour)
		}
		if got.ForcedNodes != c.want.ForcedNodes || got.Infeasible != c.want.Infeasible {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestBadQuantity(t *testing.T) {
	w := shop()
	w.Types[1].Capacity["cpu"] = "many"
	if b, err := Of(w); err == nil {
		t.Errorf("a type with many processors gave %+v", b)
	}
}
