package audit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// spot is a node to which pods are bound: an existing node, a claim in flight or a claim to create. A claim that is
// not launched has one future for each outcome.
type spot struct {
	name    string
	taints  []model.Taint
	futures []labeling
	// domains caches the values that a label may have in any future.
	domains map[string][]value
	// ports holds the host ports of the pods on the node.
	ports []model.HostPort
}

// spots returns the nodes of the snapshot, all nodes including those of the plan, and the node of each placed pod by
// UID.
func (j *judge) spots(p *plan.Provision) (nodes, all []*spot, spotOf map[string]*spot) {
	spotOf = map[string]*spot{}
	byName := map[string]*spot{}
	for _, n := range j.snap.Nodes {
		s := &spot{name: n.Name, taints: n.NodeSpec.Taints, futures: j.futuresOf(n)}
		s.domains = map[string][]value{model.LabelHostname: hostOf(n)}
		nodes, byName[n.Name] = append(nodes, s), s
	}
	for _, placed := range p.Placed {
		for _, pod := range placed.Pods {
			spotOf[pod.UID] = byName[placed.Node]
		}
	}
	all = slices.Clone(nodes)
	for i := range p.Claims {
		c := &p.Claims[i]
		pool := j.snap.Pool(c.Pool)
		if pool == nil {
			continue
		}
		s := &spot{name: c.Name, taints: pool.PoolSpec.Taints, domains: map[string][]value{model.LabelHostname: just(c.Name)}}
		for _, o := range j.outcomesOf(c, pool.PoolSpec.Catalog) {
			s.futures = append(s.futures, o.values)
		}
		for _, pod := range c.Pods {
			spotOf[pod.UID] = s
		}
		all = append(all, s)
	}
	return nodes, all, spotOf
}

// hostOf returns the hostname of a node: its label, absent for a node that registered without one, or the name of a
// planned node.
func hostOf(n *model.Node) []value {
	if host, has := n.NodeSpec.Labels[model.LabelHostname]; has && n.Stage != model.Launching {
		return just(host)
	}
	if n.Stage >= model.Registered {
		return absent
	}
	return just(n.Name)
}

func (j *judge) futuresOf(n *model.Node) []labeling {
	if n.Stage != model.Launching {
		return []labeling{named(n)}
	}
	p, outcomes := j.inFlightOutcomes(n)
	futures := make([]labeling, 0, len(outcomes))
	for _, o := range outcomes {
		futures = append(futures, o.values)
	}
	if len(futures) == 0 {
		futures = append(futures, outcome{p, &model.InstanceType{}, &model.Offering{}}.withoutType)
	}
	return futures
}

// domain returns the values that the label of the node may have.
func (s *spot) domain(key string) []value {
	if known, ok := s.domains[key]; ok {
		return known
	}
	possible := map[value]bool{}
	for _, labels := range s.futures {
		for _, v := range labels(key) {
			possible[v] = true
		}
	}
	list := slices.Collect(maps.Keys(possible))
	if len(list) == 0 {
		list = absent
	}
	s.domains[key] = list
	return list
}

// domainIf returns the values that the label may have in the futures that one of the alternatives may accept.
func (s *spot) domainIf(alternatives [][]label.Requirement, key string) []value {
	if len(alternatives) == 0 || key == model.LabelHostname {
		return s.domain(key)
	}
	possible := map[value]bool{}
	for _, future := range s.futures {
		if mayAdmit(alternatives, s.labels(future)) {
			for _, v := range future(key) {
				possible[v] = true
			}
		}
	}
	return slices.Collect(maps.Keys(possible))
}

// labels is the labeling of one future, with the hostname of the node.
func (s *spot) labels(future labeling) labeling {
	return func(key string) []value {
		if key == model.LabelHostname {
			return s.domains[key]
		}
		return future(key)
	}
}

// membership says whether something holds in no future, in some, or in all.
type membership uint8

const (
	never membership = iota
	maybe
	surely
)

// accepted reports in which futures one of the alternatives accepts the labels of the node.
func (s *spot) accepted(alternatives [][]label.Requirement) membership {
	if len(alternatives) == 0 {
		return surely
	}
	some, all := false, true
	for _, future := range s.futures {
		some = some || mayAdmit(alternatives, s.labels(future))
		all = all && accepts(alternatives, s.labels(future))
	}
	switch {
	case all && len(s.futures) > 0:
		return surely
	case some:
		return maybe
	}
	return never
}

// has reports in which futures the node has the label.
func (s *spot) has(key string) membership {
	present, missing := false, false
	for _, v := range s.domain(key) {
		present, missing = present || v.present, missing || !v.present
	}
	switch {
	case !present:
		return never
	case missing:
		return maybe
	}
	return surely
}

// portTaken implements the rule of kube-scheduler's NodePorts plugin: an empty address means every address.
func portTaken(taken []model.HostPort, wanted []model.HostPort) (model.HostPort, bool) {
	every := func(ip string) bool { return ip == "" || ip == "0.0.0.0" }
	for _, w := range wanted {
		for _, t := range taken {
			if w.Port == t.Port && w.Protocol == t.Protocol && (every(w.IP) || every(t.IP) || w.IP == t.IP) {
				return w, true
			}
		}
	}
	return model.HostPort{}, false
}

// canonicalText returns a text that represents the parts unambiguously, for comparison.
func canonicalText(parts ...any) string { return fmt.Sprintf("%q", parts) }
