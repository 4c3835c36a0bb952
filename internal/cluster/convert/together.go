package convert

import (
	"maps"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// sharing prefixes the labels, of no user's, by which pods that share a claim find each other.
const sharing = "volume:"

// keepTogether makes the pod want to be in one zone with the others that share a claim whose volume is made where the
// first of them goes: as soon as it is, it holds the others there
// (https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode). Of a driver that has no zones that is
// asked too much, until the volume is there.
func keepTogether(spec *model.PodSpec) {
	own := false
	for _, v := range spec.Volumes {
		if !v.Waits || spec.Daemon {
			continue
		}
		if !own {
			labels := make(map[string]string, len(spec.Labels)+1)
			maps.Copy(labels, spec.Labels)
			spec.Labels, own = labels, true
		}
		key := sharing + v.Claim
		spec.Labels[key] = ""
		spec.Terms = append(spec.Terms, model.Term{Key: model.LabelZone, Together: true,
			Selector: model.Selector{Namespaces: []string{spec.Namespace}, Requirements: []label.Requirement{{Key: key, Operator: label.Exists}}}})
	}
}
