package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// Groups: the pending pods of a shape that no mark and no taint distinguishes, with their requirements encoded.

// identity is what the pods of a group have in common.
type identity struct {
	// signature is that of the shape, marks the key of the matching.
	signature, marks string
	// tolerated are the taints of the snapshot that they tolerate; see tolerated.
	tolerated string
}

func (f *freezer) freezeGroups(s *Snapshot) {
	if len(f.dirtyShapes) == 0 {
		return
	}
	var fresh, virtual []*Group
	for signature := range f.dirtyShapes {
		shape := f.shared.shapes[signature]
		if shape == nil {
			continue
		}
		shape.groups = nil
		for _, part := range f.partition(shape) {
			shape.groups = append(shape.groups, encodeGroup(s, shape.Shape, part))
		}
		if shape.Virtual != "" {
			virtual = append(virtual, shape.groups...)
		} else {
			fresh = append(fresh, shape.groups...)
		}
	}
	stale := func(g *Group) bool { _, dirty := f.dirtyShapes[g.Signature]; return dirty }
	s.Groups = merge(s.Groups, fresh, stale, compareGroups)
	if len(s.Virtual)+len(virtual) > 0 {
		s.Virtual = merge(s.Virtual, virtual, stale, compareGroups)
	}
	f.dirtyShapes = map[string]*shapeRecord{}
}

// part is pods of one shape that no mark and no taint distinguishes.
type part struct {
	matching  *matching
	tolerated string
	pods      []*Pod
	// each is Group.each.
	each map[*Pod]*matching
}

// add adds a pod with its matching.
func (t *part) add(p *Pod, m *matching) {
	t.matching, t.pods = m, append(t.pods, p)
	if m.withVirtual == nil {
		return
	}
	if t.each == nil {
		t.each = map[*Pod]*matching{}
	}
	t.each[p] = m
}

// partition splits the pending pods of a shape by matching and by the taints that they tolerate.
func (f *freezer) partition(shape *shapeRecord) []part {
	byKey := map[identity]int{}
	var parts []part
	for _, p := range shape.pending {
		m := f.shared.match(p.class)
		if shape.Virtual != "" {
			m = m.all()
		}
		id := identity{shape.Signature, m.key, tolerated(f.shared.taints.list, p.Tolerations)}
		at, known := byKey[id]
		if !known {
			at = len(parts)
			byKey[id] = at
			parts = append(parts, part{tolerated: id.tolerated})
		}
		parts[at].add(p, m)
	}
	for _, part := range parts {
		slices.SortFunc(part.pods, comparePods)
	}
	return parts
}

// encodeGroup encodes pods of one shape, one class of marks and the same tolerated taints.
func encodeGroup(s *Snapshot, shape *Shape, part part) *Group {
	space := s.Space
	g := &Group{Shape: shape, Pods: part.pods, Tolerations: tolerations(s.taints, part.tolerated), Matches: part.matching.matches,
		BlockedBy: part.matching.blocked, identity: identity{shape.Signature, part.matching.key, part.tolerated}, each: part.each}
	g.Affinity, g.Contradiction = encodeAlternatives(space, shape.Alternatives)
	g.Rows = g.Affinity
	if len(shape.VolumeAlternatives) > 0 {
		g.Rows = g.withVolumes(space)
	}
	for _, p := range shape.Preferred {
		row, _, ok := space.Encode(p.Requirements)
		if !ok {
			row = nil
		}
		g.Preferences = append(g.Preferences, row)
	}
	return g
}

// withVolumes returns every combination of an affinity alternative and a volume alternative that is not
// contradictory.
func (g *Group) withVolumes(space *label.Space) []label.Row {
	volumes, contradiction := encodeAlternatives(space, g.VolumeAlternatives)
	if len(volumes) == 0 {
		g.Contradiction = contradiction
	}
	var rows []label.Row
	for _, affinity := range g.Affinity {
		for _, volume := range volumes {
			both := make(label.Row, space.Words())
			if space.And(both, affinity, volume) {
				rows = append(rows, both)
			} else if len(rows) == 0 {
				g.Contradiction, _ = space.Conflict(affinity, volume)
			}
		}
	}
	return rows
}

// compareGroups orders by signature, and groups of one shape, which only marks and taints distinguish, by their first
// pods.
func compareGroups(a, b *Group) int {
	return cmp.Or(strings.Compare(a.Signature, b.Signature), comparePods(a.Pods[0], b.Pods[0]))
}

func comparePods(a, b *Pod) int {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
		strings.Compare(a.UID, b.UID))
}

// encodeAlternatives encodes alternative terms. It skips contradictory terms. If no term remains, it returns the key
// of the first contradiction.
func encodeAlternatives(space *label.Space, alternatives [][]label.Requirement) ([]label.Row, label.Key) {
	if len(alternatives) == 0 {
		return []label.Row{space.All()}, 0
	}
	var rows []label.Row
	var contradiction label.Key
	for i, reqs := range alternatives {
		row, key, ok := space.Encode(reqs)
		if ok {
			rows = append(rows, row)
		} else if i == 0 {
			contradiction = key
		}
	}
	return rows, contradiction
}
