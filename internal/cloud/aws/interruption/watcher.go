package interruption

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

// Observer receives notifications. Each function may be nil and is called concurrently.
type Observer struct {
	// Received counts messages: karpenter_interruption_received_messages_total, label message_type.
	Received func(Kind)
	// Foreign counts messages about machines outside of this cluster. Received counts them as well.
	Foreign func(Kind)
	// Deleted counts deleted messages: karpenter_interruption_deleted_messages_total.
	Deleted func(int)
	// Waited receives the time from an event until the action: karpenter_interruption_message_queue_duration_seconds.
	Waited func(time.Duration)
	// Unhealthy counts each problem of a machine once: karpenter_interruption_instance_status_unhealthy_total, label
	// category.
	Unhealthy func(Category)
	// Called receives each call to AWS.
	Called func(call.Call)
	// Trouble receives the problem that stops a part (receiving, deleting, polling), once as long as it is the same,
	// and nil when the part works again.
	Trouble func(part string, err error)
	// Failed receives a failed action. The message is delivered again, or the status polled again.
	Failed func(Kind, error)
	// Held receives, with each poll, the number of failing machines that are not replaced yet because of May.
	Held func(Held)
	// Spoilt receives the error of a Malformed message.
	Spoilt func(error)
}

func notify[T any](f func(T), what T) {
	if f != nil {
		f(what)
	}
}

// Options configure a Watcher. Claims and Act are required, and Queue for RunQueue.
type Options struct {
	// Queue is the name of the SQS queue in the account and region of the client.
	Queue string
	// Clock is the real clock when nil.
	Clock clock.Clock
	// Lead is how long before a scheduled change a machine is replaced, two days when zero.
	Lead time.Duration
	// Claims returns the claims of machines by their IDs (i-0123...), without foreign ones. It should read from a local
	// index such as a cache, because it is called for every message.
	Claims func(ctx context.Context, instances []string) (map[string]Claim, error)
	// Act applies a decision: events, deadline, deletion. It may be called again for the same claim after an error or a
	// restart. After an error the message stays in the queue and is delivered again.
	Act func(context.Context, Decision) error
	// May returns, by instance, which of the claims with failing status checks may be replaced now; the others stay for
	// now. It is called once for all claims of a poll, those that have failed longest first. The result is valid even
	// beside an error. Nil allows all.
	May func(ctx context.Context, failing []Decision) (map[string]bool, error)
	// Runs reports whether EC2 shows an instance as pending or running. It confirms notices that an instance stops or
	// terminates. Nil confirms all.
	Runs func(ctx context.Context, instance string) (bool, error)
	// Volumes returns the IDs of the volumes that belong to an instance, without those of pods. Nil: no volumes are polled.
	Volumes func(ctx context.Context, instance string) ([]string, error)
	// Ahead returns by how much Clock is ahead of the API server's clock, which deadlines use. Nil means zero.
	Ahead func() time.Duration
	// SoldOut marks an offering as unavailable for a while. It may be nil.
	SoldOut  func(context.Context, Offering)
	Observer Observer
}

// Watcher handles interruptions. Its two loops may run concurrently.
type Watcher struct {
	sqs  SQSAPI
	ec2  EC2API
	opts Options
	// blind means that statuses cannot be polled, so no later poll would find a scheduled change.
	blind atomic.Bool

	mu       sync.Mutex
	done     map[string]past
	troubles map[string]string // causes by part
}

// past is the last action on a claim, by UID: caches show it with a delay.
type past struct {
	at       time.Time
	replaced bool
	deadline time.Time
}

// remembered is an upper bound for the time until caches show an action.
const remembered = 2 * time.Minute

// NewWatcher returns a Watcher. queue is required for RunQueue, and status for RunStatus.
func NewWatcher(queue SQSAPI, status EC2API, opts Options) (*Watcher, error) {
	if opts.Claims == nil || opts.Act == nil {
		return nil, errors.New("watching for interruptions: Claims and Act are needed")
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Lead == 0 {
		opts.Lead = 48 * time.Hour
	}
	return &Watcher{sqs: queue, ec2: status, opts: opts, done: map[string]past{}, troubles: map[string]string{}}, nil
}

// react acts on a notice. ours reports whether one of the machines belongs to this cluster.
func (w *Watcher) react(ctx context.Context, n Notice) (ours bool, err error) {
	if len(n.Instances) == 0 {
		return true, nil
	}
	claims, err := w.opts.Claims(ctx, n.Instances)
	if err != nil {
		return false, fmt.Errorf("finding the claims of %v: %w", n.Instances, err)
	}
	rules := w.rules()
	if w.blind.Load() {
		rules.Lead = time.Duration(1<<63 - 1)
	} else if n.Kind == ScheduledChange && !pending(n, rules) {
		return len(claims) > 0, nil // the polls find it too, and call May
	}
	var errs []error
	for _, id := range n.Instances {
		claim, found := claims[id]
		if !found {
			continue
		}
		ours = true
		d := Decide(n, id, claim, rules)
		if d.SoldOut != nil && w.opts.SoldOut != nil {
			w.opts.SoldOut(ctx, *d.SoldOut)
		}
		if d, err = w.secondLook(ctx, n, d); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, w.act(ctx, d))
	}
	return ours, errors.Join(errs...)
}

