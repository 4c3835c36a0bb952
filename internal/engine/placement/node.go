package placement

import (
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// place is what nodes and bins have in common: what is free, who is there by mark, and what is taken once.
type place struct {
	free   quantity.Vector
	tally  tally
	ports  []model.HostPort
	claims []string
	shares []share
}

// share is the pods of a task that go to one place, in one step.
type share struct {
	task *task
	pods []*model.Pod
}

// target is a node of the snapshot that pods may go onto.
type target struct {
	place
	node *model.Node
}

// openNodes lists the nodes that stay. A node that is leaving takes nobody.
func (r *run) openNodes() {
	for _, n := range r.snap.Nodes {
		if n.Deleting || n.Disrupted {
			continue
		}
		t := &target{node: n}
		t.free, t.ports, t.claims = n.Free(), n.Ports, n.Claims
		r.nodes = append(r.nodes, t)
		r.avoidable = r.avoidable || prefersNot(n.Taints)
	}
}

// placeTallies counts the marks on the nodes, once the rules say which are counted by hostname.
func (r *run) placeTallies() {
	if len(r.counters.totals) == 0 {
		return
	}
	for _, t := range r.nodes {
		t.tally = r.counters.tallyOf(t.node)
	}
}

func prefersNot(taints []model.Taint) bool {
	return slices.ContainsFunc(taints, func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule })
}

// A Fit is the full answer to "can this group go there?": how many of its pods, or why none. Committing consumes it.
type Fit struct {
	Count   int
	Verdict plan.Verdict
}

func refused(v plan.Verdict) Fit { return Fit{Verdict: v} }

// fits asks a node. A node in flight may turn into anything its claim allows, so the pod must accept all of it: the
// node's row has to lie within one of the rows.
func (r *run) fits(t *task, rows []label.Row, n *target) Fit {
	if short, lacks := t.group.Requests.FirstShort(n.free); lacks {
		return refused(plan.Verdict{Code: plan.NodeFull, Resource: short, Need: t.group.Requests.At(short), Have: n.free.At(short)})
	}
	if taint, no := r.untolerated(t, n.node.Taints); no {
		return refused(plan.Verdict{Code: plan.TaintNotTolerated, Taint: taint})
	}
	if !slices.ContainsFunc(rows, func(row label.Row) bool { return r.snap.Space.Contains(row, n.node.Row) }) {
		return refused(plan.Verdict{Code: plan.LabelExcluded})
	}
	return r.fitsPlace(t, &n.place, false)
}

// untolerated returns the first taint that keeps the task away: as long as its wishes are in force also a taint with
// PreferNoSchedule.
func (r *run) untolerated(t *task, taints []model.Taint) (model.Taint, bool) {
	if len(taints) == 0 {
		return model.Taint{}, false
	}
	if taint, no := model.Untolerated(taints, t.group.Tolerations); no {
		return taint, true
	}
	if !t.levels[t.at].avoidTaints {
		return model.Taint{}, false
	}
	return model.Avoided(taints, t.group.Tolerations)
}

// fitsPlace asks what concerns the place itself: resources, who is there, ports and shared volumes. first allows the
// first pods of a kind to make the place their domain.
func (r *run) fitsPlace(t *task, p *place, first bool) Fit {
	free := p.free
	if len(t.group.Shared) > 0 {
		free = r.withoutShared(t, p)
	}
	count := t.group.Requests.Times(free)
	if count == 0 {
		short, _ := t.group.Requests.FirstShort(free)
		return refused(plan.Verdict{Code: plan.NodeFull, Resource: short, Need: t.group.Requests.At(short), Have: free.At(short)})
	}
	if len(t.group.HostPorts) > 0 {
		count = 1
		for _, port := range t.group.HostPorts {
			if slices.ContainsFunc(p.ports, port.Conflicts) {
				return refused(plan.Verdict{Code: plan.HostPortTaken, Have: int64(port.Port)})
			}
		}
	}
	limit, v := t.rules.onHost(p.tally, first && r.firstOfItsKind(t))
	if limit == 0 {
		return refused(v)
	}
	return Fit{Count: int(min(count, int64(limit), math.MaxInt32))}
}

// withoutShared is what is free after the volumes that the task would bring.
func (r *run) withoutShared(t *task, p *place) quantity.Vector {
	free := p.free.Clone()
	for _, v := range t.group.Shared {
		if v.Driver == "" || slices.Contains(p.claims, v.Claim) {
			continue
		}
		for i, name := range r.snap.Resources {
			if name == model.VolumeResource(v.Driver) && i < len(free) {
				free[i]--
			}
		}
	}
	return free
}

