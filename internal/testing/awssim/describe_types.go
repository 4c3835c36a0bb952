package awssim

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// xmlType is EC2's InstanceTypeInfo.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html
type xmlType struct {
	Name       string   `xml:"instanceType"`
	Current    bool     `xml:"currentGeneration"`
	Usage      []string `xml:"supportedUsageClasses>item,omitempty"`
	Root       []string `xml:"supportedRootDeviceTypes>item,omitempty"`
	Virtual    []string `xml:"supportedVirtualizationTypes>item,omitempty"`
	Metal      bool     `xml:"bareMetal"`
	Hypervisor string   `xml:"hypervisor,omitempty"`
	Burst      bool     `xml:"burstablePerformanceSupported"`
	Arch       []string `xml:"processorInfo>supportedArchitectures>item,omitempty"`
	GHz        float64  `xml:"processorInfo>sustainedClockSpeedInGhz,omitempty"`
	Features   []string `xml:"processorInfo>supportedFeatures>item,omitempty"`
	Maker      string   `xml:"processorInfo>manufacturer"`
	VCPU       int      `xml:"vCpuInfo>defaultVCpus"`
	Cores      int      `xml:"vCpuInfo>defaultCores"`
	Threads    int      `xml:"vCpuInfo>defaultThreadsPerCore"`
	MemMiB     int      `xml:"memoryInfo>sizeInMiB"`

	Storage     bool        `xml:"instanceStorageSupported"`
	StorageInfo *xmlStorage `xml:"instanceStorageInfo"`
	EBS         xmlEBS      `xml:"ebsInfo"`
	Network     xmlNetwork  `xml:"networkInfo"`
	GPU         *xmlDevice  `xml:"gpuInfo>gpus>item"`                            // pointer: no empty parent elements
	Accel       *xmlDevice  `xml:"inferenceAcceleratorInfo>accelerators>member"` // sic: not item
	Neuron      *xmlNeuron  `xml:"neuronInfo>neuronDevices>item"`
	FPGA        *xmlCounted `xml:"fpgaInfo>fpgas>item"`
	Media       *xmlCounted `xml:"mediaAcceleratorInfo>accelerators>item"`
	Strategies  []string    `xml:"placementGroupInfo>supportedStrategies>item,omitempty"`
	Enclaves    string      `xml:"nitroEnclavesSupport"`
}

type xmlStorage struct {
	Total int       `xml:"totalSizeInGB"`
	Disks []xmlDisk `xml:"disks>item,omitempty"`
	NVMe  string    `xml:"nvmeSupport"`
}

type xmlDisk struct {
	Size  int    `xml:"sizeInGB"`
	Count int    `xml:"count"`
	Type  string `xml:"type"`
}

type xmlEBS struct {
	Optimized string `xml:"ebsOptimizedSupport"`
	Max       *int   `xml:"ebsOptimizedInfo>maximumBandwidthInMbps"`
	Base      *int   `xml:"ebsOptimizedInfo>baselineBandwidthInMbps"`

	MaxBytes  *float64 `xml:"ebsOptimizedInfo>maximumThroughputInMBps"` // an eighth of the Mbit/s
	BaseBytes *float64 `xml:"ebsOptimizedInfo>baselineThroughputInMBps"`
	Encrypted string   `xml:"encryptionSupport"`
	NVMe      string   `xml:"nvmeSupport"`
}

type xmlNetwork struct {
	Performance string    `xml:"networkPerformance"`
	ENIs        int       `xml:"maximumNetworkInterfaces"`
	MaxCards    int       `xml:"maximumNetworkCards"`
	DefaultCard int       `xml:"defaultNetworkCardIndex"`
	Cards       []xmlCard `xml:"networkCards>item,omitempty"`
	IPv4        int       `xml:"ipv4AddressesPerInterface"`
	IPv6        int       `xml:"ipv6AddressesPerInterface"`
	IPv6OK      bool      `xml:"ipv6Supported"`
	ENA         string    `xml:"enaSupport"`
	EFA         bool      `xml:"efaSupported"`
	MaxEFA      *int      `xml:"efaInfo>maximumEfaInterfaces"`
	Transit     bool      `xml:"encryptionInTransitSupported"`
}

type xmlCard struct {
	Index       int     `xml:"networkCardIndex"`
	Performance string  `xml:"networkPerformance"`
	ENIs        int     `xml:"maximumNetworkInterfaces"`
	Base        float64 `xml:"baselineBandwidthInGbps"`
	Peak        float64 `xml:"peakBandwidthInGbps"`
}

type xmlDevice struct {
	Name   string `xml:"name"`
	Maker  string `xml:"manufacturer"`
	Count  int    `xml:"count"`
	MemMiB int    `xml:"memoryInfo>sizeInMiB"`

	Fraction float64 `xml:"gpuPartitionSize,omitempty"`
	Logical  int     `xml:"logicalGpuCount,omitempty"`
}

type xmlNeuron struct {
	Name   string `xml:"name"`
	Count  int    `xml:"count"`
	Cores  int    `xml:"coreInfo>count"`
	MemMiB int    `xml:"memoryInfo>sizeInMiB"`
}

