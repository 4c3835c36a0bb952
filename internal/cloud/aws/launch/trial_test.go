package launch

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// The dry run equals the launch: every member of the launch template's data is in the request, with the volumes and
// metadata options of the class.
func TestTrialIsTheLaunch(t *testing.T) {
	o := plainOrder()
	size := resource.MustParse("30Gi")
	o.Class.Spec.BlockDeviceMappings = []awsv1.BlockDeviceMapping{{DeviceName: aws.String("/dev/x"),
		EBS: &awsv1.BlockDevice{VolumeSize: &size, Encrypted: aws.Bool(true), KMSKeyID: aws.String("key"),
			IOPS: aws.Int64(3000), VolumeType: aws.String("gp3")}}}
	o.Class.Spec.MetadataOptions = &awsv1.MetadataOptions{HTTPEndpoint: aws.String("enabled"), HTTPTokens: aws.String("required"),
		HTTPPutResponseHopLimit: aws.Int64(1)}
	o.Class.Spec.DetailedMonitoring, o.Class.Spec.AssociatePublicIPAddress = aws.Bool(true), aws.Bool(false)
	o.Class.Spec.ConnectionTracking = &awsv1.ConnectionTracking{UDPTimeout: aws.Int32(31)}
	o.Class.Spec.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: aws.String("enabled")}
	o.Class.Spec.IPPrefixCount = aws.Int32(2)
	o.Claim.Spec.Resources.Requests = corev1.ResourceList{awsv1.ResourceNitroSandbox: resource.MustParse("1")}
	for i := range o.Types {
		o.Types[i].Capacity[awsv1.ResourceNitroSandbox] = 1
	}
	trials := Trials([]*Order{o})
	switch {
	case len(trials) != 2:
		t.Fatalf("len(trials) is %v, want 2, trials %+v", len(trials), trials)
	case trials[0].Type != "x":
		t.Fatalf(`trials[0].Type is %v, want "x"`, trials[0].Type)
	case trials[1].Type != "y":
		t.Fatalf(`trials[1].Type is %v, want "y"`, trials[1].Type)
	}
	data := trials[0].Data
	in, err := trials[0].Instance("subnet-1", nil)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case string(in.InstanceType) != "x":
		t.Errorf(`string(in.InstanceType) is %v, want "x", type %s`, string(in.InstanceType), in.InstanceType)
	case !*in.DryRun:
		t.Errorf("*in.DryRun is false")
	case aws.ToString(in.NetworkInterfaces[0].SubnetId) != "subnet-1":
		t.Errorf(`aws.ToString(in.NetworkInterfaces[0].SubnetId) is %v, want "subnet-1", interfaces %+v`,
			aws.ToString(in.NetworkInterfaces[0].SubnetId), in.NetworkInterfaces)
	}
	device, wanted := in.BlockDeviceMappings[0].Ebs, data.BlockDeviceMappings[0].Ebs
	switch {
	case !*device.Encrypted:
		t.Errorf("*device.Encrypted is false, volume %+v", device)
	case *device.KmsKeyId != "key":
		t.Errorf(`*device.KmsKeyId is %v, want "key", volume %+v`, *device.KmsKeyId, device)
	case *device.VolumeSize != 30:
		t.Errorf("*device.VolumeSize is %v, want 30, volume %+v", *device.VolumeSize, device)
	case device.VolumeType != wanted.VolumeType:
		t.Errorf("device.VolumeType is %v, want %v", device.VolumeType, wanted.VolumeType)
	case *device.Iops != 3000:
		t.Errorf("*device.Iops is %v, want 3000, volume %+v", *device.Iops, device)
	}
	for what, pair := range map[string][2]any{
		"image": {in.ImageId, data.ImageId}, "user data": {in.UserData, data.UserData},
		"profile":    {in.IamInstanceProfile.Name, data.IamInstanceProfile.Name},
		"tokens":     {string(in.MetadataOptions.HttpTokens), string(data.MetadataOptions.HttpTokens)},
		"hops":       {in.MetadataOptions.HttpPutResponseHopLimit, data.MetadataOptions.HttpPutResponseHopLimit},
		"monitoring": {in.Monitoring.Enabled, data.Monitoring.Enabled}, "tenancy": {in.Placement.Tenancy, data.Placement.Tenancy},
		"enclaves": {in.EnclaveOptions.Enabled, data.EnclaveOptions.Enabled},
		"nested":   {in.CpuOptions.NestedVirtualization, data.CpuOptions.NestedVirtualization},
		"reservations": {in.CapacityReservationSpecification.CapacityReservationPreference,
			data.CapacityReservationSpecification.CapacityReservationPreference},
		"groups":   {in.NetworkInterfaces[0].Groups, data.NetworkInterfaces[0].Groups},
		"prefixes": {in.NetworkInterfaces[0].Ipv4PrefixCount, data.NetworkInterfaces[0].Ipv4PrefixCount},
		"tracking": {in.NetworkInterfaces[0].ConnectionTrackingSpecification.UdpTimeout,
			data.NetworkInterfaces[0].ConnectionTrackingSpecification.UdpTimeout},
	} {
		if diff := cmp.Diff(pair[1], pair[0], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-launched +tried):\n%s", what, diff)
		}
	}
}

// The cheapest types of all pools are tried. Special hardware is tried only if nothing else is allowed, and dedicated
// tenancy if a pool requires it.
func TestTrials(t *testing.T) {
	order := func(change func(*Order)) *Order {
		o := plainOrder()
		o.Types = []cloud.InstanceType{special(typed("gpu", sale("a", "on-demand", 0.5))), typed("z", sale("a", "on-demand", 3)),
			typed("y", sale("a", "on-demand", 2)), typed("x", sale("a", "on-demand", 1))}
		change(o)
		return o
	}
	only := func(values ...string) func(*Order) {
		return func(o *Order) {
			o.Claim.Spec.Requirements = []karpv1.Requirement{oneOf(corev1.LabelInstanceTypeStable, values...)}
		}
	}
	for _, c := range []struct {
		name   string
		orders []*Order
		want   []string
	}{
		{"no pool", nil, nil},
		{"one pool", []*Order{order(func(*Order) {})}, []string{"x", "y"}},
		{"types of a pool", []*Order{order(only("z"))}, []string{"z"}},
		{"two pools", []*Order{order(only("z")), order(only("y", "z"))}, []string{"y", "z"}},
		{"a pool without types", []*Order{order(only("none")), order(only("y"))}, []string{"y"}},
		{"special hardware", []*Order{order(only("gpu"))}, []string{"gpu"}},
	} {
		var got []string
		for _, trial := range Trials(c.orders) {
			got = append(got, trial.Type)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	dedicated := order(func(o *Order) {
		o.Claim.Spec.Requirements = []karpv1.Requirement{oneOf(awsv1.LabelInstanceTenancy, awsv1.TenancyDedicated)}
	})
	for _, trial := range Trials([]*Order{order(only("x")), dedicated}) {
		if trial.Data.Placement.Tenancy != awsv1.TenancyDedicated {
			t.Errorf("%s is tried with tenancy %s", trial.Type, trial.Data.Placement.Tenancy)
		}
	}
}
