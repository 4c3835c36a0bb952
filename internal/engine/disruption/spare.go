package disruption

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// acceptedChange is a change and its command.
type acceptedChange struct {
	change  *change
	command plan.Command
}

// rehearse rehearses the found commands together with those in progress. For pods without room in the order of drains,
// a command launches an additional node beforehand, as provisioning would have to afterwards; if it then does not pay,
// it is dropped. A command is also dropped if it would not pay for the pods without room in another order.
func (s *search) rehearse() {
	if len(s.found) == 0 {
		return
	}
	s.checkUnplaced(asDrainsAsk, s.addSpareNode)
	s.checkUnplaced(atRandom, s.stillPays)
	for s.checkUnplaced(asDrainsAsk, s.stillPays) { // until the remaining commands hold unchanged
	}
}

// checkUnplaced calls bear for each command with pods without room in the order, and reports whether any command
// changed or was dropped.
func (s *search) checkUnplaced(o order, bear func(*acceptedChange, *rehearsal, []*movingPod) plan.Verdict) bool {
	r := rehearse(s.began, append(s.underWay(), s.commands()...), s.unsettled)
	left, changed := r.unplaced(o), false
	for _, f := range slices.Clone(s.found) {
		if len(left[f.command.ID]) == 0 {
			continue
		}
		before := f.change
		v := bear(f, r, left[f.command.ID])
		if !v.OK() {
			s.drop(f, v)
		}
		changed = changed || !v.OK() || f.change != before
	}
	return changed
}

// drop removes the accepted change: its nodes are kept, and its replacements no longer count anywhere.
func (s *search) drop(f *acceptedChange, why plan.Verdict) {
	s.found = slices.DeleteFunc(s.found, func(other *acceptedChange) bool { return other == f })
	s.snap.Pools = discharged(s.snap.Pools, f.change.claims)
	s.decidedClaims = s.claimsExcept(nil)
	s.guard.Release(f.command)
	for _, n := range f.change.nodes {
		s.dropped = append(s.dropped, keptNode{n, why})
		s.keep(n, why)
	}
}

// claimsExcept returns the claims that were decided before the search and those of its accepted changes, except one.
func (s *search) claimsExcept(but *acceptedChange) []plan.NewClaim {
	decidedClaims := slices.Clone(s.start.decidedClaims)
	for _, f := range s.found {
		if f != but {
			decidedClaims = append(decidedClaims, f.change.claims...)
		}
	}
	return decidedClaims
}

// decideReplacing returns the verdict on a change that would replace the accepted change, evaluated in the state
// without the accepted change.
func (s *search) decideReplacing(f *acceptedChange, instead *change) plan.Verdict {
	var others []string
	for _, other := range s.found {
		for _, n := range other.change.nodes {
			if other != f {
				others = append(others, n.Name)
			}
		}
	}
	snap, decidedClaims := s.snap, s.decidedClaims
	s.snap, s.decidedClaims = s.start.snap.Without(others...), s.claimsExcept(f)
	v := s.decide(instead)
	s.snap, s.decidedClaims = snap, decidedClaims
	return v
}

// underWay returns the commands in progress at the beginning of the run and those proposed since.
func (w *projection) underWay() []plan.Command {
	return append(slices.DeleteFunc(guard.Resume(w.began), func(c plan.Command) bool { return c.Phase == plan.Abandoned }), w.proposed...)
}

// addSpareNode adds claims to the command for its pods without room.
func (s *search) addSpareNode(f *acceptedChange, r *rehearsal, left []*movingPod) plan.Verdict {
	claims, unplaced := s.spares(r, left)
	if unplaced != nil {
		return unplacedPodVerdict(f.change.nodes[0], unplaced)
	}
	if slices.ContainsFunc(left, func(q *movingPod) bool { return !q.podRules.free() }) {
		return s.stillPays(f, r, left) // their possible nodes depend on where other pods are
	}
	wider := f.change.with(s.snap.Resources, claims)
	s.computeWorth(wider)
	if !s.decideReplacing(f, wider).OK() {
		return s.stillPays(f, r, left)
	}
	command := s.command(wider, plan.Underutilized)
	if oversized(&command) {
		return s.stillPays(f, r, left)
	}
	s.replace(f, wider, command)
	return plan.Verdict{}
}

// replace replaces the change of the accepted change.
func (s *search) replace(f *acceptedChange, instead *change, command plan.Command) {
	s.snap.Pools = charged(discharged(s.snap.Pools, f.change.claims), instead.claims)
	f.change, f.command = instead, command
	s.decidedClaims = s.claimsExcept(nil)
}

// stillPays checks whether the command still pays if nodes must be launched for its pods without room, whichever
// instance types its replacements become.
func (s *search) stillPays(f *acceptedChange, r *rehearsal, left []*movingPod) plan.Verdict {
	claims, unplaced := s.spares(r, left)
	if unplaced != nil {
		return unplacedPodVerdict(f.change.nodes[0], unplaced)
	}
	least, have := s.least(f.change), f.change.worth.Saving-s.priceOf(claims)
	if have < least {
		return f.change.refuse(plan.RoomTooTight, least, have)
	}
	return s.narrow(f, least, have)
}

