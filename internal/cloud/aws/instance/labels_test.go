package instance

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

const absent = "(absent)"

// labelsOf returns the requirements as text by key.
func labelsOf(t *testing.T, requirements []cloud.Requirement) map[string]string {
	t.Helper()
	text := map[string]string{}
	for _, r := range requirements {
		if _, twice := text[r.Key]; twice {
			t.Errorf("two requirements on %s", r.Key)
		}
		switch r.Operator {
		case "In":
			text[r.Key] = fmt.Sprint(r.Values)
		case "DoesNotExist":
			text[r.Key] = absent
		default:
			t.Errorf("%s has the operator %s", r.Key, r.Operator)
		}
	}
	return text
}

func requirementsOf(t *testing.T, it *catalog.Type, family awsv1.Family) map[string]string {
	t.Helper()
	class := Class{Name: "default", Family: family}
	f := familyOf(family)
	return labelsOf(t, class.requirements(it, &f, "us-east-1"))
}

func TestLabelsWhole(t *testing.T) {
	want := map[string]string{
		"kubernetes.io/arch":                                         "[arm64]",
		"kubernetes.io/os":                                           "[linux]",
		"node.kubernetes.io/instance-type":                           "[m6gd.large]",
		"node.kubernetes.io/windows-build":                           absent,
		"topology.kubernetes.io/region":                              "[us-east-1]",
		"karpenter.k8s.aws/ec2nodeclass":                             "[default]",
		"karpenter.k8s.aws/instance-category":                        "[m]",
		"karpenter.k8s.aws/instance-generation":                      "[6]",
		"karpenter.k8s.aws/instance-family":                          "[m6gd]",
		"karpenter.k8s.aws/instance-size":                            "[large]",
		"karpenter.k8s.aws/instance-capability-flex":                 "[false]",
		"karpenter.k8s.aws/instance-cpu":                             "[2]",
		"karpenter.k8s.aws/instance-cpu-manufacturer":                "[aws]",
		"karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz":   "[2500]",
		"karpenter.k8s.aws/instance-memory":                          "[8192]",
		"karpenter.k8s.aws/instance-ebs-bandwidth":                   "[4750]",
		"karpenter.k8s.aws/instance-network-bandwidth":               "[750]",
		"karpenter.k8s.aws/instance-local-nvme":                      "[118]",
		"karpenter.k8s.aws/instance-hypervisor":                      "[nitro]",
		"karpenter.k8s.aws/instance-encryption-in-transit-supported": "[false]",
		"karpenter.k8s.aws/nitro-sandbox":                            "[true]",
		"karpenter.k8s.aws/instance-tenancy":                         "[dedicated default]",
		"karpenter.k8s.aws/instance-gpu-name":                        absent,
		"karpenter.k8s.aws/instance-gpu-manufacturer":                absent,
		"karpenter.k8s.aws/instance-gpu-count":                       absent,
		"karpenter.k8s.aws/instance-gpu-memory":                      absent,
		"karpenter.k8s.aws/instance-accelerator-name":                absent,
		"karpenter.k8s.aws/instance-accelerator-manufacturer":        absent,
		"karpenter.k8s.aws/instance-accelerator-count":               absent,
		"karpenter.k8s.aws/capacity-reservation-id":                  absent,
		"karpenter.k8s.aws/capacity-reservation-type":                absent,
		"karpenter.k8s.aws/capacity-reservation-interruptible":       absent,
		"karpenter.k8s.aws/placement-group-id":                       absent,
		"karpenter.k8s.aws/placement-group-partition":                absent,
	}
	if diff := cmp.Diff(want, requirementsOf(t, known(t, "m6gd.large"), awsv1.FamilyAL2023)); diff != "" {
		t.Errorf("m6gd.large -want +got:\n%s", diff)
	}
}

