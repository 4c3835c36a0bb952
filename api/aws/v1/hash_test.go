package v1

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func hashedClass() *EC2NodeClass {
	return &EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: EC2NodeClassSpec{
			SubnetSelectorTerms:              []SubnetSelectorTerm{{ID: "subnet-1"}},
			SecurityGroupSelectorTerms:       []SecurityGroupSelectorTerm{{ID: "sg-1"}},
			CapacityReservationSelectorTerms: []CapacityReservationSelectorTerm{{ID: "cr-1"}},
			PlacementGroupSelector:           &PlacementGroupSelector{Name: "pg"},
			AMISelectorTerms:                 []AMISelectorTerm{{Alias: "al2023@latest"}},
			UserData:                         new("#!/bin/sh"),
			Role:                             "nodes",
			Tags:                             map[string]string{"team": "a", "tier": "web"},
			Kubelet: &KubeletConfiguration{
				MaxPods:      new(intstr.FromInt32(29)),
				KubeReserved: map[string]string{"cpu": "100m", "memory": "1Gi"},
				Other:        map[string]apiextensionsv1.JSON{"memorySwap": {Raw: []byte(`{"swapBehavior":"LimitedSwap","a":1}`)}},
			},
			BlockDeviceMappings: []BlockDeviceMapping{
				{DeviceName: new("/dev/xvda"), RootVolume: true, EBS: &BlockDevice{DeleteOnTermination: new(true), Encrypted: new(true), IOPS: new(int64(3000)), KMSKeyID: new("k"),
					SnapshotID: new("s"), Throughput: new(int64(125)), VolumeInitializationRate: new(int32(100)), VolumeSize: new(resource.MustParse("1Ti")), VolumeType: new("gp3")}},
				{DeviceName: new("/dev/xvdb")},
			},
			InstanceStorePolicy: new(InstanceStorePolicyRAID0),
			NetworkInterfaces:   []NetworkInterface{{0, 0, InterfaceTypeInterface}, {0, 1, InterfaceTypeEFAOnly}},
			DetailedMonitoring:  new(true),
			MetadataOptions: &MetadataOptions{HTTPEndpoint: new(Enabled), HTTPProtocolIPv6: new(Disabled),
				HTTPPutResponseHopLimit: new(int64(1)), HTTPTokens: new(HTTPTokensRequired)},
			ConnectionTracking:       &ConnectionTracking{TCPEstablishedTimeout: new(int32(60)), UDPStreamTimeout: new(int32(61)), UDPTimeout: new(int32(31))},
			CPUOptions:               &CPUOptions{NestedVirtualization: new(Enabled)},
			AssociatePublicIPAddress: new(true),
			IPPrefixCount:            new(int32(1)),
			Context:                  new("c"),
		},
	}
}

// These values change only together with HashVersion. Otherwise an upgrade of the controller would replace
// every node of a fleet.
func TestHashIsStable(t *testing.T) {
	if HashVersion != "karpenter-go-v2" {
		t.Fatalf("hash version is %s: update the hashes in this test", HashVersion)
	}
	for _, test := range []struct {
		name  string
		class *EC2NodeClass
		want  string
	}{
		{"every field", hashedClass(), "12774670969617613767"},
		{"no field", &EC2NodeClass{}, "3533125094959188595"},
	} {
		if got := test.class.Hash(); got != test.want {
			t.Errorf("%s: hash is %s, want %s", test.name, got, test.want)
		}
	}
}