// xmlCounted is a device for which the catalog has only the number.
type xmlCounted struct {
	Count int `xml:"count"`
}

// describeInstanceTypes implements ec2:DescribeInstanceTypes, with at most a hundred types per page.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html
func describeInstanceTypes(c *Cloud, r *request, _ time.Time) (any, error) {
	filters, err := filtersOf(r.form)
	if err != nil {
		return nil, err
	}
	names := r.form.strings("InstanceType")
	if len(names) > 100 {
		return nil, refuse("InvalidParameterValue", "At most 100 instance types may be named")
	}
	if len(names) > 0 && r.form.has("MaxResults") {
		return nil, refuse("InvalidParameterCombination", "The parameter instanceTypes cannot be used with the parameter maxResults")
	}
	names, err = chosen(names, c.names, func(n string) string { return n }, func(n string) error {
		return refuse("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", n)
	})
	if err != nil {
		return nil, err
	}
	names, err = keep(filters, names, func(n string) facts {
		return r.facts(nil, func() any { return typeXML(c.types[n]) })
	})
	if err != nil {
		return nil, err
	}
	var out struct {
		Items []xmlType `xml:"instanceTypeSet>item,omitempty"`
		Next  string    `xml:"nextToken,omitempty"`
	}
	names, out.Next, err = cut(c, r.form, pages{5, 100, 100}, names, func(n string) string { return n })
	for _, n := range names {
		out.Items = append(out.Items, typeXML(c.types[n]))
	}
	return out, err
}

func typeXML(t *machineType) xmlType {
	out := xmlType{Name: t.Name, Current: t.CurrentGeneration, Usage: t.Usage, Root: []string{"ebs"}, Virtual: []string{"hvm"}, Metal: t.Metal,
		Hypervisor: t.Hypervisor, Burst: t.Burst, Arch: t.Arch, GHz: t.GHz, Maker: t.Manufacturer, VCPU: t.VCPU, Cores: t.Cores,
		Threads: max(t.VCPU/max(t.Cores, 1), 1), MemMiB: t.MemMiB, Strategies: t.Strategies,
		Enclaves: "unsupported",
		EBS:      ebsXML(t), Network: networkXML(t)}
	if t.Enclaves {
		out.Enclaves = "supported"
	}
	if t.Nested {
		out.Features = []string{"nested-virtualization"}
	}
	if total := t.storageGB(); total > 0 {
		disk, nvme := t.DiskType, "unsupported"
		defaultTo(&disk, "ssd")
		if t.NVMeGB > 0 {
			nvme = "required"
		}
		count := max(t.Disks, 1)
		out.Storage, out.StorageInfo = true, &xmlStorage{total, []xmlDisk{{total / count, count, disk}}, nvme}
	}
	if g := t.GPU; g != nil {
		out.GPU = &xmlDevice{g.Name, g.Manufacturer, g.Count, g.MemMiB, g.Fraction, g.Logical}
	}
	if a := t.Accelerator; a != nil {
		out.Accel = &xmlDevice{Name: a.Name, Maker: a.Manufacturer, Count: a.Count, MemMiB: a.MemMiB}
	}
	if n := t.Neuron; n != nil {
		out.Neuron = &xmlNeuron{n.Name, n.Count, n.Cores, n.MemMiB}
	}
	if t.FPGAs > 0 {
		out.FPGA = &xmlCounted{t.FPGAs}
	}
	if t.Media > 0 {
		out.Media = &xmlCounted{t.Media}
	}
	return out
}

func ebsXML(t *machineType) xmlEBS {
	ebs := xmlEBS{Optimized: t.EBSOpt, Encrypted: "supported", NVMe: "unsupported"}
	if t.EBSMbps > 0 {
		ebs.Max, ebs.Base = &t.EBSMbps, &t.EBSMbps
		if t.EBSBaseMbps > 0 {
			ebs.Base = &t.EBSBaseMbps
		}
		most, base := float64(*ebs.Max)/8, float64(*ebs.Base)/8
		ebs.MaxBytes, ebs.BaseBytes = &most, &base
	}
	if t.Hypervisor == "nitro" || t.Metal {
		ebs.NVMe = "required"
	}
	return ebs
}

func networkXML(t *machineType) xmlNetwork {
	speed := fmt.Sprintf("%g Gigabit", float64(t.PeakMbps)/1000)
	if t.PeakMbps > t.BaseMbps {
		speed = "Up to " + speed
	}
	out := xmlNetwork{Performance: speed, ENIs: t.ENIs, MaxCards: t.cards(), IPv4: t.IPv4, IPv6: t.IPv6, IPv6OK: t.IPv6 > 0, ENA: "required",
		EFA: t.EFA > 0, Transit: t.EncTransit}
	switch {
	case !t.ENA:
		out.ENA = "unsupported"
	case t.Hypervisor == "xen":
		out.ENA = "supported"
	}
	if t.EFA > 0 {
		out.MaxEFA = &t.EFA
	}
	for card := range t.cards() {
		out.Cards = append(out.Cards, xmlCard{card, speed, t.enisOn(card), float64(t.BaseMbps) / 1000, float64(t.PeakMbps) / 1000})
	}
	return out
}

