package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/engine/spotshare"
)

// poolState is the provisioning state of a pool: its limits, and cached facts about its types.
type poolState struct {
	spec *model.Pool
	// index is its index in the fleet.
	index int
	// nodePrice is the cost of a node of the pool beyond its price, nano-USD per hour.
	nodePrice int64
	// ledger is that of the fleet; all pools share it.
	ledger model.Ledger
	limitRules
	// reservations is how many more nodes each reservation permits. All pools share it.
	reservations *reservations
	*offeringCache
	// daemons are the daemons that are certain to run on every node.
	daemons []daemonPod
	// claimParts by row and types.
	claimParts map[string]*claimParts
	// paused are the taints for which launches are paused. New nodes are expected to have them, though the pool names none.
	paused []model.PausedTaint
	// spotShare limits the part of one type in one zone in the pool's spot capacity; nil without a limit.
	spotShare *spotshare.Share
}

// minimum is a requirement of the pool with minValues of two or more: a claim must have that many values of the label.
// A minimum of one is met by any claim.
type minimum struct {
	key    string
	need   int
	values *model.Variety
}

func newPoolState(snap *model.Snapshot, p *model.Pool, g *offeringCache, reservations *reservations) *poolState {
	ps := &poolState{spec: p, limitRules: newLimitRules(snap, p),
		offeringCache: g, reservations: reservations, claimParts: map[string]*claimParts{}, paused: p.PausedTaints(snap.Now)}
	if !g.reserved {
		return ps
	}
	for t := range p.Types.Catalog.Types {
		for _, o := range p.Types.Catalog.Types[t].Offerings {
			ps.reserve(o)
		}
	}
	return ps
}

// reserve records how many nodes a reservation permits: the least that any of its available offerings states. One that is
// not available in a pool or a partition says nothing of the others.
func (ps *poolState) reserve(o model.Offering) {
	if o.ReservationID == "" || o.Units > 0 || !o.Available {
		return
	}
	if ps.reservations.left == nil {
		ps.reservations.left = map[string]int64{}
	}
	if known, has := ps.reservations.left[o.ReservationID]; !has || int64(o.ReservationCount) < known {
		ps.reservations.left[o.ReservationID] = int64(o.ReservationCount)
	}
}

// open reports whether nodes of the pool can be launched at all.
func (ps *poolState) open() bool { return ps.usable() && !ps.full() }

// usable reports whether nodes of the pool could be launched without its limit on nodes.
func (ps *poolState) usable() bool {
	return ps.spec.Blocked == nil && ps.spec.Valid && ps.spec.Types != nil
}

// repels returns the taint of a pause that keeps pods with the tolerations from new nodes.
func (ps *poolState) repels(tolerations []model.Toleration) (model.PausedTaint, bool) {
	for _, t := range ps.paused {
		if _, no := model.Untolerated([]model.Taint{t.Taint}, tolerations); no {
			return t, true
		}
	}
	return model.PausedTaint{}, false
}

// addDomains adds the atoms of the key that nodes of the pool may have. For a label that the pool leaves open, the
// domains are the values that some object names or, if there are none, the one that a node would get. "Any other value"
// is not a domain: as soon as one node had it there would be yet another.
func (ps *poolState) addDomains(space *label.Space, key label.Key, set bitset.Set) {
	single := false
	for atom := range space.Atoms(key) {
		if space.IsValue(key, atom) && ps.launchableIn(space, key, atom) {
			set.Add(atom)
			single = true
		}
	}
	if ps.launchableIn(space, key, space.Absent(key)) {
		set.Add(space.Absent(key))
	}
	if single {
		return
	}
	if value, ok := space.Pick(ps.spec.Start, key); ok && ps.launchableIn(space, key, space.Atom(key, value)) {
		set.Add(space.Atom(key, value))
	}
}

func (ps *poolState) launchableIn(space *label.Space, key label.Key, atom int) bool {
	if !space.HasAtom(ps.spec.Start, key, atom) {
		return false
	}
	row := slices.Clone(ps.spec.Start)
	space.SetOnly(row, key, atom)
	types := ps.spec.Eligible.Clone()
	onSale, _ := ps.spec.Types.Offered(row)
	return ps.spec.Types.Narrow(types, row, key) && types.Intersects(onSale)
}

