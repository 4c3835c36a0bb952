package discovery

import (
	"maps"
	"slices"
	"sync"
	"time"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// settling is how long it may take until addresses that a launch was given are missing from EC2's count: the fleet call, and
// the network plugin of a new node taking those of its first pods.
const settling = time.Minute

// Addresses keeps account of the free addresses of subnets, so that launches at the same time do not all go to a subnet
// that has room for one. It may be used from several goroutines.
//
//	Seen (EC2's count) --- free = count - what was set aside since, or shortly before
//	                                          |         ^
//	                              Choose -----+         +---- Return, when it was not used
type Addresses struct {
	now func() time.Time
	// lifetime of EC2's count.
	lifetime time.Duration
	refused  func(subnetID string) bool

	mu    sync.Mutex
	seen  map[string]count
	aside map[string][]hold
}

// count is what EC2 said; began is when it was asked.
type count struct {
	free         int64
	began, until time.Time
}

// hold is what was set aside for a launch.
type hold struct {
	addresses int64
	at        time.Time
}

// NewAddresses needs the clock, for how long a count of EC2 is believed, and a function that tells the subnets that EC2
// refused lately for want of addresses (instance.Unavailable.HasSubnet); it may be nil.
func NewAddresses(now func() time.Time, lifetime time.Duration, refused func(subnetID string) bool) *Addresses {
	if refused == nil {
		refused = func(string) bool { return false }
	}
	return &Addresses{now: now, lifetime: lifetime, refused: refused, seen: map[string]count{}, aside: map[string][]hold{}}
}

// Seen takes EC2's counts, asked for at the time began. What was set aside a minute before that is part of them. A count
// that was asked for before the last one is not looked at.
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

// keep drops the other holds of the subnet.
func (a *Addresses) keep(id string, keep func(hold) bool) {
	a.aside[id] = slices.DeleteFunc(a.aside[id], func(h hold) bool { return !keep(h) })
	if len(a.aside[id]) == 0 {
		delete(a.aside, id)
	}
}

// Free is how many addresses the subnet has left for another launch, and whether EC2 has said so lately. It is 0 while the
// subnet is refused.
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

// counted is what EC2 counted, 0 while it refuses the subnet. The lock is held.
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

// Choose is the subnet of the class's status in the zone with most free addresses, the first among equals, and sets so
// many of them aside. It is chosen also if it has fewer: a node needs one, the rest is for its pods. Refused and full
// subnets are not chosen; one whose count is not known is, when there is no better one. False if there is none.
func (a *Addresses) Choose(class *awsv1.EC2NodeClass, zone string, addresses int64) (id string, found bool) {
	return a.choose(class, zone, addresses, a.free)
}

// ChooseCrowded is Choose by what EC2 counted last, whatever was set aside since: for when no zone has room for more as far as
// is foreseen. What is set aside for pods is a guess, and what EC2 refuses it says.
func (a *Addresses) ChooseCrowded(class *awsv1.EC2NodeClass, zone string, addresses int64) (id string, found bool) {
	return a.choose(class, zone, addresses, a.counted)
}

func (a *Addresses) choose(class *awsv1.EC2NodeClass, zone string, addresses int64, freeOf func(id string) (int64, bool)) (id string, found bool) {
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

// Return gives back addresses that Choose set aside and that were not used. If EC2's count has replaced them since, there is
// nothing to give back.
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
