package placement

import (
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Fit is the result of a check whether a group fits: how many of its pods, or why none. Placing pods invalidates it.
type Fit struct {
	Count   int
	Verdict plan.Verdict
}

func refused(v plan.Verdict) Fit { return Fit{Verdict: v} }

// fitChecker determines whether pods fit on a node or in a bin.
type fitChecker struct {
	snap      *model.Snapshot
	admission *admission
	budget    *budget
}

// node checks a node. A node in flight may become any of its claim's options, so the pod must accept all of them: the
// node's row must lie within one of the rows.
func (f *fitChecker) node(pg *pendingGroup, rows []label.Row, n *target) Fit {
	f.budget.spend(1)
	if short, lacks := pg.group.Requests.FirstShort(n.free); lacks {
		return refused(plan.Verdict{Code: plan.NodeFull, Resource: short, Need: pg.group.Requests.At(short), Have: n.free.At(short)})
	}
	if taint, no := pg.untolerated(n.taints); no {
		return refused(plan.Verdict{Code: plan.TaintNotTolerated, Taint: taint})
	}
	f.budget.spendRows(rows)
	if !slices.ContainsFunc(rows, func(row label.Row) bool { return f.snap.Space.Contains(row, n.row) }) {
		return refused(plan.Verdict{Code: plan.LabelExcluded})
	}
	if len(n.daemons) > 0 && daemonsExclude(pg, n.daemons) {
		return refused(plan.Verdict{Code: plan.AntiAffinityBlocked, Key: pg.rules.host})
	}
	return f.place(pg, &n.place, false)
}

// untolerated returns the first taint that excludes the group. While its preferences are in force, that includes taints
// with PreferNoSchedule.
func (pg *pendingGroup) untolerated(taints []model.Taint) (model.Taint, bool) {
	if len(taints) == 0 {
		return model.Taint{}, false
	}
	if taint, no := model.Untolerated(taints, pg.group.Tolerations); no {
		return taint, true
	}
	if !pg.levels[pg.at].AvoidTaints {
		return model.Taint{}, false
	}
	return model.Avoided(taints, pg.group.Tolerations)
}

// place checks the place itself: resources, other pods, ports and shared volumes. first permits the first pods of a
// self-affine group to make the place their domain.
func (f *fitChecker) place(pg *pendingGroup, p *place, first bool) Fit {
	if count := f.copies(pg, p, math.MaxInt32, first); count > 0 {
		return Fit{Count: count}
	}
	free := f.freeFor(pg, p)
	if short, lacks := pg.group.Requests.FirstShort(free); lacks {
		return refused(plan.Verdict{Code: plan.NodeFull, Resource: short, Need: pg.group.Requests.At(short), Have: free.At(short)})
	}
	if port, taken := pg.portTaken(p); taken {
		return refused(plan.Verdict{Code: plan.HostPortTaken, Have: int64(port.Port)})
	}
	_, v := f.admission.onHost(pg.rules, &p.tally, first)
	return refused(v)
}

// copies returns how many of at most n pods of the group fit on the place: the answer of place without its reasons.
func (f *fitChecker) copies(pg *pendingGroup, p *place, n int, first bool) int {
	free := f.freeFor(pg, p)
	if n == 1 {
		if !pg.group.Requests.Fits(free) {
			return 0
		}
	} else {
		n = int(pg.group.Requests.TimesUpTo(free, int64(n)))
	}
	if n == 0 {
		return 0
	}
	if len(pg.group.HostPorts) > 0 {
		if n = 1; pg.anyPortTaken(p) {
			return 0
		}
	}
	if pg.rules.onAnyHost() {
		return n
	}
	limit, _ := f.admission.onHost(pg.rules, &p.tally, first)
	return min(n, limit)
}

func (pg *pendingGroup) portTaken(p *place) (model.HostPort, bool) {
	for _, port := range pg.group.HostPorts {
		if slices.ContainsFunc(p.ports, port.Conflicts) {
			return port, true
		}
	}
	return model.HostPort{}, false
}

func (pg *pendingGroup) anyPortTaken(p *place) bool {
	_, taken := pg.portTaken(p)
	return taken
}

// freeFor returns the free capacity for the group, which is less if the group brings shared volumes that are not
// attached yet.
func (f *fitChecker) freeFor(pg *pendingGroup, p *place) quantity.Vector {
	if len(pg.group.Shared) == 0 {
		return p.free
	}
	return f.withoutShared(pg, p)
}

// withoutShared returns the free capacity after attaching the group's shared volumes.
func (f *fitChecker) withoutShared(pg *pendingGroup, p *place) quantity.Vector {
	return p.free.Sub(f.sharedVolumes(pg, p))
}

// sharedVolumes counts the shared volumes of the group that are not attached to the place yet; nil for none.
func (f *fitChecker) sharedVolumes(pg *pendingGroup, p *place) quantity.Vector {
	var v quantity.Vector
	for _, s := range pg.group.Shared {
		if s.Driver == "" || slices.Contains(p.claims, s.Claim) {
			continue
		}
		if i := slices.Index(f.snap.Resources, model.VolumeResource(s.Driver)); i >= 0 {
			if v == nil {
				v = make(quantity.Vector, len(f.snap.Resources))
			}
			v[i]++
		}
	}
	return v
}

// put subtracts the usage of n pods of the group from the place.
func (f *fitChecker) put(pg *pendingGroup, p *place, n int) {
	// Pods that fit request nothing beyond the place's resources, so the trimmed vector is complete.
	if p.shared {
		p.free, p.shared = p.free.Clone(), false
	}
	requests := pg.group.Requests[:min(len(pg.group.Requests), len(p.free))]
	p.free.AddScaled(requests, -int64(n))
	for _, slot := range pg.rules.hostTouched {
		p.tally.Add(slot, n)
	}
	if len(pg.group.HostPorts) > 0 {
		p.ports = append(slices.Clip(p.ports), pg.group.HostPorts...)
	}
	for _, v := range pg.group.Shared {
		if v.Driver != "" && !slices.Contains(p.claims, v.Claim) {
			p.claims = append(slices.Clip(p.claims), v.Claim)
			f.takeVolume(p, v.Driver)
		}
	}
}

func (f *fitChecker) takeVolume(p *place, driver string) {
	if i := slices.Index(f.snap.Resources, model.VolumeResource(driver)); i >= 0 && i < len(p.free) {
		p.free[i]--
	}
}
