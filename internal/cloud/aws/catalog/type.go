package catalog

import (
	"slices"
	"strings"
)

// Usage classes of a type, with EC2's names.
const (
	UsageOnDemand      = "on-demand"
	UsageSpot          = "spot"
	UsageCapacityBlock = "capacity-block"
)

// Hypervisors of a type, with EC2's names. Bare metal has none.
const (
	HypervisorNitro = "nitro"
	HypervisorXen   = "xen"
)

// Type is one EC2 instance type: the data of DescribeInstanceTypes, and a few facts that it lacks. Fields that the
// embedded file does not have are marked "live only": they are in EC2's responses.
type Type struct {
	Name  string `json:"name"`
	VCPUs int64  `json:"vcpu"` // the default number
	Cores int64  `json:"cores"`
	// MemoryMiB is the amount that EC2 reports. A node has less.
	MemoryMiB int64 `json:"memMiB"`
	// Architectures are EC2's names: x86_64, arm64, i386, x86_64_mac, arm64_mac.
	Architectures []string `json:"arch"`
	// Manufacturer is that of the processor: Intel, AMD, AWS, Apple.
	Manufacturer string `json:"cpu"`
	// ClockGHz is the sustained clock speed, 0 if EC2 does not report it.
	ClockGHz float64 `json:"ghz,omitempty"`

	// ENIs is the maximum number of network interfaces over all network cards. ENIsCard0 is that of card 0 if there are
	// several cards (0 if there is one). IPv4PerENI and IPv6PerENI are the addresses per interface.
	ENIs       int64 `json:"enis"`
	Cards      int64 `json:"cards,omitempty"`
	ENIsCard0  int64 `json:"enisCard0,omitempty"`
	IPv4PerENI int64 `json:"ipv4"`
	IPv6PerENI int64 `json:"ipv6,omitempty"`
	// BranchENIs is the maximum number of branch interfaces (security groups for pods) of its trunk interface, 0
	// without trunking. Source: the limits table of amazon-vpc-resource-controller-k8s.
	BranchENIs int64 `json:"branchEnis,omitempty"`
	// BaselineMbps is the sustained network bandwidth of all cards together, 0 if AWS does not specify it. The two
	// below are EC2's values for one card.
	BaselineMbps    int64 `json:"netMbps,omitempty"`
	CardMbps        int64 `json:"netBaseMbps,omitempty"`
	CardPeakMbps    int64 `json:"netPeakMbps,omitempty"`
	EFAs            int64 `json:"efa,omitempty"`
	EncryptsTransit bool  `json:"encTransit,omitempty"`
	// ENA means that the type has the enhanced network adapter. The file lacks it (see addFeatures).
	ENA bool `json:"ena,omitempty"`

	// EBSMbps is the maximum EBS bandwidth, and EBSBaselineMbps the sustained one if it is lower. EBSOptimized is
	// "supported" if the optimization must be requested, and empty if it is always on or not available.
	EBSMbps         int64  `json:"ebsMbps,omitempty"`
	EBSBaselineMbps int64  `json:"ebsBaseMbps,omitempty"`
	EBSOptimized    string `json:"ebsOpt,omitempty"`
	// EBSAttachments is EC2's maximumEbsAttachments, including the root volume. EBSDedicated means that its
	// attachmentLimitType is "dedicated". Both are live only.
	EBSAttachments int64 `json:"ebsAttachments,omitempty"`
	EBSDedicated   bool  `json:"ebsDedicated,omitempty"`

	// NVMeGB is the instance storage in GB (10^9 bytes) that is attached by NVMe, DiskGB the rest, and Disks the number
	// of disks. DiskType is "hdd" or, for flash, empty.
	NVMeGB   int64  `json:"nvmeGB,omitempty"`
	DiskGB   int64  `json:"diskGB,omitempty"`
	Disks    int64  `json:"disks,omitempty"`
	DiskType string `json:"diskType,omitempty"`

	GPU         *Device `json:"gpu,omitempty"`
	Neuron      *Device `json:"neuron,omitempty"` // AWS Inferentia and Trainium
	Accelerator *Device `json:"accel,omitempty"`  // the inference accelerators in EC2's list, which include Inferentia
	FPGAs       int64   `json:"fpga,omitempty"`
	Media       int64   `json:"media,omitempty"` // media accelerator cards

	// Hypervisor is HypervisorNitro, HypervisorXen, or empty for bare metal.
	Hypervisor    string `json:"hypervisor,omitempty"`
	Metal         bool   `json:"metal,omitempty"`
	Burstable     bool   `json:"burst,omitempty"`
	OldGeneration bool   `json:"old,omitempty"`
	// The file lacks NitroEnclaves and NestedVirtualization, too.
	NitroEnclaves        bool `json:"enclaves,omitempty"`
	NestedVirtualization bool `json:"nested,omitempty"`

	// PlacementStrategies lists the strategies of placement groups that the type supports, sorted: cluster, partition,
	// spread. The file lacks them (see addFeatures). The slice is shared and must not be modified.
	PlacementStrategies []string `json:"placement,omitempty"`

	// Usage lists the usage classes, sorted.
	Usage []string `json:"usage"`
	// ZoneLetters are the letters of the zones that offer the type, by region ("us-east-1": "abcdf"), as in the
	// embedded file. Zones, if set, are full names and take precedence: live only.
	ZoneLetters map[string]string `json:"zones,omitempty"`
	Zones       []string          `json:"-"`
	// Prices are on-demand prices in USD per hour, Linux, shared tenancy, by region.
	Prices map[string]float64 `json:"usd,omitempty"`
}

