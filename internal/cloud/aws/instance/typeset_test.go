package instance

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

func TestExcluded(t *testing.T) {
	zone := "us-east-1a"
	block := *known(t, "m5.large")
	block.Usage = []string{catalog.UsageCapacityBlock}
	for _, test := range []struct {
		name   string
		it     catalog.Type
		change func(*Class)
		want   string // part of the reason; empty if the type is included
	}{
		{"plain", *known(t, "m5.large"), func(*Class) {}, ""},
		{"macOS", *known(t, "mac2.metal"), func(*Class) {}, "architecture that Kubernetes nodes do not run on: arm64_mac"},
		{"32 bit beside 64", *known(t, "m1.small"), func(*Class) {}, ""},
		{"a1 on AL2023", *known(t, "a1.large"), func(*Class) {}, "AL2023 does not support"},
		{"a1 on AL2", *known(t, "a1.large"), func(c *Class) { c.Family = awsv1.FamilyAL2 }, ""},
		{"arm on Windows", *known(t, "m6g.large"), func(c *Class) { c.Family = awsv1.FamilyWindows2022 }, "Windows runs on amd64 only"},
		{"no image for arm", *known(t, "m6g.large"), func(c *Class) { c.Images = c.Images[1:2] }, "no image of the class"},
		{"no image for GPUs", *known(t, "g5.xlarge"), func(c *Class) { c.Images = c.Images[:2] }, "no image of the class"},
		{"image not resolved yet", *known(t, "m6g.large"), func(c *Class) { c.Images = nil }, ""},
		{"only in blocks", block, func(*Class) {}, "neither on-demand nor spot offerings"},
		{"no subnet", *known(t, "m5.large"), func(c *Class) { c.Subnets = nil }, "has no offering in any zone of the class's subnets"},
		{"subnet elsewhere", *known(t, "m5.large"), func(c *Class) { c.Subnets[0].Zone = "us-east-1b" }, "has no offering in any zone"},
		{"no pods", *known(t, "m5.large"), func(c *Class) { c.Kubelet.MaxPods = new(int64) }, "no pods left"},
		{"no memory", *known(t, "t3.nano"), func(c *Class) { c.Kubelet.SystemReserved = map[string]string{"memory": "1Gi"} }, "no memory left"},
		{"nested machines", *known(t, "m8ib.large"), func(c *Class) { c.NestedVirtualization = true },
			"does not support nested virtualization"},
		{"nested machines, possible", *known(t, "m8i.large"), func(c *Class) { c.NestedVirtualization = true }, ""},
		{"tracking", *known(t, "m5.large"), func(c *Class) { c.ConnectionTracking = true }, ""},
		{"tracking on metal", *known(t, "m5.metal"), func(c *Class) { c.ConnectionTracking = true }, "is not a virtual machine on Nitro"},
		{"tracking on Xen", *known(t, "m4.large"), func(c *Class) { c.ConnectionTracking = true }, "is not a virtual machine on Nitro"},
		{"interfaces", *known(t, "m5.large"), func(c *Class) { c.Interfaces = []Interface{{}, {Device: 2}} }, ""},
		{"interfaces without ENA", *known(t, "m4.large"), func(c *Class) { c.Interfaces = []Interface{{}} }, "no enhanced network adapter"},
		{"interfaces with ENA", *known(t, "m4.16xlarge"), func(c *Class) { c.Interfaces = []Interface{{}} }, ""},
		{"second card", *known(t, "m5.large"), func(c *Class) { c.Interfaces = []Interface{{}, {Card: 1}} },
			"has 1 network cards, too few for the networkCardIndex 1"},
		{"device too high", *known(t, "m5.large"), func(c *Class) { c.Interfaces = []Interface{{}, {Device: 3}} },
			"3 interfaces on network card 0, too few for the deviceIndex 3"},
		{"device too high on the second card", *known(t, "p5.48xlarge"),
			func(c *Class) { c.Interfaces = []Interface{{}, {Card: 1, Device: 2}} }, "2 interfaces on network card 1"},
		{"EFA", *known(t, "p5.48xlarge"), func(c *Class) { c.Interfaces = []Interface{{}, {Card: 31, Device: 1, EFAOnly: true}} }, ""},
		{"no EFA", *known(t, "m5.large"), func(c *Class) { c.Interfaces = []Interface{{}, {Device: 1, EFAOnly: true}} },
			"has 0 elastic fabric adapters"},
	} {
		t.Run(test.name, func(t *testing.T) {
			class := al2023(zone)
			test.change(class)
			typeSet := typeSetOf(t, sold([]catalog.Type{test.it}, zone), class, nil)
			why, excluded := typeSet.Excluded()[test.it.Name]
			if catalog := typeSet.Catalog(freeMarket()); excluded == (len(catalog) == 1) {
				t.Errorf("excluded %t, and %d types in the catalog", excluded, len(catalog))
			}
			if excluded != (test.want != "") || !strings.Contains(why, test.want) {
				t.Errorf("exclusion reason %q, want %q", why, test.want)
			}
		})
	}
}