func TestHashSeesEveryListedField(t *testing.T) {
	seen := map[string]string{hashedClass().Hash(): "nothing changed"}
	for _, test := range []struct {
		name   string
		change func(*EC2NodeClassSpec)
	}{
		{"the alias's family", func(s *EC2NodeClassSpec) { s.AMISelectorTerms[0].Alias = "al2@latest" }},
		{"another family than the alias's", func(s *EC2NodeClassSpec) { s.AMIFamily = new(FamilyCustom) }},
		{"the placement group's name", func(s *EC2NodeClassSpec) { s.PlacementGroupSelector.Name = "z" }},
		{"the placement group's id", func(s *EC2NodeClassSpec) { s.PlacementGroupSelector = &PlacementGroupSelector{ID: "pg"} }},
		{"no placement group", func(s *EC2NodeClassSpec) { s.PlacementGroupSelector = nil }},
		{"user data", func(s *EC2NodeClassSpec) { s.UserData = new("#!/bin/bash") }},
		{"no user data", func(s *EC2NodeClassSpec) { s.UserData = nil }},
		{"the role", func(s *EC2NodeClassSpec) { s.Role = "z" }},
		{"a profile instead of the role", func(s *EC2NodeClassSpec) { s.Role, s.InstanceProfile = "", new("nodes") }},
		{"a tag's value", func(s *EC2NodeClassSpec) { s.Tags["team"] = "b" }},
		{"a tag's key", func(s *EC2NodeClassSpec) { delete(s.Tags, "team"); s.Tags["teams"] = "a" }},
		{"no tags", func(s *EC2NodeClassSpec) { s.Tags = nil }},
		{"maxPods", func(s *EC2NodeClassSpec) { s.Kubelet.MaxPods = new(intstr.FromInt32(30)) }},
		{"maxPods of zero", func(s *EC2NodeClassSpec) { s.Kubelet.MaxPods = new(intstr.FromInt32(0)) }},
		{"an expression for maxPods", func(s *EC2NodeClassSpec) { s.Kubelet.MaxPods = new(intstr.FromString("29")) }},
		{"kubeReserved", func(s *EC2NodeClassSpec) { s.Kubelet.KubeReserved["cpu"] = "200m" }},
		{"systemReserved instead of kubeReserved", func(s *EC2NodeClassSpec) {
			s.Kubelet.KubeReserved, s.Kubelet.SystemReserved = nil, s.Kubelet.KubeReserved
		}},
		{"another field of the kubelet", func(s *EC2NodeClassSpec) {
			s.Kubelet.Other["memorySwap"] = apiextensionsv1.JSON{Raw: []byte(`{"swapBehavior":"NoSwap","a":1}`)}
		}},
		{"no kubelet", func(s *EC2NodeClassSpec) { s.Kubelet = nil }},
		{"a disk's name", func(s *EC2NodeClassSpec) { s.BlockDeviceMappings[0].DeviceName = new("z") }},
		{"a disk is not the root", func(s *EC2NodeClassSpec) { s.BlockDeviceMappings[0].RootVolume = false }},
		{"a disk stays", func(s *EC2NodeClassSpec) { s.BlockDeviceMappings[0].EBS.DeleteOnTermination = new(false) }},
		{"a disk may stay", func(s *EC2NodeClassSpec) { s.BlockDeviceMappings[0].EBS.DeleteOnTermination = nil }},
		{"a disk is not encrypted", func(s *EC2NodeClassSpec) { s.BlockDeviceMappings[0].EBS.Encrypted = new(false) }},
		{"a disk's operations", func(s *EC2NodeClassSpec) { s.BlockDeviceMappings[0].EBS.IOPS = new(int64(1)) }},
		{"a disk's key", func(s *EC2NodeClassSpec) { s.BlockDeviceMappings[0].EBS.KMSKeyID = new("z") }},
		{"a disk's snapshot", func(s *EC2NodeClassSpec) { s.BlockDeviceMappings[0].EBS.SnapshotID = new("z") }},
		{"a disk's throughput", func(s *EC2NodeClassSpec) { s.BlockDeviceMappings[0].EBS.Throughput = new(int64(1)) }},
		{"a disk's initialization", func(s *EC2NodeClassSpec) { s.BlockDeviceMappings[0].EBS.VolumeInitializationRate = new(int32(101)) }},
		{"a disk's size", func(s *EC2NodeClassSpec) { s.BlockDeviceMappings[0].EBS.VolumeSize = new(resource.MustParse("1T")) }},
		{"a disk's type", func(s *EC2NodeClassSpec) { s.BlockDeviceMappings[0].EBS.VolumeType = new("gp2") }},
		{"one disk less", func(s *EC2NodeClassSpec) { s.BlockDeviceMappings = s.BlockDeviceMappings[:1] }},
		{"no instance store policy", func(s *EC2NodeClassSpec) { s.InstanceStorePolicy = nil }},
		{"an interface's card", func(s *EC2NodeClassSpec) { s.NetworkInterfaces[1].NetworkCardIndex = 1 }},
		{"an interface's device", func(s *EC2NodeClassSpec) { s.NetworkInterfaces[1].DeviceIndex = 2 }},
		{"an interface's type", func(s *EC2NodeClassSpec) { s.NetworkInterfaces[1].InterfaceType = InterfaceTypeInterface }},
		{"card and device swapped", func(s *EC2NodeClassSpec) { s.NetworkInterfaces[1] = NetworkInterface{1, 0, InterfaceTypeEFAOnly} }},
		{"no interfaces", func(s *EC2NodeClassSpec) { s.NetworkInterfaces = nil }},
		{"no monitoring", func(s *EC2NodeClassSpec) { s.DetailedMonitoring = nil }},
		{"the metadata endpoint", func(s *EC2NodeClassSpec) { s.MetadataOptions.HTTPEndpoint = new(Disabled) }},
		{"metadata by IPv6", func(s *EC2NodeClassSpec) { s.MetadataOptions.HTTPProtocolIPv6 = new(Enabled) }},
		{"metadata hops", func(s *EC2NodeClassSpec) { s.MetadataOptions.HTTPPutResponseHopLimit = new(int64(2)) }},
		{"metadata tokens", func(s *EC2NodeClassSpec) { s.MetadataOptions.HTTPTokens = new(HTTPTokensOptional) }},
		{"timeout of TCP", func(s *EC2NodeClassSpec) { s.ConnectionTracking.TCPEstablishedTimeout = new(int32(61)) }},
		{"timeout of UDP streams", func(s *EC2NodeClassSpec) { s.ConnectionTracking.UDPStreamTimeout = new(int32(60)) }},
		{"timeout of UDP", func(s *EC2NodeClassSpec) { s.ConnectionTracking.UDPTimeout = nil }},
		{"nested virtualization", func(s *EC2NodeClassSpec) { s.CPUOptions.NestedVirtualization = new(Disabled) }},
		{"no public address", func(s *EC2NodeClassSpec) { s.AssociatePublicIPAddress = new(false) }},
		{"a public address as the subnet says", func(s *EC2NodeClassSpec) { s.AssociatePublicIPAddress = nil }},
		{"the context", func(s *EC2NodeClassSpec) { s.Context = new("z") }},
	} {
		class := hashedClass()
		test.change(&class.Spec)
		hash := class.Hash()
		if other, ok := seen[hash]; ok {
			t.Errorf("%s: hash is the same as with %s", test.name, other)
		}
		seen[hash] = test.name
	}
	for annotation, changes := range map[string]bool{AnnotationPrefixDelegation + "=true": true, AnnotationPrefixDelegation + "=false": false,
		AnnotationVolumeSize + "=/dev/xvda=20 + vcpus": true, AnnotationVolumeSize + "=": false,
		AnnotationOpenReservations + "=true": false} {
		class := hashedClass()
		key, value, _ := strings.Cut(annotation, "=")
		class.Annotations = map[string]string{key: value}
		if got := class.Hash() != hashedClass().Hash(); got != changes {
			t.Errorf("the annotation %s changes the hash: %t, want %t", annotation, got, changes)
		}
	}
}

