package disruption

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// finding is a change with the command that it became.
type finding struct {
	change  *change
	command plan.Command
}

// cover rehearses what was found together with what is under way. For pods that are left over in the order of drains a
// command buys a node more beforehand, as provisioning would have to afterwards; if it does not pay then it is left alone.
// So is one that would not pay if what is left over in another order had to be bought.
func (s *search) cover() {
	if len(s.found) == 0 {
		return
	}
	s.rehearsed(asDrainsAsk, s.insure)
	s.rehearsed(atRandom, s.weigh)
	for s.rehearsed(asDrainsAsk, s.weigh) { // until what is left holds as it is
	}
}

// rehearsed has the commands bear what is left over in that order, and reports whether any of them changed or was dropped.
func (s *search) rehearsed(o order, bear func(*finding, *rehearsal, []*player) plan.Verdict) bool {
	r := rehearse(s.began, append(s.underWay(), s.commands()...), s.unsettled)
	left, changed := r.leftOver(o), false
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

// drop takes the finding back: its nodes stay, and what it would have bought counts nowhere any more.
func (s *search) drop(f *finding, why plan.Verdict) {
	s.found = slices.DeleteFunc(s.found, func(other *finding) bool { return other == f })
	s.snap.Pools = discharged(s.snap.Pools, f.change.claims)
	s.bought = s.boughtBut(nil)
	s.guard.Release(f.command)
	for _, n := range f.change.nodes {
		s.keep(n, why)
	}
}

// boughtBut are the claims that were decided on before the search, and those of its findings but one.
func (s *search) boughtBut(but *finding) []plan.NewClaim {
	bought := slices.Clone(s.start.bought)
	for _, f := range s.found {
		if f != but {
			bought = append(bought, f.change.claims...)
		}
	}
	return bought
}

// decideAnew is decide for what the finding could become instead: asked of the world without the finding.
func (s *search) decideAnew(f *finding, instead *change) plan.Verdict {
	var others []string
	for _, other := range s.found {
		for _, n := range other.change.nodes {
			if other != f {
				others = append(others, n.Name)
			}
		}
	}
	snap, bought := s.snap, s.bought
	s.snap, s.bought = s.start.snap.Without(others...), s.boughtBut(f)
	v := s.decide(instead)
	s.snap, s.bought = snap, bought
	return v
}

// underWay are the commands that the run began with, and those that were proposed since.
func (w *world) underWay() []plan.Command {
	return append(slices.DeleteFunc(plan.Resume(w.began), func(c plan.Command) bool { return c.Phase == plan.Abandoned }), w.proposed...)
}

// insure has the command buy places for its pods that were left over.
func (s *search) insure(f *finding, r *rehearsal, left []*player) plan.Verdict {
	claims, homeless := s.spares(r, left)
	if homeless != nil {
		return stranding(f.change.nodes[0], homeless)
	}
	if slices.ContainsFunc(left, func(q *player) bool { return !q.bonds.free() }) {
		return s.weigh(f, r, left) // where they may be depends on where others are
	}
	wider := f.change.with(s.snap.Resources, claims)
	s.reckon(wider)
	if !s.decideAnew(f, wider).OK() {
		return s.weigh(f, r, left)
	}
	command := s.command(wider, plan.Underutilized)
	if oversized(&command) {
		return s.weigh(f, r, left)
	}
	s.replace(f, wider, command)
	return plan.Verdict{}
}

// replace makes another change of the finding.
func (s *search) replace(f *finding, instead *change, command plan.Command) {
	s.snap.Pools = charged(discharged(s.snap.Pools, f.change.claims), instead.claims)
	f.change, f.command = instead, command
	s.bought = s.boughtBut(nil)
}

// weigh asks whether the command still pays if nodes have to be launched for its pods that were left over, whichever instance types
// its replacements become.
func (s *search) weigh(f *finding, r *rehearsal, left []*player) plan.Verdict {
	claims, homeless := s.spares(r, left)
	if homeless != nil {
		return stranding(f.change.nodes[0], homeless)
	}
	least, have := s.least(f.change), f.change.worth.Saving-s.priceOf(claims)
	if have < least {
		return plan.Verdict{Code: plan.RoomTooTight, Node: f.change.nodes[0].Name, Need: least, Have: have}
	}
	return s.narrow(f, least, have)
}

// narrow makes the command of a finding pay at the highest prices of its replacements, which are those that the judge counts. Have is
// what the rehearsal leaves of the saving at the lowest prices. Where the highest prices leave less than the least saving, the
// lists of instance types are cut as decide cuts them, with what is left as the slack.
func (s *search) narrow(f *finding, least, have int64) plan.Verdict {
	worst := have - s.premium(f.change.claims)
	if worst >= least {
		return plan.Verdict{}
	}
	no := plan.Verdict{Code: plan.RoomTooTight, Node: f.change.nodes[0].Name, Need: least, Have: worst}
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
	s.reckon(&narrower)
	s.replace(f, &narrower, s.command(&narrower, plan.Underutilized))
	return plan.Verdict{}
}

// premium is by how much the highest prices of the claims exceed the lowest, nano-USD per hour.
func (w *world) premium(claims []plan.NewClaim) int64 {
	var premium int64
	for i := range claims {
		if n := w.snap.Future(replacementSpec(w.snap, &claims[i]), claims[i].Types()); n != nil {
			premium += n.Price - claims[i].Price()
		}
	}
	return premium
}

// with is the change with further claims, to which their pods go instead of where they were to go.
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
	for _, seat := range c.seats {
		if pods := staying(seat.Pods); len(pods) > 0 {
			wider.seats = append(wider.seats, model.Seating{Node: seat.Node, Pods: pods})
		}
	}
	wider.claims = append(wider.claims, claims...)
	return wider
}

// lessened are the requests of the claim without those of its pods that moved.
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

// spares are the nodes that would have to be bought for pods that a rehearsal left over, or one of these for whom there is
// none.
func (w *world) spares(r *rehearsal, left []*player) ([]plan.NewClaim, *model.Pod) {
	what := *r.snap
	what.Groups, what.Rejected, what.Pools = groupsFor(left), nil, w.snap.Pools
	opts := w.opts.Placement
	opts.Closed, opts.Bought = func(*model.Node) bool { return true }, w.bought
	p := placement.Schedule(&what, opts)
	w.work += p.Work
	if len(p.Refused) > 0 {
		return nil, p.Refused[0].Pods[0]
	}
	return p.Claims, nil
}

// priceOf is what the claims cost, nano-USD per hour, the node price included.
func (w *world) priceOf(claims []plan.NewClaim) int64 {
	var price int64
	for i := range claims {
		price += claims[i].Price() + w.nodePrice(claims[i].Pool)
	}
	return price
}

func stranding(n *model.Node, pod *model.Pod) plan.Verdict {
	return plan.Verdict{Code: plan.RoomTooTight, Node: n.Name, Holder: &plan.Holder{Pod: pod.Key()}}
}

// groupsFor are the groups of the players, with nobody else in them, in the order of the players.
func groupsFor(left []*player) []*model.Group {
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