func minimumsOf(p *model.Pool) []minimum {
	var list []minimum
	if p.Types == nil {
		return nil
	}
	for _, req := range p.Requirements {
		if req.MinValues > 1 {
			list = append(list, minimum{req.Key, req.MinValues, p.Types.NewVariety(req.Key)})
		}
	}
	return list
}

// diverse checks that claims of the types in the classes of offerings, within the row, satisfy minValues. It returns
// the first unmet requirement.
func (ps *poolState) diverse(types bitset.Set, row label.Row, classes []int) plan.Verdict {
	for i := range ps.minimums {
		n := &ps.minimums[i]
		if have := n.values.Count(types, row, classes); have < n.need {
			return plan.Verdict{Code: plan.MinValuesUnmet, Key: n.values.Key, Need: int64(n.need), Have: int64(have)}
		}
	}
	return plan.Verdict{}
}

// lacking reports whether the types, with the offerings that the row leaves the bin, do not satisfy minValues.
func (ps *poolState) lacking(b *bin, types bitset.Set, row label.Row) bool {
	if len(ps.minimums) == 0 {
		return false
	}
	_, classes := ps.offeredTo(b, row)
	return !ps.diverse(types, row, classes).OK()
}

// varied reports whether a pool requires a variety of claims that must not be relaxed.
func (f *fleet) varied() bool {
	return !f.opts.RelaxMinValues && slices.ContainsFunc(f.pools, func(ps *poolState) bool { return len(ps.minimums) > 0 })
}

// unsuitable reports whether no claim can be made of the types: there are none, or too few values for minValues.
func (f *fleet) unsuitable(b *bin, types bitset.Set, row label.Row) bool {
	return types.Empty() || !f.opts.RelaxMinValues && f.poolOf(b).lacking(b, types, row)
}

// roomsOf returns the room for pods on nodes of a row that lies within the pool's start row.
func (ps *poolState) roomsOf(row label.Row) *model.Rooms {
	decided := ps.spec.Decided(row)
	if decided.Empty() {
		return ps.spec.Rooms
	}
	key := rowKey(label.Row(decided), false, "")
	known := ps.rooms[key]
	if known == nil {
		if len(ps.rooms) >= mostRooms {
			return ps.spec.Rooms // all daemons count that may run, as in a row that decides nothing
		}
		known = ps.spec.RoomsOf(row)
		ps.rooms[key] = known
	}
	return known
}

// mostRooms is how many different sets of daemons of a pool are told apart by labels that pods decide. Each takes some
// 100 KiB for 1,000 types.
const mostRooms = 64

// possibleRooms returns the rooms that a node of the row may have.
func (ps *poolState) possibleRooms(row label.Row) model.PossibleRooms {
	return ps.roomsOf(row).Possible(row)
}

// leastDaemons returns the daemon requests that are common to all nodes of the row and the types.
func (ps *poolState) leastDaemons(kinds bitset.Set, row label.Row) quantity.Vector {
	var least quantity.Vector
	first, rooms := true, ps.possibleRooms(row)
	for t := range kinds.All() {
		daemons, _ := rooms.Daemons(t)
		if first {
			least, first = daemons, false
		}
		least = least.Min(daemons)
	}
	return least
}

// withMinimums adds the pool's minValues to the requirements of the bin's claim, lowered to what the claim has where
// that is allowed. A list of values is never shorter than its minValues: the API would refuse the claim.
func (ps *poolState) withMinimums(reqs []label.Requirement, b *bin) []label.Requirement {
	_, classes := ps.offeredTo(b, b.row)
	for _, of := range ps.spec.Requirements {
		if of.MinValues <= 0 {
			continue
		}
		at := slices.IndexFunc(reqs, func(req label.Requirement) bool { return req.Key == of.Key })
		if at < 0 {
			at = len(reqs)
			reqs = append(reqs, label.Requirement{Key: of.Key, Operator: label.Exists})
		}
		least := of.MinValues
		if i := slices.IndexFunc(ps.minimums, func(n minimum) bool { return n.key == of.Key }); i >= 0 {
			least = min(least, ps.minimums[i].values.Count(b.kinds, b.row, classes))
		}
		if reqs[at].Operator == label.In {
			least = min(least, len(reqs[at].Values))
		}
		reqs[at].MinValues = max(reqs[at].MinValues, least)
	}
	return reqs
}