// TestEmptiness checks that a class without types is said to be so by its settings, and none with a type.
func TestEmptiness(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Class)
		want   string
	}{
		"types":    {func(*Class) {}, ""},
		"one left": {func(c *Class) { c.Kubelet.KubeReserved = map[string]string{"cpu": "10"} }, ""},
		"max pods": {func(c *Class) { c.Kubelet.MaxPods = new(int64(0)) },
			"3 of 4: it has no pods left after reservations: spec.kubelet.maxPods is 0; " +
				"1 of 4: it has an architecture that Kubernetes nodes do not run on: arm64_mac"},
		"reserved": {func(c *Class) {
			c.Kubelet.KubeReserved, c.Kubelet.SystemReserved = map[string]string{"memory": "1Ti"}, map[string]string{"memory": "2Ti"}
			c.Kubelet.EvictionHard = map[string]string{"memory.available": "50%"}
		}, "3 of 4: it has no memory left after reservations: spec.kubelet.kubeReserved.memory is 1Ti, " +
			`spec.kubelet.systemReserved.memory is 2Ti, spec.kubelet.evictionHard["memory.available"] is 50%`},
		"zones": {func(c *Class) { c.Subnets = []Subnet{{ID: "subnet-b", Zone: "us-east-1b"}} },
			"3 of 4: it has no offering in any zone of the class's subnets (us-east-1b)"},
		"four reasons": {func(c *Class) { c.Interfaces = []Interface{{}, {Device: 10}} }, "; 1 for other reasons"},
	} {
		var types []catalog.Type
		for _, name := range []string{"m5.large", "m5.8xlarge", "m4.large", "mac2.metal"} {
			types = append(types, *known(t, name))
		}
		class := al2023("us-east-1a")
		test.change(class)
		got := typeSetOf(t, sold(types, "us-east-1a"), class, nil).Emptiness()
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if got := typeSetOf(t, nil, al2023("us-east-1a"), nil).Emptiness(); got != "" {
		t.Errorf("without types: %q", got)
	}
}

func TestImage(t *testing.T) {
	class := al2023("us-east-1a")
	class.Images = append(class.Images, Image{ID: "ami-newer", Requirements: class.Images[1].Requirements})
	typeSet := typeSetOf(t, sold(catalog.Load().Types, "us-east-1a"), class, nil)
	for name, want := range map[string]string{
		"m5.large": "ami-amd", "m6g.large": "ami-arm", "g5.xlarge": "ami-amd-nvidia", "g5g.xlarge": "ami-arm-nvidia",
		"inf2.xlarge": "ami-neuron", "mac2.metal": "", "m5.nonsense": "",
	} {
		if got := typeSet.Image(name); got != want {
			t.Errorf("%s runs %q, want %q", name, got, want)
		}
	}
	class.Images = []Image{{ID: "ami-twice", Requirements: []cloud.Requirement{
		{Key: "kubernetes.io/arch", Operator: "NotIn", Values: []string{"amd64"}},
		{Key: "kubernetes.io/arch", Operator: "In", Values: []string{"amd64", "arm64"}},
	}}}
	typeSet = typeSetOf(t, sold(catalog.Load().Types, "us-east-1a"), class, nil)
	if m5, m6g := typeSet.Image("m5.large"), typeSet.Image("m6g.large"); m5 != "" || m6g != "ami-twice" {
		t.Errorf("two requirements on one key: m5.large runs %q, m6g.large %q", m5, m6g)
	}
}