// describeInstanceTypeOfferings implements ec2:DescribeInstanceTypeOfferings.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypeOfferings.html
func describeInstanceTypeOfferings(c *Cloud, r *request, _ time.Time) (any, error) {
	filters, err := filtersOf(r.form)
	if err != nil {
		return nil, err
	}
	if err := r.form.oneOf("LocationType", "region", "availability-zone", "availability-zone-id"); err != nil {
		return nil, err
	}
	kind := r.form.str("LocationType")
	defaultTo(&kind, "region")
	type item struct {
		Type     string `xml:"instanceType"`
		Kind     string `xml:"locationType"`
		Location string `xml:"location"`
	}
	var items []item
	for _, name := range c.names {
		if kind == "region" {
			items = append(items, item{name, kind, c.opts.Region})
			continue
		}
		for _, z := range c.zonesOf(c.types[name]) {
			location := z.name
			if kind == "availability-zone-id" {
				location = z.id
			}
			items = append(items, item{name, kind, location})
		}
	}
	items, err = keep(filters, items, func(i item) facts { return r.facts(nil, func() any { return i }) })
	if err != nil {
		return nil, err
	}
	var out struct {
		Items []item `xml:"instanceTypeOfferingSet>item,omitempty"`
		Next  string `xml:"nextToken,omitempty"`
	}
	out.Items, out.Next, err = cut(c, r.form, pages{5, 1000, 1000}, items, func(i item) string { return i.Type + " " + i.Location })
	return out, err
}

// describeSpotPriceHistory implements ec2:DescribeSpotPriceHistory: the price in effect at StartTime and each change
// until EndTime, newest first within a pool, a thousand per page whatever MaxResults is. A range is at most 90 days.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html
func describeSpotPriceHistory(c *Cloud, r *request, now time.Time) (any, error) {
	filters, err := filtersOf(r.form)
	if err != nil {
		return nil, err
	}
	start, end, err := spotRange(r.form, now)
	if err != nil {
		return nil, err
	}
	items, err := keep(filters, c.spotPrices(r.form, start, end), func(i xmlSpotPrice) facts {
		return r.facts(nil, func() any { return i })
	})
	if err != nil {
		return nil, err
	}
	size, err := r.form.integer("MaxResults", 1000)
	if err != nil {
		return nil, err
	}
	paged := &node{children: map[string]*node{"MaxResults": {value: strconv.Itoa(min(max(size, 1), 1000))},
		"NextToken": {value: r.form.str("NextToken")}}}
	var out struct {
		Items []xmlSpotPrice `xml:"spotPriceHistorySet>item,omitempty"`
		Next  string         `xml:"nextToken"`
	}
	out.Items, out.Next, err = cut(c, paged, pages{1, 1000, 1000}, items,
		func(i xmlSpotPrice) string { return i.Type + " " + i.Zone + " " + i.key })
	return out, err
}

type xmlSpotPrice struct {
	Type    string `xml:"instanceType"`
	Product string `xml:"productDescription"`
	Price   string `xml:"spotPrice"`
	Time    string `xml:"timestamp"`
	Zone    string `xml:"availabilityZone"`
	ZoneID  string `xml:"availabilityZoneId"`
	key     string
}

func spotRange(n *node, now time.Time) (start, end time.Time, err error) {
	start, end = now.Add(-24*time.Hour), now
	for name, t := range map[string]*time.Time{"StartTime": &start, "EndTime": &end} {
		if v := n.str(name); v != "" {
			if *t, err = time.Parse(time.RFC3339, v); err != nil {
				return start, end, refuse("InvalidParameterValue", "Value (%s) for parameter %s is invalid. Invalid date format", v, name)
			}
		}
	}
	return start, end, nil
}

// spotPrices returns prices that the model changes every hour.
func (c *Cloud) spotPrices(n *node, start, end time.Time) []xmlSpotPrice {
	products := n.strings("ProductDescription")
	names := n.strings("InstanceType")
	var items []xmlSpotPrice
	for _, name := range c.names {
		t := c.types[name]
		if !t.supports(spot) || len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		for _, z := range c.zonesOf(t) {
			zone, id := n.str("AvailabilityZone"), n.str("AvailabilityZoneId")
			if zone != "" && zone != z.name || id != "" && id != z.id {
				continue
			}
			for at := start.Truncate(time.Hour); at.Equal(start.Truncate(time.Hour)) || !at.After(end); at = at.Add(time.Hour) {
				for _, product := range []string{"Linux/UNIX", "Windows"} {
					if len(products) > 0 && !slices.Contains(products, product) || product == "Windows" && !slices.Contains(t.Arch, "x86_64") {
						continue
					}
					price := strconv.FormatFloat(c.spotPrice(t, z.name, at)+t.license(product), 'f', 6, 64)
					items = append(items, xmlSpotPrice{name, product, price, iso(at), z.name, z.id, fmt.Sprintf("%020d %s", 1<<60-at.Unix(), product)})
				}
			}
		}
	}
	return items
}
