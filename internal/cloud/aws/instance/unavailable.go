package instance

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// UnavailableFor is how long EC2's word that it has none left is believed.
const UnavailableFor = 3 * time.Minute

// Unavailable remembers what EC2 has refused to sell. It may be used from several goroutines.
//
// A mark holds for the offers that it describes and no others: one with a class, or a placement group, says nothing about
// other classes or groups, one without says something about all. Nothing is derived from marks and kept, so that every
// class sees every mark at once, and never one that is not its own.
type Unavailable struct {
	now func() time.Time

	mu    sync.Mutex
	until map[mark]time.Time
	// places have had marks of offers: most offers are elsewhere, and are told so by one look.
	places  map[place]bool
	version uint64
}

type place struct{ capacityType, zone string }

// mark is what was refused. Empty fields are not looked at, save those of a placement group, which always are.
type mark struct {
	capacityType, typeName, zone string
	class                        string
	group                        string
	partition                    int
	subnet                       string
}

// NewUnavailable needs the clock.
func NewUnavailable(now func() time.Time) *Unavailable {
	return &Unavailable{now: now, until: map[mark]time.Time{}, places: map[place]bool{}}
}

// Mark says that the offer was refused: to everybody if it has no class, placement group or partition, else to those
// only. Without a type, all types are meant. Subnets are not looked at; a mark that is there already lasts longer.
func (u *Unavailable) Mark(o Offer) {
	u.set(mark{
		capacityType: o.CapacityType, typeName: o.Type, zone: o.Zone, class: o.Class, group: o.Group, partition: o.Partition,
	})
}

// MarkCapacityType says that nothing can be bought that way, whatever the type and zone.
func (u *Unavailable) MarkCapacityType(capacityType string) { u.set(mark{capacityType: capacityType}) }

// MarkSubnet says that the subnet has no addresses left. A zone is gone for a class when all its subnets there are.
func (u *Unavailable) MarkSubnet(id string) { u.set(mark{subnet: id}) }

func (u *Unavailable) set(m mark) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	maps.DeleteFunc(u.until, func(_ mark, until time.Time) bool { return !until.After(now) })
	u.until[m] = now.Add(UnavailableFor)
	clear(u.places)
	for m := range u.until {
		u.places[place{m.capacityType, m.zone}] = true
	}
	u.version++
}

// Has says whether the offer is known to be gone.
func (u *Unavailable) Has(o Offer) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.until) == 0 {
		return false
	}
	now := u.now()
	stands := func(m mark) bool { return u.until[m].After(now) }
	hasAddresses := func(subnet string) bool { return !stands(mark{subnet: subnet}) }
	return stands(mark{capacityType: o.CapacityType}) ||
		len(o.Subnets) > 0 && !slices.ContainsFunc(o.Subnets, hasAddresses) ||
		u.places[place{o.CapacityType, o.Zone}] && slices.ContainsFunc(marksOf(o), stands)
}

// HasSubnet says whether the subnet is known to be full.
func (u *Unavailable) HasSubnet(id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.until[mark{subnet: id}].After(u.now())
}

// marksOf are all marks that would make the offer unavailable.
func marksOf(o Offer) []mark {
	marks := make([]mark, 0, 12)
	for _, typeName := range distinct("", o.Type) {
		for _, class := range distinct("", o.Class) {
			m := mark{capacityType: o.CapacityType, typeName: typeName, zone: o.Zone, class: class}
			marks = append(marks, m)
			if o.Group == "" {
				continue
			}
			m.group = o.Group
			marks = append(marks, m)
			if m.partition = o.Partition; m.partition != 0 {
				marks = append(marks, m)
			}
		}
	}
	return marks
}

func distinct(a, b string) []string {
	if a == b {
		return []string{a}
	}
	return []string{a, b}
}

// NextExpiry is when the next mark ends, false without any.
func (u *Unavailable) NextExpiry() (at time.Time, any bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	for _, until := range u.until {
		if until.After(now) && (!any || until.Before(at)) {
			at, any = until, true
		}
	}
	return at, any
}

// Version changes with every mark. It does not change when one ends: NextExpiry says when that is.
func (u *Unavailable) Version() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.version
}
