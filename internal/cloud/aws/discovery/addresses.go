package discovery

import (
	"maps"
	"slices"
	"sync"
	"time"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// settling is the maximum time until EC2's count reflects the addresses of a launch: the fleet call, and the network
// plugin of a new node, which takes the addresses of its first pods.
const settling = time.Minute

// Addresses tracks the free addresses of subnets, so that concurrent launches do not all use a subnet that has
// addresses for only one of them. It is safe for concurrent use.
//
//	Seen (EC2's count) --- free = count - reserved since then, or shortly before
//	                                          |         ^
//	                              Choose -----+         +---- Return, for unused addresses
type Addresses struct {
	now func() time.Time
	// lifetime is how long EC2's count is used.
	lifetime time.Duration
	refused  func(subnetID string) bool

	mu    sync.Mutex
	seen  map[string]count
	aside map[string][]hold
}

// count is EC2's count of free addresses. began is when the request was made.
type count struct {
	free         int64
	began, until time.Time
}

// hold is a reservation for a launch.
type hold struct {
	addresses int64
	at        time.Time
}

// NewAddresses takes the clock, how long a count of EC2 is used, and a function that reports the subnets that EC2
// recently refused for lack of addresses (instance.Unavailable.HasSubnet). The function may be nil.
func NewAddresses(now func() time.Time, lifetime time.Duration, refused func(subnetID string) bool) *Addresses {
	if refused == nil {
		refused = func(string) bool { return false }
	}
	return &Addresses{now: now, lifetime: lifetime, refused: refused, seen: map[string]count{}, aside: map[string][]hold{}}
}

// Seen records EC2's counts from a request that was made at the time began. Reservations made more than a minute
// before that are included in the counts. A count from a request made before the last recorded one is ignored.
func (a *Addresses) Seen(subnets []Subnet, began time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	maps.DeleteFunc(a.seen, func(_ string, c count) bool { return !c.until.After(now) })
	for _, subnet := range subnets {
		if a.seen[subnet.ID].began.After(began) {
			continue
		}
		a.seen[subnet.ID] = count{free: subnet.Free, began: began, until: now.Add(a.lifetime)}
		a.keep(subnet.ID, func(h hold) bool { return !h.at.Add(settling).Before(began) })
	}
}

// keep removes the other holds of the subnet.
func (a *Addresses) keep(id string, keep func(hold) bool) {
	a.aside[id] = slices.DeleteFunc(a.aside[id], func(h hold) bool { return !keep(h) })
	if len(a.aside[id]) == 0 {
		delete(a.aside, id)
	}
}

// Free returns the number of addresses that the subnet has for another launch, and whether EC2 has reported a count
// recently. It is 0 while the subnet is refused.
func (a *Addresses) Free(subnetID string) (addresses int64, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.free(subnetID)
}

func (a *Addresses) free(id string) (int64, bool) {
	free, known := a.counted(id)
	for _, h := range a.aside[id] {
		free -= h.addresses
	}
	return max(free, 0), known
}

// counted returns EC2's count, and 0 while EC2 refuses the subnet. The caller holds the lock.
func (a *Addresses) counted(id string) (int64, bool) {
	if a.refused(id) {
		return 0, true
	}
	c, ok := a.seen[id]
	if !ok || !c.until.After(a.now()) {
		return 0, false
	}
	return c.free, true
}

// Room returns the most free addresses of a subnet of the class's status in the zone. known is false if the count of one
// of them is not known, which may have more.
func (a *Addresses) Room(class *awsv1.EC2NodeClass, zone string) (addresses int64, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, subnet := range class.Status.Subnets {
		if subnet.Zone != zone {
			continue
		}
		free, counted := a.free(subnet.ID)
		if !counted {
			return 0, false
		}
		addresses = max(addresses, free)
	}
	return addresses, true
}

// Choose returns the subnet of the class's status in the zone with the most free addresses, the first one if several
// are equal, and reserves the given number of its addresses. It is chosen even if it has fewer: a node needs one, the
// rest is for its pods. Refused and full subnets are not chosen. A subnet without a known count is chosen only if there
// is no better one. It returns false if there is none.
func (a *Addresses) Choose(class *awsv1.EC2NodeClass, zone string, addresses int64) (id string, found bool) {
	return a.choose(class, zone, addresses, a.free)
}

// ChooseCrowded is Choose by EC2's last count, regardless of reservations. It is used when no zone is expected to have
// enough addresses. The reservation for pods is an estimate, and EC2 refuses a launch that really lacks addresses.
func (a *Addresses) ChooseCrowded(class *awsv1.EC2NodeClass, zone string, addresses int64) (id string, found bool) {
	return a.choose(class, zone, addresses, a.counted)
}

func (a *Addresses) choose(class *awsv1.EC2NodeClass, zone string, addresses int64, freeOf func(id string) (int64, bool)) (id string,
	found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	most := int64(-1)
	for _, subnet := range class.Status.Subnets {
		if subnet.Zone != zone {
			continue
		}
		if free, known := freeOf(subnet.ID); free > most && !(known && free == 0) {
			id, most = subnet.ID, free
		}
	}
	if id == "" {
		return "", false
	}
	now := a.now()
	a.keep(id, func(h hold) bool { return h.at.Add(a.lifetime).After(now) })
	a.aside[id] = append(a.aside[id], hold{max(addresses, 1), now})
	return id, true
}

// Return releases unused addresses that Choose reserved. If EC2's count has replaced the reservation since then, it
// does nothing.
func (a *Addresses) Return(id string, addresses int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	returned := false
	a.keep(id, func(h hold) bool {
		if returned || h.addresses != max(addresses, 1) {
			return true
		}
		returned = true
		return false
	})
}