// narrow makes the command of an accepted change pay at the highest prices of its replacements, which are the ones that
// the judge counts. have is the saving that the rehearsal leaves at the lowest prices. If the highest prices leave less
// than the minimum saving, the lists of instance types are reduced as in decide, with the remainder as the slack.
func (s *search) narrow(f *acceptedChange, least, have int64) plan.Verdict {
	worst := have - s.premium(f.change.claims)
	if worst >= least {
		return plan.Verdict{}
	}
	no := f.change.refuse(plan.RoomTooTight, least, worst)
	narrower := *f.change
	narrower.claims = slices.Clone(f.change.claims)
	slack := (have - least) / int64(len(narrower.claims))
	for i := range narrower.claims {
		if !s.trim(&narrower, &narrower.claims[i], slack).OK() {
			return no
		}
	}
	if have-s.premium(narrower.claims) < least {
		return no
	}
	s.computeWorth(&narrower)
	s.replace(f, &narrower, s.command(&narrower, plan.Underutilized))
	return plan.Verdict{}
}

// premium returns how much the highest prices of the claims exceed the lowest, nano-USD per hour.
func (w *projection) premium(claims []plan.NewClaim) int64 {
	var premium int64
	for i := range claims {
		if n := w.snap.Future(replacementSpec(w.snap, &claims[i]), claims[i].Types()); n != nil {
			premium += n.Price - claims[i].Price()
		}
	}
	return premium
}

// with returns the change with additional claims, to which their pods move instead of to their previous assignments.
func (c *change) with(resources []string, claims []plan.NewClaim) *change {
	moved := map[*model.Pod]bool{}
	for _, claim := range claims {
		for _, p := range claim.Pods {
			moved[p] = true
		}
	}
	staying := func(pods []*model.Pod) []*model.Pod {
		return slices.DeleteFunc(slices.Clone(pods), func(p *model.Pod) bool { return moved[p] })
	}
	wider := &change{nodes: c.nodes, groups: c.groups}
	for _, claim := range c.claims {
		if stay := staying(claim.Pods); len(stay) > 0 {
			claim.Requests = lessened(&claim, resources, moved)
			claim.Pods = stay
			wider.claims = append(wider.claims, claim)
		}
	}
	for _, assignment := range c.assignments {
		if pods := staying(assignment.Pods); len(pods) > 0 {
			wider.assignments = append(wider.assignments, model.Assignment{Node: assignment.Node, Pods: pods})
		}
	}
	wider.claims = append(wider.claims, claims...)
	return wider
}

// lessened returns the requests of the claim without those of its pods that moved.
func lessened(c *plan.NewClaim, resources []string, moved map[*model.Pod]bool) []quantity.Amount {
	requests := slices.Clone(c.Requests)
	for i := range requests {
		r := slices.Index(resources, requests[i].Name)
		for _, p := range c.Pods {
			if moved[p] && r >= 0 {
				requests[i].Value -= p.Requests.At(quantity.Resource(r))
			}
		}
	}
	return requests
}

// spares returns the claims that would have to be launched for pods without room in a rehearsal, or one of these pods
// for which no node can be launched.
func (w *projection) spares(r *rehearsal, left []*movingPod) ([]plan.NewClaim, *model.Pod) {
	what := *r.snap
	what.Groups, what.Rejected, what.Pools = groupsFor(left), nil, w.snap.Pools
	opts := w.opts.Placement
	opts.Closed, opts.DecidedClaims = func(*model.Node) bool { return true }, w.decidedClaims
	p := placement.Schedule(&what, opts)
	w.work += p.Work
	if len(p.Refused) > 0 {
		return nil, p.Refused[0].Pods[0]
	}
	return p.Claims, nil
}

// priceOf returns the cost of the claims, nano-USD per hour, including the price per node.
func (w *projection) priceOf(claims []plan.NewClaim) int64 {
	var price int64
	for i := range claims {
		price += claims[i].Price() + w.nodePrice(claims[i].Pool)
	}
	return price
}

func unplacedPodVerdict(n *model.Node, pod *model.Pod) plan.Verdict {
	return plan.Verdict{Code: plan.RoomTooTight, Node: n.Name, Holder: &plan.Holder{Pod: pod.Key()}}
}

// groupsFor returns the groups of the pods, containing only these pods, in the order of the pods.
func groupsFor(left []*movingPod) []*model.Group {
	at := map[*model.Group]*model.Group{}
	var groups []*model.Group
	for _, q := range left {
		g := at[q.group]
		if g == nil {
			fresh := *q.group
			g, fresh.Pods = &fresh, nil
			at[q.group] = g
			groups = append(groups, g)
		}
		g.Pods = append(g.Pods, q.pod)
	}
	return groups
}