// Strategies of placement groups, with EC2's names.
const (
	StrategyCluster   = "cluster"
	StrategyPartition = "partition"
	StrategySpread    = "spread"
)

// Device is a GPU or another accelerator of a type.
type Device struct {
	Name         string `json:"name"`
	Manufacturer string `json:"mfr,omitempty"`
	// Count is the number of whole devices. It is 0 if the type has a part of one: Fraction of it, visible as Logical
	// devices.
	Count    int64   `json:"count"`
	Fraction float64 `json:"fraction,omitempty"`
	Logical  int64   `json:"logical,omitempty"`
	// CoresPerDevice is set for Neuron devices.
	CoresPerDevice int64 `json:"coresPerDevice,omitempty"`
	// MemoryMiB is the memory of one device.
	MemoryMiB int64 `json:"memMiB,omitempty"`
}

// Family returns the part of the name before the dot.
func (t *Type) Family() string {
	family, _, _ := strings.Cut(t.Name, ".")
	return family
}

// Size returns the part of the name after the dot: "large", "metal-48xl".
func (t *Type) Size() string {
	_, size, _ := strings.Cut(t.Name, ".")
	return size
}

// ZonesIn returns the zones of the region that offer the type, sorted.
func (t *Type) ZonesIn(region string) []string {
	if t.Zones != nil {
		return slices.Sorted(slices.Values(t.Zones))
	}
	var zones []string
	for _, letter := range t.ZoneLetters[region] {
		zones = append(zones, region+string(letter))
	}
	slices.Sort(zones)
	return zones
}

// PrimaryENIs returns the maximum number of network interfaces of the default network card: all of them if there is one
// card.
func (t *Type) PrimaryENIs() int64 {
	if t.Cards > 1 {
		return t.ENIsCard0
	}
	return t.ENIs
}

// ENIsOn returns the maximum number of network interfaces of the given network card. EC2 reports it for card 0. The
// other cards of a type share the rest evenly, so far without exception.
func (t *Type) ENIsOn(card int64) int64 {
	switch {
	case card < 0 || card >= max(1, t.Cards):
		return 0
	case card == 0:
		return t.PrimaryENIs()
	default:
		return (t.ENIs - t.ENIsCard0) / (t.Cards - 1)
	}
}

// StorageGB returns the instance storage in GB (10^9 bytes), however it is attached.
func (t *Type) StorageGB() int64 { return t.NVMeGB + t.DiskGB }

// SupportsENA reports whether the type has the enhanced network adapter. All types on Nitro, and bare metal, require
// it. For older ones, EC2 reports it (source: EC2 User Guide, "Enhanced networking on Amazon EC2 instances").
func (t *Type) SupportsENA() bool { return t.ENA || t.Hypervisor != HypervisorXen }

// SupportsUsage reports whether the type has the usage class.
func (t *Type) SupportsUsage(usage string) bool { return slices.Contains(t.Usage, usage) }

// Catalog is the content of the embedded file.
type Catalog struct {
	Meta Meta `json:"meta"`
	// Types are sorted by name. They are shared and must not be modified.
	Types []Type `json:"types"`
}

// Meta describes the origin of the data.
type Meta struct {
	// Sources are by subject.
	Sources map[string]string `json:"sources"`
	// PriceStamps are the times of the price lists (RFC 3339) by region.
	PriceStamps map[string]string `json:"priceStamps"`
	// ZoneRegions are the regions whose zones are in the file.
	ZoneRegions []string `json:"zoneRegions"`
	Note        string   `json:"note"`
}

// Type returns the type of the given name, or false. It must not be modified.
func (c *Catalog) Type(name string) (*Type, bool) {
	at, found := slices.BinarySearchFunc(c.Types, name, func(t Type, name string) int { return strings.Compare(t.Name, name) })
	if !found {
		return nil, false
	}
	return &c.Types[at], true
}

// Unpriced lists the names of the types without an on-demand price in the region, sorted.
func (c *Catalog) Unpriced(region string) []string {
	var names []string
	for i := range c.Types {
		if c.Types[i].Prices[region] <= 0 {
			names = append(names, c.Types[i].Name)
		}
	}
	return names
}
