package instance

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/expression"
)

// gateOn returns settings with which expressions are evaluated.
func gateOn() *Settings {
	s := defaults()
	s.KubeletExpressions, s.Programs = true, expression.NewCache(func() time.Time { return noon })
	return s
}

// Expressions of the EKS formulas give every type of the catalog what it has without expressions.
func TestFormulasOfEKS(t *testing.T) {
	for text, prefixes := range map[string]bool{
		"default_enis * (ips_per_eni - 1) + 2":                                               false,
		"min(vcpus > 30 ? 250 : 110, default_enis * (ips_per_eni - 1) * 16 + 2)":             true,
		"min(vcpus > 30 ? 250.0 : 110.0, double(default_enis * (ips_per_eni - 1) * 16 + 2))": true,
	} {
		for _, reserved := range []int64{0, 1} {
			class, settings := al2023("us-east-1a", "us-east-1b", "us-east-1c"), gateOn()
			settings.ReservedENIs, class.PrefixDelegation = reserved, prefixes
			types := nitroIf(prefixes)
			plain := catalogBy(t, types, class, settings)
			class.PrefixDelegation, class.Kubelet.MaxPodsExpression = false, text
			formula := catalogBy(t, types, class, settings)
			for i := range plain { // a type without a usable interface has no pods, and 2 by the formula
				if got := formula[plain[i].Name]; !cmp.Equal(plain[i], got) {
					t.Fatalf("%s, %d interfaces reserved (-plain +formula):\n%s", text, reserved, cmp.Diff(plain[i], got))
				}
			}
			if len(plain) < 900 {
				t.Errorf("%d types", len(plain))
			}
		}
	}
}

func nitroIf(only bool) []catalog.Type {
	var list []catalog.Type
	for _, it := range catalog.Load().Types {
		if !only || it.Hypervisor != catalog.HypervisorXen {
			list = append(list, it)
		}
	}
	return list
}

