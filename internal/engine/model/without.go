package model

import (
	"maps"
	"slices"
)

// Without returns the snapshot as it would be without the named nodes: their pods that somebody will start again are
// pending, or set aside where they cannot be placed. Nothing is rebuilt; the receiver is unchanged.
func (s *Snapshot) Without(names ...string) *Snapshot {
	gone := make(map[string]bool, len(names))
	for _, name := range names {
		gone[name] = true
	}
	what := *s
	what.Nodes = make([]*Node, 0, len(s.Nodes))
	var homeless, rejected []*Pod
	for _, n := range s.Nodes {
		if !gone[n.Name] {
			what.Nodes = append(what.Nodes, n)
			continue
		}
		for _, p := range n.Pods {
			switch {
			case p.Reschedulable && p.Rejected != nil:
				rejected = append(rejected, p)
			case p.Reschedulable:
				homeless = append(homeless, p)
			}
		}
	}
	isGone := func(n *Node) bool { return gone[n.Name] }
	what.named = slices.DeleteFunc(slices.Clone(s.named), isGone)
	what.claimed = slices.DeleteFunc(slices.Clone(s.claimed), isGone)
	what.Pools = s.poolsWithout(gone)
	what.Groups = s.groupsWith(homeless)
	if len(rejected) > 0 {
		what.Rejected = slices.Concat(s.Rejected, rejected)
		slices.SortFunc(what.Rejected, comparePods)
	}
	return &what
}

// poolsWithout copies the pools whose usage shrinks when the nodes go.
func (s *Snapshot) poolsWithout(gone map[string]bool) []*Pool {
	pools := slices.Clone(s.Pools)
	copied := map[string]*Pool{}
	for _, n := range s.Nodes {
		if !gone[n.Name] || n.Deleting || n.Pool == "" || s.Pool(n.Pool) == nil {
			continue
		}
		p := copied[n.Pool]
		if p == nil {
			fresh := *s.Pool(n.Pool)
			p, copied[n.Pool] = &fresh, &fresh
			pools[slices.Index(pools, s.Pool(n.Pool))] = p
		}
		p.Used = p.Used.Sub(n.Total)
		p.Nodes--
	}
	return pools
}

// groupsWith merges pods into the groups of pending pods.
func (s *Snapshot) groupsWith(pods []*Pod) []*Group {
	if len(pods) == 0 {
		return s.Groups
	}
	more := map[string][]*Pod{}
	for _, p := range pods {
		more[p.Signature] = append(more[p.Signature], p)
	}
	groups := make([]*Group, 0, len(s.Groups)+len(more))
	for _, g := range s.Groups {
		if added := more[g.Signature]; added != nil {
			merged := *g
			merged.Pods = slices.Concat(g.Pods, added)
			slices.SortFunc(merged.Pods, comparePods)
			g = &merged
			delete(more, g.Signature)
		}
		groups = append(groups, g)
	}
	for _, signature := range slices.Sorted(maps.Keys(more)) {
		added := more[signature]
		slices.SortFunc(added, comparePods)
		groups = append(groups, encodeGroup(s.Space, added[0].Shape, added))
	}
	slices.SortFunc(groups, compareGroups)
	return groups
}
