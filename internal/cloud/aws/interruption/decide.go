package interruption

import (
	"fmt"
	"time"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption/notice"
)

// Claim is what must be known of a NodeClaim.
type Claim struct {
	Name string
	UID  string
	// Type, Zone and CapacityType are its labels; ReservationID too, empty if it has none.
	Type, Zone, CapacityType, ReservationID string
	// Deleting says that its end has begun.
	Deleting bool
	// Deadline is when its drain ends as things are: as its termination timestamp says, else, when it is being deleted,
	// after its terminationGracePeriod; zero if never. Grace is that period, nil if it has none.
	Deadline time.Time
	Grace    *time.Duration
}

// Offering is what is known to be gone: spot capacity of a type in a zone, or a reservation.
type Offering struct {
	Type, Zone, CapacityType, ReservationID string
}

// Event is a Kubernetes event for the claim and its node.
type Event struct {
	Reason  string
	Warning bool
	Message string
}

// Decision is what follows from a notice for one claim.
type Decision struct {
	Claim    Claim
	Instance string
	Kind     Kind
	// Replace says that the claim is to be deleted now; its replacement is bought because it is.
	Replace bool
	// Deadline is what the claim's annotation karpenter.sh/nodeclaim-termination-timestamp is to be set to, zero if it is to
	// stay as it is: the end of the drain, never later than what the claim has. It may come without Replace: a claim
	// that is being deleted gets a nearer end. A deadline that has passed ends the drain at once, whatever
	// PodDisruptionBudgets say.
	Deadline time.Time
	// SoldOut is what should not be bought for a while, nil for nothing.
	SoldOut *Offering
	Events  []Event
}

// Idle reports that there is nothing to be done to the claim.
func (d Decision) Idle() bool { return !d.Replace && d.Deadline.IsZero() }

// Rules are what decisions depend on beside the notice.
type Rules struct {
	// Now is the time by the API server's clock, by which drains are judged.
	Now time.Time
	// Lead is how long before a scheduled change a machine is replaced; one that is further away is left to other reasons
	// that the machine may go for, under the budgets of its pool.
	Lead time.Duration
}

// spot is the capacity type of machines that EC2 may take back.
const spot = "spot"

// Decide says what follows from a notice for the claim of one of its machines.
func Decide(n Notice, instance string, c Claim, rules Rules) Decision {
	d := Decision{Claim: c, Instance: instance, Kind: n.Kind}
	switch n.Kind {
	case SpotInterrupted:
		d.Replace, d.Deadline = true, end(n, rules.Now)
		if c.CapacityType == spot {
			d.SoldOut = &Offering{Type: c.Type, Zone: c.Zone, CapacityType: spot}
		}
		d.warn("SpotInterrupted", "EC2 takes back the spot instance %s", instance)
	case ReservationInterrupted:
		d.Replace, d.Deadline = true, end(n, rules.Now)
		if c.ReservationID != "" {
			d.SoldOut = &Offering{Type: c.Type, Zone: c.Zone, CapacityType: c.CapacityType, ReservationID: c.ReservationID}
		}
		d.warn("CapacityReservationInstanceInterrupted", "EC2 takes back the instance %s for its capacity reservation's owner", instance)
	case RebalanceRecommendation:
		d.Events = []Event{{"SpotRebalanceRecommendation", false, "EC2 sees an elevated risk of interruption for the spot instance " + instance}}
	case InstanceStopped:
		d.Replace = true
		d.warn("InstanceStopping", "Instance %s is %s", instance, n.What)
	case InstanceTerminated:
		d.Replace = true
		d.warn("InstanceTerminating", "Instance %s is %s", instance, n.What)
	case ScheduledChange, EventStatus:
		d.scheduled(n, rules)
	case InstanceStatus, SystemStatus:
		d.Replace, d.Deadline = true, rules.Now
		d.warn("InstanceUnhealthy", "%s of instance %s fails", map[Kind]string{InstanceStatus: "The instance status check", SystemStatus: "The system status check"}[n.Kind], instance)
	}
	if c.Deleting {
		d.Replace = false
	}
	if !c.Deadline.IsZero() && !d.Deadline.Before(c.Deadline) || c.Grace != nil && !c.Deleting && rules.Now.Add(*c.Grace).Before(d.Deadline) {
		d.Deadline = time.Time{}
	}
	if d.Replace {
		d.warn("TerminatingOnInterruption", "Interruption (%s) triggered termination of the NodeClaim", n.Kind)
	}
	return d
}

// scheduled decides about a change that EC2 has planned.
func (d *Decision) scheduled(n Notice, rules Rules) {
	if n.At.Sub(rules.Now) > rules.Lead {
		d.Events = []Event{{"InstanceUnhealthy", false, fmt.Sprintf("EC2 has scheduled %s for instance %s at %s, which is replaced %s before",
			n.What, d.Instance, n.At.Format(time.RFC3339), rules.Lead)}}
		return
	}
	d.Replace = true
	if n.At.After(rules.Now) {
		d.Deadline = n.At
	}
	d.warn("InstanceUnhealthy", "EC2 has scheduled %s for instance %s", n.What, d.Instance)
}

func (d *Decision) warn(reason, format string, operands ...any) {
	d.Events = append(d.Events, Event{reason, true, fmt.Sprintf(format, operands...)})
}

// end is when a machine is taken, two minutes from now if the notice does not say; it is not later than that, lest a
// clock that is wrong gives the drain time that it has not.
func end(n Notice, now time.Time) time.Time {
	latest := now.Add(notice.Ahead)
	if n.At.IsZero() || n.At.After(latest) {
		return latest
	}
	return n.At
}
