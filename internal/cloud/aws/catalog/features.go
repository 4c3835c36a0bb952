package catalog

import (
	"slices"
	"strings"
)

// The embedded file lacks a few features that EC2 reports. These rules of AWS's pages stand for them until EC2 has
// described the types. Families that the pages do not name count as without the feature.
var (
	// nestedFamilies are the families of the EC2 User Guide, "Use nested virtualization to run hypervisors in Amazon EC2
	// instances" (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/amazon-ec2-nested-virtualization.html), and their
	// flex variants, which the API reference adds. Bare metal needs no such feature and does not report it.
	nestedFamilies = []string{"c8i", "c8i-flex", "m8i", "m8i-flex", "r8i", "r8i-flex"}

	// withoutEnclaves are prefixes of the families without Nitro Enclaves. Source: Nitro Enclaves User Guide, "What is
	// Nitro Enclaves?" (https://docs.aws.amazon.com/enclaves/latest/user/nitro-enclave.html).
	withoutEnclaves = []string{"a1.", "g4ad.", "g5g.", "hpc", "im4gn.", "is4gen.", "trn1.", "trn1n.", "u-", "u7i", "vt1."}

	// enaOnXen are the types on Xen with the enhanced network adapter. Source: EC2 User Guide, "Enhanced networking on
	// Amazon EC2 instances" (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/enhanced-networking.html).
	enaOnXen = []string{"h1.", "i3.", "m4.16xlarge", "r4."}

	// withoutCluster are prefixes of the types without cluster placement groups, in addition to burstable and flex ones.
	// Source: EC2 User Guide, "Rules and limitations for placement groups"
	// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/limitations-placement-groups.html), and responses of EC2 for
	// the families that it does not name.
	withoutCluster = []string{"c1.", "m1.", "m2.", "m3.", "mac", "t1.", "vt1."}

	allStrategies = []string{StrategyCluster, StrategyPartition, StrategySpread}
)

// addFeatures sets the features of an embedded type.
func (t *Type) addFeatures() {
	t.PlacementStrategies = allStrategies
	if t.Burstable || strings.HasSuffix(t.Family(), "-flex") || t.hasPrefix(withoutCluster) {
		t.PlacementStrategies = allStrategies[1:]
	}
	t.ENA = t.Hypervisor != HypervisorXen || t.hasPrefix(enaOnXen)
	if t.Hypervisor != HypervisorNitro {
		return
	}
	t.NestedVirtualization = slices.Contains(nestedFamilies, t.Family())
	least := int64(4)
	if slices.Contains(t.Architectures, "arm64") {
		least = 2 // an enclave takes whole cores, and these have one thread
	}
	// Flex instances share their cores, which an enclave cannot: EC2 reports none with enclaves.
	flex := strings.HasSuffix(t.Family(), "-flex")
	t.NitroEnclaves = t.VCPUs >= least && !t.Burstable && !flex && !t.hasPrefix(withoutEnclaves)
}

func (t *Type) hasPrefix(prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(t.Name, prefix) })
}
