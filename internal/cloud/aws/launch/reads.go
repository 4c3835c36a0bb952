package launch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// mostFilterValues is the maximum number of values in one request's filters
// (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Filter.html).
const mostFilterValues = 200

// readFor is the timeout of a batch of reads or terminations.
const readFor = time.Minute

// lookup is a request to read or terminate an instance.
type lookup struct {
	id       string
	done     chan struct{}
	instance *ec2types.Instance // nil if EC2 does not show it
	err      error
}

// ErrNotShown means that an instance was launched so recently that EC2 may not show it yet.
var ErrNotShown = errors.New("EC2 does not show it yet")

// Machine reads one instance. Errors: cloud.ErrNotFound, ErrNotShown, and others.
func (l *Launcher) Machine(ctx context.Context, providerID string) (*cloud.Machine, error) {
	i, err := l.read(ctx, providerID)
	if err != nil {
		return nil, err
	}
	return machineOf(i, l.opts.IgnoreReservations), nil
}

// Runs reports whether EC2 shows an instance as pending or running. It returns ErrNotShown for an instance that was
// launched recently and is not shown yet, and errors of EC2.
func (l *Launcher) Runs(ctx context.Context, id string) (bool, error) {
	i, err := l.instance(ctx, id)
	if errors.Is(err, cloud.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return i.State.Name == ec2types.InstanceStateNamePending || i.State.Name == ec2types.InstanceStateNameRunning, nil
}

// Volumes returns the IDs of the volumes that belong to an instance: that of its root device, and those that end with it.
// Volumes that were attached later, such as those of pods, remain when it terminates.
func Volumes(ctx context.Context, l *Launcher, id string) ([]string, error) {
	i, err := l.instance(ctx, id)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, m := range i.BlockDeviceMappings {
		root := aws.ToString(m.DeviceName) == aws.ToString(i.RootDeviceName)
		if m.Ebs != nil && (root || aws.ToBool(m.Ebs.DeleteOnTermination)) {
			ids = append(ids, aws.ToString(m.Ebs.VolumeId))
		}
	}
	return ids, nil
}

// read reads an instance that has not terminated. Instances in a shifted zone are not read again.
func (l *Launcher) read(ctx context.Context, providerID string) (*ec2types.Instance, error) {
	id, err := instanceID(providerID)
	if err != nil {
		return nil, err
	}
	if last := l.lastSeen.lastOf(id); last != nil {
		return last, nil
	}
	return l.instance(ctx, id)
}

// instance reads an instance that has not terminated.
func (l *Launcher) instance(ctx context.Context, id string) (*ec2types.Instance, error) {
	q, err := l.queue(ctx, l.lookups, id)
	if err != nil {
		return nil, fmt.Errorf("reading instance %s: %w", id, err)
	}
	if q.instance != nil && q.instance.State != nil && q.instance.State.Name != ec2types.InstanceStateNameTerminated {
		return q.instance, nil
	}
	if q.instance == nil && l.isRecent(id) {
		return nil, fmt.Errorf("reading instance %s: %w", id, ErrNotShown)
	}
	return nil, fmt.Errorf("instance %s: %w", id, cloud.ErrNotFound)
}

func (l *Launcher) isRecent(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, known := l.recent[id]
	return known && l.opts.Clock.Since(at) < l.opts.Settle
}

func (l *Launcher) queue(ctx context.Context, b *batcher[*lookup], id string) (*lookup, error) {
	q := &lookup{id: id, done: make(chan struct{})}
	b.add("", q)
	select {
	case <-q.done:
		return q, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// describeBatch reads many instances at once. It selects them by a filter, so that an instance that is gone is missing
// from the result and not an error.
func (l *Launcher) describeBatch(_ string, batch []*lookup) {
	ctx, cancel := context.WithTimeout(context.Background(), readFor)
	defer cancel()
	instances, err := l.list(ctx, ec2types.Filter{Name: aws.String("instance-id"), Values: idsOf(batch)})
	for _, q := range batch {
		q.err = err
		for i := range instances {
			if aws.ToString(instances[i].InstanceId) == q.id {
				q.instance = &instances[i]
			}
		}
		close(q.done)
	}
}

func idsOf(batch []*lookup) []string {
	var ids []string
	for _, q := range batch {
		ids = append(ids, q.id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Terminate terminates the instance. It returns nil while the instance is terminating, and cloud.ErrNotFound when it
// has terminated. An instance in a shifted zone is not terminated: the error is a *cloud.TerminateError with the reason
// cloud.ReasonZoneShifted.
func (l *Launcher) Terminate(ctx context.Context, providerID string) error {
	i, err := l.read(ctx, providerID)
	if errors.Is(err, cloud.ErrNotFound) {
		l.opts.Reserved.Gone(providerID[strings.LastIndex(providerID, "/")+1:])
	}
	if err != nil {
		return err
	}
	if hold := holdFrom(i); hold.ID != "" {
		l.opts.Reserved.Seen(hold.ID, aws.ToString(i.InstanceId))
	}
	if isTerminating(i) {
		return nil
	}
	if l.lastSeen.isShifted(i) {
		return &cloud.TerminateError{Reason: cloud.ReasonZoneShifted, Err: shiftedError("terminating", i)}
	}
	id := aws.ToString(i.InstanceId)
	if _, err := l.queue(ctx, l.terminations, id); err != nil {
		if !errors.Is(err, cloud.ErrNotFound) {
			l.reportNotTerminated(i)
		}
		err = fmt.Errorf("terminating instance %s: %w", id, err)
		if reason := ReasonOf(err.Error()); reason != launchFailed && !errors.Is(err, cloud.ErrNotFound) {
			return &cloud.TerminateError{Reason: reason, Err: err}
		}
		return err
	}
	return nil
}

// terminateBatch terminates many instances at once. If EC2 does not know one of them, it terminates none; then each is
// terminated individually.
func (l *Launcher) terminateBatch(_ string, batch []*lookup) {
	ctx, cancel := context.WithTimeout(context.Background(), readFor)
	defer cancel()
	ids := idsOf(batch)
	err := l.terminate(ctx, ids)
	alone := err != nil && len(ids) > 1 && callResultOf(err) == refused
	for _, q := range batch {
		if q.err = err; alone {
			q.err = l.terminate(ctx, []string{q.id})
		}
		if slices.Contains(goneCodes, codeOf(q.err)) {
			q.err = fmt.Errorf("%w: %w", cloud.ErrNotFound, q.err)
		}
		close(q.done)
	}
}

func (l *Launcher) terminate(ctx context.Context, ids []string) error {
	_, err := withRetries(ctx, l, "TerminateInstances", l.opts.EC2.TerminateInstances, &ec2.TerminateInstancesInput{InstanceIds: ids})
	return err
}

// Machines lists the cluster's instances, including those that are terminating. An instance that is not tagged with its
// claim yet gets the claim from the records, so that it is not treated as a leak. The records are read after the
// instances: a fleet launch is recorded on its claims before EC2 is called, so the records of all listed instances are
// seen.
func (l *Launcher) Machines(ctx context.Context) ([]cloud.Machine, error) {
	instances, err := l.list(ctx,
		ec2types.Filter{Name: aws.String("tag-key"), Values: []string{awsv1.TagNodePool}},
		ec2types.Filter{Name: aws.String("tag-key"), Values: []string{awsv1.TagNodeClass}},
		tagFilter(awsv1.TagCluster, l.opts.ClusterName))
	if err != nil {
		return nil, fmt.Errorf("listing the instances of cluster %s: %w", l.opts.ClusterName, err)
	}
	instances = l.lastSeen.withShifted(instances)
	records, err := l.opts.RecordStore.Records(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the instances of cluster %s: %w", l.opts.ClusterName, err)
	}
	slices.SortFunc(instances, func(a, b ec2types.Instance) int {
		return strings.Compare(aws.ToString(a.InstanceId), aws.ToString(b.InstanceId))
	})
	l.placements.note(instances, l.opts.Clock.Now(), true)
	owners, claimants := ownersOf(instances, records), claimantsOf(records)
	var machines []cloud.Machine
	for i := range instances {
		if state := instances[i].State; state != nil && state.Name == ec2types.InstanceStateNameTerminated {
			continue
		}
		m := machineOf(&instances[i], l.opts.IgnoreReservations)
		if id := m.Labels[awsv1.LabelCapacityReservationID]; id != "" {
			l.opts.Reserved.Seen(id, aws.ToString(instances[i].InstanceId))
		}
		if m.Claim == "" {
			m.Claim = owners[aws.ToString(instances[i].InstanceId)]
		}
		if token := tagMap(instances[i].Tags)[TagFleetLaunch]; token != "" {
			m.Noted, m.Claimants = true, claimants[token]
		}
		machines = append(machines, *m)
	}
	return machines, nil
}

// ownersOf assigns the instances of each fleet launch, which are sorted by ID, to the claims that have it on record, in
// the same way as the fleet launch itself.
func ownersOf(instances []ec2types.Instance, records map[string]Record) map[string]string {
	byToken := map[string][]launched{}
	for i := range instances {
		if token := tagMap(instances[i].Tags)[TagFleetLaunch]; token != "" {
			byToken[token] = append(byToken[token], launchedFrom(&instances[i], true))
		}
	}
	owners := map[string]string{}
	for claim, rec := range records {
		if b := searchOutcome(byToken[rec.Token()]).instanceFor(rec.Index, claim); b != nil {
			owners[b.id] = claim
		}
	}
	return owners
}

// claimantsOf returns the claims that have each fleet launch on record, sorted, by token. The owner of each instance is
// known only when all of them are shown.
func claimantsOf(records map[string]Record) map[string][]string {
	claimants := map[string][]string{}
	for _, claim := range slices.Sorted(maps.Keys(records)) {
		token := records[claim].Token()
		claimants[token] = append(claimants[token], claim)
	}
	return claimants
}

// machineOf converts an instance. It sets no capacity, which requires the instance types.
func machineOf(i *ec2types.Instance, withoutReservations bool) *cloud.Machine {
	b, tags := launchedFrom(i, withoutReservations), tagMap(i.Tags)
	labels := map[string]string{
		corev1.LabelInstanceTypeStable: b.typeName, corev1.LabelTopologyZone: b.zone, karpv1.LabelCapacityType: b.capacityType,
		karpv1.LabelNodePool: tags[awsv1.TagNodePool], awsv1.LabelNodeClass: tags[awsv1.TagNodeClass],
	}
	if b.image != "" {
		labels[awsv1.LabelInstanceAMIID] = b.image
	}
	if i.Placement != nil {
		if id := aws.ToString(i.Placement.AvailabilityZoneId); id != "" {
			labels[awsv1.LabelZoneID] = id
		}
		if tenancy := string(i.Placement.Tenancy); tenancy != "" {
			labels[awsv1.LabelInstanceTenancy] = tenancy
		}
		labelPlaced(labels, i.Placement)
	}
	b.hold.addTo(labels)
	return &cloud.Machine{
		ProviderID: providerID(b.zone, b.id), Claim: b.claim, Labels: labels, ImageID: b.image,
		Created: aws.ToTime(i.LaunchTime), Terminating: b.terminating,
	}
}

// isTerminating reports whether the instance has terminated or is terminating.
func isTerminating(i *ec2types.Instance) bool {
	return i.State != nil && (i.State.Name == ec2types.InstanceStateNameShuttingDown || i.State.Name == ec2types.InstanceStateNameTerminated)
}