// catalogBy returns the types of a class by name, without offerings.
func catalogBy(t *testing.T, types []catalog.Type, class *Class, settings *Settings) map[string]cloud.InstanceType {
	t.Helper()
	typeSet, err := NewTypeSet(types, class, settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	if typeSet.Failure() != "" {
		t.Errorf("an expression fails: %s", typeSet.Failure())
	}
	list := map[string]cloud.InstanceType{}
	for _, it := range typeSet.Catalog(freeMarket()) {
		it.Offerings = nil
		list[it.Name] = it
	}
	return list
}

func TestResolved(t *testing.T) {
	for _, test := range []struct {
		name    string
		it      string
		family  awsv1.Family
		kubelet Kubelet
		want    Resolved
		pods    int64
		// kube and system are the reserved amounts: cpu, memory, ephemeral storage.
		kube, system []int64
		failure      string
	}{
		{name: "units, rounded up", it: "m5.large", pods: 29, kube: []int64{70, 272 * miB, 3 * giB}, system: []int64{10, 16 * miB, 0},
			kubelet: Kubelet{
				KubeExpressions: map[string]string{"cpu": "30 * vcpus + 1", "memory": "257.9",
					"ephemeral-storage": "1 + vcpus", "pid": "500 * vcpus"},
				SystemExpressions: map[string]string{"cpu": "1", "memory": "16"},
			},
			want: Resolved{KubeReserved: "cpu=70m,ephemeral-storage=3Gi,memory=272Mi,pid=1000", SystemReserved: "cpu=10m,memory=16Mi"}},
		{name: "beside amounts", it: "m5.large", pods: 29, kube: []int64{100, giB, 0}, system: []int64{50, 0, 0},
			kubelet: Kubelet{KubeReserved: map[string]string{"memory": "1Gi"}, SystemReserved: map[string]string{"cpu": "50m"},
				KubeExpressions: map[string]string{"cpu": "100"}},
			want: Resolved{KubeReserved: "cpu=100m"}},
		{name: "reserved for the pods of the expression", it: "m5.large", pods: 20, kube: []int64{0, 480 * miB, 0},
			kubelet: Kubelet{MaxPodsExpression: "max_pods - 9", KubeExpressions: map[string]string{"memory": "11 * max_pods + 255"}},
			want:    Resolved{KubeReserved: "memory=480Mi"}},
		{name: "reserved for the pods per core", it: "m5.large", pods: 8, kube: []int64{80, 0, 0},
			kubelet: Kubelet{MaxPodsExpression: "max_pods", PodsPerCore: 4, KubeExpressions: map[string]string{"cpu": "max_pods * 10"}},
			want:    Resolved{KubeReserved: "cpu=80m"}},
		{name: "pods per core are not seen by the number of pods", it: "m5.large", pods: 8,
			kubelet: Kubelet{MaxPodsExpression: "max_pods == 29 ? 100 : 1", PodsPerCore: 4}},
		{name: "less than no pods", it: "m5.large", pods: 0, kubelet: Kubelet{MaxPodsExpression: "-5"}},
		{name: "a negative amount", it: "m5.large", pods: 29, kube: []int64{0, 0, 0},
			kubelet: Kubelet{KubeExpressions: map[string]string{"cpu": "vcpus - 10"}},
			failure: "spec.kubelet.kubeReserved.cpu: for m5.large: the result is -8, want 0 or more"},
		{name: "no result", it: "m5.large", pods: 29, kubelet: Kubelet{MaxPodsExpression: "1 / (vcpus - 2)"},
			failure: "spec.kubelet.maxPods: for m5.large: division by zero"},
		{name: "invalid", it: "m5.large", pods: 29, kubelet: Kubelet{MaxPodsExpression: "vcpus *"}},
		{name: "Windows: half of the 9 addresses", it: "m5.large", family: awsv1.FamilyWindows2022, pods: 4,
			kubelet: Kubelet{MaxPodsExpression: "max_pods / 2"}},
	} {
		class := &Class{Kubelet: test.kubelet, Family: test.family}
		reserved, err := class.Kubelet.reservations()
		if err != nil {
			t.Fatal(err)
		}
		settings := gateOn()
		b := builder{class: class, settings: settings, family: familyOf(test.family), reserved: reserved, formulas: newFormulas(class, settings)}
		own, amounts, got := b.resolve(known(t, test.it))
		if diff := cmp.Diff(test.want, got); diff != "" || b.formulas.failure != test.failure {
			t.Errorf("%s: failure %q, want %q; results -want +got:\n%s", test.name, b.formulas.failure, test.failure, diff)
		}
		if n := own.pods(known(t, test.it), &b.family, settings); n != test.pods {
			t.Errorf("%s: %d pods, want %d", test.name, n, test.pods)
		}
		for name, pair := range map[string][2][]int64{
			"kube": {test.kube, listed(amounts.kube)}, "system": {test.system, listed(amounts.system)},
		} {
			if pair[0] != nil && !cmp.Equal(pair[0], pair[1]) {
				t.Errorf("%s: %s reserves %v, want %v", test.name, name, pair[1], pair[0])
			}
		}
	}
}

func listed(amounts map[string]int64) []int64 {
	return []int64{amounts[cpu], amounts[memory], amounts[ephemeralStorage]}
}

// With the gate off, a class has the types that it would have without its expressions, and no results.
func TestGateOff(t *testing.T) {
	class, settings := al2023("us-east-1a"), gateOn()
	plain := catalogBy(t, catalog.Load().Types, class, settings)
	class.Kubelet = Kubelet{MaxPodsExpression: "5", KubeExpressions: map[string]string{"cpu": "vcpus * 10"}}
	settings.KubeletExpressions = false
	if diff := cmp.Diff(plain, catalogBy(t, catalog.Load().Types, class, settings)); diff != "" {
		t.Errorf("-without +with expressions:\n%s", diff)
	}
	typeSet, err := NewTypeSet(catalog.Load().Types, class, settings, nil)
	if err != nil || typeSet.Resolved("m5.large") != (Resolved{}) {
		t.Errorf("results %+v, %v; want none", typeSet.Resolved("m5.large"), err)
	}
}

// An expression that fails for one type is not evaluated for those after it, so that a catalog takes bounded time. The
// failure names the first type.
func TestFailureEndsEvaluation(t *testing.T) {
	class, settings := al2023("us-east-1a"), gateOn()
	list := "[" + strings.Repeat("1,", 200) + "1]"
	class.Kubelet = Kubelet{MaxPodsExpression: list + ".map(a, " + list + ".map(b, a + b)).size()"}
	types := []catalog.Type{*known(t, "c5.large"), *known(t, "m5.large")}
	b := builder{class: class, settings: settings, formulas: newFormulas(class, settings)}
	for i := range types {
		b.resolve(&types[i])
	}
	if !b.formulas.pods[0].failed || !strings.HasPrefix(b.formulas.failure, "spec.kubelet.maxPods: for c5.large: ") ||
		!strings.Contains(b.formulas.failure, "cost limit exceeded") {
		t.Errorf("failed %t: %s", b.formulas.pods[0].failed, b.formulas.failure)
	}
}

// BenchmarkExpressions measures the rebuild after a change of a class with expressions, beside BenchmarkNewAssortment.
func BenchmarkExpressions(b *testing.B) {
	class, settings := al2023("us-east-1a", "us-east-1b", "us-east-1c"), gateOn()
	class.Kubelet = Kubelet{MaxPodsExpression: "min(110, default_enis * (ips_per_eni - 1) * 16 + 2)",
		KubeExpressions: map[string]string{"cpu": "60 + 10 * vcpus", "memory": "11 * max_pods + 255"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewTypeSet(catalog.Load().Types, class, settings, nil); err != nil {
			b.Fatal(err)
		}
	}
}
