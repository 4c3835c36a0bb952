package disrupt

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/batch"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// mostSteps bounds the steps that a command takes within one tick. The whole lifecycle of a command has fewer.
const mostSteps = 8

// Loop is the loop that removes and replaces nodes. Set the exported fields before Start.
type Loop struct {
	Snapshot func() *model.Snapshot
	// Propose decides. Without search, it omits the search for a cheaper set of nodes.
	Propose func(snap *model.Snapshot, search bool) disruption.Proposal
	Writer  Writer
	// Changed receives when a change may allow the removal of a node. It may be nil: then only the timer triggers a
	// pass.
	Changed <-chan struct{}

	Timers controller.Timers
	Clock  clock.WithTicker
	// Report tells what is decided and done.
	Report Reporter

	// known holds the commands in progress, as far as this process has advanced them.
	known []plan.Command
	// next is when the passing of time alone may allow the removal of a node. seen is the version of the last
	// snapshot that was evaluated. version is that of the last one with the search, or 0 to evaluate any snapshot.
	// resting is the time before which no search runs.
	next          time.Time
	seen, version uint64
	resting       time.Time
}

// restShare is the pause before the next search, in multiples of the duration of a decision: the search for savings
// in a large and busy cluster must not take CPU time from urgent work. Decisions without the search continue.
const restShare = 10

// Start runs the loop until the context ends. It never returns an error: the next tick retries whatever failed.
func (d *Loop) Start(ctx context.Context) error {
	for {
		// 1. Wait for the timer, for the time at which a node may be removed, or for a change.
		received, ok := batch.Wait(ctx, d.Clock, d.Pause(), d.Changed, nil, nil)
		if received != nil {
			ok = batch.End(ctx, d.Clock, d.Changed, nil, batch.Window{Idle: d.Timers.BatchIdle, Longest: d.Timers.BatchIdle})
		}
		if !ok {
			return nil
		}
		d.Tick(ctx)
	}
}

// Pause returns how long the loop waits for a change before its next pass.
func (d *Loop) Pause() time.Duration {
	pause := d.Timers.DisruptionPoll
	if len(d.known) > 0 {
		pause = min(pause, d.Timers.CommandRetry)
	}
	if !d.next.IsZero() {
		pause = min(pause, max(d.next.Sub(d.Clock.Now()), time.Millisecond))
	}
	return pause
}

// due reports whether there is anything to decide, because something changed since the last decision or the time has
// come, and whether to search as well.
func (d *Loop) due(snap *model.Snapshot) (decide, search bool) {
	timely := !d.next.IsZero() && !snap.Now.Before(d.next)
	search = !snap.Now.Before(d.resting) && (d.version == 0 || snap.Version != d.version || timely)
	return search || timely || snap.Version != d.seen, search
}

// Tick runs one pass.
func (d *Loop) Tick(ctx context.Context) {
	// 2. Take a snapshot.
	snap := d.Snapshot()
	// 3. Resume the commands in progress, also those from before a restart.
	resumed := guard.Resume(snap, d.known...)
	// 4. Propose new commands.
	var proposed []plan.Command
	if decide, search := d.due(snap); decide {
		proposed = d.decide(snap, search)
	}
	// 5. Check again on the newest snapshot, and execute, step by step.
	d.known = d.advance(ctx, resumed, proposed)
	// 6. Clean up after a crash during a rollback.
	snap = d.Snapshot()
	d.Report.failed("removing the taint of a command that is gone", d.Writer.Do(ctx, guard.StaleTaintActions(snap)))
	d.Report.failed("pausing commands that are undone", d.Writer.Do(ctx, guard.Undone(snap)))
	// 7. Record which pods are expected on nodes that were launched to replace nodes that are being removed.
	d.Report.failed("recording that pods are expected", d.Writer.Do(ctx, reserve.Arriving(snap)))
}

// decision is what was decided on a snapshot.
type decision struct {
	id       string
	snap     *model.Snapshot
	proposal disruption.Proposal
	// search reports that a cheaper set of nodes was searched for.
	search  bool
	elapsed time.Duration
}

// decide proposes commands, and records the decision.
func (d *Loop) decide(snap *model.Snapshot, search bool) []plan.Command {
	began := d.Clock.Now()
	end := d.Report.begin(d.Clock)
	proposal := d.Propose(snap, search)
	end()
	elapsed := d.Clock.Since(began)
	d.next, d.seen = proposal.Next, snap.Version
	if search {
		d.version, d.resting = snap.Version, d.Clock.Now().Add(restShare*elapsed)
	} else if d.next.IsZero() || d.resting.Before(d.next) {
		d.next = d.resting
	}
	for i := range proposal.Commands {
		c := &proposal.Commands[i]
		c.Deadline = c.Created.Add(d.Timers.CommandTimeout)
	}
	d.Report.decided(&decision{id: telemetry.PassID(disrupter, began, snap.Version), snap: snap, proposal: proposal, search: search,
		elapsed: elapsed})
	return proposal.Commands
}

// step is one step of a command: the command before and after it, and the results of its writes.
type step struct {
	before, after plan.Command
	outcomes      []execute.Outcome
	// first marks the first step of a command.
	first bool
}

// abandons reports whether the command was abandoned in this step.
func (s *step) abandons() bool {
	return s.after.Phase == plan.Abandoned && s.before.Phase != plan.Abandoned
}

// advance steps the commands until no further step is possible now, and returns those that are still in progress.
func (d *Loop) advance(ctx context.Context, resumed, proposed []plan.Command) []plan.Command {
	var inProgress []plan.Command
	fresh := map[string]bool{}
	for _, command := range proposed {
		fresh[command.ID] = true
	}
	commands := append(resumed, proposed...)
	for n := 0; n < mostSteps && len(commands) > 0; n++ {
		var again []plan.Command
		for i, a := range d.Writer.Advance(ctx, d.Snapshot, commands) {
			s := &step{before: commands[i], after: a.Command, outcomes: a.Outcomes, first: fresh[a.Command.ID] && n == 0}
			if s.first && s.abandons() {
				d.version = 0 // search again
			}
			d.Report.stepped(s, d.Snapshot)
			switch {
			case len(s.outcomes) == 0 && s.after.Phase.Over():
			case len(s.outcomes) == 0 || len(execute.Failures(s.outcomes)) > 0:
				inProgress = append(inProgress, s.after)
			default:
				again = append(again, s.after)
			}
		}
		commands = again
	}
	return append(inProgress, commands...)
}