// onHost asks the rules by hostname how many more pods a place with the tally may have.
func (rs *rules) onHost(t tally, first bool) (int, plan.Verdict) {
	limit := math.MaxInt32
	for _, s := range rs.hostSpreads {
		have := t.at(s.slot)
		switch {
		case s.self:
			limit = min(limit, max(0, s.maxSkew-have))
		case have > s.maxSkew:
			limit = 0
		}
		if limit == 0 {
			return 0, plan.Verdict{Code: plan.SpreadExceeded, Key: rs.host}
		}
	}
	for _, slot := range rs.hostApart {
		if t.at(slot) > 0 {
			return 0, plan.Verdict{Code: plan.AntiAffinityBlocked, Key: rs.host}
		}
	}
	if rs.hostApartSelf {
		limit = 1
	}
	for _, a := range rs.hostAffinities {
		if t.at(a.slot) == 0 && !first {
			return 0, plan.Verdict{Code: plan.AffinityUnmet, Key: rs.host}
		}
	}
	return limit, plan.Verdict{}
}

// put takes what n pods of the task use from the place.
func (r *run) put(t *task, p *place, n int) {
	// What fits has no request beyond what the place has, so that the trimmed vector is all of it.
	requests := t.group.Requests[:min(len(t.group.Requests), len(p.free))]
	p.free.AddScaled(requests, -int64(n))
	for _, slot := range t.rules.hostTouched {
		p.tally = p.tally.add(slot, n)
	}
	if len(t.group.HostPorts) > 0 {
		p.ports = append(slices.Clip(p.ports), t.group.HostPorts...)
	}
	for _, v := range t.group.Shared {
		if v.Driver != "" && !slices.Contains(p.claims, v.Claim) {
			p.claims = append(slices.Clip(p.claims), v.Claim)
			r.takeVolume(p, v.Driver)
		}
	}
}

func (r *run) takeVolume(p *place, driver string) {
	if i := slices.Index(r.snap.Resources, model.VolumeResource(driver)); i >= 0 && i < len(p.free) {
		p.free[i]--
	}
}

// count adds n pods to the totals by hostname.
func (c *counters) addHosts(rs *rules, n int) {
	for _, slot := range rs.hostTouched {
		c.totals[slot] += n
	}
}

// keepPromises puts pods that we nominated where they were promised a place, while they still may go there. Everything
// else is planned around them, so that a plan made again says the same.
func (r *run) keepPromises(tasks []*task) {
	var byName map[string]*target
	for _, t := range tasks {
		if !slices.ContainsFunc(t.left, func(p *model.Pod) bool { return p.Nominated != "" }) {
			continue
		}
		if byName == nil {
			byName = r.targetsByName()
		}
		rest := make([]*model.Pod, 0, len(t.left))
		for _, p := range t.left {
			if n := byName[p.Nominated]; n == nil || !r.keep(t, n, p) {
				rest = append(rest, p)
			}
		}
		t.left = rest
	}
}

func (r *run) keep(t *task, n *target, p *model.Pod) bool {
	if r.fits(t, t.group.Rows, n).Count == 0 {
		return false
	}
	d := r.domainOfNode(t, n.node)
	if !t.rules.none() {
		if !r.admits(t, d).OK() {
			return false
		}
		r.count(t, d, 1)
	}
	r.order = append(r.order, p)
	r.onto(t, n, []*model.Pod{p})
	return true
}

func (r *run) targetsByName() map[string]*target {
	byName := make(map[string]*target, len(r.nodes))
	for _, t := range r.nodes {
		byName[t.node.Name] = t
	}
	return byName
}

// fillNodes puts lots onto the nodes, in order.
func (r *run) fillNodes(lots []*lot) {
	for _, l := range lots {
		for _, n := range r.nodes {
			if len(l.left) == 0 {
				break
			}
			fit := r.fits(l.task, l.rows, n)
			if fit.Count == 0 && len(l.rules.hostAffinities) > 0 && fit.Verdict.Code == plan.AffinityUnmet {
				fit = r.firstOn(l, n)
			}
			if fit.Count > 0 {
				r.onto(l.task, n, l.take(min(fit.Count, len(l.left))))
			}
		}
	}
}

// firstOn makes the node the domain of pods that want to be together, if it holds them all.
func (r *run) firstOn(l *lot, n *target) Fit {
	fit := r.fitsPlace(l.task, &n.place, true)
	if fit.Count < len(l.left) {
		return Fit{}
	}
	return fit
}

func (r *run) onto(t *task, n *target, pods []*model.Pod) {
	r.put(t, &n.place, len(pods))
	r.counters.addHosts(t.rules, len(pods))
	n.shares = append(n.shares, share{t, pods})
}
