package awssim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// CapacityReservation is a capacity reservation. Launches that target it use it. If its criteria are open, so do
// matching on-demand launches that do not opt out, and matching instances that run when it is created.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-reservations.html
type CapacityReservation struct {
	ID            string            `json:"id"`
	Type          string            `json:"instanceType"`
	Zone          string            `json:"zone"`
	Kind          string            `json:"kind"`     // default or capacity-block
	Criteria      string            `json:"criteria"` // open or targeted
	Total         int               `json:"total"`
	State         string            `json:"state"`         // active when empty
	End           time.Time         `json:"end"`           // zero for none
	Owner         string            `json:"owner"`         // account; the cloud's own when empty
	Platform      string            `json:"platform"`      // Linux/UNIX when empty
	Tenancy       string            `json:"tenancy"`       // default when empty
	Interruptible bool              `json:"interruptible"` // its owner can reclaim the instances
	GroupARN      string            `json:"placementGroupArn"`
	OutpostARN    string            `json:"outpostArn"`
	Tags          map[string]string `json:"tags"`
	// Available is Total minus the instances that use the reservation.
	Available int `json:"available"`

	created time.Time
}

// Preferences and market types of launches.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_LaunchTemplateCapacityReservationSpecificationRequest.html
const (
	preferOpen          = "open"
	preferNone          = "none"
	preferOnly          = "capacity-reservations-only"
	kindBlock           = "capacity-block"
	marketBlock         = "capacity-block"
	marketInterruptible = "interruptible-capacity-reservation"
	stateActive         = "active"
	linux               = "Linux/UNIX"
)

// reclaimBlock is how long before the end of a capacity block its instances are terminated, and reclaimUltra that of
// UltraServers. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html
const (
	reclaimBlock = 30 * time.Minute
	reclaimUltra = 60 * time.Minute
)

// AddReservation creates a capacity reservation, all of it available, and returns its ID.
func (c *Cloud) AddReservation(r CapacityReservation) string {
	c.locked(func(now time.Time) {
		r.ID, r.Available, r.created = c.newID("cr"), r.Total, now
		defaultTo(&r.Kind, "default")
		defaultTo(&r.Criteria, "open")
		if r.Kind == kindBlock || r.Interruptible {
			r.Criteria = "targeted"
		}
		defaultTo(&r.State, stateActive)
		defaultTo(&r.Owner, c.opts.AccountID)
		defaultTo(&r.Platform, linux)
		defaultTo(&r.Tenancy, "default")
		c.reservations = append(c.reservations, &r)
		for _, i := range c.order {
			o := &override{spec: i.spec, pool: i.from}
			if i.alive() && i.capacity == "" && r.takes(o) {
				c.leave(i)
				c.enter(i, &r)
			}
		}
		c.scheduleEnd(&r, now)
	})
	return r.ID
}

// Reservations returns all capacity reservations, in the order of their creation.
func (c *Cloud) Reservations() []CapacityReservation {
	all := []CapacityReservation{}
	c.locked(func(time.Time) {
		for _, r := range c.reservations {
			all = append(all, *r)
		}
	})
	return all
}

// CancelReservation cancels a capacity reservation. Its instances continue to run, as on-demand ones.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CancelCapacityReservation.html
func (c *Cloud) CancelReservation(id string) error {
	err := fmt.Errorf("no capacity reservation %q", id)
	c.locked(func(time.Time) {
		if r := c.reservation(id); r != nil {
			c.closeReservation(r, "cancelled")
			err = nil
		}
	})
	return err
}

// Reclaim makes the owner of an interruptible capacity reservation reclaim instances until it has the given size: it
// sends their warnings, and terminates them two minutes later.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/interruptible-capacity-reservations.html
func (c *Cloud) Reclaim(id string, size int) error {
	err := fmt.Errorf("no interruptible capacity reservation %q", id)
	c.locked(func(now time.Time) {
		r := c.reservation(id)
		if r == nil || !r.Interruptible {
			return
		}
		err = nil
		r.Available += size - r.Total
		r.Total = size
		excess := -size
		for _, i := range c.order {
			if i.capacity == id && i.alive() && !i.interrupted {
				excess++
			}
		}
		for _, i := range slices.Backward(c.order) { // the youngest first
			if i.capacity == id && i.alive() && !i.interrupted && excess > 0 {
				excess--
				c.reclaim(i, now)
			}
		}
	})
	return err
}

// reclaim announces the end of an instance, and terminates it two minutes later.
func (c *Cloud) reclaim(i *instance, now time.Time) {
	i.interrupted = true
	c.emit("aws.ec2", "EC2 Interruptible Capacity Reservation Instance Interruption Warning", i,
		map[string]string{"instance-id": i.ID, "instance-action": "terminate"}, now)
	c.after(now, noticeAhead, func(now time.Time) { c.terminate(i, now, "Server.CapacityReservationInterruption") })
}

func (c *Cloud) reservation(id string) *CapacityReservation {
	k := slices.IndexFunc(c.reservations, func(r *CapacityReservation) bool { return r.ID == id })
	if k < 0 {
		return nil
	}
	return c.reservations[k]
}