func TestLabelRules(t *testing.T) {
	for _, test := range []struct {
		name   string
		it     *catalog.Type
		family awsv1.Family
		want   map[string]string
	}{
		{"old type, two architectures", known(t, "t2.micro"), awsv1.FamilyAL2, map[string]string{
			"kubernetes.io/arch": "[amd64]", awsv1.LabelInstanceHypervisor: "[xen]", awsv1.LabelInstanceEBSBandwidth: absent,
			awsv1.LabelInstanceNetworkBandwidth: absent, awsv1.LabelInstanceCPUClockSpeed: "[2500]", awsv1.LabelInstanceLocalNVMe: absent,
		}},
		{"clock speed unknown", known(t, "m1.small"), awsv1.FamilyAL2, map[string]string{awsv1.LabelInstanceCPUClockSpeed: absent}},
		{"EBS optimization only on demand", known(t, "c3.xlarge"), awsv1.FamilyAL2, map[string]string{
			awsv1.LabelInstanceEBSBandwidth: absent, awsv1.LabelInstanceLocalNVMe: absent,
		}},
		{"bare metal", known(t, "m5.metal"), awsv1.FamilyAL2, map[string]string{
			awsv1.LabelInstanceHypervisor: "[]", awsv1.LabelInstanceSize: "[metal]",
		}},
		{"flex", known(t, "m7i-flex.large"), awsv1.FamilyAL2, map[string]string{
			awsv1.LabelInstanceCapabilityFlex: "[true]", awsv1.LabelInstanceFamily: "[m7i-flex]",
			awsv1.LabelInstanceEncryptionInTransit: "[true]", awsv1.LabelInstanceGeneration: "[7]",
		}},
		{"terabytes in the name", known(t, "u-6tb1.56xlarge"), awsv1.FamilyAL2, map[string]string{
			awsv1.LabelInstanceCategory: "[u]", awsv1.LabelInstanceGeneration: "[1]", awsv1.LabelInstanceFamily: "[u-6tb1]",
		}},
		{"a hyphen behind the generation", known(t, "p6-b200.48xlarge"), awsv1.FamilyAL2, map[string]string{
			awsv1.LabelInstanceCategory: "[p]", awsv1.LabelInstanceGeneration: "[6]",
		}},
		{"sum of all cards", known(t, "p5.48xlarge"), awsv1.FamilyAL2, map[string]string{
			awsv1.LabelInstanceNetworkBandwidth: "[3200000]", awsv1.LabelInstanceGPUName: "[h100]", awsv1.LabelInstanceGPUCount: "[8]",
			awsv1.LabelInstanceGPUManufacturer: "[nvidia]", awsv1.LabelInstanceGPUMemory: "[81920]",
		}},
		{"product of three words", known(t, "g4ad.xlarge"), awsv1.FamilyAL2, map[string]string{
			awsv1.LabelInstanceGPUName: "[radeon-pro-v520]", awsv1.LabelInstanceGPUManufacturer: "[amd]",
		}},
		{"part of a GPU is no whole one", known(t, "g6f.large"), awsv1.FamilyAL2, map[string]string{
			awsv1.LabelInstanceGPUCount: "[0]", awsv1.LabelInstanceGPUMemory: "[2861]",
		}},
		{"Neuron", known(t, "inf2.24xlarge"), awsv1.FamilyAL2, map[string]string{
			awsv1.LabelInstanceAcceleratorName: "[inferentia2]", awsv1.LabelInstanceAcceleratorManufacturer: "[aws]",
			awsv1.LabelInstanceAcceleratorCount: "[6]", awsv1.LabelInstanceGPUCount: absent,
		}},
		{"Neuron that EC2 does not call inference", known(t, "trn1.2xlarge"), awsv1.FamilyAL2, map[string]string{
			awsv1.LabelInstanceAcceleratorName: "[trainium]", awsv1.LabelInstanceAcceleratorManufacturer: "[aws]",
		}},
		{"another maker's accelerator", known(t, "dl2q.24xlarge"), awsv1.FamilyAL2, map[string]string{
			awsv1.LabelInstanceAcceleratorName: "[qualcomm-ai100]", awsv1.LabelInstanceAcceleratorManufacturer: "[qualcomm]",
			awsv1.LabelInstanceAcceleratorCount: "[8]",
		}},
		{"no enclaves", known(t, "m5.large"), awsv1.FamilyAL2, map[string]string{awsv1.LabelNitroSandbox: "[false]"}},
		{"enclaves", known(t, "m5.xlarge"), awsv1.FamilyAL2, map[string]string{awsv1.LabelNitroSandbox: "[true]"}},
		{"Windows", known(t, "m5.large"), awsv1.FamilyWindows2022, map[string]string{
			"kubernetes.io/os": "[windows]", "node.kubernetes.io/windows-build": "[10.0.20348]",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := requirementsOf(t, test.it, test.family)
			got := map[string]string{}
			for key := range test.want {
				got[key] = all[key]
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s -want +got:\n%s", test.it.Name, diff)
			}
		})
	}
}

// Every type has a requirement for every well-known label, with values that a node can have.
func TestLabelsOfAllTypes(t *testing.T) {
	for _, it := range typeSetOf(t, sold(catalog.Load().Types, "us-east-1a"), al2023("us-east-1a"), nil).Catalog(freeMarket()) {
		all := labelsOf(t, append(it.Requirements[:len(it.Requirements):len(it.Requirements)], it.Offerings[0].Requirements...))
		for _, key := range awsv1.WellKnownLabels() {
			if all[key] == "" {
				t.Errorf("%s has no requirement for %s", it.Name, key)
			}
		}
		for _, r := range it.Requirements {
			for _, value := range r.Values {
				if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
					t.Errorf("%s: %s=%q: %v", it.Name, r.Key, value, problems)
				}
			}
		}
	}
}
