package awssim

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

// machineType holds the simulator's data of an instance type.
type machineType struct {
	Name                  string
	VCPU, Cores, MemMiB   int
	Arch                  []string
	Manufacturer          string
	GHz                   float64
	ENIs, IPv4, IPv6      int
	Cards, ENIsCard0, EFA int
	PeakMbps, BaseMbps    int // for one network card
	EBSMbps, EBSBaseMbps  int
	EBSOpt, Hypervisor    string
	CurrentGeneration     bool
	Usage                 []string
	Zones                 map[string]string // letters by region
	USD                   map[string]float64
	Metal, Burst          bool
	ENA, Enclaves, Nested bool
	EncTransit            bool
	DiskGB, Disks, NVMeGB int
	DiskType              string
	GPU, Accelerator      *device
	Neuron                *device
	FPGAs, Media          int
	Strategies            []string // of placement groups
}

// device is a device of a type other than processors, Count of each.
type device struct {
	Name, Manufacturer string
	Count, MemMiB      int
	Fraction           float64 // of one device, if there is no whole one
	Logical            int     // number of devices that a fraction appears as
	Cores              int     // per Neuron device
}

// storageGB returns the total instance store, 0 for none.
func (t *machineType) storageGB() int { return t.NVMeGB + t.DiskGB }

// cards returns the number of network cards.
func (t *machineType) cards() int { return max(t.Cards, 1) }

// enisOn returns the maximum number of interfaces of a network card.
func (t *machineType) enisOn(card int) int {
	switch {
	case t.cards() == 1:
		return t.ENIs
	case card == 0:
		return t.ENIsCard0
	}
	return max((t.ENIs-t.ENIsCard0)/(t.cards()-1), 1)
}

func (t *machineType) supports(usage string) bool { return slices.Contains(t.Usage, usage) }

// runs reports whether an image of that architecture boots on the type.
func (t *machineType) runs(arch string) bool { return slices.Contains(t.Arch, arch) }

func (c *Cloud) loadTypes() {
	c.types = map[string]*machineType{}
	all := catalog.Load().Types
	for k := range all {
		if all[k].ZoneLetters[c.opts.Region] != "" {
			c.types[all[k].Name] = typeFrom(&all[k])
		}
	}
	c.names = sortedKeys(c.types)
}

// typeFrom copies the catalog's facts. Only its data is used, not its methods.
func typeFrom(t *catalog.Type) *machineType {
	ebs := t.EBSOptimized
	switch {
	case ebs == "" && t.EBSMbps > 0:
		ebs = "default"
	case ebs == "":
		ebs = "unsupported"
	}
	return &machineType{
		Name: t.Name, VCPU: int(t.VCPUs), Cores: int(t.Cores), MemMiB: int(t.MemoryMiB), Arch: t.Architectures,
		Manufacturer: t.Manufacturer, GHz: t.ClockGHz,
		ENIs: int(t.ENIs), IPv4: int(t.IPv4PerENI), IPv6: int(t.IPv6PerENI), Cards: int(t.Cards), ENIsCard0: int(t.ENIsCard0), EFA: int(t.EFAs),
		PeakMbps: int(t.CardPeakMbps), BaseMbps: int(t.CardMbps), EBSMbps: int(t.EBSMbps), EBSBaseMbps: int(t.EBSBaselineMbps), EBSOpt: ebs,
		Hypervisor: t.Hypervisor, CurrentGeneration: !t.OldGeneration, Usage: t.Usage, Zones: t.ZoneLetters, USD: t.Prices,
		Metal: t.Metal, Burst: t.Burstable, ENA: t.ENA, Enclaves: t.NitroEnclaves, Nested: t.NestedVirtualization,
		EncTransit: t.EncryptsTransit, DiskGB: int(t.DiskGB), Disks: int(t.Disks), NVMeGB: int(t.NVMeGB), DiskType: t.DiskType,
		GPU: deviceFrom(t.GPU), Accelerator: deviceFrom(t.Accelerator), Neuron: deviceFrom(t.Neuron),
		FPGAs: int(t.FPGAs), Media: int(t.Media), Strategies: t.PlacementStrategies,
	}
}

func deviceFrom(d *catalog.Device) *device {
	if d == nil {
		return nil
	}
	return &device{d.Name, d.Manufacturer, int(d.Count), int(d.MemoryMiB), d.Fraction, int(d.Logical), int(d.CoresPerDevice)}
}
