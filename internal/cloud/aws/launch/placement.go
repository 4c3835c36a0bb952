package launch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// placementFor is how long EC2's information about an instance's network is used. Machines, which the garbage collector
// calls every two minutes, refreshes it for all instances at once.
const placementFor = 10 * time.Minute

// Placement is the network placement of an instance.
type Placement struct {
	Subnet string
	// Groups are the IDs of its security groups, sorted.
	Groups []string
	// Group is the ID of its placement group, and Partition its partition, empty and 0 without one.
	Group     string
	Partition int
	// Zone is its zone. Live is false if it has terminated or is terminating.
	Zone string
	Live bool
}

// placements caches EC2's information.
type placements struct {
	mu   sync.Mutex
	last map[string]placed // by instance
	// zones are the zones of the machines of cluster placement groups that were launched since the last complete list,
	// by group.
	zones map[string]string
}

type placed struct {
	Placement
	at time.Time
}

// Placement returns the network placement of the instance. Errors: cloud.ErrNotFound, ErrNotShown, or those of EC2.
func (l *Launcher) Placement(ctx context.Context, providerID string) (Placement, error) {
	id, err := instanceID(providerID)
	if err != nil {
		return Placement{}, err
	}
	l.placements.mu.Lock()
	known, found := l.placements.last[id]
	l.placements.mu.Unlock()
	if found && l.opts.Clock.Since(known.at) < placementFor {
		return known.Placement, nil
	}
	i, err := l.read(ctx, providerID)
	if err != nil {
		return Placement{}, err
	}
	l.placements.note([]ec2types.Instance{*i}, l.opts.Clock.Now(), false)
	return placementOf(i), nil
}

// note stores the placements of instances. A complete list replaces the earlier ones.
func (p *placements) note(instances []ec2types.Instance, now time.Time, complete bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if complete {
		p.last, p.zones = nil, nil
	}
	if p.last == nil {
		p.last = map[string]placed{}
	}
	for i := range instances {
		p.last[aws.ToString(instances[i].InstanceId)] = placed{placementOf(&instances[i]), now}
	}
}

func placementOf(i *ec2types.Instance) Placement {
	p := Placement{Subnet: aws.ToString(i.SubnetId)}
	for _, group := range i.SecurityGroups {
		p.Groups = append(p.Groups, aws.ToString(group.GroupId))
	}
	slices.Sort(p.Groups)
	if i.Placement != nil {
		p.Group, p.Partition = aws.ToString(i.Placement.GroupId), int(aws.ToInt32(i.Placement.PartitionNumber))
		p.Zone = aws.ToString(i.Placement.AvailabilityZone)
	}
	p.Live = !isTerminating(i)
	return p
}
