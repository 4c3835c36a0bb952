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

// Observer is told what happens; each function may be nil and is called from several goroutines.
type Observer struct {
	// Received counts messages: karpenter_interruption_received_messages_total, label message_type.
	Received func(Kind)
	// Foreign counts messages about machines none of which is ours. They are counted by Received as well.
	Foreign func(Kind)
	// Deleted counts messages that were removed: karpenter_interruption_deleted_messages_total.
	Deleted func(int)
	// Waited is the time from an event until it was acted upon: karpenter_interruption_message_queue_duration_seconds.
	Waited func(time.Duration)
	// Unhealthy counts a machine once while it has a trouble: karpenter_interruption_instance_status_unhealthy_total,
	// label category.
	Unhealthy func(Category)
	// Called is told of each call to AWS.
	Called func(call.Call)
	// Trouble is told what keeps a part (receiving, deleting, polling) from working, once for as long as it is the same,
	// and nil when it works again.
	Trouble func(part string, err error)
	// Failed is told that a notice could not be acted on. Its message is delivered again, its status polled again.
	Failed func(Kind, error)
	// Held is told with each poll how many machines in trouble are not replaced yet, because the brake holds them.
	Held func(Held)
	// Spoilt is told of a message that is Malformed, with the reason.
	Spoilt func(error)
}

func tell[T any](f func(T), what T) {
	if f != nil {
		f(what)
	}
}

// Options of a Watcher. Claims and Act are needed, and Queue for RunQueue.
type Options struct {
	// Queue is the name of the SQS queue in the account and region of the client.
	Queue string
	// Clock is the real one when nil.
	Clock clock.Clock
	// Lead is how long before a scheduled change a machine is replaced, two days when zero.
	Lead time.Duration
	// Claims finds the claims of machines by their ids (i-0123...), save for those that are not ours. It is to read what
	// is near, such as an index of a cache: every message asks.
	Claims func(ctx context.Context, instances []string) (map[string]Claim, error)
	// Act carries a decision out: events, deadline, deletion. It may be asked for the same claim again, when an error was
	// returned or the process began anew. An error leaves the message in the queue, which delivers it again.
	Act func(context.Context, Decision) error
	// May says, by instance, which of the claims whose status checks fail may be replaced now, when the other ones stay for
	// now. It is asked once for all of a poll, the longest in trouble first. The answer stands also with an error. Nil
	// allows all.
	May func(ctx context.Context, failing []Decision) (map[string]bool, error)
	// Ahead is by how much Clock is ahead of the API server's, by which deadlines are written; nil for not at all.
	Ahead func() time.Duration
	// SoldOut closes an offering for a while; it may be nil.
	SoldOut  func(Offering)
	Observer Observer
}

// Watcher hears of interruptions. Its two loops may run at the same time.
type Watcher struct {
	sqs  SQSAPI
	ec2  EC2API
	opts Options
	// blind says that statuses cannot be polled, so that nobody would think of a scheduled change again.
	blind atomic.Bool

	mu       sync.Mutex
	done     map[string]past
	troubles map[string]string // causes by part
}

// past is what was last done to a claim, by UID: caches take a moment to show it.
type past struct {
	at       time.Time
	replaced bool
	deadline time.Time
}

// remembered is how long it takes until the claims show what was done, with room to spare.
const remembered = 2 * time.Minute

// NewWatcher needs both clients, RunQueue and RunStatus the one each.
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

// react does what follows from a notice. ours says whether one of the machines is ours.
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
		return len(claims) > 0, nil // the polls find it too, and ask May
	}
	var errs []error
	for _, id := range n.Instances {
		claim, found := claims[id]
		if !found {
			continue
		}
		ours = true
		d := Decide(n, id, claim, rules)
		if d.SoldOut != nil {
			tell(w.opts.SoldOut, *d.SoldOut)
		}
		errs = append(errs, w.act(ctx, d))
	}
	return ours, errors.Join(errs...)
}

// rules are those of now.
func (w *Watcher) rules() Rules {
	now := w.opts.Clock.Now()
	if w.opts.Ahead != nil {
		now = now.Add(-w.opts.Ahead())
	}
	return Rules{Now: now, Lead: w.opts.Lead}
}

// act has a decision carried out, unless it was.
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

// note remembers that a decision is being carried out; again says that it adds nothing to an earlier one. Decisions that
// only tell something are passed on each time: whoever makes events of them drops repetitions.
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

// failed tells that a notice could not be acted on.
func (w *Watcher) failed(kind Kind, err error) {
	if w.opts.Observer.Failed != nil {
		w.opts.Observer.Failed(kind, err)
	}
}

// The parts of a Watcher that may have trouble.
const (
	partReceiving = "receiving"
	partDeleting  = "deleting"
	partPolling   = "polling"
)

// state tells how a part fares, if that is news.
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

// backoff is the time until a loop tries again: it doubles from first to most.
type backoff struct{ first, most, wait time.Duration }

// failed is how long to wait after a failure.
func (b *backoff) failed() time.Duration {
	b.wait = min(max(2*b.wait, b.first), b.most)
	return b.wait
}

// sleep waits on the clock.
func (w *Watcher) sleep(ctx context.Context, d time.Duration) {
	timer := w.opts.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}
