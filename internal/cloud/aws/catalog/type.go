package catalog

import (
	"maps"
	"slices"
	"strings"
)

// Usage classes of a type, as EC2 spells them.
const (
	UsageOnDemand      = "on-demand"
	UsageSpot          = "spot"
	UsageCapacityBlock = "capacity-block"
)

// Hypervisors of a type, as EC2 spells them. Bare metal has none.
const (
	HypervisorNitro = "nitro"
	HypervisorXen   = "xen"
)

// Type is one EC2 instance type: what DescribeInstanceTypes says of it, and the few facts that it does not say. Fields
// without a value in the embedded file are marked "live only": EC2's own answer has them.
type Type struct {
	Name  string `json:"name"`
	VCPUs int64  `json:"vcpu"` // the default number
	Cores int64  `json:"cores"`
	// MemoryMiB is what EC2 reports; a node sees less.
	MemoryMiB int64 `json:"memMiB"`
	// Architectures as EC2 spells them: x86_64, arm64, i386, x86_64_mac, arm64_mac.
	Architectures []string `json:"arch"`
	// Manufacturer of the processor: Intel, AMD, AWS, Apple.
	Manufacturer string `json:"cpu"`
	// ClockGHz is the sustained clock speed; 0 where EC2 does not say.
	ClockGHz float64 `json:"ghz,omitempty"`

	// ENIs is the most network interfaces over all network cards, ENIsCard0 those of card 0 where there are several
	// cards (0 where there is one), IPv4PerENI and IPv6PerENI the addresses that each can have.
	ENIs       int64 `json:"enis"`
	Cards      int64 `json:"cards,omitempty"`
	ENIsCard0  int64 `json:"enisCard0,omitempty"`
	IPv4PerENI int64 `json:"ipv4"`
	IPv6PerENI int64 `json:"ipv6,omitempty"`
	// BranchENIs is how many branch interfaces (security groups for pods) a trunk interface of it takes; 0 without
	// trunking. Source: the limits table of amazon-vpc-resource-controller-k8s.
	BranchENIs int64 `json:"branchEnis,omitempty"`
	// BaselineMbps is the sustained network bandwidth of all cards together, 0 where AWS is vague about it. The two
	// below are EC2's figures for one card.
	BaselineMbps    int64 `json:"netMbps,omitempty"`
	CardMbps        int64 `json:"netBaseMbps,omitempty"`
	CardPeakMbps    int64 `json:"netPeakMbps,omitempty"`
	EFAs            int64 `json:"efa,omitempty"`
	EncryptsTransit bool  `json:"encTransit,omitempty"`
	// ENA is whether the enhanced network adapter is there: live only, see SupportsENA.
	ENA bool `json:"ena,omitempty"`

	// EBSMbps is the maximum EBS bandwidth, EBSBaselineMbps the sustained one where it is lower. EBSOptimized is
	// "supported" where the optimisation must be asked for, empty where it is always on or not to be had.
	EBSMbps         int64  `json:"ebsMbps,omitempty"`
	EBSBaselineMbps int64  `json:"ebsBaseMbps,omitempty"`
	EBSOptimized    string `json:"ebsOpt,omitempty"`
	// EBSAttachments is EC2's maximumEbsAttachments, the root volume included, and EBSDedicated whether its
	// attachmentLimitType is "dedicated": live only.
	EBSAttachments int64 `json:"ebsAttachments,omitempty"`
	EBSDedicated   bool  `json:"ebsDedicated,omitempty"`

	// NVMeGB is the instance storage in GB (10^9 bytes) that is reached by NVMe, DiskGB that which is not, Disks how
	// many disks make it up. DiskType is "hdd" or, for flash, empty.
	NVMeGB   int64  `json:"nvmeGB,omitempty"`
	DiskGB   int64  `json:"diskGB,omitempty"`
	Disks    int64  `json:"disks,omitempty"`
	DiskType string `json:"diskType,omitempty"`

	GPU         *Device `json:"gpu,omitempty"`
	Neuron      *Device `json:"neuron,omitempty"` // AWS Inferentia and Trainium
	Accelerator *Device `json:"accel,omitempty"`  // what EC2 lists as inference accelerators, Inferentia among them
	FPGAs       int64   `json:"fpga,omitempty"`
	Media       int64   `json:"media,omitempty"` // media accelerator cards

	// Hypervisor is HypervisorNitro, HypervisorXen, or empty for bare metal.
	Hypervisor    string `json:"hypervisor,omitempty"`
	Metal         bool   `json:"metal,omitempty"`
	Burstable     bool   `json:"burst,omitempty"`
	OldGeneration bool   `json:"old,omitempty"`
	// NitroEnclaves and NestedVirtualization: live only.
	NitroEnclaves        bool `json:"enclaves,omitempty"`
	NestedVirtualization bool `json:"nested,omitempty"`

	// Usage lists the usage classes, sorted.
	Usage []string `json:"usage"`
	// ZoneLetters are the letters of the zones that sell the type, by region ("us-east-1": "abcdf"): the form of the
	// embedded file. Zones, where set, are full names and hold instead: live only.
	ZoneLetters map[string]string `json:"zones,omitempty"`
	Zones       []string          `json:"-"`
	// Prices on demand in USD per hour, Linux, shared tenancy, by region.
	Prices map[string]float64 `json:"usd,omitempty"`
}

