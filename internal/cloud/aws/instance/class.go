package instance

import (
	"errors"
	"fmt"
	"slices"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
)

const (
	kiB = int64(1) << 10
	miB = kiB << 10
	giB = miB << 10
	gB  = int64(1_000_000_000)
)

// Class is what the instance types need to know of an EC2NodeClass and its status.
type Class struct {
	// Name is that of the object.
	Name string
	// Family of the images. One that is not known counts as AL2.
	Family awsv1.Family
	// Images in the order of the status: a type runs the first one that fits it. Without any, none is asked for.
	Images []Image
	// Subnets of the status.
	Subnets []Subnet
	// Volumes are the EBS volumes of the spec's block device mappings; none means the family's.
	Volumes []Volume
	// RAID0 makes one file system of the instance's own disks.
	RAID0 bool
	// Interfaces of the spec; none means one primary interface.
	Interfaces []Interface
	// NestedVirtualization and ConnectionTracking say that the spec asks for them.
	NestedVirtualization bool
	ConnectionTracking   bool
	Kubelet              Kubelet
}

// Image is one resolved machine image and the instance types it is for.
type Image struct {
	ID           string
	Requirements []cloud.Requirement
}

// Subnet is one resolved subnet. ZoneID may be empty.
type Subnet struct {
	ID     string
	Zone   string
	ZoneID string
}

// Volume is one EBS volume that a machine starts with. Bytes is 0 where the snapshot decides the size.
type Volume struct {
	Device string
	Root   bool
	Bytes  int64
}

// Interface is one network interface that the class asks for.
type Interface struct {
	Card    int64
	Device  int64
	EFAOnly bool
}

// Kubelet is what the class says of the kubelet, as far as it changes what a node offers. Amounts are written as in the
// API: quantities, or for eviction also percentages.
type Kubelet struct {
	MaxPods        *int64
	PodsPerCore    int64 // 0: no limit
	SystemReserved map[string]string
	KubeReserved   map[string]string
	EvictionHard   map[string]string
}

// Settings are the provider's own.
type Settings struct {
	// Region of the cluster.
	Region string
	// MemoryOverheadPercent is the part of a type's memory that its nodes do not see (0.075 is 7.5 per cent), for types
	// and images of which no node has been seen.
	MemoryOverheadPercent float64
	// ReservedENIs are network interfaces of every node that pods cannot use, such as the primary one where the VPC CNI
	// is set up for custom networking.
	ReservedENIs int64
	// IPv6 says that the cluster's pods have IPv6 addresses.
	IPv6 bool
}

func (s *Settings) check() error {
	switch {
	case s.Region == "":
		return errors.New("region: is missing, want one such as us-east-1")
	case !(s.MemoryOverheadPercent >= 0 && s.MemoryOverheadPercent < 1):
		return fmt.Errorf("vm memory overhead percent: is %v, want at least 0 and less than 1", s.MemoryOverheadPercent)
	case s.ReservedENIs < 0:
		return fmt.Errorf("reserved enis: is %d, want 0 or more", s.ReservedENIs)
	}
	return nil
}

// family is what the family of images decides.
type family struct {
	name awsv1.Family
	// volumes used where the class has none; none of its own means that the image decides.
	volumes []Volume
	// ephemeral is the device that holds the pods' storage.
	ephemeral string
	// windowsBuild is the build number, for Windows only.
	windowsBuild string
	podsPerCore  bool
	// reservesForPods: the memory reserved for the kubelet follows the node's real number of pods, not that of its
	// network interfaces.
	reservesForPods bool
}

func familyOf(name awsv1.Family) family {
	f := family{name: name, ephemeral: "/dev/xvda", podsPerCore: true}
	switch name {
	case awsv1.FamilyBottlerocket:
		f.ephemeral, f.podsPerCore, f.reservesForPods = "/dev/xvdb", false, true
		f.volumes = []Volume{{Device: "/dev/xvda", Root: true, Bytes: 4 * giB}, {Device: "/dev/xvdb", Bytes: 20 * giB}}
		return f
	case awsv1.FamilyWindows2019, awsv1.FamilyWindows2022, awsv1.FamilyWindows2025:
		f.ephemeral, f.reservesForPods = "/dev/sda1", true
		f.windowsBuild = windowsBuilds[name]
		f.volumes = []Volume{{Device: f.ephemeral, Root: true, Bytes: 50 * giB}}
		return f
	case awsv1.FamilyCustom:
		f.ephemeral = ""
		return f
	}
	f.volumes = []Volume{{Device: f.ephemeral, Root: true, Bytes: 20 * giB}}
	return f
}

// windowsBuilds are values of node.kubernetes.io/windows-build.
var windowsBuilds = map[awsv1.Family]string{
	awsv1.FamilyWindows2019: "10.0.17763",
	awsv1.FamilyWindows2022: "10.0.20348",
	awsv1.FamilyWindows2025: "10.0.26100",
}

func (f *family) windows() bool { return f.windowsBuild != "" }

// zones of the class, sorted, with what is known of each.
func (c *Class) zones() []zone {
	byName := map[string]*zone{}
	var names []string
	for _, subnet := range c.Subnets {
		if byName[subnet.Zone] == nil {
			byName[subnet.Zone] = &zone{name: subnet.Zone}
			names = append(names, subnet.Zone)
		}
		z := byName[subnet.Zone]
		z.subnets = append(z.subnets, subnet.ID)
		z.id = max(z.id, subnet.ZoneID)
	}
	slices.Sort(names)
	zones := make([]zone, len(names))
	for i, name := range names {
		zones[i] = *byName[name]
		if id := zones[i].id; id != "" {
			zones[i].labels.has(awsv1.LabelZoneID, id)
		} else {
			zones[i].labels.lacks(awsv1.LabelZoneID)
		}
	}
	return zones
}

// zone is one in which the class has subnets. Labels are those of its offerings.
type zone struct {
	name, id string
	subnets  []string
	labels   labels
}
