package launch

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// Observer receives notifications. Each function may be nil and is called concurrently.
type Observer struct {
	// Refused receives each item that EC2 did not launch.
	Refused func(Refusal)
	// NotEnded receives an instance that EC2 did not terminate.
	NotEnded func(zone, zoneID string)
	// Batched receives the size of each batch of calls, and how long it was collected.
	Batched func(batcher string, size int, elapsed time.Duration)
}

// Refusal is an item that EC2 did not launch. Zone and ZoneID are empty if the request as a whole was refused.
type Refusal struct {
	Zone, ZoneID, CapacityType, Reason string
}

// reportRefusals notifies the observer of the refusals in a fleet launch.
func (l *Launcher) reportRefusals(p *fleetLaunch, out *outcome) {
	if l.opts.Observer.Refused == nil || len(p.requests) == 0 {
		return
	}
	capacityType := p.selection().CapacityType
	for _, r := range out.refusals {
		_, zone, _ := placeOf(r)
		code := aws.ToString(r.ErrorCode)
		reason := ReasonOf(describe(r))
		if reason == launchFailed && code != "" {
			reason = code
		}
		l.opts.Observer.Refused(Refusal{Zone: zone, ZoneID: zoneIDOf(p.order.Class, zone), CapacityType: capacityType, Reason: reason})
	}
}

// reportRefused notifies the observer of a request that was refused as a whole.
func (l *Launcher) reportRefused(p *fleetLaunch, err error) {
	if l.opts.Observer.Refused != nil {
		l.opts.Observer.Refused(Refusal{CapacityType: p.selection().CapacityType, Reason: ReasonOf(err.Error())})
	}
}

func zoneIDOf(class *awsv1.EC2NodeClass, zone string) string {
	for _, subnet := range class.Status.Subnets {
		if subnet.Zone == zone {
			return subnet.ZoneID
		}
	}
	return ""
}

// reportNotTerminated notifies the observer of an instance that was not terminated.
func (l *Launcher) reportNotTerminated(i *ec2types.Instance) {
	if l.opts.Observer.NotEnded == nil || i.Placement == nil {
		return
	}
	l.opts.Observer.NotEnded(aws.ToString(i.Placement.AvailabilityZone), aws.ToString(i.Placement.AvailabilityZoneId))
}

// batched returns the notification function of a batcher.
func (l *Launcher) batched(name string) func(size int, elapsed time.Duration) {
	return func(size int, elapsed time.Duration) {
		if l.opts.Observer.Batched != nil {
			l.opts.Observer.Batched(name, size, elapsed)
		}
	}
}
