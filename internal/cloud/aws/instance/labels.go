package instance

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

// namePattern splits a type's name into category, an optional size in TB, and generation: m6gd.large has m and 6,
// u-6tb1.metal has u and 1.
var namePattern = regexp.MustCompile(`^([a-z]+)(-[0-9]+tb)?([0-9]+).*\.`)

// architectures maps EC2's names to those of nodes.
var architectures = map[string]string{
	"x86_64": karpv1.ArchitectureAMD64,
	"arm64":  karpv1.ArchitectureARM64,
}

// architecture returns the first architecture that Kubernetes nodes can have, or an empty string.
func architecture(t *catalog.Type) string {
	for _, name := range t.Architectures {
		if arch, known := architectures[name]; known {
			return arch
		}
	}
	return ""
}

// labels collects a type's requirements: the labels that its nodes have, and those that they do not have.
type labels []cloud.Requirement

func (l *labels) has(key string, values ...string) {
	*l = append(*l, cloud.Requirement{Key: key, Operator: "In", Values: values})
}

func (l *labels) lacks(keys ...string) {
	for _, key := range keys {
		*l = append(*l, cloud.Requirement{Key: key, Operator: "DoesNotExist"})
	}
}

// amount adds a label with a number, or the absence of the label if the number is zero.
func (l *labels) amount(key string, n int64) {
	if n > 0 {
		l.has(key, strconv.FormatInt(n, 10))
	} else {
		l.lacks(key)
	}
}

func (l *labels) flag(key string, is bool) { l.has(key, strconv.FormatBool(is)) }

// requirements returns all labels of a type's nodes except zone, zone ID and capacity type, which depend on the
// offering.
func (c *Class) requirements(t *catalog.Type, f *family, region string) []cloud.Requirement {
	var l labels
	l.has(awsv1.LabelNodeClass, c.Name)
	l.has(corev1.LabelInstanceTypeStable, t.Name)
	l.has(corev1.LabelArchStable, architecture(t))
	l.has(corev1.LabelTopologyRegion, region)
	if f.windows() {
		l.has(corev1.LabelOSStable, string(corev1.Windows))
		l.has(corev1.LabelWindowsBuild, f.windowsBuild)
	} else {
		l.has(corev1.LabelOSStable, string(corev1.Linux))
		l.lacks(corev1.LabelWindowsBuild)
	}
	l.name(t)
	l.size(t)
	l.devices(t)
	l.has(awsv1.LabelInstanceTenancy, awsv1.TenancyDedicated, awsv1.TenancyDefault)
	l.lacks(awsv1.LabelCapacityReservationID, awsv1.LabelCapacityReservationType, awsv1.LabelCapacityReservationInterruptible)
	l.placement(c.Placement)
	return l
}

func (l *labels) name(t *catalog.Type) {
	if parts := namePattern.FindStringSubmatch(t.Name); parts != nil {
		l.has(awsv1.LabelInstanceCategory, parts[1])
		l.has(awsv1.LabelInstanceGeneration, parts[3])
	} else {
		l.lacks(awsv1.LabelInstanceCategory, awsv1.LabelInstanceGeneration)
	}
	l.has(awsv1.LabelInstanceFamily, t.Family())
	l.has(awsv1.LabelInstanceSize, t.Size())
	l.flag(awsv1.LabelInstanceCapabilityFlex, strings.Contains(t.Family(), "-flex"))
}

func (l *labels) size(t *catalog.Type) {
	l.amount(awsv1.LabelInstanceCPU, t.VCPUs)
	l.has(awsv1.LabelInstanceCPUManufacturer, kebab(t.Manufacturer))
	l.amount(awsv1.LabelInstanceCPUClockSpeed, int64(math.Round(t.ClockGHz*1000)))
	l.amount(awsv1.LabelInstanceMemory, t.MemoryMiB)
	if t.EBSOptimized == "" {
		l.amount(awsv1.LabelInstanceEBSBandwidth, t.EBSMbps)
	} else {
		l.lacks(awsv1.LabelInstanceEBSBandwidth)
	}
	l.amount(awsv1.LabelInstanceNetworkBandwidth, t.BaselineMbps)
	l.amount(awsv1.LabelInstanceLocalNVMe, t.NVMeGB)
	l.has(awsv1.LabelInstanceHypervisor, t.Hypervisor)
	l.flag(awsv1.LabelInstanceEncryptionInTransit, t.EncryptsTransit)
	l.flag(awsv1.LabelNitroSandbox, t.NitroEnclaves)
}

func (l *labels) devices(t *catalog.Type) {
	if gpu := t.GPU; gpu != nil {
		l.has(awsv1.LabelInstanceGPUName, kebab(gpu.Name))
		l.has(awsv1.LabelInstanceGPUManufacturer, kebab(gpu.Manufacturer))
		l.has(awsv1.LabelInstanceGPUCount, strconv.FormatInt(gpu.Count, 10))
		l.has(awsv1.LabelInstanceGPUMemory, strconv.FormatInt(gpu.MemoryMiB, 10))
	} else {
		l.lacks(awsv1.LabelInstanceGPUName, awsv1.LabelInstanceGPUManufacturer, awsv1.LabelInstanceGPUCount, awsv1.LabelInstanceGPUMemory)
	}
	switch device := t.Accelerator; {
	case t.Neuron != nil: // Inferentia is listed in both; this list is the newer one
		l.has(awsv1.LabelInstanceAcceleratorName, kebab(t.Neuron.Name))
		l.has(awsv1.LabelInstanceAcceleratorManufacturer, "aws")
		l.has(awsv1.LabelInstanceAcceleratorCount, strconv.FormatInt(t.Neuron.Count, 10))
	case device != nil:
		l.has(awsv1.LabelInstanceAcceleratorName, kebab(device.Name))
		l.has(awsv1.LabelInstanceAcceleratorManufacturer, kebab(device.Manufacturer))
		l.has(awsv1.LabelInstanceAcceleratorCount, strconv.FormatInt(device.Count, 10))
	default:
		l.lacks(awsv1.LabelInstanceAcceleratorName, awsv1.LabelInstanceAcceleratorManufacturer, awsv1.LabelInstanceAcceleratorCount)
	}
}

// kebab converts a product's name to a label value: "Radeon Pro V520" becomes radeon-pro-v520.
func kebab(name string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), " ", "-")
}