// Memory seen on nodes replaces the estimate, for their type and image only.
func TestSeenMemory(t *testing.T) {
	memories := NewMemory()
	memories.Observe(known(t, "m5.large"), "ami-amd", 7700*miB)
	memories.Observe(known(t, "m5.xlarge"), "ami-old", 15000*miB)
	got := map[string]int64{}
	for _, it := range typeSetOf(t, sold(catalog.Load().Types, "us-east-1a"), al2023("us-east-1a"),
		memories.Least).Catalog(freeMarket()) {
		if it.Name == "m5.large" || it.Name == "m5.xlarge" {
			got[it.Name] = it.Capacity[memory] / miB
			if want := it.Capacity[memory] - it.Overhead[memory]; it.Allocatable()[memory] != want {
				t.Errorf("%s: allocatable %d, want %d", it.Name, it.Allocatable()[memory], want)
			}
		}
	}
	if diff := cmp.Diff(map[string]int64{"m5.large": 7700, "m5.xlarge": 16384 - 1229}, got); diff != "" {
		t.Errorf("MiB -want +got:\n%s", diff)
	}
}

func TestOfferings(t *testing.T) {
	class := al2023("us-east-1d", "us-east-1a", "us-east-1e", "us-east-1a")
	class.Subnets[0].ZoneID, class.Subnets[3].ZoneID = "", "" // as in the status of an older release
	asked, refusedAt := []Offer{}, time.Date(2026, 1, 1, 20, 49, 0, 0, time.UTC)
	market := &Market{
		OnDemand: func(name string) (float64, bool) { return 0.5, name == "m5.large" },
		Spot:     func(_, zone string) (float64, bool) { return 0.2, zone == "us-east-1a" },
		Unavailable: func(o Offer) time.Time {
			asked = append(asked, o)
			if o.Zone == "us-east-1a" && o.CapacityType == "on-demand" {
				return refusedAt.Add(UnavailableFor)
			}
			return time.Time{}
		},
	}
	types := []catalog.Type{*known(t, "m5.large"), *known(t, "p5e.48xlarge"), *known(t, "hpc7a.12xlarge")}
	types[1].Zones, types[2].Zones = []string{"us-east-1a"}, []string{"us-east-1a"}
	catalog := typeSetOf(t, types, class, nil).Catalog(market)
	withID := []cloud.Requirement{{Key: "topology.k8s.aws/zone-id", Operator: "In", Values: []string{"use1-az1"}}}
	without := []cloud.Requirement{{Key: "topology.k8s.aws/zone-id", Operator: "DoesNotExist"}}
	want := map[string][]cloud.Offering{
		"m5.large": {
			{Zone: "us-east-1a", CapacityType: "on-demand", Price: 0.5, RefusedAt: refusedAt, RetryAt: refusedAt.Add(UnavailableFor),
				Requirements: withID},
			{Zone: "us-east-1a", CapacityType: "spot", Price: 0.2, Available: true, Requirements: withID},
			{Zone: "us-east-1d", CapacityType: "on-demand", Price: 0.5, Available: true, Requirements: without},
			{Zone: "us-east-1d", CapacityType: "spot", Price: 0.5, Unpriced: true, Requirements: without}, // without a price: unavailable
		},
		"p5e.48xlarge": {
			{Zone: "us-east-1a", CapacityType: "on-demand", Unpriced: true, RefusedAt: refusedAt, RetryAt: refusedAt.Add(UnavailableFor),
				Requirements: withID}, // no price
			{Zone: "us-east-1a", CapacityType: "spot", Price: 0.2, Available: true, Requirements: withID},
		},
		"hpc7a.12xlarge": {{Zone: "us-east-1a", CapacityType: "on-demand", Unpriced: true, RefusedAt: refusedAt,
			RetryAt: refusedAt.Add(UnavailableFor), Requirements: withID}}, // no spot usage
	}
	got := map[string][]cloud.Offering{}
	for _, it := range catalog {
		got[it.Name] = it.Offerings
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(cloud.Offering{}, "Price"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want["m5.large"], got["m5.large"]); diff != "" {
		t.Errorf("m5.large -want +got:\n%s", diff)
	}
	first := asked[slices.IndexFunc(asked, func(o Offer) bool { return o.Type == "m5.large" })]
	wantOffer := Offer{CapacityType: "on-demand", Type: "m5.large", Zone: "us-east-1a", Class: "default",
		Subnets: []string{"subnet-1", "subnet-3"}}
	if diff := cmp.Diff(wantOffer, first); diff != "" {
		t.Errorf("queried offers -want +got:\n%s", diff)
	}
}

// A catalog is in the order that all providers use.
func TestCatalogOrder(t *testing.T) {
	shuffled := slices.Clone(catalog.Load().Types)
	slices.Reverse(shuffled)
	class := al2023("us-east-1f", "us-east-1a", "us-east-1c")
	got := typeSetOf(t, shuffled, class, nil).Catalog(freeMarket())
	want := slices.Clone(got)
	for i := range want {
		want[i].Offerings = slices.Clone(want[i].Offerings)
	}
	cloud.SortCatalog(want)
	if !reflect.DeepEqual(want, got) { // cmp takes seconds for this amount of data
		t.Errorf("the catalog is not in order:\n%s", cmp.Diff(want, got))
	}
	if ordered := typeSetOf(t, catalog.Load().Types, class, nil).Catalog(freeMarket()); !reflect.DeepEqual(ordered, got) {
		t.Errorf("another order of types results in another catalog:\n%s", cmp.Diff(ordered, got))
	}
}

func TestClassOf(t *testing.T) {
	pointer := func(s string) *string { return &s }
	family, raid0, size, most, perCore := awsv1.FamilyBottlerocket, awsv1.InstanceStorePolicyRAID0,
		resource.MustParse("50Gi"), intstr.FromInt32(58), int32(8)
	class := &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: awsv1.EC2NodeClassSpec{
			AMIFamily: &family, InstanceStorePolicy: &raid0,
			BlockDeviceMappings: []awsv1.BlockDeviceMapping{
				{DeviceName: pointer("/dev/xvda"), EBS: &awsv1.BlockDevice{SnapshotID: pointer("snap-1")}},
				{DeviceName: pointer("/dev/xvdb"), RootVolume: true, EBS: &awsv1.BlockDevice{VolumeSize: &size}},
				{DeviceName: pointer("/dev/xvdc")},
			},
			NetworkInterfaces: []awsv1.NetworkInterface{
				{InterfaceType: awsv1.InterfaceTypeInterface}, {NetworkCardIndex: 1, DeviceIndex: 2, InterfaceType: awsv1.InterfaceTypeEFAOnly},
			},
			ConnectionTracking: &awsv1.ConnectionTracking{}, CPUOptions: &awsv1.CPUOptions{NestedVirtualization: pointer(awsv1.Enabled)},
			Kubelet: &awsv1.KubeletConfiguration{
				MaxPods: &most, PodsPerCore: &perCore, KubeReserved: map[string]string{"cpu": "1", "memory": "memory_mib / 10"},
				SystemReserved: map[string]string{"memory": "1Gi"}, EvictionHard: map[string]string{"memory.available": "5%"},
			},
		},
		Status: awsv1.EC2NodeClassStatus{
			Subnets: []awsv1.Subnet{{ID: "subnet-1", Zone: "us-east-1a", ZoneID: "use1-az1"}},
			AMIs: []awsv1.AMI{{ID: "ami-1", Requirements: []corev1.NodeSelectorRequirement{
				{Key: "kubernetes.io/arch", Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}},
			}}},
		},
	}
	number := int64(58)
	want := Class{
		Name: "web", Family: awsv1.FamilyBottlerocket, RAID0: true, NestedVirtualization: true, ConnectionTracking: true,
		Images: []Image{{ID: "ami-1", Requirements: []cloud.Requirement{{Key: "kubernetes.io/arch", Operator: "In",
			Values: []string{"amd64"}}}}},
		Subnets:    []Subnet{{ID: "subnet-1", Zone: "us-east-1a", ZoneID: "use1-az1"}},
		Volumes:    []Volume{{Device: "/dev/xvda"}, {Device: "/dev/xvdb", Root: true, Bytes: 50 * giB}},
		Interfaces: []Interface{{}, {Card: 1, Device: 2, EFAOnly: true}},
		Kubelet: Kubelet{
			MaxPods: &number, PodsPerCore: 8, KubeReserved: map[string]string{"cpu": "1"},
			SystemReserved: map[string]string{"memory": "1Gi"}, EvictionHard: map[string]string{"memory.available": "5%"},
			KubeExpressions: map[string]string{"memory": "memory_mib / 10"},
		},
	}
	if diff := cmp.Diff(want, ClassOf(class)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	expression := intstr.FromString("max_pods / 2")
	alias := &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{
		AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}, Kubelet: &awsv1.KubeletConfiguration{MaxPods: &expression},
		CPUOptions: &awsv1.CPUOptions{NestedVirtualization: pointer(awsv1.Disabled)},
	}}
	if diff := cmp.Diff(Class{Family: awsv1.FamilyAL2023, Kubelet: Kubelet{MaxPodsExpression: "max_pods / 2"}}, ClassOf(alias)); diff != "" {
		t.Errorf("a plain class -want +got:\n%s", diff)
	}
}
