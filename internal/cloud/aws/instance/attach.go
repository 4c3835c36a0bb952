package instance

import (
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

// EBSDriver is the CSI driver of EBS volumes.
const EBSDriver = "ebs.csi.aws.com"

// volumeLimit is the maximum number of EBS volumes per instance, including its root volume.
type volumeLimit struct {
	most int64
	// shared means that additional network interfaces use the same slots.
	shared bool
}

// Limits from the EC2 User Guide, "Amazon EBS volume limits for Amazon EC2 instances"
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/volume_limits.html).
const (
	nitroSharedLimit = 27 // 28 slots, one of which the first network interface uses
	bareMetalLimit   = 31
	highMemoryMetal  = 19
	xenLimit         = 39 // more than 40 volumes, including the root volume, are not supported on Linux
	metalSmall       = 39 // metal-16xl, metal-24xl
	metalLarge       = 79 // metal-32xl and larger
	metalTwoCards    = 78 // the same with two EBS cards of 39 each: the largest of network-optimized families
	metalHalf        = 64 // metal-48xl of the eighth generation on Intel, half of a metal-96xl
)

// volumeExceptions are types or families that no rule below covers. Sources: the page named above, and EC2's
// maximumEbsAttachments for types that the page does not list.
var volumeExceptions = map[string]volumeLimit{
	"c8a.metal-24xl":    {64, false},
	"c8gb.metal-48xl":   {78, false},
	"c8ib.metal-96xl":   {78, false},
	"g5.48xlarge":       {9, true},
	"hpc7a":             {27, false},
	"hpc8a":             {27, false}, // not documented yet: the value of hpc7a
	"inf2.24xlarge":     {28, true},
	"inf2.48xlarge":     {28, true},
	"m8a.metal-24xl":    {64, false},
	"m8azn.12xlarge":    {64, false},
	"m8azn.24xlarge":    {128, false},
	"m8azn.metal-12xl":  {64, false},
	"m8azn.metal-24xl":  {79, false},
	"m8gb.metal-48xl":   {78, false},
	"m8ib.metal-96xl":   {78, false},
	"m8idb.metal-96xl":  {78, false},
	"p4d":               {28, false},
	"p4de":              {28, false},
	"p5.48xlarge":       {64, false},
	"p5e":               {64, false},
	"p5en":              {64, false},
	"p6-b200":           {64, false},
	"p6-b300":           {64, false},
	"r8a.metal-24xl":    {64, false},
	"r8gb.metal-48xl":   {78, false},
	"r8ib.metal-96xl":   {78, false},
	"r8idb.metal-96xl":  {78, false},
	"trn1.32xlarge":     {28, true},
	"trn1n.32xlarge":    {28, true},
	"trn2.48xlarge":     {64, false},
	"vt1.24xlarge":      {27, true},
	"x8aedz.12xlarge":   {64, false},
	"x8aedz.24xlarge":   {128, false},
	"x8aedz.metal-12xl": {64, false},
	"x8aedz.metal-24xl": {79, false},
}

// dedicatedFamilies are the families up to generation 7 with dedicated slots for volumes. All families of later
// generations have them.
var dedicatedFamilies = map[string]bool{
	"c7a": true, "c7i": true, "c7i-flex": true, "m7a": true, "m7i": true, "m7i-flex": true, "r7a": true, "r7i": true,
	"r7iz": true, "i7i": true, "i7ie": true, "f2": true, "g6": true, "g6e": true, "g6f": true, "gr6": true, "gr6f": true,
	"g7": true, "g7e": true, "p5": true, "trn2": true, "u7i-6tb": true, "u7i-8tb": true, "u7i-12tb": true,
	"u7in-16tb": true, "u7in-24tb": true, "u7in-32tb": true,
}

