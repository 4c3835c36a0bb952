package launch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
)

// DedicatedPartitions is the number of partitions of a placement group that dedicated instances can use
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/limitations-placement-groups.html).
const DedicatedPartitions = 2

// partition returns the partition of the placement group that is requested for the order: 0 if EC2 balances, because
// the claim allows all of them or the group has none; otherwise one of those that the claim allows and the selection has
// an offering in. The error is a *cloud.InsufficientCapacityError.
func (o *Order) partition(s *Selection) (int, error) {
	group := o.Placement
	switch {
	case group.Strategy == catalog.StrategySpread && s.Tenancy == awsv1.TenancyDedicated:
		return 0, &cloud.InsufficientCapacityError{Message: fmt.Sprintf("spread placement group %s takes no instances with the "+
			"tenancy dedicated", group.ID)}
	case group.Partitions == 0:
		return 0, nil
	}
	wanted, restricted := cloud.NeedOf(o.Claim).Labels[awsv1.LabelPlacementGroupPartition]
	most := group.Partitions
	if s.Tenancy == awsv1.TenancyDedicated {
		most = min(most, DedicatedPartitions)
	}
	var allowed, open []int
	for n := 1; n <= most; n++ {
		if restricted && !wanted.Has(strconv.Itoa(n)) {
			continue
		}
		allowed = append(allowed, n)
		if slices.ContainsFunc(s.Ways, inPartition(n)) {
			open = append(open, n)
		}
	}
	switch {
	case len(allowed) == group.Partitions && len(allowed) > 1:
		return 0, nil
	case len(open) == 0:
		return 0, &cloud.InsufficientCapacityError{Message: fmt.Sprintf("placement group %s has %d partitions for instances with the "+
			"tenancy %s, and none of them is available that the claim's requirement on %s allows",
			group.ID, most, s.Tenancy, awsv1.LabelPlacementGroupPartition)}
	case len(open) == 1 || o.Partition == nil:
		return open[0], nil
	}
	return o.Partition(open), nil
}

// inPartition returns whether an offering has room in a partition, as far as it is known.
func inPartition(number int) func(cloud.Choice) bool {
	value := strconv.Itoa(number)
	return func(c cloud.Choice) bool {
		return !slices.ContainsFunc(c.Offering.Requirements, func(r cloud.Requirement) bool {
			return r.Key == awsv1.LabelPlacementGroupPartition && !slices.Contains(r.Values, value)
		})
	}
}

// placement returns the placement in a launch template.
func (o *Order) placement(s *Selection) *ec2types.LaunchTemplatePlacementRequest {
	p := &ec2types.LaunchTemplatePlacementRequest{Tenancy: ec2types.Tenancy(s.Tenancy)}
	if o.Placement.ID != "" {
		p.GroupId = aws.String(o.Placement.ID)
	}
	if s.Partition != 0 {
		p.PartitionNumber = aws.Int32(int32(s.Partition))
	}
	return p
}

// labelPlacement sets the labels of the placement group on a launched machine. The partition is known if the claim
// allows one; otherwise the label is missing until EC2 shows the machine.
func (o *Order) labelPlacement(labels map[string]string) {
	delete(labels, awsv1.LabelPlacementGroupID)
	delete(labels, awsv1.LabelPlacementGroupPartition)
	if o.Placement.ID == "" {
		return
	}
	labels[awsv1.LabelPlacementGroupID] = o.Placement.ID
	wanted, restricted := cloud.NeedOf(o.Claim).Labels[awsv1.LabelPlacementGroupPartition]
	if value, one := wanted.Single(); restricted && one && o.Placement.Partitions > 0 {
		labels[awsv1.LabelPlacementGroupPartition] = value
	}
}

// labelPlaced sets the labels of an instance's placement group, as EC2 shows it.
func labelPlaced(labels map[string]string, placement *ec2types.Placement) {
	if id := aws.ToString(placement.GroupId); id != "" {
		labels[awsv1.LabelPlacementGroupID] = id
	}
	if partition := aws.ToInt32(placement.PartitionNumber); partition != 0 {
		labels[awsv1.LabelPlacementGroupPartition] = strconv.Itoa(int(partition))
	}
}

// oncePerPlace removes offerings of other partitions than the requested one, if one is, and keeps one of each type, zone
// and capacity type: the overrides of a fleet have no partition.
func oncePerPlace(ways []cloud.Choice, partition int) []cloud.Choice {
	type place struct{ typeName, zone, capacityType string }
	seen, inside := map[place]bool{}, inPartition(partition)
	return keep(ways, func(c cloud.Choice) bool {
		at := place{c.Type.Name, c.Offering.Zone, c.Offering.CapacityType}
		if partition != 0 && !inside(c) {
			return false
		}
		first := !seen[at]
		seen[at] = true
		return first
	})
}

// spreadLimit is part of EC2's message about a spread placement group that has its seven machines in a zone.
const spreadLimit = "limit of instances in this spread placement group"

// markPlacement records a refusal of a launch into a placement group. It says nothing about launches outside of the
// group. A spread group that is full in a zone takes no machine of any type there.
func markPlacement(u *instance.Unavailable, offer instance.Offer, message string, s *Selection) {
	offer.Group, offer.Partition = s.Placement.ID, s.Partition
	if !isSpreadLimit(message) {
		u.Mark(offer)
		return
	}
	for _, capacityType := range []string{karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot, karpv1.CapacityTypeReserved} {
		u.Mark(instance.Offer{CapacityType: capacityType, Zone: offer.Zone, Group: offer.Group})
	}
}

// SpreadGroupFull reports whether a launch failed because its spread placement group has no room in any of the zones.
func SpreadGroupFull(err error) bool {
	var insufficient *cloud.InsufficientCapacityError
	return errors.As(err, &insufficient) && isSpreadLimit(insufficient.Message)
}

func isSpreadLimit(message string) bool { return strings.Contains(message, spreadLimit) }

// noteLaunched stores the zone of a machine that was launched into a cluster placement group.
func (p *placements) noteLaunched(group instance.PlacementGroup, zone string) {
	if group.Strategy != catalog.StrategyCluster {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.zones == nil {
		p.zones = map[string]string{}
	}
	p.zones[group.ID] = zone
}

// GroupZone returns the zone of the launcher's machines in a placement group, "" if none is known.
func GroupZone(l *Launcher, group string) string { return l.placements.zoneOf(group) }

func (p *placements) zoneOf(group string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if zone := p.zones[group]; zone != "" {
		return zone
	}
	zone := ""
	for _, p := range p.last {
		if p.Live && p.Group == group && (zone == "" || p.Zone < zone) {
			zone = p.Zone
		}
	}
	return zone
}
