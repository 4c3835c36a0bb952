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
	// statusPeriod is the time between polls: EC2 checks every minute.
	statusPeriod = time.Minute
	// mostStatusWait is the longest time between two tries.
	mostStatusWait = 5 * time.Minute
)

// sweeps are what is asked of EC2, which takes all conditions of a call together, hence a call each. It answers with what
// is wrong only, so the answers are short however large the account is. An endpoint may ignore filters, so that the answer is
// read for what it says of each machine (statusesOf).
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
	// 1. Gather.
	var errs []error
	var sightings []Sighting
	denied := false
	for _, s := range sweeps {
		statuses, err := w.sweep(ctx, s.category, s.filter, s.values)
		if err != nil {
			failed := new(call.Error)
			denied = denied || errors.As(err, &failed) && failed.Advice != ""
			errs = append(errs, err)
			continue
		}
		sightings = append(sightings, checks.Notices(s.category, statuses, w.opts.Clock.Now())...)
	}
	w.blind.Store(denied)
	// 2. Evaluate.
	held, err := w.held(ctx, sightings)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	// 3. Act.
	for _, sighting := range sightings {
		act := w.react
		if held[sighting.Instances[0]] && braked(sighting.Notice, w.rules()) {
			act = w.announce
		}
		ours, err := act(ctx, sighting.Notice)
		if err != nil {
			w.failed(sighting.Kind, err)
		}
		if ours && checks.Count(sighting) {
			tell(w.opts.Observer.Unhealthy, sighting.episode.category)
		}
	}
	return errors.Join(errs...)
}

// braked reports whether a notice asks May: EC2's word is all there is, and has no deadline. A scheduled event has one if its time
// is to come.
func braked(n Notice, rules Rules) bool {
	switch n.Kind {
	case InstanceStatus, SystemStatus:
		return true
	case EventStatus:
		return !pending(n, rules)
	}
	return false
}

// pending reports whether the time of a scheduled change is to come, which makes it a deadline.
func pending(n Notice, rules Rules) bool { return n.At.After(rules.Now) }

// Held says how many machines in trouble stay for now.
type Held struct {
	// Troubled are those whose claims would be deleted because their status checks fail, or because of a scheduled event without a
	// time to come; Held are those of them that stay.
	Troubled, Held int
}

// held says which machines with failing checks are not replaced yet. A machine counts if its claim would be deleted, or its
// drain cut short. What could not be decided stays, too; it is polled again.
func (w *Watcher) held(ctx context.Context, sightings []Sighting) (map[string]bool, error) {
	var ids []string
	for _, s := range sightings {
		ids = append(ids, s.Instances...)
	}
	claims, err := w.opts.Claims(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("finding the claims of %d machines in trouble: %w", len(ids), err)
	}
	slices.SortStableFunc(sightings, func(a, b Sighting) int { return a.Sent.Compare(b.Sent) })
	held, rules := map[string]bool{}, w.rules()
	var failing []Decision
	for _, s := range sightings {
		id := s.Instances[0]
		claim, ours := claims[id]
		if !ours || !braked(s.Notice, rules) || held[id] {
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
	tell(w.opts.Observer.Held, Held{Troubled: len(failing), Held: len(held)})
	return held, nil
}

// may asks May, if there is something to ask and somewhere to ask it.
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

// announce says that a machine in trouble is not replaced yet. ours says whether it is one of ours.
func (w *Watcher) announce(ctx context.Context, n Notice) (ours bool, err error) {
	claims, err := w.opts.Claims(ctx, n.Instances)
	if err != nil {
		return false, fmt.Errorf("finding the claims of %v: %w", n.Instances, err)
	}
	var errs []error
	for id, claim := range claims {
		d := Decision{Claim: claim, Instance: id, Kind: n.Kind}
		d.warn("InstanceUnhealthy", "EC2 reports trouble of instance %s (%s); it is not replaced yet: involuntary removals of its NodePool are paused "+
			"(its event RemovalsPaused says why), or the instance and its node cannot be checked (the log of the controller says why)", id, n.Kind)
		errs = append(errs, w.act(ctx, d))
	}
	return len(claims) > 0, errors.Join(errs...)
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
			events = append(events, Status{Instance: id, Code: string(e.Code), Description: aws.ToString(e.Description), NotBefore: aws.ToTime(e.NotBefore)})
		}
	}
	return events
}

// impairedSince is when the first of the checks began to fail, zero if EC2 does not say. A machine is impaired if the summary
// says so and one of the checks has failed: ok, insufficient-data, initializing and not-applicable say that nothing is known to
// be wrong. https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceStatusSummary.html
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
