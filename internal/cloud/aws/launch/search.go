package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// shown returns the outcome if EC2 shows all instances that the fleet launch can have, otherwise nil.
func (l *Launcher) shown(ctx context.Context, p *fleetLaunch) *outcome {
	instances, err := l.tagged(ctx, p.record.Token())
	if out := searchOutcome(instances); err == nil && out.complete(p.record.Size) {
		return out
	}
	return nil
}

// search finds the instances of a fleet launch that was sent, or may have been, and that cannot be sent again. It
// returns when all of them are shown, or those that EC2 shows when the last request is longer ago than Settle.
func (l *Launcher) search(ctx context.Context, p *fleetLaunch) (*outcome, error) {
	until := p.sentAt.Add(l.opts.Settle)
	for try := 1; ; try++ {
		instances, err := l.tagged(ctx, p.record.Token())
		if out := searchOutcome(instances); err == nil && (out.complete(p.record.Size) || !l.opts.Clock.Now().Before(until)) {
			return out, nil
		}
		if waited := backOff(ctx, l.opts.Clock, try); waited != nil {
			return nil, errors.Join(err, waited)
		}
	}
}

// tagged lists the instances of a fleet launch by ID, including terminated ones.
func (l *Launcher) tagged(ctx context.Context, token string) ([]launched, error) {
	instances, err := l.list(ctx, tagFilter(TagFleetLaunch, token))
	if err != nil {
		return nil, fmt.Errorf("searching the instances of launch %s: %w", token, err)
	}
	var list []launched
	for i := range instances {
		list = append(list, launchedFrom(&instances[i], l.opts.IgnoreReservations))
	}
	slices.SortFunc(list, func(a, b launched) int { return cmp.Compare(a.id, b.id) })
	return list, nil
}

// launchedFrom converts an instance. Without reservations, one in a capacity reservation counts as on-demand.
func launchedFrom(i *ec2types.Instance, withoutReservations bool) launched {
	b := launched{id: aws.ToString(i.InstanceId), typeName: string(i.InstanceType), image: aws.ToString(i.ImageId),
		capacityType: karpv1.CapacityTypeOnDemand, terminating: isTerminating(i)}
	if i.Placement != nil {
		b.zone = aws.ToString(i.Placement.AvailabilityZone)
	}
	if i.InstanceLifecycle == ec2types.InstanceLifecycleTypeSpot || aws.ToString(i.SpotInstanceRequestId) != "" {
		b.capacityType = karpv1.CapacityTypeSpot
	}
	if hold := holdFrom(i); hold.ID != "" && !withoutReservations {
		b.hold, b.capacityType = hold, karpv1.CapacityTypeReserved
	}
	tags := tagMap(i.Tags)
	b.claim, b.indexes = tags[awsv1.TagNodeClaim], tags[TagIndexes]
	return b
}
