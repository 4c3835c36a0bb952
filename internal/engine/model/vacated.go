package model

import "slices"

// Vacated returns the snapshot with the moving pods removed from the nodes being removed: these pods are pending, or
// rejected if they cannot be placed. The nodes remain, with their other pods, which still count as before, and the
// nodes still count against the limits of their pools. The nodes are closed to new pods. Pods keep the name of their
// node in Node. Unaffected parts are shared; the receiver is unchanged.
func (s *Snapshot) Vacated(leaving func(*Node) bool, moves func(*Node, *Pod) bool) *Snapshot {
	fresh := map[*Node]*Node{}
	var homes []homeless
	var rejected []*Pod
	for _, n := range s.Nodes {
		if !leaving(n) {
			continue
		}
		var goes []bool
		for i, p := range n.Pods {
			if !p.Reschedulable || !moves(n, p) {
				continue
			}
			if goes == nil {
				goes = make([]bool, len(n.Pods))
			}
			goes[i] = true
			if p.Rejected != nil {
				rejected = append(rejected, p)
			} else {
				homes = append(homes, homeless{p, n.matchingOf(i)})
			}
		}
		fresh[n] = s.vacated(n, goes)
	}
	if len(fresh) == 0 {
		return s
	}
	what := s.replacing(fresh)
	what.Groups = s.groupsWith(homes)
	if len(rejected) > 0 {
		what.Rejected = slices.Concat(s.Rejected, rejected)
		slices.SortFunc(what.Rejected, comparePods)
	}
	return what
}

// replacing returns the snapshot with some of its nodes replaced.
func (s *Snapshot) replacing(fresh map[*Node]*Node) *Snapshot {
	what := *s
	replace := func(nodes []*Node) []*Node {
		list := slices.Clone(nodes)
		for i, n := range list {
			if f := fresh[n]; f != nil {
				list[i] = f
			}
		}
		return list
	}
	what.Nodes, what.named, what.claimed = replace(s.Nodes), replace(s.named), replace(s.claimed)
	return &what
}

// vacated returns the node closed and without the pods that move, by index; a nil slice means that none does. The
// shared volumes of these pods remain in Used: no room is needed on a closed node.
func (s *Snapshot) vacated(n *Node, goes []bool) *Node {
	spec, fresh := *n.NodeSpec, *n
	spec.Disrupted = true
	fresh.NodeSpec = &spec
	if goes == nil {
		return &fresh
	}
	fresh.Pods, fresh.matchings = nil, nil
	fresh.Used, fresh.Counts = n.Used.Clone(), slices.Clone(n.Counts)
	for i, p := range n.Pods {
		if goes[i] {
			p.AddUse(fresh.Used, -1)
			s.uncount(fresh.Counts, p, n.matchingOf(i))
			continue
		}
		fresh.Pods = append(fresh.Pods, p)
		if n.matchings != nil {
			fresh.matchings = append(fresh.matchings, n.matchings[i])
		}
	}
	fresh.Counts = slices.DeleteFunc(fresh.Counts, func(c MarkCount) bool { return c.Count == 0 })
	fresh.Ports, fresh.Claims = usedTogether(fresh.Pods)
	return &fresh
}

// uncount removes a pod of a node from its counts. It reverts interner.countMarks.
func (s *Snapshot) uncount(counts []MarkCount, p *Pod, m *matching) {
	take := func(mark int) {
		if at, known := slices.BinarySearchFunc(counts, mark, func(c MarkCount, mark int) int { return c.Mark - mark }); known {
			counts[at].Count--
		}
	}
	for _, mark := range m.all().matches {
		if !p.Terminating || !s.Marks[mark].Live {
			take(mark)
		}
	}
	for _, mark := range p.CarrierMarks {
		if mark >= 0 {
			take(mark)
		}
	}
}

// BlockingEviction returns the snapshot with EvictionBlocked set to the UIDs of the pods that cannot be evicted at
// present. The receiver is unchanged.
func (s *Snapshot) BlockingEviction(blocked map[string]bool) *Snapshot {
	if len(blocked) == 0 {
		return s
	}
	what := *s
	what.EvictionBlocked = blocked
	return &what
}
