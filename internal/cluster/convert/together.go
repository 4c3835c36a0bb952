package convert

import (
	"maps"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// sharing is the prefix of the internal labels by which pods that share a claim select each other.
const sharing = "volume:"

// keepTogether requires the pod to be in one zone with the other pods that share a claim whose volume is provisioned
// for the first of them: once the volume exists, it restricts the others to its zone
// (https://kubernetes.io/docs/concepts/storage/storage-classes/#volume-binding-mode). For a driver without zones this
// is too strict until the volume exists, unless its CSINodes say that it has none (Around.Everywhere).
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
