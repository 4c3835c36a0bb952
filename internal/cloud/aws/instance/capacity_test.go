package instance

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

func TestMemoryEstimate(t *testing.T) {
	for _, test := range []struct {
		name     string
		overhead float64
		wantMiB  int64
	}{
		{"m5.large", 0, 8192},
		{"m5.large", 0.075, 8192 - 615}, // 614.4 rounded up
		{"m6g.large", 0, 8192 - 64},
		{"m6g.large", 0.075, 8128 - 610}, // 609.6 rounded up
		{"m5.large", 0.999999, 0},
	} {
		if got := estimatedMemory(known(t, test.name), test.overhead); got != test.wantMiB*miB {
			t.Errorf("%s at %v: %d MiB, want %d", test.name, test.overhead, got/miB, test.wantMiB)
		}
	}
}

func TestStorage(t *testing.T) {
	const size = 100 * giB
	for _, test := range []struct {
		name   string
		family awsv1.Family
		it     string
		class  Class
		want   int64
	}{
		{"family's own", awsv1.FamilyAL2023, "m5d.large", Class{}, 20 * giB},
		{"Bottlerocket's second volume", awsv1.FamilyBottlerocket, "m5.large", Class{}, 20 * giB},
		{"Windows", awsv1.FamilyWindows2022, "m5.large", Class{}, 50 * giB},
		{"Custom", awsv1.FamilyCustom, "m5.large", Class{}, 20 * giB},
		{"unknown family is AL2", "Gentoo", "m5.large", Class{}, 20 * giB},
		{"disks joined", awsv1.FamilyAL2023, "m5d.large", Class{RAID0: true}, 75 * gB},
		{"disks that are not NVMe joined", awsv1.FamilyAL2, "d2.xlarge", Class{RAID0: true}, 6144 * gB},
		{"no disks to join", awsv1.FamilyAL2023, "m5.large", Class{RAID0: true}, 20 * giB},
		{"disks that Windows does not join", awsv1.FamilyWindows2022, "m5d.large", Class{RAID0: true}, 50 * giB},
		{"disks before volumes", awsv1.FamilyAL2023, "m5d.large", Class{RAID0: true, Volumes: []Volume{{Root: true, Bytes: size}}}, 75 * gB},
		{"root before the family's device", awsv1.FamilyBottlerocket, "m5.large", Class{Volumes: []Volume{
			{Device: "/dev/xvdb", Bytes: 7 * giB}, {Device: "/dev/xvdz", Root: true, Bytes: size},
		}}, size},
		{"the family's device", awsv1.FamilyBottlerocket, "m5.large", Class{Volumes: []Volume{
			{Device: "/dev/xvda", Bytes: 7 * giB}, {Device: "/dev/xvdb", Bytes: size},
		}}, size},
		{"another device only", awsv1.FamilyAL2023, "m5.large", Class{Volumes: []Volume{{Device: "/dev/xvdz", Bytes: size}}}, 20 * giB},
		{"size of a snapshot", awsv1.FamilyAL2023, "m5.large", Class{Volumes: []Volume{{Device: "/dev/xvda", Root: true}}}, 20 * giB},
		{"Custom: the last volume", awsv1.FamilyCustom, "m5.large", Class{Volumes: []Volume{
			{Device: "/dev/xvda", Bytes: 7 * giB}, {Device: "/dev/sdz", Bytes: size},
		}}, size},
		{"Custom: the root", awsv1.FamilyCustom, "m5.large", Class{Volumes: []Volume{
			{Device: "/dev/xvda", Root: true, Bytes: 7 * giB}, {Device: "/dev/sdz", Bytes: size},
		}}, 7 * giB},
	} {
		f := familyOf(test.family)
		if got := test.class.storage(known(t, test.it), &f); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

func TestExtendedResources(t *testing.T) {
	gaudi := known(t, "m5.large")
	gaudi.GPU = &catalog.Device{Name: "Gaudi HL-205", Manufacturer: "Habana", Count: 8}
	for _, test := range []struct {
		name   string
		it     *catalog.Type
		family awsv1.Family
		nics   []Interface
		want   map[string]int64
	}{
		{"none", known(t, "t3.large"), awsv1.FamilyAL2023, nil, map[string]int64{}},
		{"trunk", known(t, "m5.large"), awsv1.FamilyAL2023, nil, map[string]int64{awsv1.ResourcePodENI: 9}},
		{"NVIDIA", known(t, "g5.48xlarge"), awsv1.FamilyAL2023, nil, map[string]int64{
			awsv1.ResourceNVIDIAGPU: 8, awsv1.ResourceEFA: 1, awsv1.ResourcePodENI: 115,
		}},
		{"AMD", known(t, "g4ad.16xlarge"), awsv1.FamilyAL2023, nil, map[string]int64{awsv1.ResourceAMDGPU: 4, awsv1.ResourcePodENI: 6}},
		{"Gaudi", gaudi, awsv1.FamilyAL2023, nil, map[string]int64{awsv1.ResourceHabanaGaudi: 8, awsv1.ResourcePodENI: 9}},
		{"Neuron", known(t, "inf1.24xlarge"), awsv1.FamilyAL2023, nil, map[string]int64{
			awsv1.ResourceNeuron: 16, awsv1.ResourceNeuronCore: 64, awsv1.ResourceEFA: 1, awsv1.ResourcePodENI: 111,
		}},
		{"part of a GPU", known(t, "g6f.large"), awsv1.FamilyAL2023, nil, map[string]int64{awsv1.ResourcePodENI: 10}},
		{"EFA as the class says", known(t, "p4d.24xlarge"), awsv1.FamilyAL2023,
			[]Interface{{}, {Card: 1, Device: 1, EFAOnly: true}, {Card: 2, Device: 1, EFAOnly: true}},
			map[string]int64{awsv1.ResourceNVIDIAGPU: 8, awsv1.ResourceEFA: 2, awsv1.ResourcePodENI: 62}},
		{"no EFA as the class says", known(t, "p4d.24xlarge"), awsv1.FamilyAL2023, []Interface{{}},
			map[string]int64{awsv1.ResourceNVIDIAGPU: 8, awsv1.ResourcePodENI: 62}},
		{"Windows", known(t, "m5.large"), awsv1.FamilyWindows2022, nil, map[string]int64{
			awsv1.ResourcePodENI: 9, awsv1.ResourcePrivateIPv4Address: 9,
		}},
	} {
		class, f := Class{Interfaces: test.nics}, familyOf(test.family)
		got := class.capacity(test.it, &f, defaults())
		maps.DeleteFunc(got, func(name string, _ int64) bool { return !strings.Contains(name, "/") })
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s -want +got:\n%s", test.name, diff)
		}
	}
}

func TestSpecial(t *testing.T) {
	for name, want := range map[string]bool{
		"m5.large": false, "m5d.24xlarge": false, "m5.metal": true, "c8g.metal-24xl": true, "g5.xlarge": true, "g4ad.xlarge": true,
		"g6f.large": true, "inf2.xlarge": true, "trn1.2xlarge": true, "dl2q.24xlarge": true, "f2.6xlarge": true, "vt1.3xlarge": true,
	} {
		if got := special(known(t, name)); got != want {
			t.Errorf("%s is special: %t, want %t", name, got, want)
		}
	}
}

func TestPods(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	for _, test := range []struct {
		name     string
		it       string
		family   awsv1.Family
		class    Class
		settings Settings
		want     int64
	}{
		{"interfaces", "m5.large", awsv1.FamilyAL2023, Class{}, Settings{}, 29},
		{"first card only", "p4d.24xlarge", awsv1.FamilyAL2023, Class{}, Settings{}, 15*49 + 2},
		{"Custom", "m5.large", awsv1.FamilyCustom, Class{}, Settings{}, 29},
		{"reserved interface", "m5.large", awsv1.FamilyAL2023, Class{}, Settings{ReservedENIs: 1}, 20},
		{"all interfaces reserved", "m5.large", awsv1.FamilyAL2023, Class{}, Settings{ReservedENIs: 3}, 0},
		{"EFA on the first card", "p4d.24xlarge", awsv1.FamilyAL2023,
			Class{Interfaces: []Interface{{}, {Device: 1, EFAOnly: true}, {Card: 1, Device: 1, EFAOnly: true}}}, Settings{}, 14*49 + 2},
		{"said", "m5.large", awsv1.FamilyAL2023, Class{Kubelet: Kubelet{MaxPods: number(110)}}, Settings{ReservedENIs: 3}, 110},
		{"per core", "m5.large", awsv1.FamilyAL2023, Class{Kubelet: Kubelet{PodsPerCore: 4}}, Settings{}, 8},
		{"per core is no gift", "m5.large", awsv1.FamilyAL2023, Class{Kubelet: Kubelet{PodsPerCore: 400}}, Settings{}, 29},
		{"said, and per core", "m5.large", awsv1.FamilyAL2023, Class{Kubelet: Kubelet{MaxPods: number(110), PodsPerCore: 10}}, Settings{}, 20},
		{"Bottlerocket knows no pods per core", "m5.large", awsv1.FamilyBottlerocket, Class{Kubelet: Kubelet{PodsPerCore: 4}}, Settings{}, 29},
		{"Windows", "m5.large", awsv1.FamilyWindows2022, Class{}, Settings{}, 9},
		{"Windows, a large type", "m5.24xlarge", awsv1.FamilyWindows2022, Class{}, Settings{}, 49},
		{"Windows, said", "m5.large", awsv1.FamilyWindows2022, Class{Kubelet: Kubelet{MaxPods: number(40)}}, Settings{}, 40},
		{"Windows, per core", "m5.large", awsv1.FamilyWindows2022, Class{Kubelet: Kubelet{PodsPerCore: 4}}, Settings{}, 8},
		{"IPv6 comes as prefixes", "m5.large", awsv1.FamilyAL2023, Class{}, Settings{IPv6: true}, 110},
		{"prefixes on a small type", "t3.nano", awsv1.FamilyAL2023, Class{}, Settings{IPv6: true}, 2*1*16 + 2},
		{"prefixes on a large type", "m5.8xlarge", awsv1.FamilyAL2023, Class{}, Settings{IPv6: true}, 250},
		{"prefixes need Nitro", "m4.large", awsv1.FamilyAL2023, Class{}, Settings{IPv6: true}, 20},
		{"prefixes by IPv4", "m5.large", awsv1.FamilyAL2023, Class{PrefixDelegation: true}, Settings{}, 110},
		{"prefixes by IPv4 on a large type", "m5.8xlarge", awsv1.FamilyBottlerocket, Class{PrefixDelegation: true}, Settings{}, 250},
		{"prefixes by IPv4 on metal", "m5.metal", awsv1.FamilyAL2023, Class{PrefixDelegation: true}, Settings{}, 250},
		{"prefixes by IPv4, without Nitro", "m4.large", awsv1.FamilyAL2023, Class{PrefixDelegation: true}, Settings{}, 20},
		{"prefixes, one interface reserved", "t3.nano", awsv1.FamilyAL2023, Class{PrefixDelegation: true}, Settings{ReservedENIs: 1}, 1*1*16 + 2},
		{"prefixes, an interface for EFA alone", "t3.nano", awsv1.FamilyAL2023,
			Class{PrefixDelegation: true, Interfaces: []Interface{{}, {Device: 1, EFAOnly: true}}}, Settings{}, 1*1*16 + 2},
		{"prefixes, and per core", "m5.large", awsv1.FamilyAL2023,
			Class{PrefixDelegation: true, Kubelet: Kubelet{PodsPerCore: 10}}, Settings{}, 20},
		{"prefixes, and said", "m5.large", awsv1.FamilyAL2023,
			Class{PrefixDelegation: true, Kubelet: Kubelet{MaxPods: number(60)}}, Settings{}, 60},
		{"prefixes, on Windows", "m5.large", awsv1.FamilyWindows2022, Class{PrefixDelegation: true}, Settings{}, 110},
		{"prefixes, on Windows with few addresses", "t3.small", awsv1.FamilyWindows2022, Class{PrefixDelegation: true}, Settings{}, 3 * 16},
		{"prefixes, on Windows without Nitro", "m4.16xlarge", awsv1.FamilyWindows2022, Class{PrefixDelegation: true}, Settings{}, 29},
		{"prefixes, all interfaces reserved", "t3.nano", awsv1.FamilyAL2023, Class{}, Settings{IPv6: true, ReservedENIs: 2}, 0},
	} {
		f := familyOf(test.family)
		if got := test.class.pods(known(t, test.it), &f, &test.settings); got != test.want {
			t.Errorf("%s: %s takes %d pods, want %d", test.name, test.it, got, test.want)
		}
	}
}

func TestOverhead(t *testing.T) {
	const storage = 20 * giB
	eni := func(pods int64) int64 { return (11*pods + 255) * miB }
	for _, test := range []struct {
		name    string
		family  awsv1.Family
		kubelet Kubelet
		want    map[string]int64
	}{
		{"nothing said", awsv1.FamilyAL2023, Kubelet{},
			map[string]int64{cpu: 70, memory: eni(29) + 100*miB, ephemeralStorage: giB + storage/10}},
		{"fewer pods reserve the same", awsv1.FamilyAL2023, Kubelet{MaxPods: new(int64), PodsPerCore: 1},
			map[string]int64{cpu: 70, memory: eni(29) + 100*miB, ephemeralStorage: giB + storage/10}},
		{"fewer pods reserve less on Bottlerocket", awsv1.FamilyBottlerocket, Kubelet{MaxPods: new(int64)},
			map[string]int64{cpu: 70, memory: eni(0) + 100*miB, ephemeralStorage: giB + storage/10}},
		{"Windows", awsv1.FamilyWindows2022, Kubelet{},
			map[string]int64{cpu: 70, memory: eni(9) + 100*miB, ephemeralStorage: giB + 5*giB}},
		{"reserved in part", awsv1.FamilyAL2023, Kubelet{KubeReserved: map[string]string{"cpu": "1", "pid": "1000"}},
			map[string]int64{cpu: 1000, memory: eni(29) + 100*miB, ephemeralStorage: giB + storage/10}},
		{"reserved in whole", awsv1.FamilyAL2023, Kubelet{KubeReserved: map[string]string{"cpu": "90m", "memory": "1Gi",
			"ephemeral-storage": "2Gi"}},
			map[string]int64{cpu: 90, memory: giB + 100*miB, ephemeralStorage: 2*giB + storage/10}},
		{"for the system", awsv1.FamilyAL2023, Kubelet{SystemReserved: map[string]string{"cpu": "100m", "memory": "50Mi"}},
			map[string]int64{cpu: 170, memory: eni(29) + 150*miB, ephemeralStorage: giB + storage/10}},
		{"eviction by amount", awsv1.FamilyAL2023, Kubelet{EvictionHard: map[string]string{"memory.available": "500Mi",
			"nodefs.available": "1Gi"}},
			map[string]int64{cpu: 70, memory: eni(29) + 500*miB, ephemeralStorage: 2 * giB}},
		{"eviction by percentage, rounded up", awsv1.FamilyAL2023,
			Kubelet{EvictionHard: map[string]string{"memory.available": "7%", "nodefs.available": "33%"}},
			map[string]int64{cpu: 70, memory: eni(29) + 556154225, ephemeralStorage: giB + 7086696039}},
		{"no eviction", awsv1.FamilyAL2023, Kubelet{EvictionHard: map[string]string{"memory.available": "100%", "nodefs.available": "0%"}},
			map[string]int64{cpu: 70, memory: eni(29), ephemeralStorage: giB}},
		{"other signals do not count", awsv1.FamilyAL2023,
			Kubelet{EvictionHard: map[string]string{"imagefs.available": "30%", "pid.available": "9"}},
			map[string]int64{cpu: 70, memory: eni(29) + 100*miB, ephemeralStorage: giB + storage/10}},
	} {
		class, f := Class{Kubelet: test.kubelet}, familyOf(test.family)
		reserved, err := test.kubelet.reservations()
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		m5 := known(t, "m5.large")
		if diff := cmp.Diff(test.want, reserved.overhead(m5, &f, class.capacity(m5, &f, defaults()))); diff != "" {
			t.Errorf("%s -want +got:\n%s", test.name, diff)
		}
	}
}

func TestKubeletRefused(t *testing.T) {
	for name, test := range map[string]struct {
		kubelet Kubelet
		want    string
	}{
		"kubeReserved": {Kubelet{KubeReserved: map[string]string{"cpu": "max(1, 2)"}},
			`spec.kubelet.kubeReserved["cpu"]: is "max(1, 2)", want`},
		"systemReserved": {Kubelet{SystemReserved: map[string]string{"memory": "-1Gi"}},
			`spec.kubelet.systemReserved["memory"]: is "-1Gi", want`},
		"eviction": {Kubelet{EvictionHard: map[string]string{"memory.available": "much"}},
			`spec.kubelet.evictionHard["memory.available"]: is "much", want`},
		"percentage": {Kubelet{EvictionHard: map[string]string{"nodefs.available": "101%"}},
			`spec.kubelet.evictionHard["nodefs.available"]: is "101%", want`},
		"not a number":   {Kubelet{EvictionHard: map[string]string{"nodefs.available": "NaN%"}}, `is "NaN%", want`},
		"less than none": {Kubelet{EvictionHard: map[string]string{"nodefs.available": "-1Gi"}}, `is "-1Gi", want`},
	} {
		_, err := NewTypeSet(nil, &Class{Name: "web", Kubelet: test.kubelet}, defaults(), nil)
		switch {
		case err == nil:
			t.Errorf("%s: no error", name)
		case !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: err.Error() lacks %q, error %v", name, test.want, err)
		case !strings.Contains(err.Error(), `EC2NodeClass "web"`):
			t.Errorf("%s: err.Error() lacks `EC2NodeClass \"web\"`, error %v", name, err)
		}
	}
}

func TestSettingsRefused(t *testing.T) {
	for want, settings := range map[string]Settings{
		"region: is missing":                        {},
		"vm memory overhead percent: is -0.1, want": {Region: "us-east-1", MemoryOverheadPercent: -0.1},
		"vm memory overhead percent: is 7.5, want":  {Region: "us-east-1", MemoryOverheadPercent: 7.5},
		"reserved enis: is -1, want 0 or more":      {Region: "us-east-1", ReservedENIs: -1},
	} {
		if _, err := NewTypeSet(nil, &Class{}, &settings, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// For every class, no value is negative, allocatable is at most capacity, and every included type can run a pod.
func TestAllTypesAllClasses(t *testing.T) {
	types := sold(catalog.Load().Types, "us-east-1a")
	two := int64(2)
	for name, change := range map[string]func(*Class, *Settings){
		"AL2":               func(c *Class, _ *Settings) { c.Family = awsv1.FamilyAL2 },
		"Bottlerocket":      func(c *Class, _ *Settings) { c.Family = awsv1.FamilyBottlerocket },
		"Windows":           func(c *Class, _ *Settings) { c.Family, c.Images = awsv1.FamilyWindows2022, nil },
		"Custom, no images": func(c *Class, _ *Settings) { c.Family, c.Images = awsv1.FamilyCustom, nil },
		"few pods":          func(c *Class, _ *Settings) { c.Kubelet.MaxPods = &two },
		"much reserved":     func(c *Class, _ *Settings) { c.Kubelet.SystemReserved = map[string]string{"cpu": "3", "memory": "9Gi"} },
		"disks":             func(c *Class, _ *Settings) { c.RAID0 = true },
		"IPv6":              func(_ *Class, s *Settings) { s.IPv6 = true },
		"reserved":          func(_ *Class, s *Settings) { s.ReservedENIs = 2 },
		"half the memory":   func(_ *Class, s *Settings) { s.MemoryOverheadPercent = 0.5 },
	} {
		class, settings := al2023("us-east-1a"), defaults()
		change(class, settings)
		typeSet, err := NewTypeSet(types, class, settings, nil)
		if err != nil {
			t.Fatal(err)
		}
		catalog := typeSet.Catalog(freeMarket())
		if n := len(catalog) + len(typeSet.Excluded()); n != len(types) || len(catalog) < 500 {
			t.Errorf("%s: %d types are included, of %d that are accounted for", name, len(catalog), n)
		}
		if !slices.IsSortedFunc(catalog, func(a, b cloud.InstanceType) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%s: the catalog is not sorted", name)
		}
		for i := range catalog {
			checkAmounts(t, name, &catalog[i])
		}
	}
}

func checkAmounts(t *testing.T, class string, it *cloud.InstanceType) {
	t.Helper()
	allocatable := it.Allocatable()
	for resource, amount := range it.Capacity {
		switch {
		case amount < 0:
			t.Errorf("%s: amount is %v, want at least 0, %s", class, amount, it.Name)
		case it.Overhead[resource] < 0:
			t.Errorf("%s: it.Overhead[resource] is %v, want at least 0, %s, of %s", class, it.Overhead[resource], it.Name, resource)
		case allocatable[resource] > amount:
			t.Errorf("%s: allocatable[resource] is %v, want at most %v, %s, of %s", class, allocatable[resource], amount, it.Name, resource)
		case allocatable[resource] < 0:
			t.Errorf("%s: allocatable[resource] is %v, want at least 0, %s, of %s", class, allocatable[resource], it.Name, resource)
		}
	}
	for _, resource := range []string{cpu, memory, pods} {
		if allocatable[resource] <= 0 {
			t.Errorf("%s: %s has no allocatable %s", class, it.Name, resource)
		}
	}
}
