package placement

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/spotshare"
)

// fleet is the new nodes of a plan so far, and the ledger that counts them. A what-if packs into a clone.
type fleet struct {
	snap     *model.Snapshot
	opts     *Options
	cache    *Cache
	counters *counters
	fit      *fitChecker
	budget   *budget
	pools    []*poolState
	bins     []*bin
	// reservations, releases and inversion are shared by the pools; the latter two by all clones as well.
	reservations *reservations
	ledger       model.Ledger
	releases     *releases
	inversion    *inversion
	scratch      *scratch
}

// releases records that limits or reservations have more left than before: recent since it was last examined, ever at
// any time.
type releases struct{ recent, ever bool }

func (r *releases) note() { r.recent, r.ever = true, true }

// reservations is how many more nodes each capacity reservation permits, and how many more units each commitment.
type reservations struct {
	left map[string]int64
	// sizes are the units that nodes of a commitment take, ascending. It is shared by clones.
	sizes map[string][]int64
	// usedUp names those that permit none, and the sizes that commitments do not permit, as a part of keys.
	usedUp string
}

// add changes how many nodes or units the reservation permits.
func (r *reservations) add(id string, n int64) {
	r.left[id] += n
	r.update()
}

func (r *reservations) update() {
	var ids []string
	for id, left := range r.left {
		sizes := r.sizes[id]
		switch fit, _ := slices.BinarySearch(sizes, left+1); {
		case len(sizes) > 0 && fit < len(sizes):
			ids = append(ids, id+"\x00"+strconv.Itoa(fit))
		case len(sizes) == 0 && left <= 0:
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	r.usedUp = strings.Join(ids, "\x00")
}

// permits reports whether a node of the class may be opened. Classes without a reservation always may.
func (r *reservations) permits(c *model.OfferClass) bool {
	return c.ReservationID == "" || r.left[c.ReservationID] >= max(1, c.Units)
}

// commit adds the commitments of the snapshot, with the sizes of the nodes in its pools.
func (r *reservations) commit(snap *model.Snapshot) {
	if len(snap.Commitments) == 0 {
		return
	}
	if r.left == nil {
		r.left = map[string]int64{}
	}
	r.sizes = map[string][]int64{}
	for _, c := range snap.Commitments {
		r.left[c.ID] = c.Left()
	}
	for _, p := range snap.Pools {
		if p.Types == nil {
			continue
		}
		for i := range p.Types.Classes {
			if c := &p.Types.Classes[i]; c.Units > 0 {
				r.sizes[c.ReservationID] = append(r.sizes[c.ReservationID], c.Units)
			}
		}
	}
	for id, sizes := range r.sizes {
		slices.Sort(sizes)
		r.sizes[id] = slices.Compact(sizes)
	}
}

func newFleet(snap *model.Snapshot, opts *Options, fit *fitChecker, cache *Cache) fleet {
	cache = cmp.Or(cache, &Cache{})
	return fleet{snap: snap, opts: opts, cache: cache, counters: fit.admission.counters, fit: fit, budget: fit.budget,
		reservations: &reservations{}, releases: &releases{}, inversion: &inversion{reserved: math.MaxInt32}, scratch: &scratch{}}
}

// poolOf returns the pool of a bin.
func (f *fleet) poolOf(b *bin) *poolState { return f.pools[b.pool] }

// fleetClone is what a clone has of its own, in one allocation.
type fleetClone struct {
	fleet        fleet
	counters     counters
	admission    admission
	fit          fitChecker
	reservations reservations
}

// clone returns a copy for a what-if that changes only these pools.
func (f *fleet) clone(changing ...*poolState) *fleet {
	own := &fleetClone{fleet: *f, counters: f.counters.withOwnTotals(), admission: *f.fit.admission, fit: *f.fit,
		reservations: *f.reservations}
	own.admission.counters, own.fit.admission = &own.counters, &own.admission
	own.reservations.left = maps.Clone(own.reservations.left)
	c := &own.fleet
	c.counters, c.fit, c.reservations = &own.counters, &own.fit, &own.reservations
	c.bins, c.pools, c.ledger = slices.Clone(f.bins), slices.Clone(f.pools), f.ledger.Clone()
	for _, ps := range changing {
		own := *f.pools[ps.index]
		own.spotShare, own.reservations, own.ledger = own.spotShare.Clone(), c.reservations, c.ledger
		c.pools[ps.index] = &own
	}
	return c
}

// same returns this fleet's state of pools of another one.
func (f *fleet) same(pools []*poolState) []*poolState {
	own := make([]*poolState, len(pools))
	for i, ps := range pools {
		own[i] = f.pools[ps.index]
	}
	return own
}

// adopt takes over the result of a what-if.
func (f *fleet) adopt(c *fleet) {
	f.bins = c.bins
	copy(f.counters.totals, c.counters.totals)
	*f.reservations = *c.reservations
	f.ledger.Adopt(c.ledger)
	for i, ps := range c.pools {
		if ps != f.pools[i] {
			*f.pools[i] = *ps
			f.pools[i].reservations, f.pools[i].ledger = f.reservations, f.ledger
		}
	}
}

// open creates the state of every pool.
func (f *fleet) open() {
	f.ledger = f.snap.Ledger.Clone()
	for i, p := range f.snap.Pools {
		ps := newPoolState(f.snap, p, f.cache.offeringsOf(p), f.reservations)
		ps.index, ps.nodePrice, ps.ledger = i, f.opts.NodePriceOf(p.PoolSpec), f.ledger
		ps.spotShare = spotshare.Of(f.snap, p, f.opts.DecidedClaims)
		f.pools = append(f.pools, ps)
	}
	f.inversion.served = slices.Repeat([]int32{math.MaxInt32}, len(f.pools))
	f.reservations.commit(f.snap)
	if len(f.reservations.left) > 0 {
		f.chargeInFlight()
		f.reservations.update()
	}
}

// chargeInFlight subtracts from the reservations what claims that are not launched yet will use, and from commitments too
// what claims use that are not in the snapshot. The provider does not know of these claims.
func (f *fleet) chargeInFlight() {
	for _, n := range f.snap.Nodes {
		pool := f.snap.Pool(n.Pool)
		if n.Stage != model.Launching || n.Deleting || pool == nil || pool.Types == nil {
			continue
		}
		_, classes := pool.Types.Offered(n.Row)
		open := slices.ContainsFunc(classes, func(i int) bool { return pool.Types.Classes[i].ReservationID == "" })
		if len(classes) > 0 && !open {
			f.reservations.left[pool.Types.Classes[classes[0]].ReservationID]--
		}
	}
	for i := range f.opts.DecidedClaims {
		c := &f.opts.DecidedClaims[i]
		if pool := f.snap.Pool(c.Pool); c.Reservation != "" && pool != nil && pool.Types != nil {
			f.reservations.left[c.Reservation] -= pool.Types.UnitsOf(c.Reservation, c.Options[0].Type)
		}
	}
}

// cost returns that of the bins opened since from.
func (f *fleet) cost(from int) int64 {
	var sum int64
	for _, b := range f.bins[from:] {
		sum += b.lowest + f.poolOf(b).nodePrice
	}
	return sum
}

// elsewhere reports whether another controller launches the nodes for the group's pods: the first pool that takes them, by
// weight and name, is not of this controller. All controllers see all pools, and each answers for its own: so one
// launches nodes for the pods, and no two do. What only one of them knows, such as offerings that are sold out, has no
// influence.
func (f *fleet) elsewhere(g *model.Group) bool {
	if !slices.ContainsFunc(f.snap.Pools, func(p *model.Pool) bool { return p.Elsewhere }) {
		return false
	}
	for _, p := range f.snap.Pools {
		if (p.Elsewhere || p.Blocked == nil) && takes(f.snap.Space, p, g) {
			return p.Elsewhere
		}
	}
	return false
}

// takes reports whether nodes of the pool could run the group's pods: by taints, labels and the size of its types.
func takes(space *label.Space, p *model.Pool, g *model.Group) bool {
	if !p.Valid || p.Types == nil {
		return false
	}
	if _, no := model.Untolerated(p.Taints, g.Tolerations); no {
		return false
	}
	return slices.ContainsFunc(g.Rows, func(row label.Row) bool {
		both := make(label.Row, space.Words())
		return space.And(both, p.Start, row) && holdsOne(space, p, both, g)
	})
}

// holdsOne reports whether a type of the row holds a pod of the group.
func holdsOne(space *label.Space, p *model.Pool, row label.Row, g *model.Group) bool {
	types := p.Types.Compatible(row)
	for i := range p.Types.Classes {
		room := p.Rooms.Of(i)
		if room == nil || !p.Types.Classes[i].Admits(space, row) {
			continue
		}
		for t := range p.Types.Classes[i].Types.All() {
			if types.Has(t) && g.Requests.Fits(room.Net[t]) {
				return true
			}
		}
	}
	return false
}
