package audit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// spot is where pods are bound while the plan is carried out: a node that exists, a claim in flight or one to create.
// What is not launched yet has a future for each thing that the cloud may make of it.
type spot struct {
	name    string
	taints  []model.Taint
	futures []labelling
	// domains remembers the values that a label may have, over all futures.
	domains map[string][]value
	// ports that the pods take there.
	ports []model.HostPort
}

// spots lists the nodes of the snapshot and those of the plan, by name; every pod that has a place gets its seat.
func (j *judge) spots(p *plan.Provision) (nodes, all []*spot, seats map[string]*spot) {
	seats = map[string]*spot{}
	byName := map[string]*spot{}
	for _, n := range j.snap.Nodes {
		s := &spot{name: n.Name, taints: n.NodeSpec.Taints, futures: j.futuresOf(n)}
		s.domains = map[string][]value{model.LabelHostname: hostOf(n)}
		nodes, byName[n.Name] = append(nodes, s), s
	}
	for _, placed := range p.Placed {
		for _, pod := range placed.Pods {
			seats[pod.UID] = byName[placed.Node]
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
		for _, o := range j.outcomesOf(c, pool.PoolSpec.Catalogue) {
			s.futures = append(s.futures, o.values)
		}
		for _, pod := range c.Pods {
			seats[pod.UID] = s
		}
		all = append(all, s)
	}
	return nodes, all, seats
}

// hostOf is the hostname of a node: its label; none for a node that has registered without one; the name of a node to be.
func hostOf(n *model.Node) []value {
	if host, has := n.NodeSpec.Labels[model.LabelHostname]; has && n.Stage != model.Launching {
		return just(host)
	}
	if n.Stage >= model.Registered {
		return absent
	}
	return just(n.Name)
}

func (j *judge) futuresOf(n *model.Node) []labelling {
	if n.Stage != model.Launching {
		return []labelling{named(n)}
	}
	p, outcomes := j.inFlightOutcomes(n)
	futures := make([]labelling, 0, len(outcomes))
	for _, o := range outcomes {
		futures = append(futures, o.values)
	}
	if len(futures) == 0 {
		futures = append(futures, outcome{p, &model.InstanceType{}, &model.Offering{}}.withoutType)
	}
	return futures
}

// domain is what the label of the node may be.
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

// domainIf is what the label may be in the futures in which one of the alternatives may accept the node.
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

// labels is the labelling of one future, with the hostname that the node will have.
func (s *spot) labels(future labelling) labelling {
	return func(key string) []value {
		if key == model.LabelHostname {
			return s.domains[key]
		}
		return future(key)
	}
}

// membership says whether something is so in no future, in some, or in all.
type membership uint8

const (
	never membership = iota
	maybe
	surely
)

// accepted says whether one of the alternatives accepts the node's labels.
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

// has says whether the node has the label.
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

// portTaken is the rule of kube-scheduler's NodePorts: an address that is not given is every address.
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

// canonicalText spells anything that is compared whole.
func canonicalText(parts ...any) string { return fmt.Sprintf("%q", parts) }
