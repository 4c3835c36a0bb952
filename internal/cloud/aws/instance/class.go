package instance

import (
	"errors"
	"fmt"
	"slices"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/expression"
)

const (
	kiB = int64(1) << 10
	miB = kiB << 10
	giB = miB << 10
	gB  = int64(1_000_000_000)
)

// Class holds the fields of an EC2NodeClass and its status that affect instance types.
type Class struct {
	// Name is the name of the object.
	Name string
	// Family is the image family. An unknown family is treated as AL2.
	Family awsv1.Family
	// Images are in the order of the status. A type uses the first one that is compatible. If there are none, types
	// need no image.
	Images []Image
	// Subnets are those of the status.
	Subnets []Subnet
	// Volumes are the EBS volumes in the spec's block device mappings. If there are none, those of the family are used.
	Volumes []Volume
	// RAID0 combines the instance's own disks into one file system.
	RAID0 bool
	// Interfaces are those of the spec. None means one primary interface.
	Interfaces []Interface
	// NestedVirtualization and ConnectionTracking mean that the spec requires them.
	NestedVirtualization bool
	ConnectionTracking   bool
	// Reservations are the capacity reservations of the status.
	Reservations []Reservation
	// PrefixDelegation means that the VPC CNI assigns IPv4 prefixes.
	PrefixDelegation bool
	// VolumeSizes are CEL expressions for sizes of volumes in GiB, by device. Sizes are their results for one type, in
	// bytes.
	VolumeSizes map[string]string
	Sizes       map[string]int64
	Kubelet     Kubelet
	// Placement is the placement group. ClassOf does not set it, because a class and its status do not have it.
	Placement PlacementGroup
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

// Volume is one EBS volume that a machine starts with. Bytes is 0 if the snapshot determines the size.
type Volume struct {
	Device string
	Root   bool
	Bytes  int64
}

// Interface is one network interface in the spec of the class.
type Interface struct {
	Card    int64
	Device  int64
	EFAOnly bool
}

// Kubelet holds the kubelet settings of the class that affect the resources of a node. Amounts are written as in the
// API: quantities, or also percentages for eviction.
type Kubelet struct {
	MaxPods        *int64
	PodsPerCore    int64 // 0 means no limit
	SystemReserved map[string]string
	KubeReserved   map[string]string
	EvictionHard   map[string]string
	// MaxPodsExpression, KubeExpressions and SystemExpressions are CEL expressions, the latter by resource. Their results
	// take precedence over the fields above.
	MaxPodsExpression                  string
	KubeExpressions, SystemExpressions map[string]string
}

// Settings are the settings of the provider.
type Settings struct {
	// Region is the region of the cluster.
	Region string
	// MemoryOverheadPercent is the fraction of a type's memory that its nodes do not have (0.075 is 7.5 percent), for
	// types and images without an observed node.
	MemoryOverheadPercent float64
	// ReservedENIs is the number of network interfaces per node that pods cannot use, such as the primary one if the
	// VPC CNI uses custom networking.
	ReservedENIs int64
	// IPv6 means that the cluster's pods have IPv6 addresses.
	IPv6 bool
	// IgnoreReservations means that nothing is launched into the capacity reservations of classes.
	IgnoreReservations bool
	// KubeletExpressions means that the feature gate NodeClassCEL is on. Otherwise expressions are ignored.
	KubeletExpressions bool
	// Programs keeps compiled expressions. It may be nil.
	Programs *expression.Cache
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

// family holds the attributes that depend on the image family.
type family struct {
	name awsv1.Family
	// volumes are used if the class has none. If the family has none either, the image determines them.
	volumes []Volume
	// ephemeral is the device with the pods' storage.
	ephemeral string
	// windowsBuild is the build number, for Windows only.
	windowsBuild string
	podsPerCore  bool
	// reservesForPods means that the memory reserved for the kubelet depends on the node's actual maximum number of
	// pods instead of the number that its network interfaces allow.
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

// zones returns the zones of the class, sorted by name.
func (c *Class) zones() []zone {
	byName := map[string]*zone{}
	var names []string
	for _, subnet := range c.Subnets {
		if c.Placement.Zone != "" && subnet.Zone != c.Placement.Zone {
			continue
		}
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

// zone is a zone in which the class has subnets. labels are those of its offerings.
type zone struct {
	name, id string
	subnets  []string
	labels   labels
}
