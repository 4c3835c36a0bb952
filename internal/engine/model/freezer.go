package model

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// freezer makes snapshots of the records. A Snapshot is never written after it is returned: a record whose frozen form is
// out of date is in a dirty list and gets a new one in the next snapshot, and lists are copied when a member changes. When
// the set of mentioned label values grows, every row is out of date and everything is frozen anew.
type freezer struct {
	from   *records
	shared *interner

	dirtyNodes    map[string]bool
	dirtyShapes   map[string]*shapeRecord
	rejectedDirty bool
	poolsDirty    bool
	daemonsDirty  bool
	pdbsDirty     bool
	quotasDirty   bool

	// roomsOfClaims are the rooms of claims that the last snapshot encoded.
	roomsOfClaims map[claimRoomsKey]*Rooms
	// offered are the types of all pools, by the names of the pools. prices are those of OfferPrices.
	offered []*TypeIndex
	prices  map[machineOffering]int64
	// covers are what machines pay that commitments cover, by name.
	covers map[string]*cover
	// counted is how many of the marks the frozen lists include.
	counted int
	// ledger counts the nodes of the last snapshot that still exist.
	ledger Ledger
	// last is the last returned snapshot; its lists are shared where nothing changed.
	last *Snapshot
}

func newFreezer(from *records, shared *interner) *freezer {
	return &freezer{from: from, shared: shared, dirtyNodes: map[string]bool{}, dirtyShapes: map[string]*shapeRecord{}, last: &Snapshot{},
		ledger: newLedger(nil, nil, nil, nil)}
}

// freeze returns the snapshot of the records.
func (f *freezer) freeze(now time.Time, version uint64) *Snapshot {
	if space := f.shared.mentions.Space(); space != f.shared.space {
		f.shared.space = space
		f.forgetRows()
	}
	f.noticeVolumes()
	f.noticeMarks()
	f.noticeTaints()
	f.noticeShown(now)
	s := *f.last
	s.Now, s.Version, s.Space, s.taints = now, version, f.shared.space, f.shared.taints.list
	f.freezeDaemons(&s)
	limits := f.freezeLimits(&s)
	if limits || len(f.dirtyNodes) > 0 {
		f.freezeCommitments(&s)
	}
	f.freezeLedger(&s, f.freezeNodes(&s), limits)
	f.freezeGroups(&s)
	f.freezeRejected(&s)
	f.freezePDBs(&s)
	if names := f.shared.names(); !slices.Equal(names, s.Resources) {
		s.Resources = names
	}
	s.Marks = f.shared.marks
	f.last = &s
	return &s
}

// dirtyNodesOf marks the nodes whose prices and types depend on the pool's catalog as dirty.
func (f *freezer) dirtyNodesOf(pool string) {
	for name, n := range f.from.nodes {
		if n.spec.Pool == pool {
			f.dirtyNodes[name] = true
		}
	}
}

// forgetRows marks everything that holds a row as dirty.
func (f *freezer) forgetRows() {
	f.daemonsDirty, f.poolsDirty = true, true
	for _, d := range f.from.daemons {
		d.frozen = nil
	}
	for c := range f.shared.types {
		f.shared.types[c] = nil
	}
	for name := range f.from.nodes {
		f.dirtyNodes[name] = true
	}
	f.forgetGroups()
}

func (f *freezer) forgetGroups() {
	for signature, shape := range f.shared.shapes {
		if shape.groups != nil {
			f.dirtyShapes[signature] = shape
		}
	}
}

// noticeVolumes freezes everything anew when a driver is seen for the first time: a node or type without a limit for
// its volumes has room for any number, and its vector must contain that.
func (f *freezer) noticeVolumes() {
	n := 0
	for r := range f.shared.resources.Len() {
		if IsVolumeResource(f.shared.resources.Name(quantity.Resource(r))) {
			n++
		}
	}
	if n != f.shared.volumes {
		f.shared.volumes = n
		f.forgetRows()
	}
}

// noticeMarks regroups and recounts the pods that new marks select.
func (f *freezer) noticeMarks() {
	if f.counted == len(f.shared.marks) {
		return
	}
	f.counted = len(f.shared.marks)
	moved := false
	for _, c := range f.shared.classes {
		before := c.current
		m := f.shared.match(c)
		if before == nil {
			before = unmarked
		}
		c.moved = m.all().key != before.all().key
		moved = moved || c.moved
	}
	if !moved {
		return
	}
	isMoved := func(p *Pod) bool { return p.class.moved }
	for name, n := range f.from.nodes {
		if n.frozen != nil && slices.ContainsFunc(n.frozen.Pods, isMoved) {
			f.dirtyNodes[name] = true
		}
	}
	for signature, s := range f.shared.shapes {
		if slices.ContainsFunc(s.pending, isMoved) {
			f.dirtyShapes[signature] = s
		}
	}
}

// machineOffering is what a machine was launched as.
type machineOffering struct{ instanceType, zone, capacityType string }

// offerPrices adds the prices of a catalog.
func (f *freezer) offerPrices(c *Catalog) {
	if f.prices == nil {
		f.prices = map[machineOffering]int64{}
	}
	for i := range c.Types {
		for _, o := range c.Types[i].Offerings {
			if at := (machineOffering{c.Types[i].Name, o.Zone, o.CapacityType}); f.prices[at] == 0 {
				f.prices[at] = o.Price
			}
		}
	}
	f.repriceOrphans()
}