func TestHashIgnoresTheRest(t *testing.T) {
	want := hashedClass().Hash()
	for _, test := range []struct {
		name   string
		change func(*EC2NodeClass)
	}{
		{"subnets", func(c *EC2NodeClass) { c.Spec.SubnetSelectorTerms = nil }},
		{"security groups", func(c *EC2NodeClass) { c.Spec.SecurityGroupSelectorTerms = nil }},
		{"capacity reservations", func(c *EC2NodeClass) { c.Spec.CapacityReservationSelectorTerms = nil }},
		{"a release of images", func(c *EC2NodeClass) { c.Spec.AMISelectorTerms[0].Alias = "al2023@v20260101" }},
		{"how the family is written", func(c *EC2NodeClass) {
			c.Spec.AMIFamily = new(FamilyAL2023)
			c.Spec.AMISelectorTerms = []AMISelectorTerm{{ID: "ami-1"}}
		}},
		{"prefixes", func(c *EC2NodeClass) { c.Spec.IPPrefixCount = nil }},
		{"order of disks", func(c *EC2NodeClass) { slices.Reverse(c.Spec.BlockDeviceMappings) }},
		{"order of interfaces", func(c *EC2NodeClass) { slices.Reverse(c.Spec.NetworkInterfaces) }},
		{"text of a size", func(c *EC2NodeClass) {
			c.Spec.BlockDeviceMappings[0].EBS.VolumeSize = new(resource.MustParse("1024Gi"))
		}},
		{"text of a kubelet field", func(c *EC2NodeClass) {
			c.Spec.Kubelet.Other["memorySwap"] = apiextensionsv1.JSON{Raw: []byte(` { "a": 1, "swapBehavior": "LimitedSwap" }`)}
		}},
		{"monitoring off is no monitoring", func(c *EC2NodeClass) {
			unset := hashedClass()
			unset.Spec.DetailedMonitoring = nil
			c.Spec.DetailedMonitoring = new(false)
			if c.Hash() != unset.Hash() {
				t.Error("detailedMonitoring: false has another hash than an absent one")
			}
			c.Spec.DetailedMonitoring = new(true)
		}},
		{"metadata", func(c *EC2NodeClass) { c.Name, c.Labels = "other", map[string]string{"a": "b"} }},
		{"status", func(c *EC2NodeClass) { c.Status.InstanceProfile = "p" }},
	} {
		class := hashedClass()
		test.change(class)
		if got := class.Hash(); got != want {
			t.Errorf("%s: hash changed from %s to %s", test.name, want, got)
		}
	}
	empty := &EC2NodeClass{Spec: EC2NodeClassSpec{Tags: map[string]string{}, UserData: new(""), Kubelet: &KubeletConfiguration{}, BlockDeviceMappings: []BlockDeviceMapping{}, NetworkInterfaces: []NetworkInterface{}}}
	if got, absent := empty.Hash(), (&EC2NodeClass{}).Hash(); got != absent {
		t.Errorf("empty maps, lists and texts: hash is %s, want that of absent ones, %s", got, absent)
	}
}

// A class that is read from the API server has the same hash as one that is built in Go.
func TestHashOfJSON(t *testing.T) {
	text, err := json.Marshal(hashedClass())
	if err != nil {
		t.Fatal(err)
	}
	read := &EC2NodeClass{}
	if err := json.Unmarshal(text, read); err != nil {
		t.Fatal(err)
	}
	if got, want := read.Hash(), hashedClass().Hash(); got != want {
		t.Errorf("hash changed from %s to %s after a JSON round trip", want, got)
	}
}
