package upkeep

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

// typeOf converts EC2's description of a type.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html
func typeOf(i *ec2types.InstanceTypeInfo) catalog.Type {
	t := catalog.Type{
		Name:          string(i.InstanceType),
		Hypervisor:    string(i.Hypervisor),
		Metal:         aws.ToBool(i.BareMetal),
		Burstable:     aws.ToBool(i.BurstablePerformanceSupported),
		OldGeneration: !aws.ToBool(i.CurrentGeneration),
		NitroEnclaves: i.NitroEnclavesSupport == ec2types.NitroEnclavesSupportSupported,
	}
	for _, usage := range i.SupportedUsageClasses {
		t.Usage = append(t.Usage, string(usage))
	}
	slices.Sort(t.Usage)
	if i.PlacementGroupInfo != nil {
		for _, strategy := range i.PlacementGroupInfo.SupportedStrategies {
			t.PlacementStrategies = append(t.PlacementStrategies, string(strategy))
		}
		slices.Sort(t.PlacementStrategies)
	}
	if i.VCpuInfo != nil {
		t.VCPUs, t.Cores = whole(i.VCpuInfo.DefaultVCpus), whole(i.VCpuInfo.DefaultCores)
	}
	if i.MemoryInfo != nil {
		t.MemoryMiB = aws.ToInt64(i.MemoryInfo.SizeInMiB)
	}
	readProcessor(&t, i.ProcessorInfo)
	readNetwork(&t, i.NetworkInfo)
	readEBS(&t, i.EbsInfo)
	readStorage(&t, i.InstanceStorageInfo)
	readDevices(&t, i)
	return t
}

// usable reports whether the type has the attributes that every node needs. Package catalog checks the embedded file in
// the same way.
func usable(t *catalog.Type) bool {
	return t.Family() != "" && t.Size() != "" && t.VCPUs > 0 && t.MemoryMiB > 0 && t.ENIs > 0 && t.IPv4PerENI > 0 && len(t.Architectures) > 0 && len(t.Usage) > 0
}

func readProcessor(t *catalog.Type, p *ec2types.ProcessorInfo) {
	if p == nil {
		return
	}
	for _, architecture := range p.SupportedArchitectures {
		t.Architectures = append(t.Architectures, string(architecture))
	}
	t.Manufacturer, t.ClockGHz = aws.ToString(p.Manufacturer), aws.ToFloat64(p.SustainedClockSpeedInGhz)
	t.NestedVirtualization = slices.Contains(p.SupportedFeatures, ec2types.SupportedAdditionalProcessorFeatureNestedVirtualization)
}

func readNetwork(t *catalog.Type, n *ec2types.NetworkInfo) {
	if n == nil {
		return
	}
	t.ENIs, t.IPv4PerENI, t.IPv6PerENI = whole(n.MaximumNetworkInterfaces), whole(n.Ipv4AddressesPerInterface),
		whole(n.Ipv6AddressesPerInterface)
	t.ENA = n.EnaSupport == ec2types.EnaSupportSupported || n.EnaSupport == ec2types.EnaSupportRequired
	t.EncryptsTransit = aws.ToBool(n.EncryptionInTransitSupported)
	if n.EfaInfo != nil {
		t.EFAs = whole(n.EfaInfo.MaximumEfaInterfaces)
	}
	cards := whole(n.MaximumNetworkCards)
	for _, card := range n.NetworkCards {
		if whole(card.NetworkCardIndex) != whole(n.DefaultNetworkCardIndex) {
			continue
		}
		t.CardMbps, t.CardPeakMbps = mbps(card.BaselineBandwidthInGbps), mbps(card.PeakBandwidthInGbps)
		if cards > 1 {
			t.Cards, t.ENIsCard0 = cards, whole(card.MaximumNetworkInterfaces)
		}
	}
}

