package placement

import (
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// place is the common part of nodes and bins: free capacity, counts of pods by mark, and exclusive resources in use.
type place struct {
	free quantity.Vector
	// shared reports that free is the node's own vector, which must be copied before a change.
	shared bool
	tally  tally
	ports  []model.HostPort
	claims []string
	shares []share
}

// share is the pods of a task that were added to one place in one step.
type share struct {
	task *task
	pods []*model.Pod
}

// target is a node of the snapshot that accepts pods.
type target struct {
	place
	node *model.Node
	// at is its index in the run's list of nodes.
	at int
	// row and taints are copies of the node's, because every task reads them for every node.
	row    label.Row
	taints []model.Taint
	// crew are the daemons that matter and are certain to run on the node.
	crew []crewman
}

// openNodes lists the nodes that accept pods. Nodes that are being removed do not.
func (r *run) openNodes() {
	var slab []target
	memory := r.opts.Memory
	if r.opts.WorkBudget > 0 && r.work > 0 {
		memory = nil // an earlier run in that memory may still become the result
	}
	slab, r.nodes, r.slack = memory.targets(len(r.snap.Nodes))
	for i, n := range r.snap.Nodes {
		if n.Deleting || n.Disrupted || r.opts.Closed != nil && r.opts.Closed(n) {
			continue
		}
		t := &slab[i]
		t.shares = nil
		t.open(n)
		t.at = len(r.nodes)
		r.nodes, r.slack = append(r.nodes, t), append(r.slack, n.Slack())
		r.avoidable = r.avoidable || prefersNot(n.Taints)
	}
}

// open sets the target to the state of the node before any placement.
func (t *target) open(n *model.Node) {
	t.node, t.row, t.taints = n, n.Row, n.Taints
	t.place = place{free: n.Free(), shared: true, ports: n.Ports, claims: n.Claims, shares: t.shares}
}

// placeTallies counts the marks on the nodes, and sets their crew, once the rules determine which marks are counted by
// hostname.
func (r *run) placeTallies() {
	for _, t := range r.nodes {
		t.crew = r.counters.coming(t.node)
	}
	if len(r.counters.totals) == 0 {
		return
	}
	for _, t := range r.nodes {
		t.tally = r.counters.tallyOf(t.node, t.crew)
	}
}

func prefersNot(taints []model.Taint) bool {
	return slices.ContainsFunc(taints, func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule })
}

// Fit is the result of a check whether a group fits: how many of its pods, or why none. Placing pods invalidates it.
type Fit struct {
	Count   int
	Verdict plan.Verdict
}

func refused(v plan.Verdict) Fit { return Fit{Verdict: v} }

// fits checks a node. A node in flight may become any of its claim's options, so the pod must accept all of them: the
// node's row must lie within one of the rows.
func (r *run) fits(t *task, rows []label.Row, n *target) Fit {
	r.worked(1)
	if short, lacks := t.group.Requests.FirstShort(n.free); lacks {
		return refused(plan.Verdict{Code: plan.NodeFull, Resource: short, Need: t.group.Requests.At(short), Have: n.free.At(short)})
	}
	if taint, no := r.untolerated(t, n.taints); no {
		return refused(plan.Verdict{Code: plan.TaintNotTolerated, Taint: taint})
	}
	if !slices.ContainsFunc(rows, func(row label.Row) bool { return r.snap.Space.Contains(row, n.row) }) {
		return refused(plan.Verdict{Code: plan.LabelExcluded})
	}
	if len(n.crew) > 0 && shuns(t, n.crew) {
		return refused(plan.Verdict{Code: plan.AntiAffinityBlocked, Key: t.rules.host})
	}
	return r.fitsPlace(t, &n.place, false)
}

// untolerated returns the first taint that excludes the task. While its preferences are in force, that includes taints
// with PreferNoSchedule.
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

// fitsPlace checks the place itself: resources, other pods, ports and shared volumes. first permits the first pods of a
// self-affine group to make the place their domain.
func (r *run) fitsPlace(t *task, p *place, first bool) Fit {
	if count := r.copies(t, p, math.MaxInt32, first); count > 0 {
		return Fit{Count: count}
	}
	free := r.freeFor(t, p)
	if short, lacks := t.group.Requests.FirstShort(free); lacks {
		return refused(plan.Verdict{Code: plan.NodeFull, Resource: short, Need: t.group.Requests.At(short), Have: free.At(short)})
	}
	if port, taken := t.portTaken(p); taken {
		return refused(plan.Verdict{Code: plan.HostPortTaken, Have: int64(port.Port)})
	}
	_, v := r.onHost(t, &p.tally, first)
	return refused(v)
}

// copies returns how many of at most n pods of the task fit on the place: fitsPlace without the reasons.
func (r *run) copies(t *task, p *place, n int, first bool) int {
	free := r.freeFor(t, p)
	if n == 1 {
		if !t.group.Requests.Fits(free) {
			return 0
		}
	} else {
		n = int(t.group.Requests.TimesUpTo(free, int64(n)))
	}
	if n == 0 {
		return 0
	}
	if len(t.group.HostPorts) > 0 {
		if n = 1; t.anyPortTaken(p) {
			return 0
		}
	}
	if t.rules.onAnyHost() {
		return n
	}
	limit, _ := r.onHost(t, &p.tally, first)
	return min(n, limit)
}

func (t *task) portTaken(p *place) (model.HostPort, bool) {
	for _, port := range t.group.HostPorts {
		if slices.ContainsFunc(p.ports, port.Conflicts) {
			return port, true
		}
	}
	return model.HostPort{}, false
}

