package launch

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
)

// plainOrder returns an order for two types, one of which allows more pods.
func plainOrder() *Order {
	large := typed("y", sale("a", "spot", 3), sale("b", "spot", 2))
	large.Capacity = map[string]int64{"pods": 58, awsv1.ResourceEFA: 2}
	family := awsv1.FamilyCustom
	return &Order{
		Claim: &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", Labels: map[string]string{karpv1.LabelNodePool: "pool"}}},
		Class: &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "class"},
			Spec: awsv1.EC2NodeClassSpec{AMIFamily: &family, UserData: aws.String("hello"), Context: aws.String("context"),
				Tags: map[string]string{"team": "a", awsv1.TagNodePool: "overridden"}},
			Status: awsv1.EC2NodeClassStatus{InstanceProfile: "profile", SecurityGroups: []awsv1.SecurityGroup{{ID: "sg-2"}, {ID: "sg-1"}}}},
		Types:   []cloud.InstanceType{typed("x", sale("a", "spot", 1), sale("b", "spot", 4)), large},
		Image:   func(string) string { return "ami-1" },
		Cluster: userdata.Cluster{Name: "c", Endpoint: "https://c", CABundle: "Y2E="},
	}
}

func planOf(t *testing.T, o *Order) *plan {
	t.Helper()
	p, err := newPlan(o, "us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The overrides are the types times the zones with a subnet, with one launch template per number of pods. The token,
// the size and the tags are those of the entry.
func TestRequest(t *testing.T) {
	p := planOf(t, plainOrder())
	request := p.request(Record{Batch: "b", Attempt: 2, Size: 7}, nil, map[string]string{"a": "subnet-a", "b": "subnet-b"})
	var got []string
	for _, c := range request.LaunchTemplateConfigs {
		for _, o := range c.Overrides {
			got = append(got, strings.Join([]string{string(o.InstanceType), *o.AvailabilityZone, *o.SubnetId, *o.ImageId,
				resource.NewQuantity(int64(*o.Priority), "").String()}, " "))
		}
		if *c.LaunchTemplateSpecification.Version != "$Latest" || !strings.HasPrefix(*c.LaunchTemplateSpecification.LaunchTemplateName,
			"karpenter.k8s.aws/") {
			t.Errorf("launch template: %+v", c.LaunchTemplateSpecification)
		}
	}
	want := []string{"x a subnet-a ami-1 1", "x b subnet-b ami-1 4", "y b subnet-b ami-1 2", "y a subnet-a ami-1 3"}
	if diff := cmp.Diff(want, got); diff != "" || len(request.LaunchTemplateConfigs) != 2 {
		t.Errorf("%d configs, overrides (-want +got):\n%s", len(request.LaunchTemplateConfigs), diff)
	}
	switch {
	case *request.ClientToken != "b-2":
		t.Errorf(`request: *request.ClientToken is %v, want "b-2", %+v`, *request.ClientToken, request)
	case *request.TargetCapacitySpecification.TotalTargetCapacity != 7:
		t.Errorf("request: *request.TargetCapacitySpecification.TotalTargetCapacity is %v, want 7, %+v",
			*request.TargetCapacitySpecification.TotalTargetCapacity, request)
	case request.Type != "instant":
		t.Errorf(`request: request.Type is %v, want "instant"`, request.Type)
	case *request.Context != "context":
		t.Errorf(`request: *request.Context is %v, want "context", %+v`, *request.Context, request)
	case request.SpotOptions.AllocationStrategy != "price-capacity-optimized":
		t.Errorf(`request: request.SpotOptions.AllocationStrategy is %v, want "price-capacity-optimized"`, request.SpotOptions.AllocationStrategy)
	case request.OnDemandOptions != nil:
		t.Errorf("request: request.OnDemandOptions is %v, want nil", request.OnDemandOptions)
	}
	wantTags := map[string]string{"team": "a", "kubernetes.io/cluster/c": "owned", "karpenter.sh/nodepool": "pool",
		"eks:eks-cluster-name": "c", "karpenter.k8s.aws/ec2nodeclass": "class", TagFleetLaunch: "b-2"}
	for i, kind := range []ec2types.ResourceType{"instance", "volume", "fleet"} {
		if s := request.TagSpecifications[i]; s.ResourceType != kind || !cmp.Equal(tagMap(s.Tags), wantTags) {
			t.Errorf("tags of %s: %v", s.ResourceType, tagMap(s.Tags))
		}
	}
	switch part := p.request(Record{Batch: "b", Attempt: 1, Size: 7}, indexSet{3},
		map[string]string{"a": "subnet-a"}); {
	case *part.TargetCapacitySpecification.TotalTargetCapacity != 1:
		t.Errorf("a part of a fleet launch in one zone: *part.TargetCapacitySpecification.TotalTargetCapacity is %v, want 1, %+v",
			*part.TargetCapacitySpecification.TotalTargetCapacity, part)
	case len(part.LaunchTemplateConfigs[0].Overrides) != 1:
		t.Errorf("a part of a fleet launch in one zone: len(part.LaunchTemplateConfigs[0].Overrides) is %v, want 1, %+v",
			len(part.LaunchTemplateConfigs[0].Overrides), part)
	case tagMap(part.TagSpecifications[0].Tags)[TagIndexes] == "":
		t.Errorf(`a part of a fleet launch in one zone: tagMap(part.TagSpecifications[0].Tags)[TagPlaces] is "", %+v`, part)
	case tagMap(part.TagSpecifications[0].Tags)[awsv1.TagNodeClaim] != "claim":
		t.Errorf(`a part of a fleet launch in one zone: tagMap(part.TagSpecifications[0].Tags)[awsv1.TagNodeClaim] is %v, want "claim", %+v`,
			tagMap(part.TagSpecifications[0].Tags)[awsv1.TagNodeClaim], part)
	}
}

func TestStrategies(t *testing.T) {
	for _, test := range []struct {
		name     string
		change   func(*Order)
		spot, od string
		context  bool
	}{
		{"spot", func(*Order) {}, "price-capacity-optimized", "", true},
		{"spot with overlay", func(o *Order) {
			o.Claim.Annotations = map[string]string{karpv1.AnnotationPriceOverlayApplied: "true"}
		}, "capacity-optimized-prioritized", "", true},
		{"on demand", func(o *Order) { o.Types = []cloud.InstanceType{typed("x", sale("a", "on-demand", 1))} }, "", "lowest-price", true},
		{"on demand with overlay", func(o *Order) {
			o.Types = []cloud.InstanceType{typed("x", sale("a", "on-demand", 1))}
			o.Claim.Annotations = map[string]string{karpv1.AnnotationPriceOverlayApplied: "true"}
		}, "", "prioritized", true},
		{"relaxed minValues", func(o *Order) { o.Claim.Annotations = map[string]string{karpv1.AnnotationMinValuesRelaxed: "true"} },
			"price-capacity-optimized", "", false},
	} {
		o := plainOrder()
		test.change(o)
		request := planOf(t, o).request(Record{Batch: "b", Attempt: 1, Size: 1}, nil, nil)
		spot, od := "", ""
		if request.SpotOptions != nil {
			spot = string(request.SpotOptions.AllocationStrategy)
		}
		if request.OnDemandOptions != nil {
			od = string(request.OnDemandOptions.AllocationStrategy)
		}
		switch {
		case spot != test.spot:
			t.Errorf("%s: spot is %v, want %v", test.name, spot, test.spot)
		case od != test.od:
			t.Errorf("%s: od is %v, want %v", test.name, od, test.od)
		case (request.Context != nil) != test.context:
			t.Errorf("%s: (request.Context != nil) is %v, want %v, context %v", test.name, (request.Context != nil), test.context, request.Context)
		}
	}
}

// Claims are launched together if, and only if, their requests are the same.
func TestKey(t *testing.T) {
	plain := planOf(t, plainOrder()).key()
	for _, test := range []struct {
		name   string
		change func(*Order)
		same   bool
	}{
		{"another claim", func(o *Order) { o.Claim.Name, o.Claim.UID = "other", "other" }, true},
		{"another pool", func(o *Order) { o.Claim.Labels = map[string]string{karpv1.LabelNodePool: "other"} }, false},
		{"another label, which Custom user data does not tell", func(o *Order) { o.Claim.Labels["a"] = "b" }, true},
		{"another user data", func(o *Order) { o.Class.Spec.UserData = aws.String("bye") }, false},
		{"another zone", func(o *Order) { o.Types[0].Offerings[0].Zone = "c" }, false},
		{"another class with the same content", func(o *Order) { o.Class.UID = "other" }, false},
	} {
		o := plainOrder()
		test.change(o)
		if same := planOf(t, o).key() == plain; same != test.same {
			t.Errorf("%s: the same key: %v, want %v", test.name, same, test.same)
		}
	}
}

// Every field of a class that affects machines is in its launch template.
func TestTemplateData(t *testing.T) {
	size := resource.MustParse("1500Mi")
	for _, test := range []struct {
		name   string
		change func(*Order)
		want   string // part of the data as JSON
	}{
		{"profile", func(*Order) {}, `"IamInstanceProfile":{"Arn":null,"Name":"profile"}`},
		{"user data", func(*Order) {}, `"UserData":"` + base64.StdEncoding.EncodeToString([]byte("hello")) + `"`},
		{"groups, sorted", func(*Order) {}, `"Groups":["sg-1","sg-2"]`},
		{"tenancy", func(*Order) {}, `"Tenancy":"default"`},
		{"tags of interfaces", func(*Order) {}, `"ResourceType":"network-interface"`},
		{"tags of spot requests", func(*Order) {}, `"ResourceType":"spot-instances-request"`},
		{"no metadata options", func(*Order) {}, `"HttpPutResponseHopLimit":2,"HttpTokens":"required","InstanceMetadataTags":"disabled"`},
		{"metadata options", func(o *Order) {
			o.Class.Spec.MetadataOptions = &awsv1.MetadataOptions{HTTPEndpoint: aws.String("enabled"),
				HTTPTokens: aws.String("optional"), HTTPPutResponseHopLimit: aws.Int64(3)}
		}, `"HttpEndpoint":"enabled","HttpProtocolIpv6":"","HttpPutResponseHopLimit":3,"HttpTokens":"optional"`},
		{"monitoring", func(o *Order) { o.Class.Spec.DetailedMonitoring = aws.Bool(true) }, `"Monitoring":{"Enabled":true}`},
		{"volume", func(o *Order) {
			o.Class.Spec.BlockDeviceMappings = []awsv1.BlockDeviceMapping{{DeviceName: aws.String("/dev/x"),
				EBS: &awsv1.BlockDevice{VolumeSize: &size, IOPS: aws.Int64(3000), VolumeType: aws.String("gp3")}}}
		}, `"Iops":3000,"KmsKeyId":null,"SnapshotId":null,"Throughput":null,"VolumeInitializationRate":null,"VolumeSize":2,"VolumeType":"gp3"`},
		{"volumes of the family", func(o *Order) {
			family := awsv1.FamilyBottlerocket
			o.Class.Spec.AMIFamily, o.Class.Spec.UserData = &family, nil
		}, `"DeviceName":"/dev/xvdb"`},
		{"public address and prefixes", func(o *Order) {
			o.Class.Spec.AssociatePublicIPAddress, o.Class.Spec.IPPrefixCount = aws.Bool(false), aws.Int32(2)
		}, `"AssociatePublicIpAddress":false`},
		{"prefixes", func(o *Order) { o.Class.Spec.IPPrefixCount = aws.Int32(2) }, `"Ipv4PrefixCount":2`},
		{"prefixes of IPv6", func(o *Order) { o.Class.Spec.IPPrefixCount, o.Cluster.IPv6 = aws.Int32(2), true },
			`"Ipv6AddressCount":1,"Ipv6Addresses":null,"Ipv6PrefixCount":2`},
		{"tracking", func(o *Order) {
			o.Class.Spec.ConnectionTracking = &awsv1.ConnectionTracking{UDPTimeout: aws.Int32(31)}
		}, `"UdpTimeout":31`},
		{"nested virtualization", func(o *Order) {
			o.Class.Spec.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: aws.String("enabled")}
		}, `"NestedVirtualization":"enabled"`},
		{"listed interfaces", func(o *Order) {
			o.Class.Spec.NetworkInterfaces = []awsv1.NetworkInterface{{InterfaceType: "interface"},
				{NetworkCardIndex: 1, DeviceIndex: 1, InterfaceType: "efa-only"}}
		}, `"InterfaceType":"efa-only"`},
		{"EFAs that the claim asks for", func(o *Order) {
			o.Claim.Spec.Resources.Requests = corev1.ResourceList{awsv1.ResourceEFA: resource.MustParse("1")}
		}, `"InterfaceType":"efa"`},
		{"no open reservation", func(*Order) {}, `"CapacityReservationSpecification":{"CapacityReservationPreference":"none","CapacityReservationTarget":null}`},
		{"open reservations", func(o *Order) { o.OpenReservations = true }, `"CapacityReservationSpecification":null`},
		{"automatic recovery of EC2", func(*Order) {}, `"MaintenanceOptions":null`},
		{"no automatic recovery", func(o *Order) {
			o.Class.Annotations = map[string]string{awsv1.AnnotationAutoRecovery: "disabled"}
		}, `"MaintenanceOptions":{"AutoRecovery":"disabled"}`},
		{"enclaves", func(o *Order) {
			o.Claim.Spec.Resources.Requests = corev1.ResourceList{awsv1.ResourceNitroSandbox: resource.MustParse("1")}
			for i := range o.Types {
				o.Types[i].Capacity[awsv1.ResourceNitroSandbox] = 1
			}
		}, `"EnclaveOptions":{"Enabled":true}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := plainOrder()
			test.change(o)
			p := planOf(t, o)
			text, err := json.Marshal(p.templates[p.variants[0]].data)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), test.want) {
				t.Errorf("%s is not in %s", test.want, text)
			}
		})
	}
}

// Templates with the same content have the same name. In isolated regions the template has no field for IPv6 metadata.
func TestTemplateName(t *testing.T) {
	name := func(region string, change func(*Order)) (string, ec2types.LaunchTemplateInstanceMetadataProtocolIpv6) {
		o := plainOrder()
		change(o)
		p, err := newPlan(o, region)
		if err != nil {
			t.Fatal(err)
		}
		made := p.templates[p.variants[0]]
		return made.name, made.data.MetadataOptions.HttpProtocolIpv6
	}
	plain, ipv6 := name("us-east-1", func(*Order) {})
	if again, _ := name("us-east-1", func(*Order) {}); again != plain || ipv6 != "disabled" {
		t.Errorf("%s, then %s; IPv6 %q", plain, again, ipv6)
	}
	if other, _ := name("us-east-1", func(o *Order) { o.Class.Spec.Tags["team"] = "b" }); other == plain {
		t.Error("the name is the same with other tags")
	}
	if other, ipv6 := name("us-iso-east-1", func(*Order) {}); other == plain || ipv6 != "" {
		t.Errorf("isolated region: %s, IPv6 %q", other, ipv6)
	}
}

// A fleet has at most 50 launch templates: those of the cheapest types, and of the types that minValues need.
func TestManyTemplates(t *testing.T) {
	order := func() *Order {
		o := plainOrder()
		o.Types = nil
		for k := range 60 {
			typ := typed(fmt.Sprintf("t%02d", k), sale("a", "spot", float64(k+1)))
			typ.Capacity = map[string]int64{"pods": int64(10 + k)}
			typ.Requirements = append(typ.Requirements, cloud.Requirement{Key: "size", Operator: "In", Values: []string{fmt.Sprint(k / 20)}})
			o.Types = append(o.Types, typ)
		}
		return o
	}
	typesOf := func(o *Order) (list []string) {
		p := planOf(t, o)
		configs := p.configs(map[string]string{"a": "subnet-1"})
		if len(configs) != 50 || len(p.variants) != 50 {
			t.Errorf("%d configs and %d launch templates, want 50", len(configs), len(p.variants))
		}
		for _, c := range configs {
			list = append(list, string(c.Overrides[0].InstanceType))
		}
		return list
	}
	cheapest := typesOf(order())
	if cheapest[0] != "t00" || cheapest[49] != "t49" {
		t.Errorf("types %v, want the 50 cheapest", cheapest)
	}
	varied, most := order(), 55
	varied.Claim.Spec.Requirements = []karpv1.Requirement{{Key: "size", Operator: "Exists", MinValues: &[]int{3}[0]}}
	varied.Types = varied.Types[:55]
	for k := range varied.Types {
		varied.Types[k].Requirements[len(varied.Types[k].Requirements)-1].Values = []string{fmt.Sprint(k / 27)}
	}
	if list := typesOf(varied); !slices.Contains(list, "t54") {
		t.Errorf("types %v, want t54, which has the third size", list)
	}
	varied.Claim.Spec.Requirements = []karpv1.Requirement{{Key: corev1.LabelInstanceTypeStable, Operator: "Exists", MinValues: &most}}
	var insufficient *cloud.InsufficientCapacityError
	if _, err := newPlan(varied, "us-east-1"); !errors.As(err, &insufficient) {
		t.Errorf("minValues of 55 types with 55 launch templates: %v", err)
	}
}
