package launch

import (
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Instances in a zone that traffic is shifted away from stay as they are: they are neither terminated nor tagged, and
// EC2's last answer before it stopped showing them holds until the shift ends. EC2 may not answer for such a zone, and
// an instance that is missing in a list is no proof that it is gone.

// lastShown holds EC2's last answer about each instance.
type lastShown struct {
	// away reports whether traffic is shifted away from a zone, by its ID. Nil: zonal shifts are not followed.
	away      func(zoneID string) bool
	mu        sync.Mutex
	instances map[string]ec2types.Instance // by ID; nil unless zonal shifts are followed
}

// isShifted reports whether the instance is in a zone that traffic is shifted away from.
func (s *lastShown) isShifted(i *ec2types.Instance) bool {
	return s.away != nil && i.Placement != nil && s.away(aws.ToString(i.Placement.AvailabilityZoneId))
}

// withShifted adds to a complete list the instances of shifted zones that it lacks, as EC2 last showed them. Those that
// were terminating are gone.
func (s *lastShown) withShifted(instances []ec2types.Instance) []ec2types.Instance {
	if s.away == nil {
		return instances
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	listed := make(map[string]ec2types.Instance, len(instances))
	for i := range instances {
		listed[aws.ToString(instances[i].InstanceId)] = slim(instances[i])
	}
	for id, i := range s.instances {
		if _, is := listed[id]; !is && s.isShifted(&i) && !isTerminating(&i) {
			listed[id] = i
			instances = append(instances, i)
		}
	}
	s.instances = listed
	return instances
}

// slim returns an instance without its largest fields, which this package does not read.
func slim(i ec2types.Instance) ec2types.Instance {
	i.NetworkInterfaces, i.BlockDeviceMappings = nil, nil
	return i
}

// lastOf returns EC2's last answer about an instance that runs in a shifted zone, nil for all others.
func (s *lastShown) lastOf(id string) *ec2types.Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, known := s.instances[id]; known && s.isShifted(&i) && !isTerminating(&i) {
		return &i
	}
	return nil
}

// shiftedError is the refusal to change an instance in a shifted zone.
func shiftedError(doing string, i *ec2types.Instance) error {
	return fmt.Errorf("%s instance %s: traffic is shifted away from zone %s (%s); this is done when the shift ends", doing,
		aws.ToString(i.InstanceId), aws.ToString(i.Placement.AvailabilityZone), aws.ToString(i.Placement.AvailabilityZoneId))
}
