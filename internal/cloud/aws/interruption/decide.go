package interruption

import (
	"fmt"
	"time"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption/notice"
)

// Claim holds the attributes of a NodeClaim that decisions need.
type Claim struct {
	Name string
	UID  string
	// Type, Zone and CapacityType are from its labels. So is ReservationID, which is empty if there is none.
	Type, Zone, CapacityType, ReservationID string
	// Deleting means that the claim is being deleted.
	Deleting bool
	// Deadline is the current end of the claim's drain: its termination timestamp, otherwise, if it is being deleted,
	// the end of its terminationGracePeriod; zero if it has none. Grace is that period, nil if it has none.
	Deadline time.Time
	Grace    *time.Duration
	// Other: another controller of the cluster manages the claim. It polls the machine's status. Messages of the queue,
	// which only one controller receives, are acted on.
	Other bool
}

// Offering is known to be unavailable: spot capacity of a type in a zone, or a reservation.
type Offering struct {
	Type, Zone, CapacityType, ReservationID string
}

// Event is a Kubernetes event for the claim and its node.
type Event struct {
	Reason  string
	Warning bool
	Message string
}

// Decision is the result of a notice for one claim.
type Decision struct {
	Claim    Claim
	Instance string
	Kind     Kind
	// Replace means that the claim is to be deleted now. The deletion triggers the launch of a replacement.
	Replace bool
	// Deadline is the new value of the claim's annotation karpenter.sh/nodeclaim-termination-timestamp, and zero if the
	// annotation is not to be changed. It is the end of the drain, and never later than the current value. It may be
	// set without Replace: a claim that is being deleted gets an earlier end. A deadline in the past ends the drain
	// immediately, regardless of PodDisruptionBudgets.
	Deadline time.Time
	// SoldOut is an offering to avoid for a while, nil for none.
	SoldOut *Offering
	Events  []Event
}

// Idle reports that the claim needs no change.
func (d Decision) Idle() bool { return !d.Replace && d.Deadline.IsZero() }

// Rules are the inputs of decisions besides the notice.
type Rules struct {
	// Now is the time of the API server's clock, which is used for drains.
	Now time.Time
	// Lead is how long before a scheduled change a machine is replaced. Until then, the machine is subject only to
	// other disruptions, within the budgets of its pool.
	Lead time.Duration
}

// spot is the capacity type of machines that EC2 may reclaim.
const spot = "spot"

// Decide returns the decision about the claim of one of the machines in a notice.
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
	case BlockExpiring:
		d.Replace, d.Deadline = true, n.At
		d.warn("CapacityBlockExpiring", "Capacity block %s ends; EC2 terminates its instances from %s", c.ReservationID,
			n.At.UTC().Format(time.RFC3339))
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
		d.warn("InstanceUnhealthy", "%s of instance %s fails",
			map[Kind]string{InstanceStatus: "The instance status check", SystemStatus: "The system status check"}[n.Kind], instance)
	case EBSStatus: // the machine runs: its pods are drained
		d.Replace = true
		d.warn("InstanceUnhealthy", "The root volume of instance %s, or another that belongs to the instance, is impaired", instance)
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

// scheduled decides about a change that EC2 has scheduled.
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

// end returns when a machine is reclaimed: two minutes from now if the notice has no time, and never later than that,
// so that a wrong clock does not extend the drain beyond the available time.
func end(n Notice, now time.Time) time.Time {
	latest := now.Add(notice.Ahead)
	if n.At.IsZero() || n.At.After(latest) {
		return latest
	}
	return n.At
}
