package launch

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
)

// template is the desired state of a launch template.
type template struct {
	// name is a hash of the other fields, so different contents have different templates.
	name string
	data *ec2types.RequestLaunchTemplateData
	tags map[string]string
}

// templateFor holds the attributes that the machines of one template share beyond the order.
type templateFor struct {
	image string
	pods  int64
	// efas is the number of Elastic Fabric Adapters of the machine, if the claim requests any.
	efas int64
	// hold is the capacity reservation of the machine.
	hold Hold
	// resolved is empty unless the class has expressions.
	resolved instance.Resolved
}

// variantOf returns the template variant that a way needs.
func (o *Order) variantOf(w cloud.Choice) templateFor {
	v := templateFor{image: o.Image(w.Type.Name), pods: w.Type.Capacity["pods"]}
	if w.Offering.CapacityType == karpv1.CapacityTypeReserved {
		v.hold = holdOf(w.Offering)
	}
	if asks := o.Claim.Spec.Resources.Requests[awsv1.ResourceEFA]; !asks.IsZero() {
		v.efas = w.Type.Capacity[awsv1.ResourceEFA]
	}
	if o.Resolved != nil {
		v.resolved = o.Resolved(w.Type.Name)
	}
	return v
}

// template returns the launch template of a variant. Errors are those of userdata.Render.
func (o *Order) template(s *Selection, v templateFor) (template, error) {
	user, err := userdata.Render(o.userData(s, v))
	if err != nil {
		return template{}, fmt.Errorf("generating user data for EC2NodeClass %q: %w", o.Class.Name, err)
	}
	spec := &o.Class.Spec
	tags := TagsOf(o.Class, poolOf(o.Claim), o.Cluster.Name)
	data := &ec2types.RequestLaunchTemplateData{
		ImageId:             aws.String(v.image),
		UserData:            aws.String(base64.StdEncoding.EncodeToString(user)),
		IamInstanceProfile:  &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String(o.Class.Status.InstanceProfile)},
		BlockDeviceMappings: sized(blockDevices(spec.BlockDeviceMappings, o.Class.Family()), v.resolved.Volumes),
		Monitoring:          &ec2types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(spec.DetailedMonitoring != nil && *spec.DetailedMonitoring)},
		MetadataOptions:     metadataOptions(spec.MetadataOptions, o.Cluster.IPv6),
		NetworkInterfaces:   o.interfaces(v),
		MaintenanceOptions:  maintenance(o.Class),
		Placement:           o.placement(s),
		TagSpecifications: []ec2types.LaunchTemplateTagSpecificationRequest{{ResourceType: ec2types.ResourceTypeNetworkInterface,
			Tags: ec2Tags(tags)}},
	}
	if s.CapacityType == karpv1.CapacityTypeSpot {
		data.TagSpecifications = append(data.TagSpecifications,
			ec2types.LaunchTemplateTagSpecificationRequest{ResourceType: ec2types.ResourceTypeSpotInstancesRequest, Tags: ec2Tags(tags)})
	}
	if c := spec.CPUOptions; c != nil && c.NestedVirtualization != nil {
		data.CpuOptions = &ec2types.LaunchTemplateCpuOptionsRequest{NestedVirtualization: ec2types.NestedVirtualizationSpecification(*c.NestedVirtualization)}
	}
	if asks := o.Claim.Spec.Resources.Requests[awsv1.ResourceNitroSandbox]; !asks.IsZero() {
		data.EnclaveOptions = &ec2types.LaunchTemplateEnclaveOptionsRequest{Enabled: aws.Bool(true)}
	}
	o.useReservation(data, v)
	return template{name: templateName(data, tags), data: data, tags: tags}, nil
}

// templateName returns karpenter.k8s.aws/ followed by 64 bits of a hash, in decimal.
func templateName(data *ec2types.RequestLaunchTemplateData, tags map[string]string) string {
	text, err := json.Marshal([]any{data, tags})
	if err != nil {
		panic("hashing a launch template: " + err.Error()) // strings, numbers and lists always have a JSON form
	}
	sum := sha256.Sum256(text)
	return templatePrefix + strconv.FormatUint(binary.BigEndian.Uint64(sum[:8]), 10)
}

