package instance

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Reserved holds how many more instances each capacity reservation has room for. It is safe for concurrent use.
//
// A count is the one in EC2's last answer, less the machines that were launched since EC2 was asked, plus those that
// are gone since. Claims that are not launched yet are not counted: the plan counts them, and they are in the API, so
// that a restarted controller and another replica know of them as well.
type Reserved struct {
	now func() time.Time

	mu sync.Mutex
	// known is by ID of the reservation.
	known   map[string]*counted
	changes uint64
}

// counted is a reservation as EC2 last described it.
type counted struct {
	CountedReservation
	askedAt time.Time
	// soldOutAt is when EC2 last refused a launch or reclaimed an instance.
	soldOutAt time.Time
	// machines are those that the controller knows of, by instance ID.
	machines map[string]machineTimes
}

// machineTimes are when a machine was launched, when it was last there, and when it was seen to be gone; zero if that is
// not known.
type machineTimes struct{ launched, there, gone time.Time }

// CountedReservation is a reservation in an answer of EC2.
type CountedReservation struct {
	ID, Type, Zone string
	// Tenancy is default or dedicated.
	Tenancy string
	// Available is the number of further instances, and Total that of all.
	Available, Total int
}

// NewReserved returns an empty Reserved with the given clock.
func NewReserved(now func() time.Time) *Reserved {
	return &Reserved{now: now, known: map[string]*counted{}}
}

// Read records an answer of EC2, which was asked at the given time. It reports whether a count changes. An older answer
// than the last one is ignored.
func (r *Reserved) Read(list []CountedReservation, askedAt time.Time) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range list {
		c := r.of(one.ID)
		if askedAt.Before(c.askedAt) {
			continue
		}
		before, tenancy := c.left(), c.Tenancy
		c.CountedReservation, c.askedAt = one, askedAt
		for id, at := range c.machines {
			if !at.gone.IsZero() && !at.gone.After(askedAt) {
				delete(c.machines, id)
			}
		}
		changed = changed || before != c.left() || tenancy != c.Tenancy
	}
	r.changed(changed)
	return changed
}

// of returns the entry of a reservation. The caller holds the lock.
func (r *Reserved) of(id string) *counted {
	c := r.known[id]
	if c == nil {
		c = &counted{machines: map[string]machineTimes{}}
		r.known[id] = c
	}
	return c
}

func (r *Reserved) changed(is bool) {
	if is {
		r.changes++
	}
}

// left returns how many more instances the reservation has room for.
func (c *counted) left() int {
	if c.askedAt.IsZero() || !c.soldOutAt.IsZero() && !c.askedAt.After(c.soldOutAt) {
		return 0
	}
	n := c.Available
	for _, at := range c.machines {
		if !at.launched.IsZero() && !at.launched.Before(c.askedAt) {
			n--
		}
		if at.gone.After(c.askedAt) && !at.there.Before(c.askedAt) { // otherwise the answer may be without it already
			n++
		}
	}
	return min(max(n, 0), max(c.Total, c.Available))
}

// Left returns how many more instances the reservation has room for, and its tenancy. They are 0 and empty until EC2
// has described it.
func (r *Reserved) Left(id string) (count int, tenancy string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.known[id]
	if c == nil {
		return 0, ""
	}
	return c.left(), c.Tenancy
}

// CountedSince reports whether EC2 was asked about the reservation since the given time.
func (r *Reserved) CountedSince(id string, at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.known[id]
	return c != nil && c.askedAt.After(at)
}

// Launched records a machine that was just launched into the reservation. A machine that is known is not counted again.
func (r *Reserved) Launched(id, instance string) { r.seen(id, instance, r.now()) }

// Seen records a machine that is in the reservation since an unknown time.
func (r *Reserved) Seen(id, instance string) { r.seen(id, instance, time.Time{}) }

func (r *Reserved) seen(id, instance string, launched time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.of(id)
	if at, known := c.machines[instance]; known {
		if at.gone.IsZero() {
			at.there = r.now()
			c.machines[instance] = at
		}
		return
	}
	before := c.left()
	c.machines[instance] = machineTimes{launched: launched, there: r.now()}
	r.changed(before != c.left())
}

// Gone records that a machine has terminated, and reports whether a count changes.
func (r *Reserved) Gone(instance string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.known {
		at, known := c.machines[instance]
		if !known || !at.gone.IsZero() {
			continue
		}
		before := c.left()
		at.gone = r.now()
		c.machines[instance] = at
		r.changed(before != c.left())
		return before != c.left()
	}
	return false
}

// SoldOut records that the reservation has no room, until EC2 describes it again.
func (r *Reserved) SoldOut(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.of(id)
	before := c.left()
	c.soldOutAt = r.now()
	r.changed(before != c.left())
}

// countsFor is how long a reservation is listed after EC2 described it last: it may have ended, or no class selects it.
const countsFor = 5 * time.Minute

// Counts returns the reservations that EC2 has described in the last minutes, with what is left, sorted by ID.
func (r *Reserved) Counts() []CountedReservation {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []CountedReservation
	for _, c := range r.known {
		if !c.askedAt.IsZero() && r.now().Sub(c.askedAt) < countsFor {
			one := c.CountedReservation
			one.Available = c.left()
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b CountedReservation) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// Version changes whenever a count does.
func (r *Reserved) Version() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changes
}
