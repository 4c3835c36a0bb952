package launch

import (
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awssim/kubelet"
)

// imageFamilies are the families of the simulated kubelet, with the volume of the pods.
var imageFamilies = map[awsv1.Family]struct{ name, volume string }{
	awsv1.FamilyAL2: {"al2", "/dev/xvda"}, awsv1.FamilyAL2023: {"al2023", "/dev/xvda"},
	awsv1.FamilyBottlerocket: {"bottlerocket", "/dev/xvdb"},
}

// classOf returns a class of a family that is resolved, for every architecture.
func classOf(family awsv1.Family, change func(*awsv1.EC2NodeClass)) *awsv1.EC2NodeClass {
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "class"},
		Spec:   awsv1.EC2NodeClassSpec{AMIFamily: &family},
		Status: awsv1.EC2NodeClassStatus{InstanceProfile: "nodes", AMIs: []awsv1.AMI{{ID: "ami-1"}}}}
	for _, zone := range []string{zoneA, zoneB, "us-east-1c"} {
		class.Status.Subnets = append(class.Status.Subnets, awsv1.Subnet{ID: "subnet-" + zone, Zone: zone})
	}
	change(class)
	return class
}

// orderOf returns an order for the class, with all types of the catalog that it can launch on demand.
func orderOf(t *testing.T, class *awsv1.EC2NodeClass, settings *instance.Settings, seen instance.Seen) *Order {
	t.Helper()
	facts := instance.ClassOf(class)
	typeSet, err := instance.NewTypeSet(catalog.Load().Types, &facts, settings, seen)
	if err != nil || typeSet.Failure() != "" {
		t.Fatal(err, typeSet.Failure())
	}
	prices := instance.NewPrices("us-east-1", catalog.Load())
	types := typeSet.Catalog(&instance.Market{OnDemand: prices.OnDemand, Spot: prices.Spot,
		Unavailable: func(instance.Offer) time.Time { return time.Time{} }})
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", UID: "claim",
		Labels: map[string]string{karpv1.LabelNodePool: "pool"}}}
	return &Order{Claim: claim, Class: class, Types: types, Image: typeSet.Image, Resolved: typeSet.Resolved,
		Cluster: userdata.Cluster{Name: cluster, Endpoint: "https://cluster", CABundle: base64.StdEncoding.EncodeToString([]byte("ca")),
			ServiceCIDR: "10.100.0.0/16", DNS: "10.100.0.10"}}
}

// seenAsSimulated returns the memory that the simulated kubelet reports.
func seenAsSimulated(name, _ string) (int64, bool) {
	it, known := catalog.Load().Type(name)
	if !known {
		return 0, false
	}
	return kubelet.Memory(int(it.MemoryMiB)), true
}

// nodeOf returns what a node of the type would have allocatable by the launch template.
func nodeOf(t *testing.T, family awsv1.Family, it *catalog.Type, made template) corev1.ResourceList {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(*made.data.UserData)
	if err != nil {
		t.Fatal(err)
	}
	config, err := kubelet.Read(imageFamilies[family].name, text)
	if err != nil {
		t.Fatalf("%s: %v in\n%s", it.Name, err, text)
	}
	machine := awssim.Instance{Type: it.Name, ImageFamily: imageFamilies[family].name, VCPUs: int(it.VCPUs), MemoryMiB: int(it.MemoryMiB),
		ENIs: int(it.PrimaryENIs()), IPv4PerENI: int(it.IPv4PerENI)}
	for _, device := range made.data.BlockDeviceMappings {
		if *device.DeviceName == imageFamilies[family].volume {
			machine.PodsGiB = int(*device.Ebs.VolumeSize)
		}
	}
	return kubelet.Allocatable(machine, config)
}

