package v1

import (
	"encoding/json"
	"maps"
	"strconv"

	"github.com/mitchellh/hashstructure/v2"
)

// HashVersion names the way Hash computes, in AnnotationNodeClassHashVersion. Hashes of different versions are never
// compared: a class and its claims that carry another version (also one of another implementation) are stamped again
// instead of being taken for drifted. It changes whenever Hash gives another result for some class, which includes a
// new default of a hashed field.
const HashVersion = "karpenter-go-v2"

// hashedSpec is what the drift hash sees of a class. It is a type of its own, so that the API types can change without
// changing the hash. Names of types and fields are part of the hash. Left out on purpose:
//
//   - the selectors of subnets, security groups, images and capacity reservations: what they find has drift checks of
//     its own;
//   - amiFamily as written: the family that follows from it counts, so that writing the alias's family down is no change;
//   - ipPrefixCount, as in Karpenter;
//   - the cluster's CA bundle, which is not part of the class: running nodes have what the cluster gave them, and
//     replacing all of a fleet because a certificate was rotated is worse than waiting for it to expire.
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
	NetworkCardIndex, DeviceIndex string // decimal: the number 0 would be left out
	InterfaceType                 string
}

type hashedMetadata struct {
	HTTPEndpoint, HTTPProtocolIPv6, HTTPTokens string
	HTTPPutResponseHopLimit                    int64
}

// Hash is the drift hash of the class: a decimal uint64 that changes when, and only when, machines made before and
// after would differ in something that is written in the class and has no drift check of its own. The order of disks
// and network interfaces and the spelling of amounts ("1Ti", "1024Gi") do not matter, and an empty map, list or text is
// like an absent one.
func (c *EC2NodeClass) Hash() string {
	sum, err := hashstructure.Hash(c.hashed(), hashstructure.FormatV2, &hashstructure.HashOptions{IgnoreZeroValue: true, ZeroNil: true})
	if err != nil {
		// The input has only strings, integers, booleans, maps and lists of them.
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
	}
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

// canonical is the configuration as JSON with sorted keys and no blanks; empty without any field.
func (k *KubeletConfiguration) canonical() string {
	if k == nil {
		return ""
	}
	text, err := json.Marshal(*k)
	if err != nil {
		// Only for a Go value that no JSON gives: Other with a field that is not JSON.
		panic("hashing a kubelet configuration: " + err.Error())
	}
	if string(text) == "{}" {
		return ""
	}
	return string(text)
}

// value is what p points to, or the zero value.
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