// disputed is how long a notice that an instance stops or terminates is delivered again while EC2 shows the instance as
// running. EC2's lists follow a change within seconds, see
// https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html.
const disputed = 2 * time.Minute

// secondLook confirms a notice that an instance has stopped or terminated, which may be replayed or forged, by reading
// the instance. It returns an error, so that the notice is delivered again, if EC2 cannot be read, or shows the instance
// as running for less than two minutes. After that the claim stays, and the returned decision has an event only. If the
// instance is gone after all, collection replaces the claim.
func (w *Watcher) secondLook(ctx context.Context, n Notice, d Decision) (Decision, error) {
	if n.Kind != InstanceStopped && n.Kind != InstanceTerminated || !d.Replace || w.opts.Runs == nil {
		return d, nil
	}
	runs, err := w.opts.Runs(ctx, d.Instance)
	switch {
	case err != nil:
		return d, fmt.Errorf("confirming that instance %s of nodeclaim %s is %s: %w", d.Instance, d.Claim.Name, n.What, err)
	case !runs:
		return d, nil
	case !n.Sent.IsZero() && w.opts.Clock.Since(n.Sent) < disputed:
		return d, fmt.Errorf("instance %s of nodeclaim %s is %s by the notice, and runs by EC2's list: waiting until they agree",
			d.Instance, d.Claim.Name, n.What)
	}
	kept := Decision{Claim: d.Claim, Instance: d.Instance, Kind: d.Kind}
	kept.warn("InstanceStateDisputed", "A notice says that instance %s is %s, but EC2 shows it as running: the NodeClaim is kept", d.Instance, n.What)
	return kept, nil
}

// rules returns the current rules.
func (w *Watcher) rules() Rules {
	now := w.opts.Clock.Now()
	if w.opts.Ahead != nil {
		now = now.Add(-w.opts.Ahead())
	}
	return Rules{Now: now, Lead: w.opts.Lead}
}

// act applies a decision, unless that was done before.
func (w *Watcher) act(ctx context.Context, d Decision) error {
	before, again := w.note(d)
	if again {
		return nil
	}
	d.Replace = d.Replace && !before.replaced
	if err := w.opts.Act(ctx, d); err != nil {
		w.mu.Lock()
		w.done[d.Claim.UID] = before
		w.mu.Unlock()
		return fmt.Errorf("acting on %s of nodeclaim %s: %w", d.Kind, d.Claim.Name, err)
	}
	return nil
}

// note records that a decision is being applied. again means that it adds nothing to an earlier one. Decisions with
// events only are always passed on: the event recorder drops duplicates.
func (w *Watcher) note(d Decision) (before past, again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.opts.Clock.Now()
	for uid, p := range w.done {
		if now.Sub(p.at) > remembered {
			delete(w.done, uid)
		}
	}
	before = w.done[d.Claim.UID]
	if d.Idle() {
		return before, false
	}
	nearer := !d.Deadline.IsZero() && (before.deadline.IsZero() || d.Deadline.Before(before.deadline))
	if !nearer && (before.replaced || !d.Replace) {
		return before, true
	}
	after := past{at: now, replaced: before.replaced || d.Replace, deadline: before.deadline}
	if nearer {
		after.deadline = d.Deadline
	}
	w.done[d.Claim.UID] = after
	return before, false
}

// failed reports a failed action.
func (w *Watcher) failed(kind Kind, err error) {
	if w.opts.Observer.Failed != nil {
		w.opts.Observer.Failed(kind, err)
	}
}

// The parts of a Watcher for which problems are reported.
const (
	partReceiving = "receiving"
	partDeleting  = "deleting"
	partPolling   = "polling"
	partVolumes   = "reading volumes"
)

// state reports a change in the state of a part.
func (w *Watcher) state(part string, err error) {
	cause := ""
	if err != nil {
		cause = err.Error()
	}
	if failed := new(call.Error); errors.As(err, &failed) {
		cause = causeOf(failed)
	}
	w.mu.Lock()
	news := w.troubles[part] != cause
	w.troubles[part] = cause
	w.mu.Unlock()
	if news && w.opts.Observer.Trouble != nil {
		w.opts.Observer.Trouble(part, err)
	}
}

// backoff is the delay of a loop's next try. It doubles from first to most.
type backoff struct{ first, most, wait time.Duration }

// failed returns the delay after a failure.
func (b *backoff) failed() time.Duration {
	b.wait = min(max(2*b.wait, b.first), b.most)
	return b.wait
}

// sleep waits on the clock, or until ctx ends.
func (w *Watcher) sleep(ctx context.Context, d time.Duration) {
	timer := w.opts.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}