const templatePrefix = awsv1.Group + "/"

func (o *Order) userData(s *Selection, v templateFor) userdata.Request {
	labels := maps.Clone(o.Claim.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[karpv1.LabelCapacityType] = s.CapacityType
	v.hold.addTo(labels)
	r := userdata.Request{
		Family: o.Class.Family(), Kubelet: o.kubelet(v.resolved), ImageName: o.imageName(v.image), Cluster: o.Cluster,
		Custom: aws.ToString(o.Class.Spec.UserData),
		Node:   userdata.Node{Labels: labels, Taints: o.Claim.Spec.Taints, StartupTaints: o.Claim.Spec.StartupTaints, MaxPods: v.pods},
	}
	if p := o.Class.Spec.InstanceStorePolicy; p != nil {
		r.InstanceStore = *p
	}
	return r
}

func (o *Order) imageName(id string) string {
	for _, image := range o.Class.Status.AMIs {
		if image.ID == id {
			return image.Name
		}
	}
	return ""
}

// interfaces returns the network interfaces: those in the class; otherwise one EFA per network card if the claim
// requests EFAs; otherwise one.
func (o *Order) interfaces(v templateFor) []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
	var list []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest
	for _, i := range o.Class.Spec.NetworkInterfaces {
		list = append(list, o.networkInterface(i.NetworkCardIndex, i.DeviceIndex, i.InterfaceType))
	}
	if len(list) > 0 {
		return list
	}
	for card := range int32(v.efas) {
		list = append(list, o.networkInterface(card, min(card, 1), "efa"))
	}
	if len(list) > 0 {
		return list
	}
	return append(list, o.networkInterface(0, 0, awsv1.InterfaceTypeInterface))
}

func (o *Order) networkInterface(card, device int32, kind string) ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
	i := ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
		NetworkCardIndex: aws.Int32(card), DeviceIndex: aws.Int32(device), InterfaceType: aws.String(kind), Groups: o.groups(),
	}
	if kind == awsv1.InterfaceTypeEFAOnly {
		return i // the interface has no IP traffic
	}
	spec := &o.Class.Spec
	i.AssociatePublicIpAddress = spec.AssociatePublicIPAddress
	if o.Cluster.IPv6 {
		i.PrimaryIpv6, i.Ipv6AddressCount, i.Ipv6PrefixCount = aws.Bool(true), aws.Int32(1), spec.IPPrefixCount
	} else {
		i.Ipv4PrefixCount = spec.IPPrefixCount
	}
	if t := spec.ConnectionTracking; t != nil {
		i.ConnectionTrackingSpecification = &ec2types.ConnectionTrackingSpecificationRequest{
			TcpEstablishedTimeout: t.TCPEstablishedTimeout, UdpStreamTimeout: t.UDPStreamTimeout, UdpTimeout: t.UDPTimeout,
		}
	}
	return i
}

func (o *Order) groups() []string {
	var ids []string
	for _, g := range o.Class.Status.SecurityGroups {
		ids = append(ids, g.ID)
	}
	slices.Sort(ids)
	return ids
}

// metadataOptions returns the options of the class. If it has none, which the defaults of the CRD prevent, tokens are
// required.
func metadataOptions(m *awsv1.MetadataOptions, ipv6 bool) *ec2types.LaunchTemplateInstanceMetadataOptionsRequest {
	options := &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{InstanceMetadataTags: ec2types.LaunchTemplateInstanceMetadataTagsStateDisabled}
	if m == nil {
		options.HttpEndpoint, options.HttpTokens = awsv1.Disabled, awsv1.HTTPTokensRequired
		options.HttpPutResponseHopLimit, options.HttpProtocolIpv6 = aws.Int32(2), awsv1.Disabled
		if ipv6 {
			options.HttpProtocolIpv6 = awsv1.Enabled
		}
		return options
	}
	options.HttpEndpoint = ec2types.LaunchTemplateInstanceMetadataEndpointState(aws.ToString(m.HTTPEndpoint))
	options.HttpProtocolIpv6 = ec2types.LaunchTemplateInstanceMetadataProtocolIpv6(aws.ToString(m.HTTPProtocolIPv6))
	options.HttpTokens = ec2types.LaunchTemplateHttpTokensState(aws.ToString(m.HTTPTokens))
	if m.HTTPPutResponseHopLimit != nil {
		options.HttpPutResponseHopLimit = aws.Int32(int32(*m.HTTPPutResponseHopLimit))
	}
	return options
}

