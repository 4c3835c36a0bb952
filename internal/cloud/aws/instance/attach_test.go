package instance

import (
	"testing"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

// The limits of the EC2 User Guide, and EC2's values for types that it does not list.
func TestVolumeLimits(t *testing.T) {
	for name, want := range map[string]volumeLimit{
		// Shared, minus the first interface, disks and devices.
		"m5.large": {27, true}, "t3.nano": {27, true}, "u-6tb1.56xlarge": {27, true}, "m5d.large": {26, true}, "m5d.24xlarge": {23, true},
		"i3en.24xlarge": {19, true}, "d3.xlarge": {24, true}, "d3.8xlarge": {3, true}, "d3en.12xlarge": {3, true}, "g4dn.12xlarge": {22, true},
		"g4ad.16xlarge": {21, true}, "g5g.16xlarge": {25, true}, "p3dn.24xlarge": {17, true}, "inf1.24xlarge": {11, true},
		"inf1.xlarge":  {26, true},
		"inf2.8xlarge": {26, true}, "trn1.2xlarge": {25, true}, "vt1.3xlarge": {25, true}, "vt1.6xlarge": {23, true},
		"vt1.24xlarge": {27, true}, "dl2q.24xlarge": {19, true},
		"hpc6id.32xlarge": {23, true}, "c7gn.large": {27, true}, "x2idn.24xlarge": {25, true}, "z1d.12xlarge": {25, true},
		// Bare metal.
		"m5.metal": {31, true}, "a1.metal": {31, true}, "c7gd.metal": {31, true}, "i3en.metal": {31, true}, "g4dn.metal": {31, true},
		"c7i.metal-24xl": {39, false}, "r7iz.metal-16xl": {39, false}, "r7iz.metal-32xl": {79, false}, "c8g.metal-48xl": {79, false},
		"c8a.metal-24xl": {64, false}, "c8a.metal-48xl": {79, false}, "m8i.metal-48xl": {64, false}, "x8i.metal-96xl": {79, false},
		"c8ib.metal-96xl": {78, false}, "m8ib.metal-96xl": {78, false}, "m8idb.metal-96xl": {78, false},
		"r8ib.metal-96xl": {78, false}, "r8idb.metal-96xl": {78, false},
		"c8gb.metal-24xl": {39, false}, "c8gb.metal-48xl": {78, false}, "r8gn.metal-48xl": {78, false}, "c8gn.metal-24xl": {39, false},
		"c8in.metal-48xl": {64, false}, "m8idn.metal-48xl": {64, false}, "c8in.metal-96xl": {78, false}, "r8idn.metal-96xl": {78, false},
		"m8azn.metal-12xl": {64, false}, "m8azn.metal-24xl": {79, false}, "i7ie.metal-48xl": {79, false},
		"x8aedz.metal-12xl": {64, false}, "x8aedz.metal-24xl": {79, false}, "i8ge.metal-24xl": {39, false},
		// Dedicated, by size.
		"c7a.medium": {32, false}, "m7i-flex.large": {32, false}, "m7i.12xlarge": {32, false}, "c7i-flex.16xlarge": {48, false},
		"i7ie.18xlarge": {48, false}, "r7i.24xlarge": {64, false}, "m7a.32xlarge": {88, false}, "m7i.48xlarge": {128, false},
		"m8g.48xlarge": {128, false}, "m8gn.48xlarge": {128, false}, "c8in.48xlarge": {128, false}, "r8in.96xlarge": {128, false},
		"m8azn.12xlarge": {64, false},
		"m8azn.24xlarge": {128, false}, "m8azn.6xlarge": {32, false}, "x8i.64xlarge": {128, false}, "r8i.96xlarge": {128, false},
		"f2.12xlarge": {32, false}, "f2.48xlarge": {128, false}, "g6.16xlarge": {48, false}, "gr6f.4xlarge": {32, false},
		"g6e.48xlarge":        {128, false},
		"u7in-16tb.224xlarge": {128, false}, "u7i-6tb.112xlarge": {128, false}, "x8aedz.12xlarge": {64, false}, "x8aedz.24xlarge": {128, false},
		// Exceptions.
		"p4d.24xlarge": {28, false}, "p5.4xlarge": {32, false}, "p5.48xlarge": {64, false}, "p6-b200.48xlarge": {64, false},
		"trn1.32xlarge": {28, true}, "trn2.3xlarge": {32, false}, "trn2.48xlarge": {64, false}, "hpc7a.96xlarge": {27, false},
		"g5.48xlarge": {9, true}, "inf2.48xlarge": {28, true},
		// Xen.
		"m4.large": {39, false}, "t2.micro": {39, false}, "i3.16xlarge": {31, false},
	} {
		if got := volumeLimitOf(known(t, name)); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// EC2's own value takes precedence over all rules, except for Xen, and for bare metal that EC2 reports as shared.
func TestVolumeLimitsLive(t *testing.T) {
	for _, test := range []struct {
		it        string
		most      int64
		dedicated bool
		want      volumeLimit
	}{
		{"m5.large", 20, false, volumeLimit{20, true}},
		{"m7i.large", 33, true, volumeLimit{33, false}},
		{"g5.48xlarge", 10, false, volumeLimit{10, true}},
		{"c8a.metal-48xl", 79, false, volumeLimit{79, false}},
		{"m4.large", 40, false, volumeLimit{39, false}},
	} {
		it := known(t, test.it)
		it.EBSAttachments, it.EBSDedicated = test.most, test.dedicated
		if got := volumeLimitOf(it); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.it, got, test.want)
		}
	}
}

func TestVolumeExceptionsExist(t *testing.T) {
	names := map[string]bool{}
	for i := range catalog.Load().Types {
		it := &catalog.Load().Types[i]
		names[it.Name], names[it.Family()] = true, true
		if limit := volumeLimitOf(it); limit.most < 3 || limit.most > 128 {
			t.Errorf("%s: %+v", it.Name, limit)
		}
	}
	for name := range volumeExceptions {
		if !names[name] {
			t.Errorf("the catalog has no type or family %s", name)
		}
	}
	for name := range dedicatedFamilies {
		if !names[name] {
			t.Errorf("the catalog has no family %s", name)
		}
	}
}

func TestAttachLimit(t *testing.T) {
	volumes := func(n int) []Volume { return make([]Volume, n) }
	for _, test := range []struct {
		name   string
		it     string
		family awsv1.Family
		class  Class
		want   int
	}{
		{"root volume and a warm interface", "m5.large", awsv1.FamilyAL2023, Class{}, 25},
		{"two volumes of Bottlerocket", "m5.large", awsv1.FamilyBottlerocket, Class{}, 24},
		{"image with a root volume", "m5.large", awsv1.FamilyCustom, Class{}, 25},
		{"volumes of the class", "m5.large", awsv1.FamilyBottlerocket, Class{Volumes: volumes(4)}, 22},
		{"interfaces of the class", "m5.4xlarge", awsv1.FamilyAL2023, Class{Interfaces: make([]Interface, 3)}, 23},
		{"no interface more than there are", "m5.large", awsv1.FamilyAL2023, Class{Interfaces: make([]Interface, 3)}, 24},
		{"interfaces have their own places", "m7i.large", awsv1.FamilyAL2023, Class{Interfaces: make([]Interface, 3)}, 31},
		{"never below none", "d3.8xlarge", awsv1.FamilyAL2023, Class{Volumes: volumes(9)}, 0},
	} {
		f := familyOf(test.family)
		if got := test.class.attachLimit(known(t, test.it), &f); got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}