// Device is a GPU or another accelerator of a type.
type Device struct {
	Name         string `json:"name"`
	Manufacturer string `json:"mfr,omitempty"`
	// Count is the number of whole devices: 0 where the type has a part of one, Fraction of it, seen as Logical devices.
	Count    int64   `json:"count"`
	Fraction float64 `json:"fraction,omitempty"`
	Logical  int64   `json:"logical,omitempty"`
	// CoresPerDevice is set for Neuron devices.
	CoresPerDevice int64 `json:"coresPerDevice,omitempty"`
	// MemoryMiB is that of one device.
	MemoryMiB int64 `json:"memMiB,omitempty"`
}

// Family is the part of the name before the dot, Size that after it.
func (t *Type) Family() string {
	family, _, _ := strings.Cut(t.Name, ".")
	return family
}

// Size is the part of the name after the dot: "large", "metal-48xl".
func (t *Type) Size() string {
	_, size, _ := strings.Cut(t.Name, ".")
	return size
}

// ZonesIn lists the zones of the region that sell the type, sorted.
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

// PrimaryENIs is how many network interfaces the default network card takes: all of them where there is one card.
func (t *Type) PrimaryENIs() int64 {
	if t.Cards > 1 {
		return t.ENIsCard0
	}
	return t.ENIs
}

// ENIsOn is how many network interfaces the given network card takes. EC2 says it of card 0; the others of a type share
// the rest evenly, so far without exception.
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

// StorageGB is the instance storage in GB (10^9 bytes), however it is attached.
func (t *Type) StorageGB() int64 { return t.NVMeGB + t.DiskGB }

// SupportsENA says whether the enhanced network adapter is there. All types on Nitro, and bare metal, require it; of the
// older ones EC2's answer knows (source: EC2 User Guide, "Enhanced networking on Amazon EC2 instances").
func (t *Type) SupportsENA() bool { return t.ENA || t.Hypervisor != HypervisorXen }

// SupportsUsage says whether the type is sold that way.
func (t *Type) SupportsUsage(usage string) bool { return slices.Contains(t.Usage, usage) }

// Catalogue is the embedded file.
type Catalogue struct {
	Meta Meta `json:"meta"`
	// Types are sorted by name. They are shared: nobody may change them.
	Types []Type `json:"types"`
}

// Meta says where the data is from.
type Meta struct {
	// Sources by subject.
	Sources map[string]string `json:"sources"`
	// PriceStamps are the times of the price lists (RFC 3339) by region.
	PriceStamps map[string]string `json:"priceStamps"`
	// ZoneRegions are the regions whose zones are in the file.
	ZoneRegions []string `json:"zoneRegions"`
	Note        string   `json:"note"`
}

// Type returns the type of that name, which nobody may change, or false.
func (c *Catalogue) Type(name string) (*Type, bool) {
	at, found := slices.BinarySearchFunc(c.Types, name, func(t Type, name string) int { return strings.Compare(t.Name, name) })
	if !found {
		return nil, false
	}
	return &c.Types[at], true
}

// PriceRegions lists the regions with prices, sorted.
func (c *Catalogue) PriceRegions() []string { return slices.Sorted(maps.Keys(c.Meta.PriceStamps)) }

// Unpriced lists the names of the types without an on-demand price in the region, sorted.
func (c *Catalogue) Unpriced(region string) []string {
	var names []string
	for i := range c.Types {
		if c.Types[i].Prices[region] <= 0 {
			names = append(names, c.Types[i].Name)
		}
	}
	return names
}