// What is planned for each type is what the simulated kubelet computes from the user data and the volumes of its launch
// template, for each family that has user data of ours.
func TestPlanIsNode(t *testing.T) {
	pods := intstr.FromString("min(vcpus > 30 ? 200 : 100, max_pods) - 1")
	for family := range imageFamilies {
		for name, change := range map[string]func(*awsv1.EC2NodeClass){
			"plain": func(*awsv1.EC2NodeClass) {},
			"prefixes": func(c *awsv1.EC2NodeClass) {
				c.Annotations = map[string]string{awsv1.AnnotationPrefixDelegation: "true"}
			},
			"sizes of volumes": func(c *awsv1.EC2NodeClass) {
				c.Annotations = map[string]string{awsv1.AnnotationVolumeSize: imageFamilies[family].volume + "=20 + 2 * vcpus + max_pods / 10"}
			},
			"expressions": func(c *awsv1.EC2NodeClass) {
				c.Spec.Kubelet = &awsv1.KubeletConfiguration{
					MaxPods: &pods,
					KubeReserved: map[string]string{"cpu": "60 + 7 * vcpus", "memory": "11 * max_pods + 255",
						"ephemeral-storage": "2Gi", "pid": "100 * vcpus"},
					SystemReserved: map[string]string{"cpu": "vcpus < 4 ? 10 : 100", "memory": "double(memory_mib) * 0.02",
						"ephemeral-storage": "1 + vcpus / 64"},
					EvictionHard: map[string]string{"memory.available": "5%", "nodefs.available": "2Gi"},
				}
			},
		} {
			t.Run(string(family)+" "+name, func(t *testing.T) {
				settings := &instance.Settings{Region: "us-east-1", KubeletExpressions: true, ReservedENIs: 0}
				order := orderOf(t, classOf(family, change), settings, seenAsSimulated)
				s := Selection{CapacityType: karpv1.CapacityTypeOnDemand, Tenancy: awsv1.TenancyDefault}
				templates := map[templateFor]template{}
				for i := range order.Types {
					v := order.variantOf(cloud.Choice{Type: &order.Types[i], Offering: &cloud.Offering{}})
					if _, made := templates[v]; !made {
						var err error
						if templates[v], err = order.template(&s, v); err != nil {
							t.Fatal(err)
						}
					}
					sameAllocatable(t, &order.Types[i], func(it *catalog.Type) corev1.ResourceList { return nodeOf(t, family, it, templates[v]) })
				}
				if len(order.Types) < 1000 || len(templates) < 2 {
					t.Errorf("%d types by %d templates", len(order.Types), len(templates))
				}
			})
		}
	}
}

func sameAllocatable(t *testing.T, planned *cloud.InstanceType, node func(*catalog.Type) corev1.ResourceList) {
	t.Helper()
	it, _ := catalog.Load().Type(planned.Name)
	got, want := map[string]int64{}, map[string]int64{}
	allocatable := node(it)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory,
		corev1.ResourceEphemeralStorage, corev1.ResourcePods} {
		quantity := allocatable[name]
		got[string(name)], want[string(name)] = cloud.Amount(string(name), quantity), planned.Allocatable()[string(name)]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-planned +node):\n%s", planned.Name, diff)
	}
}

// A fleet has 50 templates at most, also if every type has its own number of pods; those of the cheapest types are kept.
func TestMostTemplates(t *testing.T) {
	pods := intstr.FromString("10 + memory_mib / 512 + vcpus * 3 + (instance_type.startsWith('m') ? 1 : 0)")
	class := classOf(awsv1.FamilyAL2023, func(c *awsv1.EC2NodeClass) { c.Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: &pods} })
	order := orderOf(t, class, &instance.Settings{Region: "us-east-1", KubeletExpressions: true}, nil)
	distinct := map[int64]bool{}
	var names []string
	for _, it := range order.Types {
		if n := it.Capacity["pods"]; !distinct[n] && len(names) < 60 && !it.Special {
			distinct[n], names = true, append(names, it.Name)
		}
	}
	order.Claim.Spec.Requirements = []karpv1.Requirement{oneOf(corev1.LabelInstanceTypeStable, names...),
		oneOf(karpv1.LabelCapacityType, "on-demand")}
	p, err := newPlan(order, "us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	configs := p.configs(nil)
	if len(names) != 60 || len(configs) != mostConfigs {
		t.Fatalf("%d launch templates for %d types with different numbers of pods, want %d for 60", len(configs), len(names), mostConfigs)
	}
	kept, dearest := map[string]bool{}, 0.0
	for _, config := range configs {
		for _, o := range config.Overrides {
			kept[string(o.InstanceType)] = true
			dearest = max(dearest, aws.ToFloat64(o.Priority))
		}
	}
	for i := range order.Types {
		for _, o := range order.Types[i].Offerings {
			if o.CapacityType == "on-demand" && o.Price < dearest && slices.Contains(names, order.Types[i].Name) && !kept[order.Types[i].Name] {
				t.Errorf("%s at %v is left out, and one at %v is kept", order.Types[i].Name, o.Price, dearest)
			}
		}
	}
}
