package main

import (
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/legacy/migrate"
)

// migratedTypes returns the instance types of the built-in catalog for package migrate: those whose architecture
// Kubernetes supports.
func migratedTypes() []migrate.InstanceType {
	count := func(device *catalog.Device) int64 {
		if device == nil {
			return 0
		}
		return device.Count
	}
	architectures := map[string]string{"x86_64": karpv1.ArchitectureAMD64, "arm64": karpv1.ArchitectureARM64}
	var types []migrate.InstanceType
	for _, t := range catalog.Load().Types {
		one := migrate.InstanceType{Name: t.Name, CPUs: t.VCPUs, MemoryMiB: t.MemoryMiB, GPUs: count(t.GPU), Neurons: count(t.Neuron)}
		for _, arch := range t.Architectures {
			if name := architectures[arch]; name != "" {
				one.Arch = append(one.Arch, name)
			}
		}
		if len(one.Arch) > 0 {
			types = append(types, one)
		}
	}
	return types
}
