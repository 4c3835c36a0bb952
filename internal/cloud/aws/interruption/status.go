package interruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

const (
	// statusPeriod is the time between polls. EC2 checks every minute.
	statusPeriod = time.Minute
	// mostStatusWait is the maximum time between two tries.
	mostStatusWait = 5 * time.Minute
)

// sweeps are the filters of the calls. EC2 combines the filters of one call with AND, so each needs its own call. The
// responses contain only machines with problems, so they are short however large the account is. An endpoint may ignore
// filters, so the response is evaluated per machine (statusesOf).
var sweeps = []struct {
	category Category
	filter   string
	values   []string
}{
	{CategoryInstance, "instance-status.status", []string{"impaired"}},
	{CategorySystem, "system-status.status", []string{"impaired"}},
	{CategoryEvent, "event.code", []string{"instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"}},
	{CategoryEBS, "attached-ebs-status.status", []string{"impaired"}},
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

// poll makes one sweep per category. Categories that cannot be read now are neither forgotten nor counted. The error is
// from the calls. Actions that fail are repeated with the next poll.
func (w *Watcher) poll(ctx context.Context, checks *Checks) error {
	// 1. Collect the statuses.
	var errs []error
	var sightings []Sighting
	denied := false
	for _, s := range sweeps {
		if s.category == CategoryEBS && w.opts.Volumes == nil {
			continue
		}
		statuses, err := w.sweep(ctx, s.category, s.filter, s.values)
		if err != nil {
			failed := new(call.Error)
			denied = denied || errors.As(err, &failed) && failed.Advice != ""
			errs = append(errs, err)
			continue
		}
		if s.category == CategoryEBS {
			statuses, err = w.onOwnVolumes(ctx, statuses)
			if w.state(partVolumes, err); err != nil && len(statuses) == 0 {
				continue
			}
		}
		sightings = append(sightings, checks.Notices(s.category, statuses, w.opts.Clock.Now())...)
	}
	w.blind.Store(denied)
	// 2. Evaluate.
	claims, err := w.claimsOf(ctx, sightings)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	// Other controllers poll for their machines themselves.
	sightings = slices.DeleteFunc(sightings, func(s Sighting) bool { return claims[s.Instances[0]].Other })
	held := w.held(ctx, sightings, claims)
	// 3. Act.
	for _, sighting := range sightings {
		act := w.react
		if held[sighting.Instances[0]] && limited(sighting.Notice, w.rules()) {
			act = w.announce
		}
		ours, err := act(ctx, sighting.Notice)
		if err != nil {
			w.failed(sighting.Kind, err)
		}
		if ours && checks.Count(sighting) {
			notify(w.opts.Observer.Unhealthy, sighting.episode.category)
		}
	}
	return errors.Join(errs...)
}

// limited reports whether a notice is subject to May: EC2's report is the only evidence and has no deadline. A scheduled
// event has a deadline if its time is in the future.
func limited(n Notice, rules Rules) bool {
	switch n.Kind {
	case InstanceStatus, SystemStatus, EBSStatus:
		return true
	case EventStatus:
		return !pending(n, rules)
	}
	return false
}

// pending reports whether the time of a scheduled change is in the future, which makes it a deadline.
func pending(n Notice, rules Rules) bool { return n.At.After(rules.Now) }

// Held counts the failing machines that stay for now.
type Held struct {
	// Troubled is the number of machines whose claims would be deleted because their status checks fail, or because of
	// a scheduled event whose time has passed. Held is the number of those that stay.
	Troubled, Held int
}

// claimsOf returns the claims of the machines, by instance.
func (w *Watcher) claimsOf(ctx context.Context, sightings []Sighting) (map[string]Claim, error) {
	var ids []string
	for _, s := range sightings {
		ids = append(ids, s.Instances...)
	}
	claims, err := w.opts.Claims(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("finding the claims of %d impaired machines: %w", len(ids), err)
	}
	return claims, nil
}

// held returns the machines with failing checks that are not replaced yet. A machine counts if its claim would be
// deleted, or its drain shortened. Machines without a decision stay as well and are polled again.
func (w *Watcher) held(ctx context.Context, sightings []Sighting, claims map[string]Claim) map[string]bool {
	slices.SortStableFunc(sightings, func(a, b Sighting) int { return a.Sent.Compare(b.Sent) })
	held, rules := map[string]bool{}, w.rules()
	var failing []Decision
	for _, s := range sightings {
		id := s.Instances[0]
		claim, ours := claims[id]
		if !ours || !limited(s.Notice, rules) || held[id] {
			continue
		}
		if d := Decide(s.Notice, id, claim, rules); !d.Idle() {
			held[id], failing = true, append(failing, d)
		}
	}
	may, err := w.may(ctx, failing)
	if err != nil {
		w.failed(failing[0].Kind, err)
	}
	for id, is := range may {
		if is {
			delete(held, id)
		}
	}
	notify(w.opts.Observer.Held, Held{Troubled: len(failing), Held: len(held)})
	return held
}

// may calls May if it is set and there are decisions to make.
func (w *Watcher) may(ctx context.Context, failing []Decision) (map[string]bool, error) {
	if len(failing) > 0 && w.opts.May != nil {
		return w.opts.May(ctx, failing)
	}
	all := map[string]bool{}
	for _, d := range failing {
		all[d.Instance] = true
	}
	return all, nil
}

// announce emits an event that a failing machine is not replaced yet. ours reports whether it is a machine of this
// cluster.
func (w *Watcher) announce(ctx context.Context, n Notice) (ours bool, err error) {
	claims, err := w.opts.Claims(ctx, n.Instances)
	if err != nil {
		return false, fmt.Errorf("finding the claims of %v: %w", n.Instances, err)
	}
	var errs []error
	for id, claim := range claims {
		d := Decision{Claim: claim, Instance: id, Kind: n.Kind}
		d.warn("InstanceUnhealthy", "EC2 reports an impairment of instance %s (%s); it is not replaced yet: involuntary removals of its NodePool are paused "+
			"(its event RemovalsPaused says why), or the instance and its node cannot be checked (the log of the controller says why)", id, n.Kind)
		errs = append(errs, w.act(ctx, d))
	}
	return len(claims) > 0, errors.Join(errs...)
}

// sweep lists all machines that match a filter.
func (w *Watcher) sweep(ctx context.Context, category Category, filter string, values []string) ([]Status, error) {
	pages := ec2.NewDescribeInstanceStatusPaginator(w.ec2, &ec2.DescribeInstanceStatusInput{
		Filters: []ec2types.Filter{{Name: &filter, Values: values}}, MaxResults: aws.Int32(1000)})
	var all []Status
	for page, err := range pagesOf(ctx, w, operation{serviceEC2, "DescribeInstanceStatus", 0, "ec2:DescribeInstanceStatus"}, pages) {
		if err != nil {
			return nil, err
		}
		for _, s := range page.InstanceStatuses {
			all = append(all, statusesOf(s, category, values)...)
		}
	}
	return all, nil
}

// statusesOf evaluates an instance's status in a category.
func statusesOf(s ec2types.InstanceStatus, category Category, codes []string) []Status {
	id := aws.ToString(s.InstanceId)
	if category == CategoryEBS {
		if !ebsImpaired(s.AttachedEbsStatus) {
			return nil
		}
		return []Status{{Instance: id}}
	}
	summary := map[Category]*ec2types.InstanceStatusSummary{CategoryInstance: s.InstanceStatus, CategorySystem: s.SystemStatus}
	if checked, isCheck := summary[category]; isCheck {
		since, impaired := impairedSince(checked)
		if !impaired {
			return nil
		}
		return []Status{{Instance: id, Since: since}}
	}
	var events []Status
	for _, e := range s.Events {
		if slices.Contains(codes, string(e.Code)) {
			events = append(events, Status{Instance: id, Code: string(e.Code), Description: aws.ToString(e.Description),
				NotBefore: aws.ToTime(e.NotBefore)})
		}
	}
	return events
}

// impairedSince returns when the first of the checks began to fail, zero if EC2 does not report it. A machine is
// impaired if the summary is impaired and one of the checks has failed: ok, insufficient-data, initializing and
// not-applicable mean that no problem is known.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceStatusSummary.html
func impairedSince(s *ec2types.InstanceStatusSummary) (first time.Time, impaired bool) {
	if s == nil || s.Status != ec2types.SummaryStatusImpaired {
		return first, false
	}
	for _, d := range s.Details {
		if d.Status != ec2types.StatusTypeFailed {
			continue
		}
		impaired = true
		if at := aws.ToTime(d.ImpairedSince); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first, impaired
}
