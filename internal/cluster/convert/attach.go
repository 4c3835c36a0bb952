package convert

import (
	"slices"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// AddAttachLimits adds to the node the number of volumes of each CSI driver that it can attach, from its CSINode; a
// nil CSINode adds nothing. A driver without a count can attach any number (Kubernetes API, VolumeNodeResources).
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

// DriverTopology returns the CSI drivers that run on the node, and whether each reports topology keys there. Volumes of
// a driver without them can be used on every node that runs it (Kubernetes API, CSINodeDriver).
func DriverTopology(from *storagev1.CSINode) map[string]bool {
	if from == nil {
		return nil
	}
	keyed := map[string]bool{}
	for _, driver := range from.Spec.Drivers {
		keyed[driver.Name] = len(driver.TopologyKeys) > 0
	}
	return keyed
}

// withLimits adds attach limits, by driver, to amounts. Unlike other amounts they may be zero: an omitted limit means
// unlimited. A negative limit counts as zero.
func withLimits(have []quantity.Amount, limits map[string]int) []quantity.Amount {
	if len(limits) == 0 {
		return have
	}
	have = slices.Clone(have)
	for _, driver := range sortedKeys(limits) {
		name := model.VolumeResource(driver)
		have = slices.DeleteFunc(have, func(a quantity.Amount) bool { return a.Name == name })
		have = append(have, quantity.Amount{Name: name, Value: int64(max(0, limits[driver]))})
	}
	slices.SortFunc(have, compareAmounts)
	return have
}