func (t *task) anyPortTaken(p *place) bool {
	_, taken := t.portTaken(p)
	return taken
}

// freeFor returns the free capacity for the task, which is less if the task brings shared volumes that are not attached
// yet.
func (r *run) freeFor(t *task, p *place) quantity.Vector {
	if len(t.group.Shared) == 0 {
		return p.free
	}
	return r.withoutShared(t, p)
}

// withoutShared returns the free capacity after attaching the task's shared volumes.
func (r *run) withoutShared(t *task, p *place) quantity.Vector {
	return p.free.Sub(r.sharedVolumes(t, p))
}

// sharedVolumes counts the shared volumes of the task that are not attached to the place yet; nil for none.
func (r *run) sharedVolumes(t *task, p *place) quantity.Vector {
	var v quantity.Vector
	for _, s := range t.group.Shared {
		if s.Driver == "" || slices.Contains(p.claims, s.Claim) {
			continue
		}
		if i := slices.Index(r.snap.Resources, model.VolumeResource(s.Driver)); i >= 0 {
			if v == nil {
				v = make(quantity.Vector, len(r.snap.Resources))
			}
			v[i]++
		}
	}
	return v
}

// onAnyHost reports whether no rule by hostname restricts the pods.
func (rs *rules) onAnyHost() bool {
	return len(rs.hostSpreads)+len(rs.hostApart)+len(rs.hostAffinities) == 0
}

// onHost returns how many more pods of the task the rules by hostname permit on a place with the tally. first permits
// the first pods of a self-affine group to make the place their domain.
func (r *run) onHost(t *task, have *tally, first bool) (int, plan.Verdict) {
	limit, v := t.rules.limitOnHost(have)
	if limit == 0 {
		return 0, v
	}
	for _, a := range t.rules.hostAffinities {
		mayBeFirst := first && a.first(r.counters.totals) && (a.wish || r.firstOnAnyHost(t))
		if have.at(a.slot) == 0 && !mayBeFirst {
			return 0, plan.Verdict{Code: plan.AffinityUnmet, Key: t.rules.host}
		}
	}
	return limit, plan.Verdict{}
}

// limitOnHost returns how many more pods spread and anti-affinity by hostname permit on a place with the tally.
func (rs *rules) limitOnHost(t *tally) (int, plan.Verdict) {
	limit := math.MaxInt32
	if t.nameless {
		return rs.limitNameless()
	}
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
	return limit, plan.Verdict{}
}

// limitNameless is limitOnHost for a node without the hostname label: pods with spread or affinity by hostname are not
// admissible there, and anti-affinity has no effect.
func (rs *rules) limitNameless() (int, plan.Verdict) {
	switch {
	case len(rs.hostSpreads) > 0:
		return 0, plan.Verdict{Code: plan.SpreadExceeded, Key: rs.host}
	case len(rs.hostAffinities) > 0:
		return 0, plan.Verdict{Code: plan.AffinityUnmet, Key: rs.host}
	}
	return math.MaxInt32, plan.Verdict{}
}

// put subtracts the usage of n pods of the task from the place.
func (r *run) put(t *task, p *place, n int) {
	// Pods that fit request nothing beyond the place's resources, so the trimmed vector is complete.
	if p.shared {
		p.free, p.shared = p.free.Clone(), false
	}
	requests := t.group.Requests[:min(len(t.group.Requests), len(p.free))]
	p.free.AddScaled(requests, -int64(n))
	for _, slot := range t.rules.hostTouched {
		p.tally.add(slot, n)
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

// addHosts adds n pods to the totals by hostname.
func (c *counters) addHosts(rs *rules, n int) {
	for _, slot := range rs.hostTouched {
		c.totals[slot] += n
	}
}

// fillNodes places lots on the nodes, in order.
func (r *run) fillNodes(lots []*lot) {
	for _, l := range lots {
		want := model.SlackOf(l.group.Requests)
		if l.to == nil {
			for i := 0; i < len(r.nodes) && len(l.left) > 0 && !r.over(); i++ {
				r.fillNode(l, want, i)
			}
			continue
		}
		for _, i := range l.to.nodes {
			if len(l.left) == 0 || r.over() {
				break
			}
			r.fillNode(l, want, i)
		}
	}
}

// fillNode places as many pods of the lot as fit, each with the cpu and memory in want, on a node.
func (r *run) fillNode(l *lot, want model.Slack, at int) {
	if !r.slack[at].Holds(want) {
		return
	}
	n := r.nodes[at]
	if !l.group.Requests.Fits(n.free) {
		return
	}
	fit := r.fits(l.task, l.rows, n)
	if fit.Count == 0 && len(l.rules.hostAffinities) > 0 && fit.Verdict.Code == plan.AffinityUnmet {
		fit = r.firstOn(l, n)
	}
	if fit.Count > 0 {
		r.onto(l.task, n, l.take(min(fit.Count, len(l.left))))
	}
}

// firstOn makes the node the domain of pods with affinity to each other, if it holds them all.
func (r *run) firstOn(l *lot, n *target) Fit {
	fit := r.fitsPlace(l.task, &n.place, true)
	if fit.Count < len(l.left) {
		return Fit{}
	}
	return fit
}

func (r *run) onto(t *task, n *target, pods []*model.Pod) {
	r.put(t, &n.place, len(pods))
	r.slack[n.at] = model.SlackOf(n.free)
	if !n.tally.nameless {
		r.counters.addHosts(t.rules, len(pods))
	}
	n.shares = append(n.shares, share{t, pods})
}
