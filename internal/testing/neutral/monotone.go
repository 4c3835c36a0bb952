package neutral

import (
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// monotoneChanges offer more choice, or ask for less.
func monotoneChanges() []Change {
	more := func(families []family, sizes []int) func(*Input) bool {
		return always(func(in *Input) {
			in.Types = append(in.Types, catalog(rand.New(rand.NewPCG(7, uint64(len(sizes)))), families, sizes)...)
		})
	}
	return []Change{
		{Name: "more types", Monotone: true, edit: more(moreFamilies, sizes)},
		{Name: "larger types", Monotone: true, edit: more(families, moreSizes)},
		{Name: "requests 10% smaller", Monotone: true, edit: eachTemplate(func(t template) bool {
			t.spec.Containers[0].Resources.Requests = scaled(t.spec, 0.9)
			return true
		})},
		{Name: "one pod fewer", Monotone: true, edit: func(in *Input) bool {
			for _, d := range of[*appsv1.Deployment](in) {
				if *d.Spec.Replicas > 1 && len(d.Spec.Template.Spec.TopologySpreadConstraints) == 0 {
					*d.Spec.Replicas--
					return true
				}
			}
			return false
		}},
		{Name: "pools without weights", Monotone: true, edit: func(in *Input) bool {
			changed := false
			for _, p := range in.open() {
				changed = changed || p.Spec.Weight != nil
				p.Spec.Weight = nil
			}
			return changed
		}},
		{Name: "zone spread removed", Monotone: true, edit: eachTemplate(func(t template) bool {
			had := len(t.spec.TopologySpreadConstraints) > 0
			t.spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint(nil)
			return had
		})},
	}
}
