package instance

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

const (
	cpu              = string(corev1.ResourceCPU)
	memory           = string(corev1.ResourceMemory)
	ephemeralStorage = string(corev1.ResourceEphemeralStorage)
	pods             = string(corev1.ResourcePods)
)

// armFirmwareMiB is the part of the memory reported by EC2 that the firmware of arm64 machines reserves.
const armFirmwareMiB = 64

// capacity returns the capacity in the units of cloud.InstanceType. Resources that the type does not have are omitted.
func (c *Class) capacity(t *catalog.Type, f *family, s *Settings) map[string]int64 {
	amounts := map[string]int64{
		cpu:                  t.VCPUs * 1000,
		memory:               estimatedMemory(t, s.MemoryOverheadPercent),
		ephemeralStorage:     c.storage(t, f),
		pods:                 c.pods(t, f, s),
		awsv1.ResourcePodENI: t.BranchENIs,
		awsv1.ResourceEFA:    c.efas(t),
	}
	if gpu := t.GPU; gpu != nil {
		switch gpu.Manufacturer {
		case "NVIDIA":
			amounts[awsv1.ResourceNVIDIAGPU] = gpu.Count
		case "AMD":
			amounts[awsv1.ResourceAMDGPU] = gpu.Count
		case "Habana":
			amounts[awsv1.ResourceHabanaGaudi] = gpu.Count
		}
	}
	if t.Neuron != nil {
		amounts[awsv1.ResourceNeuron] = t.Neuron.Count
		amounts[awsv1.ResourceNeuronCore] = t.Neuron.Count * t.Neuron.CoresPerDevice
	}
	if f.windows() {
		amounts[awsv1.ResourcePrivateIPv4Address] = t.IPv4PerENI - 1
	}
	for name, amount := range amounts {
		if amount <= 0 && strings.Contains(name, "/") {
			delete(amounts, name)
		}
	}
	return amounts
}

// estimatedMemory returns the expected memory of a node in bytes, for types without an observed node: the hypervisor
// and the kernel reserve a part.
func estimatedMemory(t *catalog.Type, overhead float64) int64 {
	reported := t.MemoryMiB
	if len(t.Architectures) > 0 && t.Architectures[0] == "arm64" {
		reported -= armFirmwareMiB
	}
	return max(0, reported-int64(math.Ceil(float64(reported)*overhead))) * miB
}

// efas returns the number of Elastic Fabric Adapters that pods can request.
func (c *Class) efas(t *catalog.Type) int64 {
	if len(c.Interfaces) == 0 {
		return t.EFAs
	}
	var n int64
	for _, i := range c.Interfaces {
		if i.EFAOnly {
			n++
		}
	}
	return n
}

// unsetStorage is the size in bytes of a volume without a configured size.
const unsetStorage = 20 * giB

// storage returns the size in bytes of the file system for pods: the instance's own disks if the class combines them
// and the family can, which Windows cannot, otherwise the volume that the class marks as root, otherwise the volume
// that the family uses for pods.
func (c *Class) storage(t *catalog.Type, f *family) int64 {
	if c.RAID0 && !f.windows() && t.StorageGB() > 0 {
		return t.StorageGB() * gB
	}
	for _, v := range c.Volumes {
		if v.Root && c.bytes(v) > 0 {
			return c.bytes(v)
		}
	}
	if f.name == awsv1.FamilyCustom {
		if n := len(c.Volumes); n > 0 && c.bytes(c.Volumes[n-1]) > 0 {
			return c.bytes(c.Volumes[n-1])
		}
		return unsetStorage
	}
	for _, volumes := range [][]Volume{c.Volumes, f.volumes} {
		for _, v := range volumes {
			if v.Device == f.ephemeral && c.bytes(v) > 0 {
				return c.bytes(v)
			}
		}
	}
	return unsetStorage
}

// bytes returns the size of a volume in bytes.
func (c *Class) bytes(v Volume) int64 {
	if size := c.Sizes[v.Device]; size > 0 {
		return size
	}
	return v.Bytes
}

// special reports whether the type has devices that determine its price, or is a whole host.
func special(t *catalog.Type) bool {
	return strings.Contains(t.Size(), "metal") || t.GPU != nil || t.Neuron != nil || t.Accelerator != nil || t.FPGAs > 0 || t.Media > 0
}