// scheduleEnd schedules the end of a reservation, and before that of a capacity block the termination of its instances.
func (c *Cloud) scheduleEnd(r *CapacityReservation, now time.Time) {
	if r.End.IsZero() {
		return
	}
	if r.Kind == kindBlock {
		c.after(now, max(0, r.reclaimed().Sub(now)), func(now time.Time) {
			for _, i := range c.order {
				if i.capacity == r.ID {
					c.terminate(i, now, "Server.CapacityBlockExpired")
				}
			}
		})
	}
	c.after(now, max(0, r.End.Sub(now)), func(time.Time) { c.closeReservation(r, "expired") })
}

// reclaimed returns when the instances of a capacity block are terminated.
func (r *CapacityReservation) reclaimed() time.Time {
	if strings.HasPrefix(r.Type, "u-p6e") || strings.HasPrefix(r.Type, "p6e-gb200") {
		return r.End.Add(-reclaimUltra)
	}
	return r.End.Add(-reclaimBlock)
}

// closeReservation ends a reservation. Its instances continue to run, as on-demand ones.
func (c *Cloud) closeReservation(r *CapacityReservation, state string) {
	if r.State != stateActive {
		return
	}
	for _, i := range c.order {
		if i.capacity == r.ID {
			c.leave(i)
			c.enter(i, nil)
		}
	}
	r.State, r.Total, r.Available = state, 0, 0
}

// enter makes an instance use a reservation, or its pool when it is nil.
func (c *Cloud) enter(i *instance, r *CapacityReservation) {
	if r == nil {
		i.capacity = ""
		c.occupy(i.from)
		return
	}
	i.capacity = r.ID
	r.Available--
}

// leave ends an instance's use of its reservation or pool.
func (c *Cloud) leave(i *instance) {
	if r := c.reservation(i.capacity); r != nil {
		r.Available++
		return
	}
	c.vacate(i.from)
}

// only reports whether a launch may not use other capacity than that of reservations.
func (s *launchSpec) only() bool { return s.reservationPreference == preferOnly }

// targetOf returns the reservation that a launch targets, nil without any.
func (c *Cloud) targetOf(spec *launchSpec) *CapacityReservation {
	return c.reservation(spec.reservation)
}

// reservationOf returns the reservation with free capacity that a launch uses, nil for none. Without a target it uses
// an open one, unless it opts out.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-launch.html
func (c *Cloud) reservationOf(o *override) *CapacityReservation {
	if o.spec.reservation != "" {
		if r := c.targetOf(o.spec); r != nil && r.State == stateActive && r.Available > 0 && !c.reclaiming(r) {
			return r
		}
		return nil
	}
	for _, r := range c.reservations {
		if r.Available > 0 && r.takes(o) {
			return r
		}
	}
	return nil
}

// reclaiming reports whether the instances of a capacity block are being terminated.
func (c *Cloud) reclaiming(r *CapacityReservation) bool {
	return r.Kind == kindBlock && !r.End.IsZero() && !c.opts.Clock.Now().Before(r.reclaimed())
}

// takes reports whether the reservation is open to a launch that targets none.
func (r *CapacityReservation) takes(o *override) bool {
	tenancy := o.spec.tenancy
	defaultTo(&tenancy, "default")
	return o.spec.reservation == "" && o.spec.reservationPreference != preferNone && o.spec.market == "" && o.pool.capacity == onDemand &&
		r.Criteria == "open" && r.Kind == "default" && r.State == stateActive && r.Platform == linux && r.OutpostARN == "" &&
		r.Type == o.pool.name && r.Zone == o.pool.zone && r.Tenancy == tenancy && r.GroupARN == ""
}

// checkReservation rejects a target that does not exist or does not match the launch, and market types that need
// another target. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-launch.html
func (c *Cloud) checkReservation(spec *launchSpec, t *machineType, s *subnet) error {
	r := c.targetOf(spec)
	tenancy := spec.tenancy
	defaultTo(&tenancy, "default")
	switch {
	case spec.reservation == "" && (spec.market == marketBlock || spec.market == marketInterruptible):
		return refuse("InvalidParameterCombination", "The market type '%s' requires a capacity reservation target", spec.market)
	case spec.reservation == "":
		return nil
	case spec.reservationPreference == preferNone || spec.reservationPreference == preferOpen:
		return refuse("InvalidParameterCombination", "A capacity reservation target and the preference '%s' may not be specified together",
			spec.reservationPreference)
	case r == nil:
		return refuse("InvalidCapacityReservationId.NotFound", "The capacity reservation ID '%s' does not exist", spec.reservation)
	case r.State != stateActive:
		return refuse("InvalidCapacityReservationState", "The capacity reservation %s is %s", r.ID, r.State)
	case r.Type != t.Name || r.Zone != s.zone.name:
		return refuse("InvalidParameterValue", "The capacity reservation %s is for %s in %s", r.ID, r.Type, r.Zone)
	case r.Platform != linux || r.Tenancy != tenancy || r.OutpostARN != "":
		return refuse("InvalidParameterValue", "The capacity reservation %s is for platform %s and tenancy %s", r.ID, r.Platform, r.Tenancy)
	case (r.Kind == kindBlock) != (spec.market == marketBlock):
		return refuse("InvalidParameterValue", "The capacity reservation %s is of type %s; the market type must be %s for a capacity block only",
			r.ID, r.Kind, marketBlock)
	case r.Interruptible != (spec.market == marketInterruptible):
		return refuse("InvalidParameterValue",
			"The market type must be %s if the capacity reservation %s is interruptible, and only then", marketInterruptible, r.ID)
	}
	return nil
}