func readEBS(t *catalog.Type, e *ec2types.EbsInfo) {
	if e == nil {
		return
	}
	t.EBSAttachments, t.EBSDedicated = whole(e.MaximumEbsAttachments), e.AttachmentLimitType == ec2types.AttachmentLimitTypeDedicated
	if e.EbsOptimizedSupport == ec2types.EbsOptimizedSupportSupported {
		t.EBSOptimized = string(e.EbsOptimizedSupport)
	}
	if e.EbsOptimizedInfo != nil {
		t.EBSMbps = whole(e.EbsOptimizedInfo.MaximumBandwidthInMbps)
		if baseline := whole(e.EbsOptimizedInfo.BaselineBandwidthInMbps); baseline < t.EBSMbps {
			t.EBSBaselineMbps = baseline
		}
	}
}

func readStorage(t *catalog.Type, s *ec2types.InstanceStorageInfo) {
	if s == nil || aws.ToInt64(s.TotalSizeInGB) == 0 {
		return
	}
	if s.NvmeSupport == ec2types.EphemeralNvmeSupportUnsupported {
		t.DiskGB = *s.TotalSizeInGB
	} else {
		t.NVMeGB = *s.TotalSizeInGB
	}
	for _, disk := range s.Disks {
		t.Disks += whole(disk.Count)
		if disk.Type == ec2types.DiskTypeHdd {
			t.DiskType = string(disk.Type)
		}
	}
	t.Disks = max(t.Disks, 1)
}

// readDevices reads the devices of a type other than processors. If a type had several kinds of GPU, which none has
// today, the first is used; its nodes would have no GPU labels anyway.
func readDevices(t *catalog.Type, i *ec2types.InstanceTypeInfo) {
	if i.GpuInfo != nil && len(i.GpuInfo.Gpus) > 0 {
		g := &i.GpuInfo.Gpus[0]
		t.GPU = &catalog.Device{Name: aws.ToString(g.Name), Manufacturer: aws.ToString(g.Manufacturer), Count: whole(g.Count)}
		if t.GPU.Count == 0 {
			t.GPU.Fraction, t.GPU.Logical = aws.ToFloat64(g.GpuPartitionSize), whole(g.LogicalGpuCount)
		}
		if g.MemoryInfo != nil {
			t.GPU.MemoryMiB = whole(g.MemoryInfo.SizeInMiB)
		}
	}
	if i.NeuronInfo != nil && len(i.NeuronInfo.NeuronDevices) > 0 {
		n := &i.NeuronInfo.NeuronDevices[0]
		t.Neuron = &catalog.Device{Name: aws.ToString(n.Name)}
		for k := range i.NeuronInfo.NeuronDevices {
			t.Neuron.Count += whole(i.NeuronInfo.NeuronDevices[k].Count)
		}
		if n.CoreInfo != nil {
			t.Neuron.CoresPerDevice = whole(n.CoreInfo.Count)
		}
		if n.MemoryInfo != nil {
			t.Neuron.MemoryMiB = whole(n.MemoryInfo.SizeInMiB)
		}
	}
	if i.InferenceAcceleratorInfo != nil && len(i.InferenceAcceleratorInfo.Accelerators) == 1 {
		a := &i.InferenceAcceleratorInfo.Accelerators[0]
		t.Accelerator = &catalog.Device{Name: aws.ToString(a.Name), Manufacturer: aws.ToString(a.Manufacturer), Count: whole(a.Count)}
		if a.MemoryInfo != nil {
			t.Accelerator.MemoryMiB = whole(a.MemoryInfo.SizeInMiB)
		}
	}
	if i.FpgaInfo != nil {
		for k := range i.FpgaInfo.Fpgas {
			t.FPGAs += whole(i.FpgaInfo.Fpgas[k].Count)
		}
	}
	if i.MediaAcceleratorInfo != nil {
		for k := range i.MediaAcceleratorInfo.Accelerators {
			t.Media += whole(i.MediaAcceleratorInfo.Accelerators[k].Count)
		}
	}
}

func whole(n *int32) int64 { return int64(aws.ToInt32(n)) }

// mbps converts a bandwidth in Gbit/s to whole Mbit/s.
func mbps(gbps *float64) int64 { return int64(math.Round(aws.ToFloat64(gbps) * 1000)) }

func sortedByName(byName map[string]catalog.Type) []catalog.Type {
	return slices.SortedFunc(maps.Values(byName), func(a, b catalog.Type) int { return strings.Compare(a.Name, b.Name) })
}
