package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// elsewhere reports whether another controller launches the nodes for the group's pods: the first pool that takes them, by
// weight and name, is not of this controller. All controllers see all pools, and each answers for its own: so one
// launches nodes for the pods, and no two do. What only one of them knows, such as offerings that are sold out, has no
// influence.
func (f *fleet) elsewhere(g *model.Group) bool {
	if !slices.ContainsFunc(f.snap.Pools, func(p *model.Pool) bool { return p.Elsewhere }) {
		return false
	}
	for _, p := range f.snap.Pools {
		if (p.Elsewhere || p.Blocked == nil) && takes(f.snap.Space, p, g) {
			return p.Elsewhere
		}
	}
	return false
}

// takes reports whether nodes of the pool could run the group's pods: by taints, labels and the size of its types.
func takes(space *label.Space, p *model.Pool, g *model.Group) bool {
	if !p.Valid || p.Types == nil {
		return false
	}
	if _, no := model.Untolerated(p.Taints, g.Tolerations); no {
		return false
	}
	return slices.ContainsFunc(g.Rows, func(row label.Row) bool {
		both := make(label.Row, space.Words())
		return space.And(both, p.Start, row) && holdsOne(space, p, both, g)
	})
}

// holdsOne reports whether a type of the row holds a pod of the group.
func holdsOne(space *label.Space, p *model.Pool, row label.Row, g *model.Group) bool {
	types := p.Types.Compatible(row)
	for i := range p.Types.Classes {
		room := p.Rooms.Of(i)
		if room == nil || !p.Types.Classes[i].Admits(space, row) {
			continue
		}
		for t := range p.Types.Classes[i].Types.All() {
			if types.Has(t) && g.Requests.Fits(room.Net[t]) {
				return true
			}
		}
	}
	return false
}
