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
}

// placements caches EC2's information.
type placements struct {
	mu   sync.Mutex
	last map[string]placed // by instance
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
	l.notePlacements([]ec2types.Instance{*i}, false)
	return placementOf(i), nil
}

// notePlacements stores the placements of instances. A complete list replaces the earlier ones.
func (l *Launcher) notePlacements(instances []ec2types.Instance, complete bool) {
	l.placements.mu.Lock()
	defer l.placements.mu.Unlock()
	if complete || l.placements.last == nil {
		l.placements.last = map[string]placed{}
	}
	for i := range instances {
		l.placements.last[aws.ToString(instances[i].InstanceId)] = placed{placementOf(&instances[i]), l.opts.Clock.Now()}
	}
}

func placementOf(i *ec2types.Instance) Placement {
	p := Placement{Subnet: aws.ToString(i.SubnetId)}
	for _, group := range i.SecurityGroups {
		p.Groups = append(p.Groups, aws.ToString(group.GroupId))
	}
	slices.Sort(p.Groups)
	return p
}
