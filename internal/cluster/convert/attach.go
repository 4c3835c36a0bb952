package convert

import (
	"slices"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// AddAttachLimits adds to the node how many volumes of each CSI driver it holds, as its CSINode says; nil says nothing.
// Drivers that state no count hold any number (Kubernetes API, VolumeNodeResources).
func AddAttachLimits(spec *model.NodeSpec, from *storagev1.CSINode) {
	if from == nil {
		return
	}
	limits := map[string]int{}
	for _, driver := range from.Spec.Drivers {
		if driver.Allocatable != nil && driver.Allocatable.Count != nil {
			limits[driver.Name] = int(*driver.Allocatable.Count)
		}
	}
	spec.Allocatable = withLimits(spec.Allocatable, limits)
}

// AddTypeLimits adds the attach limits of a type to a node of it: until its drivers have registered that is the best
// that is known.
func AddTypeLimits(spec *model.NodeSpec, of *model.InstanceType) {
	for _, a := range of.Allocatable {
		if model.IsVolumeResource(a.Name) && !slices.ContainsFunc(spec.Allocatable, func(b quantity.Amount) bool { return a.Name == b.Name }) {
			spec.Allocatable = append(slices.Clip(spec.Allocatable), a)
		}
	}
	slices.SortFunc(spec.Allocatable, compareAmounts)
}

// withLimits adds attach limits, by driver, to amounts. Unlike other amounts they may be zero: what is not mentioned is
// unlimited. A negative limit holds nothing.
func withLimits(have []quantity.Amount, limits map[string]int) []quantity.Amount {
	if len(limits) == 0 {
		return have
	}
	have = slices.Clip(have)
	for _, driver := range sortedKeys(limits) {
		have = append(have, quantity.Amount{Name: model.VolumeResource(driver), Value: int64(max(0, limits[driver]))})
	}
	slices.SortFunc(have, compareAmounts)
	return have
}
