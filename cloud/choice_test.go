package cloud

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

func smallCatalog() []InstanceType {
	made := func(name, arch string, cpu int64, prices ...float64) InstanceType {
		t := InstanceType{
			Name: name,
			Requirements: []Requirement{
				in("node.kubernetes.io/instance-type", name), in("kubernetes.io/arch", arch),
				{Key: "kubernetes.io/os", Operator: "In", Values: []string{"windows", "linux"}},
				{Key: "example.com/gpu", Operator: "DoesNotExist"},
			},
			Capacity: map[string]int64{"cpu": cpu * 1000, "memory": 1 << 30}, Overhead: map[string]int64{"cpu": 100},
		}
		for i, zone := range []string{"b", "a"} {
			t.Offerings = append(t.Offerings, Offering{Zone: zone, CapacityType: "on-demand", Price: prices[i], Available: i == 0})
		}
		return t
	}
	return []InstanceType{made("small", "amd64", 1, 1, 1), made("large", "amd64", 4, 4, 3), made("arm", "arm64", 4, 1, 2)}
}

func claimOf(requirements ...karpv1.Requirement) *karpv1.NodeClaim {
	return &karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{Requirements: requirements}}
}

func chosen(choices []Choice) []string {
	var names []string
	for _, c := range choices {
		names = append(names, c.Type.Name+"/"+c.Offering.Zone)
	}
	return names
}

// Choices are sorted by price, then by size, name and zone, whatever the order of the catalog. Unavailable offerings
// are included.
func TestChoices(t *testing.T) {
	big := claimOf()
	big.Spec.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("3900m")}
	tooBig := claimOf()
	tooBig.Spec.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("3901m")}
	unknown := claimOf()
	unknown.Spec.Resources.Requests = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	for name, test := range map[string]struct {
		claim *karpv1.NodeClaim
		want  []string
	}{
		"anything": {claimOf(), []string{"small/a", "small/b", "arm/b", "arm/a", "large/a", "large/b"}},
		"zone": {claimOf(karpv1.Requirement{Key: corev1.LabelTopologyZone, Operator: "NotIn",
			Values: []string{"a"}}), []string{"small/b", "arm/b", "large/b"}},
		"arch": {claimOf(karpv1.Requirement{Key: corev1.LabelArchStable, Operator: "In",
			Values: []string{"arm64"}}), []string{"arm/b", "arm/a"}},
		"capacity type that is not sold": {claimOf(karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In",
			Values: []string{"spot"}}), nil},
		"label that no type has": {claimOf(karpv1.Requirement{Key: "example.com/gpu", Operator: "Exists"}), nil},
		"label that no type may have": {claimOf(karpv1.Requirement{Key: "example.com/gpu", Operator: "NotIn", Values: []string{"x"}}),
			[]string{"small/a", "small/b", "arm/b", "arm/a", "large/a", "large/b"}},
		"requests":           {big, []string{"arm/b", "arm/a", "large/a", "large/b"}},
		"requests too large": {tooBig, nil},
		"unknown resource":   {unknown, nil},
	} {
		types := smallCatalog()
		for range 5 {
			if diff := cmp.Diff(test.want, chosen(NeedOf(test.claim).Choices(types))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			rand.Shuffle(len(types), func(i, j int) { types[i], types[j] = types[j], types[i] })
		}
	}
}

func TestMachineLabels(t *testing.T) {
	need := NeedOf(claimOf(
		karpv1.Requirement{Key: "team", Operator: "In", Values: []string{"a"}},
		karpv1.Requirement{Key: "tier", Operator: "In", Values: []string{"gold", "silver"}},
		karpv1.Requirement{Key: "kubernetes.io/os", Operator: "NotIn", Values: []string{"linux"}},
		karpv1.Requirement{Key: "rack", Operator: "Exists"},
	))
	types := smallCatalog()
	types[0].Offerings[0].Requirements = []Requirement{in("rack", "7")}
	got := need.MachineLabels(Choice{Type: &types[0], Offering: &types[0].Offerings[0]})
	want := map[string]string{
		"team": "a", "rack": "7", "kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64",
		"node.kubernetes.io/instance-type": "small", "topology.kubernetes.io/zone": "b", "karpenter.sh/capacity-type": "on-demand",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestAllocatable(t *testing.T) {
	it := InstanceType{
		Capacity: map[string]int64{"cpu": 2000, "memory": 4 << 30, "hugepages-2Mi": 1 << 30, "pods": 5},
		Overhead: map[string]int64{"cpu": 100, "memory": 1 << 30, "pods": 9},
	}
	want := map[string]int64{"cpu": 1900, "memory": 2 << 30, "hugepages-2Mi": 1 << 30, "pods": 0}
	if diff := cmp.Diff(want, it.Allocatable()); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
}

func TestAmountsAndBack(t *testing.T) {
	list := corev1.ResourceList{
		"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("110"),
		"nvidia.com/gpu": resource.MustParse("8"),
	}
	amounts := Amounts(list)
	want := map[string]int64{"cpu": 1500, "memory": 4 << 30, "pods": 110, "nvidia.com/gpu": 8}
	if diff := cmp.Diff(want, amounts); diff != "" {
		t.Errorf("amounts (-want +got):\n%s", diff)
	}
	for name, quantity := range ResourceList(amounts) {
		if before := list[name]; quantity.String() != before.String() {
			t.Errorf("%s was converted to %s, want %s", name, quantity.String(), before.String())
		}
	}
	if Amount("memory", resource.MustParse("1500m")) != 2 {
		t.Error("half a byte is not rounded up")
	}
}