// withoutIPv6Metadata lists the regions in which EC2 does not support httpProtocolIPv6.
var withoutIPv6Metadata = []string{"us-iso-east-1", "us-iso-west-1", "us-isob-east-1", "us-isob-west-1",
	"us-isof-south-1", "us-isof-east-1"}

// familyDevices are the default volumes of a family for classes without any, in GiB by device.
var familyDevices = map[awsv1.Family][]awsv1.BlockDeviceMapping{
	awsv1.FamilyAL2:          {gp3("/dev/xvda", 20)},
	awsv1.FamilyAL2023:       {gp3("/dev/xvda", 20)},
	awsv1.FamilyBottlerocket: {gp3("/dev/xvda", 4), gp3("/dev/xvdb", 20)},
	awsv1.FamilyWindows2019:  {gp3("/dev/sda1", 50)},
	awsv1.FamilyWindows2022:  {gp3("/dev/sda1", 50)},
	awsv1.FamilyWindows2025:  {gp3("/dev/sda1", 50)},
}

func gp3(device string, gib int64) awsv1.BlockDeviceMapping {
	return awsv1.BlockDeviceMapping{DeviceName: &device, EBS: &awsv1.BlockDevice{
		Encrypted: aws.Bool(true), VolumeType: aws.String("gp3"), VolumeSize: resource.NewQuantity(gib<<30, resource.BinarySI),
	}}
}

func blockDevices(mappings []awsv1.BlockDeviceMapping, family awsv1.Family) []ec2types.LaunchTemplateBlockDeviceMappingRequest {
	if len(mappings) == 0 {
		mappings = familyDevices[family]
	}
	var list []ec2types.LaunchTemplateBlockDeviceMappingRequest
	for _, m := range mappings {
		request := ec2types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: m.DeviceName}
		if m.EBS != nil {
			request.Ebs = volume(m.EBS)
		}
		list = append(list, request)
	}
	return list
}

func volume(v *awsv1.BlockDevice) *ec2types.LaunchTemplateEbsBlockDeviceRequest {
	request := &ec2types.LaunchTemplateEbsBlockDeviceRequest{
		DeleteOnTermination: v.DeleteOnTermination, Encrypted: v.Encrypted, KmsKeyId: v.KMSKeyID, SnapshotId: v.SnapshotID,
		Iops: int32Of(v.IOPS), Throughput: int32Of(v.Throughput), VolumeInitializationRate: v.VolumeInitializationRate,
		VolumeType: ec2types.VolumeType(aws.ToString(v.VolumeType)),
	}
	if v.VolumeSize != nil {
		const gib = 1 << 30
		request.VolumeSize = aws.Int32(int32((v.VolumeSize.Value() + gib - 1) / gib))
	}
	return request
}

func int32Of(n *int64) *int32 {
	if n == nil {
		return nil
	}
	return aws.Int32(int32(min(*n, math.MaxInt32))) // EC2 refuses the value with or without the limit
}

// inRegion removes fields that EC2 in the region does not support.
func (t *template) inRegion(region string) {
	if slices.Contains(withoutIPv6Metadata, region) {
		t.data.MetadataOptions.HttpProtocolIpv6 = ""
		t.name = templateName(t.data, t.tags)
	}
}

// podsOf returns the minimum number of pods over the types that are available in a zone.
func podsOf(ways []cloud.Choice, zone string) int64 {
	least := int64(0)
	for _, w := range ways {
		if pods := w.Type.Capacity[string(corev1.ResourcePods)]; w.Offering.Zone == zone && (least == 0 || pods < least) {
			least = pods
		}
	}
	return least
}