// volumeLimitOf returns EC2's own value if there is one, otherwise the result of a rule of the User Guide.
func volumeLimitOf(t *catalog.Type) volumeLimit {
	exception, listed := volumeExceptions[t.Name]
	if !listed {
		exception, listed = volumeExceptions[t.Family()]
	}
	switch {
	case t.Hypervisor == catalog.HypervisorXen:
		return volumeLimit{max(0, xenLimit-t.Disks), false}
	case t.EBSAttachments > 0:
		// EC2 reports some of the larger bare metal types as shared although they are not.
		return volumeLimit{t.EBSAttachments, !t.EBSDedicated && !strings.HasPrefix(t.Size(), "metal-")}
	case listed:
		return exception
	case dedicated(t):
		return volumeLimit{dedicatedLimit(t), false}
	case t.Metal && strings.HasPrefix(t.Name, "u-"):
		return volumeLimit{highMemoryMetal, true}
	case t.Metal:
		return volumeLimit{bareMetalLimit, true}
	}
	return volumeLimit{max(0, nitroSharedLimit-t.Disks-devicesOf(t)), true}
}

func dedicated(t *catalog.Type) bool {
	if dedicatedFamilies[t.Family()] {
		return true
	}
	parts := namePattern.FindStringSubmatch(t.Name)
	if parts == nil {
		return false
	}
	generation, err := strconv.Atoi(parts[3])
	return err == nil && generation >= 8 && parts[2] == "" // mac-m4 and u-6tb1 have other numbers in their names
}

// dedicatedLimit depends on the size. For families that the page does not list yet, the lower of two possible limits is
// used.
func dedicatedLimit(t *catalog.Type) int64 {
	kind := variant(t.Family())
	network := strings.Contains(kind, "n") && !strings.HasPrefix(t.Family(), "u7")
	if of, metal := strings.CutPrefix(t.Size(), "metal-"); metal {
		n := units(of, "xl")
		switch {
		case n <= 24:
			return metalSmall
		case n == 48 && strings.HasPrefix(kind, "i") && strings.HasSuffix(strings.TrimSuffix(t.Family(), kind), "8"):
			return metalHalf
		case network:
			return metalTwoCards
		}
		return metalLarge
	}
	n := units(t.Size(), "xlarge")
	switch {
	case n >= 48:
		return 128
	case n >= 32:
		return 88
	case n >= 24:
		return 64
	case n >= 16:
		return 48
	}
	return 32
}

// units returns the number in a size: 12 for 12xlarge, 1 for a size without a number.
func units(size, suffix string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(size, suffix))
	if err != nil {
		return 1
	}
	return n
}

// variant returns the part of a family's name after the generation: "gn" for c8gn.
func variant(family string) string {
	at := strings.IndexAny(family, "0123456789")
	return strings.TrimLeft(family[max(0, at):], "0123456789")
}

// devicesOf counts GPUs and other devices, each of which uses a shared slot. A media accelerator card counts as two
// devices.
func devicesOf(t *catalog.Type) int64 {
	n := 2*t.Media + t.FPGAs
	if t.GPU != nil {
		n += t.GPU.Count
	}
	switch {
	case t.Neuron != nil:
		n += t.Neuron.Count
	case t.Accelerator != nil:
		n += t.Accelerator.Count
	}
	return n
}

// attachLimit returns how many volumes of pods a node can attach. It is the limit minus the class's own volumes. If
// slots are shared, the network interfaces beyond the first are subtracted, too: those of the class, and the one that
// the VPC CNI keeps in reserve. The CSI driver counts the attached volumes when it starts. Planning with one volume too
// few is safe, with one too many is not.
func (c *Class) attachLimit(t *catalog.Type, f *family) int {
	limit := volumeLimitOf(t)
	free := limit.most - int64(max(1, len(c.Volumes)))
	if len(c.Volumes) == 0 {
		free = limit.most - int64(max(1, len(f.volumes)))
	}
	if limit.shared {
		interfaces := int64(max(1, len(c.Interfaces)))
		if interfaces < t.ENIs {
			interfaces++
		}
		free -= interfaces - 1
	}
	return int(max(0, free))
}
