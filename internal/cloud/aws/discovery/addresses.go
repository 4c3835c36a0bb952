package discovery

import (
	"maps"
	"slices"
	"sync"
	"time"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// ExhaustedFor is how long a subnet that EC2 refused for want of addresses is left alone.
const ExhaustedFor = 3 * time.Minute

// Addresses keeps account of the free addresses of subnets, so that launches at the same time do not all go to a subnet
// that has room for one. It may be used from several goroutines.
//
//	Seen (EC2's count) --- free = count - holds that the count cannot know of
//	                              ^                     |
//	                       Hold --+-- Release (unused) -+- Settle (used): until a count that began later
type Addresses struct {
	now func() time.Time
	// lifetime of EC2's count.
	lifetime time.Duration

	mu        sync.Mutex
	seen      map[string]count
	held      map[string][]*hold
	exhausted map[string]time.Time // until when
}

// count is what EC2 said; began is when it was asked.
type count struct {
	free         int64
	began, until time.Time
}

// hold is what a launch may take of a subnet.
type hold struct {
	addresses int64
	settled   time.Time // when it was used; zero before
}

// NewAddresses needs the clock, and how long a count of EC2 is believed.
func NewAddresses(now func() time.Time, lifetime time.Duration) *Addresses {
	return &Addresses{now: now, lifetime: lifetime, seen: map[string]count{}, held: map[string][]*hold{}, exhausted: map[string]time.Time{}}
}

// Seen takes EC2's counts, asked for at the time began. Holds that were settled before are part of them.
func (a *Addresses) Seen(subnets []Subnet, began time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	maps.DeleteFunc(a.seen, func(_ string, c count) bool { return !c.until.After(now) })
	maps.DeleteFunc(a.exhausted, func(_ string, until time.Time) bool { return !until.After(now) })
	for _, subnet := range subnets {
		if a.seen[subnet.ID].began.After(began) {
			continue
		}
		a.seen[subnet.ID] = count{free: subnet.Free, began: began, until: now.Add(a.lifetime)}
		a.held[subnet.ID] = slices.DeleteFunc(a.held[subnet.ID], func(h *hold) bool { return !h.settled.IsZero() && h.settled.Before(began) })
		if len(a.held[subnet.ID]) == 0 {
			delete(a.held, subnet.ID)
		}
	}
}

// Exhausted says that EC2 refused the subnet for want of addresses.
func (a *Addresses) Exhausted(subnetID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.exhausted[subnetID] = a.now().Add(ExhaustedFor)
}

// Free is how many addresses the subnet has left for another launch, and whether EC2 has said so lately. It is 0 while the
// subnet is exhausted.
func (a *Addresses) Free(subnetID string) (addresses int64, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.free(subnetID)
}

func (a *Addresses) free(id string) (int64, bool) {
	now := a.now()
	if a.exhausted[id].After(now) {
		return 0, true
	}
	c, ok := a.seen[id]
	if !ok || !c.until.After(now) {
		return 0, false
	}
	for _, h := range a.held[id] {
		c.free -= h.addresses
	}
	return max(c.free, 0), true
}

// Hold is what one launch has been given: in each zone one subnet, some of whose addresses are set aside for it.
type Hold struct {
	of *Addresses
	// Subnets are the ids by zone. A zone without a subnet that has a free address is missing.
	Subnets map[string]string
	holds   map[string]*hold // by subnet
}

// Hold chooses a subnet for each zone of need: that with most free addresses, the first of the list among equals, and
// sets aside as many as the launch needs at least. Exhausted and full subnets are not chosen; one whose count is not known
// is, when there is no better one. End it with Settle.
func (a *Addresses) Hold(subnets []awsv1.Subnet, need map[string]int64) *Hold {
	a.mu.Lock()
	defer a.mu.Unlock()
	given := &Hold{of: a, Subnets: map[string]string{}, holds: map[string]*hold{}}
	most := map[string]int64{}
	for _, subnet := range subnets {
		if _, wanted := need[subnet.Zone]; !wanted {
			continue
		}
		free, known := a.free(subnet.ID)
		_, chosen := given.Subnets[subnet.Zone]
		if known && free == 0 || chosen && free <= most[subnet.Zone] {
			continue
		}
		given.Subnets[subnet.Zone], most[subnet.Zone] = subnet.ID, free
	}
	for zone, id := range given.Subnets {
		h := &hold{addresses: max(need[zone], 1)}
		given.holds[id] = h
		a.held[id] = append(a.held[id], h)
	}
	return given
}

// Settle says which of the subnets machines were launched into; the others get their addresses back. Those that were used
// stay set aside until EC2 has counted again. Only the first call does anything, so that "defer h.Settle()" gives back what
// a failed launch held.
func (h *Hold) Settle(used ...string) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	for id, taken := range h.holds {
		if slices.Contains(used, id) {
			taken.settled = h.of.now()
			continue
		}
		h.of.held[id] = slices.DeleteFunc(h.of.held[id], func(other *hold) bool { return other == taken })
		if len(h.of.held[id]) == 0 {
			delete(h.of.held, id)
		}
	}
	clear(h.holds)
}
