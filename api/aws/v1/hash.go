package v1

import (
	"encoding/json"
	"maps"
	"strconv"

	"github.com/mitchellh/hashstructure/v2"
)

// HashVersion is the version of Hash, the value of AnnotationNodeClassHashVersion. Hashes of different versions
// are never compared. If a class or its claims have another version, including one of another implementation,
// their annotations are rewritten, and the claims do not count as drifted. HashVersion changes whenever Hash
// returns another result for some class, for example because of a new default of a hashed field.
const HashVersion = "karpenter-go-v2"

// hashedSpec is the input of the drift hash. It is a separate type, so that the API types can change without changing
// the hash. Names of types and fields are part of the hash. It omits on purpose:
//
//   - the selectors of subnets, security groups, images and capacity reservations, because their results have their own
//     drift checks;
//   - amiFamily as written. The resulting family is hashed, so writing the family of the alias explicitly is no change;
//   - ipPrefixCount, as in Karpenter;
//   - the cluster's CA bundle, which is not part of the class. Running nodes keep the bundle of their launch. Replacing
//     a whole fleet because of a rotated certificate is worse than waiting for the nodes to expire.
type hashedSpec struct {
	Family                   string
	PlacementGroupName       string
	PlacementGroupID         string
	UserData                 string
	Role                     string
	InstanceProfile          string
	Tags                     map[string]string
	Kubelet                  string              // canonical JSON
	BlockDeviceMappings      []hashedBlockDevice `hash:"set"`
	InstanceStorePolicy      string
	NetworkInterfaces        []hashedInterface `hash:"set"`
	DetailedMonitoring       bool
	Metadata                 hashedMetadata
	TCPEstablishedTimeout    int32 // seconds; 0: unset
	UDPStreamTimeout         int32
	UDPTimeout               int32
	NestedVirtualization     string
	AssociatePublicIPAddress string // true, false or unset
	Context                  string
	PrefixDelegation         bool
	VolumeSizes              map[string]string // expressions by device
}

type hashedBlockDevice struct {
	DeviceName                       string
	RootVolume                       bool
	DeleteOnTermination, Encrypted   string // true, false or unset
	IOPS, Throughput                 int64
	KMSKeyID, SnapshotID, VolumeType string
	VolumeInitializationRate         int32
	VolumeSize                       int64 // bytes
}

type hashedInterface struct {
	NetworkCardIndex, DeviceIndex string // decimal text, because the hash omits the number 0
	InterfaceType                 string
}

type hashedMetadata struct {
	HTTPEndpoint, HTTPProtocolIPv6, HTTPTokens string
	HTTPPutResponseHopLimit                    int64
}

// Hash returns the drift hash of the class: a decimal uint64. It changes if and only if instances launched
// before and after would differ in a field of the class that has no drift check of its own. The order of disks
// and network interfaces and the spelling of amounts ("1Ti", "1024Gi") do not matter. An empty map, list or
// text equals an absent one.
func (c *EC2NodeClass) Hash() string {
	sum, err := hashstructure.Hash(c.hashed(), hashstructure.FormatV2, &hashstructure.HashOptions{IgnoreZeroValue: true, ZeroNil: true})
	if err != nil {
		// The input consists of strings, integers, booleans, and maps and lists of them, so hashing cannot
		// fail.
		panic("hashing an EC2NodeClass: " + err.Error())
	}
	return strconv.FormatUint(sum, 10)
}

func (c *EC2NodeClass) hashed() hashedSpec {
	spec := c.Spec
	hashed := hashedSpec{
		Family:                   string(c.Family()),
		UserData:                 value(spec.UserData),
		Role:                     spec.Role,
		InstanceProfile:          value(spec.InstanceProfile),
		Kubelet:                  spec.Kubelet.canonical(),
		InstanceStorePolicy:      string(value(spec.InstanceStorePolicy)),
		DetailedMonitoring:       value(spec.DetailedMonitoring),
		AssociatePublicIPAddress: threeWay(spec.AssociatePublicIPAddress),
		Context:                  value(spec.Context),
		PrefixDelegation:         c.PrefixDelegation(),
	}
	hashed.VolumeSizes, _ = c.VolumeSizes() // an invalid annotation has no effect, and a condition reports it
	if len(spec.Tags) > 0 {
		hashed.Tags = maps.Clone(spec.Tags)
	}
	if group := spec.PlacementGroupSelector; group != nil {
		hashed.PlacementGroupName, hashed.PlacementGroupID = group.Name, group.ID
	}
	for _, mapping := range spec.BlockDeviceMappings {
		hashed.BlockDeviceMappings = append(hashed.BlockDeviceMappings, mapping.hashed())
	}
	for _, nic := range spec.NetworkInterfaces {
		hashed.NetworkInterfaces = append(hashed.NetworkInterfaces, hashedInterface{
			strconv.Itoa(int(nic.NetworkCardIndex)), strconv.Itoa(int(nic.DeviceIndex)), nic.InterfaceType})
	}
	if metadata := spec.MetadataOptions; metadata != nil {
		hashed.Metadata = hashedMetadata{value(metadata.HTTPEndpoint), value(metadata.HTTPProtocolIPv6),
			value(metadata.HTTPTokens), value(metadata.HTTPPutResponseHopLimit)}
	}
	if timeouts := spec.ConnectionTracking; timeouts != nil {
		hashed.TCPEstablishedTimeout = value(timeouts.TCPEstablishedTimeout)
		hashed.UDPStreamTimeout, hashed.UDPTimeout = value(timeouts.UDPStreamTimeout), value(timeouts.UDPTimeout)
	}
	if options := spec.CPUOptions; options != nil {
		hashed.NestedVirtualization = value(options.NestedVirtualization)
	}
	return hashed
}

func (m BlockDeviceMapping) hashed() hashedBlockDevice {
	hashed := hashedBlockDevice{DeviceName: value(m.DeviceName), RootVolume: m.RootVolume}
	volume := m.EBS
	if volume == nil {
		return hashed
	}
	hashed.DeleteOnTermination, hashed.Encrypted = threeWay(volume.DeleteOnTermination), threeWay(volume.Encrypted)
	hashed.IOPS, hashed.Throughput = value(volume.IOPS), value(volume.Throughput)
	hashed.KMSKeyID, hashed.SnapshotID, hashed.VolumeType = value(volume.KMSKeyID), value(volume.SnapshotID), value(volume.VolumeType)
	hashed.VolumeInitializationRate = value(volume.VolumeInitializationRate)
	if volume.VolumeSize != nil {
		hashed.VolumeSize = volume.VolumeSize.Value()
	}
	return hashed
}

// canonical returns the configuration as JSON with sorted keys and without whitespace, or "" if no field is
// set.
func (k *KubeletConfiguration) canonical() string {
	if k == nil {
		return ""
	}
	text, err := json.Marshal(*k)
	if err != nil {
		// This happens only for a value that was built in Go: Other with a field that is not valid JSON.
		panic("hashing a kubelet configuration: " + err.Error())
	}
	if string(text) == "{}" {
		return ""
	}
	return string(text)
}

// value returns the value that p points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func threeWay(p *bool) string {
	if p == nil {
		return ""
	}
	return strconv.FormatBool(*p)
}
