package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Assignment holds pods that are placed on a node.
type Assignment struct {
	Node string
	Pods []*Pod
}

// Bound returns the snapshot with pending pods bound to nodes. Unaffected nodes and pods are shared; the receiver is
// unchanged.
func (s *Snapshot) Bound(assignments []Assignment) *Snapshot {
	if len(assignments) == 0 {
		what := *s
		return &what
	}
	groups, matchings := s.assigned(assignments)
	fresh := make(map[*Node]*Node, len(assignments))
	for _, assignment := range assignments {
		old := s.Node(assignment.Node)
		n := fresh[old]
		if n == nil {
			n = old
		}
		fresh[old] = n.with(s, assignment.Pods, matchings)
	}
	what := s.replacing(fresh)
	what.Groups = groups
	return what
}

// assigned returns the groups without the pods that have a assignment, and the matchings of these pods.
func (s *Snapshot) assigned(assignments []Assignment) ([]*Group, map[*Pod]*matching) {
	assigned := map[*Pod]bool{}
	for _, assignment := range assignments {
		for _, p := range assignment.Pods {
			assigned[p] = true
		}
	}
	matchings := make(map[*Pod]*matching, len(assigned))
	groups := make([]*Group, 0, len(s.Groups))
	for _, g := range s.Groups {
		m := &matching{matches: g.Matches, blocked: g.BlockedBy, key: g.identity.marks}
		var left []*Pod
		for _, p := range g.Pods {
			if assigned[p] {
				matchings[p] = cmp.Or(g.each[p], m)
			} else {
				left = append(left, p)
			}
		}
		if len(left) == len(g.Pods) {
			groups = append(groups, g)
		} else if len(left) > 0 {
			rest := *g
			rest.Pods = left
			groups = append(groups, &rest)
		}
	}
	return groups, matchings
}

// with returns the node with additional pods on it.
func (n *Node) with(s *Snapshot, pods []*Pod, matchings map[*Pod]*matching) *Node {
	type resident struct {
		*Pod
		matching *matching
	}
	residents := make([]resident, 0, len(n.Pods)+len(pods))
	for i, p := range n.Pods {
		residents = append(residents, resident{p, n.matchingOf(i)})
	}
	fresh := *n
	fresh.Used = grow(n.Used.Clone(), len(s.Resources))
	var coming []int
	for _, p := range pods {
		residents = append(residents, resident{p, matchings[p]})
		fresh.Used.AddScaled(p.Requests, 1)
		coming = append(coming, matchings[p].all().matches...)
		for _, m := range p.CarrierMarks {
			if m >= 0 {
				coming = append(coming, m)
			}
		}
	}
	fresh.Counts = withCounts(n.Counts, coming)
	slices.SortFunc(residents, func(a, b resident) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
	fresh.Pods, fresh.matchings = make([]*Pod, len(residents)), make([]*matching, len(residents))
	for i, r := range residents {
		fresh.Pods[i], fresh.matchings[i] = r.Pod, r.matching
	}
	fresh.Ports, fresh.Claims = usedTogether(fresh.Pods)
	fresh.reservePorts(n.Ports) // those of daemons to come
	attachShared(s, fresh.Used, n.Claims, pods)
	fresh.weigh()
	return &fresh
}

// withCounts returns the counts incremented by one for each of the marks.
func withCounts(counts []MarkCount, marks []int) []MarkCount {
	counts = slices.Clone(counts)
	for _, m := range marks {
		at, known := slices.BinarySearchFunc(counts, m, func(c MarkCount, mark int) int { return cmp.Compare(c.Mark, mark) })
		if !known {
			counts = slices.Insert(counts, at, MarkCount{Mark: m})
		}
		counts[at].Count++
	}
	return counts
}

// attachShared adds to used the shared volumes of the pods that are not on the node yet, each once.
func attachShared(s *Snapshot, used quantity.Vector, there []string, pods []*Pod) {
	seen := map[string]bool{}
	for _, p := range pods {
		for _, v := range p.Shared {
			if v.Driver == "" || seen[v.Claim] || slices.Contains(there, v.Claim) {
				continue
			}
			seen[v.Claim] = true
			if r := slices.Index(s.Resources, VolumeResource(v.Driver)); r >= 0 {
				used[r]++
			}
		}
	}
}
