package interruption

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

const (
	// statusPeriod is the time between polls: EC2 checks every minute.
	statusPeriod = time.Minute
	// mostStatusWait is the longest time between two tries.
	mostStatusWait = 5 * time.Minute
)

// sweeps are what is asked of EC2, which takes all conditions of a call together, hence a call each. It answers with what
// is wrong only, so the answers are short however large the account is.
var sweeps = []struct {
	category Category
	filter   string
	values   []string
}{
	{CategoryInstance, "instance-status.status", []string{"impaired"}},
	{CategorySystem, "system-status.status", []string{"impaired"}},
	{CategoryEvent, "event.code", []string{"instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"}},
}

// RunStatus polls the statuses of instances and acts on them until ctx ends.
func (w *Watcher) RunStatus(ctx context.Context) error {
	checks := NewChecks()
	pause := backoff{first: statusPeriod, most: mostStatusWait}
	for ctx.Err() == nil {
		err := w.poll(ctx, checks)
		if ctx.Err() != nil {
			break
		}
		w.state(partPolling, err)
		if err != nil {
			w.sleep(ctx, pause.failed())
			continue
		}
		pause.wait = 0
		w.sleep(ctx, statusPeriod)
	}
	return nil
}

// poll sweeps once over each category. What cannot be asked now is neither forgotten nor counted. The error is of the
// calls; what cannot be acted on comes again with the next poll.
func (w *Watcher) poll(ctx context.Context, checks *Checks) error {
	var errs []error
	denied := false
	for _, s := range sweeps {
		statuses, err := w.sweep(ctx, s.category, s.filter, s.values)
		if err != nil {
			failed := new(call.Error)
			denied = denied || errors.As(err, &failed) && failed.Advice != ""
			errs = append(errs, err)
			continue
		}
		for _, sighting := range checks.Notices(s.category, statuses, w.opts.Clock.Now()) {
			ours, err := w.react(ctx, sighting.Notice)
			if err != nil {
				w.failed(sighting.Kind, err)
			}
			if ours && checks.Count(sighting) {
				tell(w.opts.Observer.Unhealthy, s.category)
			}
		}
	}
	w.blind.Store(denied)
	return errors.Join(errs...)
}

// sweep lists all machines that a filter finds.
func (w *Watcher) sweep(ctx context.Context, category Category, filter string, values []string) ([]Status, error) {
	pages := ec2.NewDescribeInstanceStatusPaginator(w.ec2, &ec2.DescribeInstanceStatusInput{
		Filters: []ec2types.Filter{{Name: &filter, Values: values}}, MaxResults: aws.Int32(1000)})
	var all []Status
	for n := 0; pages.HasMorePages(); n++ {
		if n == call.MostPages {
			return nil, call.Endless(serviceEC2, "DescribeInstanceStatus")
		}
		page, err := send(ctx, w, operation{serviceEC2, "DescribeInstanceStatus", 0, "ec2:DescribeInstanceStatus"}, func(ctx context.Context) (*ec2.DescribeInstanceStatusOutput, error) {
			return pages.NextPage(ctx, onceEC2)
		})
		if err != nil {
			return nil, err
		}
		for _, s := range page.InstanceStatuses {
			all = append(all, statusesOf(s, category, values)...)
		}
	}
	return all, nil
}

// statusesOf is what an instance's status says in a category.
func statusesOf(s ec2types.InstanceStatus, category Category, codes []string) []Status {
	id := aws.ToString(s.InstanceId)
	switch category {
	case CategoryInstance:
		return []Status{{Instance: id, Since: impairedSince(s.InstanceStatus)}}
	case CategorySystem:
		return []Status{{Instance: id, Since: impairedSince(s.SystemStatus)}}
	}
	var events []Status
	for _, e := range s.Events {
		if slices.Contains(codes, string(e.Code)) {
			events = append(events, Status{Instance: id, Code: string(e.Code), Description: aws.ToString(e.Description), NotBefore: aws.ToTime(e.NotBefore)})
		}
	}
	return events
}

// impairedSince is when the first of the checks began to fail.
func impairedSince(s *ec2types.InstanceStatusSummary) time.Time {
	var first time.Time
	if s == nil {
		return first
	}
	for _, d := range s.Details {
		if at := aws.ToTime(d.ImpairedSince); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}
