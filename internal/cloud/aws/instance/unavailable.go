package instance

import (
	"maps"
	"sync"
	"time"
)

// UnavailableFor is how long a refusal of EC2 for lack of capacity is assumed to hold.
const UnavailableFor = 3 * time.Minute

// Unavailable holds what EC2 has refused to launch. It is safe for concurrent use.
//
// A mark applies to the offers that it describes and no others. A mark with a class or a placement group applies to
// that class or group only; a mark without one applies to all. Marks are never aggregated, so every class sees every
// applicable mark at once, and never one that applies to another class only.
type Unavailable struct {
	now func() time.Time

	mu    sync.Mutex
	until map[mark]time.Time
	// places holds the places with marks on offers. Most offers have none, which a single lookup determines.
	places map[place]bool
	// shifted are the zones that are avoided as a whole, by ID, and until when (see Shift).
	shifted map[string]time.Time
	version uint64
}

type place struct{ capacityType, zone string }

// mark describes what was refused. Empty fields match everything, except those of a placement group, which are always
// compared.
type mark struct {
	capacityType, typeName, zone string
	class                        string
	group                        string
	partition                    int
	subnet                       string
}

// NewUnavailable returns an empty Unavailable with the given clock.
func NewUnavailable(now func() time.Time) *Unavailable {
	return &Unavailable{now: now, until: map[mark]time.Time{}, places: map[place]bool{}}
}

// Mark records that the offer was refused. The mark applies to all classes if it has no class, placement group or
// partition, and otherwise to those only. Without a type, it applies to all types. Subnets are ignored. An existing
// mark is extended.
func (u *Unavailable) Mark(o Offer) { u.MarkFor(o, UnavailableFor) }

// MarkFor is Mark for an offer that is avoided for a longer time than a refusal holds.
func (u *Unavailable) MarkFor(o Offer, period time.Duration) {
	u.set(mark{
		capacityType: o.CapacityType, typeName: o.Type, zone: o.Zone, class: o.Class, group: o.Group, partition: o.Partition,
	}, period)
}

// MarkCapacityType records that nothing is available with the capacity type, for all types and zones.
func (u *Unavailable) MarkCapacityType(capacityType string) {
	u.set(mark{capacityType: capacityType}, UnavailableFor)
}

// MarkSubnet records that the subnet has no free addresses. A zone is unavailable to a class when all of its subnets
// there are full.
func (u *Unavailable) MarkSubnet(id string) { u.set(mark{subnet: id}, UnavailableFor) }

func (u *Unavailable) set(m mark, period time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	maps.DeleteFunc(u.until, func(_ mark, until time.Time) bool { return !until.After(now) })
	if until := now.Add(period); until.After(u.until[m]) {
		u.until[m] = until
	}
	clear(u.places)
	for m := range u.until {
		u.places[place{m.capacityType, m.zone}] = true
	}
	u.version++
}

// Has reports whether the offer is known to be unavailable.
func (u *Unavailable) Has(o Offer) bool { return !u.Until(o).IsZero() }

// Until returns until when the offer is assumed to be unavailable, zero if it is not.
func (u *Unavailable) Until(o Offer) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.until) == 0 {
		return time.Time{}
	}
	var until time.Time
	now := u.now()
	apply := func(at time.Time) {
		if at.After(now) && at.After(until) {
			until = at
		}
	}
	apply(u.until[mark{capacityType: o.CapacityType}])
	if len(o.Subnets) > 0 { // the zone is available again with its first subnet
		first := u.until[mark{subnet: o.Subnets[0]}]
		for _, subnet := range o.Subnets[1:] {
			if at := u.until[mark{subnet: subnet}]; at.Before(first) {
				first = at
			}
		}
		apply(first)
	}
	if u.places[place{o.CapacityType, o.Zone}] {
		for _, m := range marksOf(o) {
			apply(u.until[m])
		}
	}
	return until
}

// HasSubnet reports whether the subnet is known to be full.
func (u *Unavailable) HasSubnet(id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.until[mark{subnet: id}].After(u.now())
}

// marksOf returns all marks that would make the offer unavailable.
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

// NextExpiry returns when the next mark expires or the next zone is no longer avoided, and false if there are none.
func (u *Unavailable) NextExpiry() (at time.Time, any bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	consider := func(until time.Time) {
		if until.After(now) && (!any || until.Before(at)) {
			at, any = until, true
		}
	}
	for _, until := range u.until {
		consider(until)
	}
	for _, until := range u.shifted {
		consider(until)
	}
	return at, any
}

// Version changes with every mark and every change of the avoided zones. It does not change when one expires: see NextExpiry.
func (u *Unavailable) Version() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.version
}
