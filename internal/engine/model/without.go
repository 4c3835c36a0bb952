package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Without returns the snapshot without the given nodes: their reschedulable pods are pending, or rejected if they
// cannot be placed. Nothing is rebuilt; the receiver is unchanged.
func (s *Snapshot) Without(names ...string) *Snapshot {
	gone := make([]*Node, 0, len(names))
	for _, name := range names {
		if n := s.Node(name); n != nil && !slices.Contains(gone, n) {
			gone = append(gone, n)
		}
	}
	slices.SortFunc(gone, compareNodes)
	what := *s
	what.Nodes = cutOut(s.Nodes, gone, compareNodes)
	var leaving []homeless
	var rejected []*Pod
	for _, n := range gone {
		for i, p := range n.Pods {
			switch {
			case !p.Reschedulable:
			case p.Rejected != nil:
				rejected = append(rejected, p)
			default:
				leaving = append(leaving, homeless{p, n.matchingOf(i)})
			}
		}
	}
	what.Ledger, what.Commitments = s.Ledger.Without(gone...), using(s.Commitments, -1, gone...)
	what.Groups = s.groupsWith(leaving)
	slices.SortFunc(gone, compareNames)
	what.named = cutOut(s.named, gone, compareNames)
	gone = slices.DeleteFunc(gone, func(n *Node) bool { return n.Claim == "" })
	slices.SortFunc(gone, compareClaims)
	what.claimed = cutOut(s.claimed, gone, compareClaims)
	if len(rejected) > 0 {
		what.Rejected = slices.Concat(s.Rejected, rejected)
		slices.SortFunc(what.Rejected, comparePods)
	}
	return &what
}

func compareNames(a, b *Node) int { return strings.Compare(a.Name, b.Name) }

func compareClaims(a, b *Node) int {
	return cmp.Or(strings.Compare(a.Claim, b.Claim), strings.Compare(a.Name, b.Name))
}

// cutOut returns a sorted list without the members of another list in the same order.
func cutOut(list, gone []*Node, compare func(a, b *Node) int) []*Node {
	rest := make([]*Node, 0, len(list))
	for _, n := range gone {
		at, found := slices.BinarySearchFunc(list, n, compare)
		rest = append(rest, list[:at]...)
		if found {
			at++
		}
		list = list[at:]
	}
	return append(rest, list...)
}

// DifferentNodes returns the members of one list of nodes that are not in another, and the reverse. If they are more than
// most together, it returns false. Both are lists of snapshots, in their order.
func DifferentNodes(before, now []*Node, most int) (gone, come []*Node, few bool) {
	i, j := 0, 0
	for i < len(before) || j < len(now) {
		if i < len(before) && j < len(now) && before[i] == now[j] {
			i, j = i+1, j+1
			continue
		}
		order := 0
		switch {
		case i == len(before):
			order = 1
		case j == len(now):
			order = -1
		default:
			order = compareNodes(before[i], now[j])
		}
		if order <= 0 {
			gone, i = append(gone, before[i]), i+1
		}
		if order >= 0 {
			come, j = append(come, now[j]), j+1
		}
		if len(gone)+len(come) > most {
			return nil, nil, false
		}
	}
	return gone, come, true
}

// groupsWith merges pods into the groups of pending pods.
func (s *Snapshot) groupsWith(pods []homeless) []*Group {
	if len(pods) == 0 {
		return s.Groups
	}
	more := map[identity]part{}
	for _, p := range pods {
		id := identity{p.Signature, p.matching.key, tolerated(s.taints, p.Tolerations)}
		added := more[id]
		added.tolerated = id.tolerated
		added.add(p.Pod, p.matching)
		more[id] = added
	}
	groups := make([]*Group, 0, len(s.Groups)+len(more))
	for _, g := range s.Groups {
		if added, known := more[g.identity]; known {
			merged := *g
			merged.Pods = slices.Concat(g.Pods, added.pods)
			slices.SortFunc(merged.Pods, comparePods)
			if len(added.each) > 0 {
				merged.each = maps.Clone(added.each)
				maps.Copy(merged.each, g.each)
			}
			g = &merged
			delete(more, g.identity)
		}
		groups = append(groups, g)
	}
	for _, added := range more {
		slices.SortFunc(added.pods, comparePods)
		groups = append(groups, encodeGroup(s, added.pods[0].Shape, added))
	}
	slices.SortFunc(groups, compareGroups)
	return groups
}

// homeless is a pod whose node is removed, and its matching.
type homeless struct {
	*Pod
	matching *matching
}

// unmarked is the matching of every pod while there are no marks.
var unmarked = &matching{key: "\x00\x00"}

func (n *Node) matchingOf(i int) *matching {
	if n.matchings == nil {
		return unmarked
	}
	return n.matchings[i]
}
