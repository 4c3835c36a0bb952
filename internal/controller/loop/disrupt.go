package loop

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// mostSteps bounds the steps that a command takes within one tick; a whole life has fewer.
const mostSteps = 8

// Disrupt is the loop that lets nodes go. Set the exported fields before Start.
type Disrupt struct {
	Snapshot func() *model.Snapshot
	// Propose decides; without search it leaves the search for a cheaper fleet out.
	Propose func(snap *model.Snapshot, search bool) disruption.Proposal
	// Options are those that Propose goes by; what is told of costs and scores goes by them too.
	Options disruption.Options
	Writer  Writer
	// Why says in words why a node is protected; nil for no events about that.
	Why func(*model.Snapshot, plan.Verdict) string
	// Changed rings when something changed that may let a node go; may be nil, then the timer alone decides.
	Changed <-chan struct{}

	Timers   controller.Timers
	Clock    clock.WithTicker
	Metrics  *telemetry.Metrics
	Recorder *telemetry.Recorder
	History  *History
	Log      logr.Logger

	// told is, by node, why it was last logged to stay.
	told map[string]string
	// known are the commands under way as far as this process has brought them.
	known []plan.Command
	// next is when time alone may let a node go; seen is the version of the snapshot that was decided on last, version that
	// of the last with the search, 0 to decide again whatever the snapshot; resting is until when nothing is searched.
	next          time.Time
	seen, version uint64
	resting       time.Time
	// setbacks are the latest, by claim.
	setbacks map[string]setback
}

// restShare is how many times as long as a decision took the loop rests before it searches again: looking for savings in
// a large and busy cluster must not take the processor from what is urgent. What needs no search goes on.
const restShare = 10

// disrupter is the loop's name in metrics.
const disrupter = "disruption"

// Start runs the loop until the context ends. It never returns an error: whatever goes wrong in a tick is tried again
// in the next.
func (d *Disrupt) Start(ctx context.Context) error {
	for {
		// 1. Wait for the timer, for the moment at which a node may go, or for news.
		rang, ok := wait(ctx, d.Clock, d.pause(), d.Changed, nil)
		if rang != nil {
			ok = batch(ctx, d.Clock, d.Changed, window{idle: d.Timers.BatchIdle, longest: d.Timers.BatchIdle})
		}
		if !ok {
			return nil
		}
		d.Tick(ctx)
	}
}

func (d *Disrupt) pause() time.Duration {
	pause := d.Timers.DisruptionPoll
	if len(d.known) > 0 {
		pause = min(pause, d.Timers.CommandRetry)
	}
	if !d.next.IsZero() {
		pause = min(pause, max(d.next.Sub(d.Clock.Now()), time.Millisecond))
	}
	return pause
}

// due reports whether there is anything to decide: something changed since the last decision, or time has come; and
// whether to search, too.
func (d *Disrupt) due(snap *model.Snapshot) (decide, search bool) {
	timely := !d.next.IsZero() && !snap.Now.Before(d.next)
	search = !snap.Now.Before(d.resting) && (d.version == 0 || snap.Version != d.version || timely)
	return search || timely || snap.Version != d.seen, search
}

// Tick is one pass.
func (d *Disrupt) Tick(ctx context.Context) {
	// 2. Take a snapshot.
	snap := d.Snapshot()
	// 3. What is under way, also from before a restart.
	commands := plan.Resume(snap, d.known...)
	// 4. Decide what to begin.
	resumed := len(commands)
	if decide, search := d.due(snap); decide {
		commands = append(commands, d.decide(snap, search)...)
	}
	// 5. Check again on the newest snapshot, and do, step by step.
	d.known = d.advance(ctx, commands, resumed)
	// 6. Clean up after a crash in the middle of a rollback.
	snap = d.Snapshot()
	for _, o := range execute.Failures(d.Writer.Do(ctx, plan.Orphans(snap))) {
		d.Log.Error(o.Err, "removing the taint of a command that is gone")
	}
	// 7. Remember who is still to come to nodes that were bought for others that leave.
	for _, o := range execute.Failures(d.Writer.Do(ctx, plan.Notices(snap))) {
		d.Log.Error(o.Err, "noting that pods are to come")
	}
}

// decide proposes commands, and records and tells what it decided. What nodes in use are kept for is only told after a
// search.
func (d *Disrupt) decide(snap *model.Snapshot, search bool) []plan.Command {
	began := d.Clock.Now()
	proposal := d.pass(snap, search)
	d.holdBack(snap, &proposal)
	took := d.Clock.Since(began)
	id := passID(disrupter, began, snap.Version)
	log := d.Log.WithValues(planID, id)
	logSlow(log, took)
	d.next, d.seen = proposal.Next, snap.Version
	d.History.Add(Record{Snapshot: snap, Proposal: &proposal})
	d.blocked(snap, proposal)
	if search {
		d.version, d.resting = snap.Version, d.Clock.Now().Add(restShare*took)
		d.measure(snap, proposal, took, id)
		d.tellKept(snap, proposal)
		d.tellScores(snap, proposal)
	} else if d.next.IsZero() || d.resting.Before(d.next) {
		d.next = d.resting
	}
	for i := range proposal.Commands {
		c := &proposal.Commands[i]
		c.Deadline = c.Created.Add(d.Timers.CommandTimeout)
		log.V(1).Info("proposing a command", "commandID", c.ID, "reason", c.Reason, "nodes", nodesOf(*c))
	}
	return proposal.Commands
}

// pass proposes, and shows for how long it has been at it.
func (d *Disrupt) pass(snap *model.Snapshot, search bool) disruption.Proposal {
	defer d.Metrics.Passes.Begin(disrupter, d.Clock)()
	return d.Propose(snap, search)
}

// advance steps the commands until none has anything more to do now, and returns those that are still under way. Those
// from index resumed on have just been proposed.
func (d *Disrupt) advance(ctx context.Context, commands []plan.Command, resumed int) []plan.Command {
	var under []plan.Command
	fresh := map[string]bool{}
	for _, command := range commands[resumed:] {
		fresh[command.ID] = true
	}
	for step := 0; step < mostSteps && len(commands) > 0; step++ {
		var again []plan.Command
		for i, a := range d.Writer.Advance(ctx, d.Snapshot, commands) {
			d.observe(commands[i], a, fresh[a.Command.ID] && step == 0)
			failed := d.logFailures(a)
			switch {
			case len(a.Outcomes) == 0 && a.Command.Phase.Over():
			case len(a.Outcomes) == 0 || failed:
				under = append(under, a.Command)
			default:
				again = append(again, a.Command)
			}
		}
		commands = again
	}
	return append(under, commands...)
}

func (d *Disrupt) logFailures(a execute.Advanced) bool {
	failures := execute.Failures(a.Outcomes)
	for _, o := range failures {
		d.Log.Error(o.Err, "carrying out a command", "commandID", a.Command.ID)
	}
	return len(failures) > 0
}

// observe counts and logs what became of a command in one step; first is its very first.
func (d *Disrupt) observe(before plan.Command, after execute.Advanced, first bool) {
	c := after.Command
	decision, reason, method := c.Decision(), strings.ToLower(string(c.Reason)), c.Method
	abandoned := c.Phase == plan.Abandoned && before.Phase != plan.Abandoned
	d.tellCommand(before, c, first)
	switch {
	case abandoned && first:
		d.version = 0
		d.Metrics.DisruptionFailedValidations.WithLabelValues(method).Inc()
	case abandoned:
		d.setBack(c)
		d.Metrics.DisruptionQueueFailures.WithLabelValues(decision, reason, method).Inc()
	case first:
		d.Metrics.DisruptionDecisions.WithLabelValues(decision, reason, method).Inc()
		for _, pool := range poolsOf(c) {
			d.Metrics.DisruptionDecisionsByPool.WithLabelValues(pool, decision, reason, method).Inc()
		}
	}
	d.logCommand(before, c, first)
}

// logCommand tells, at info, that nodes are cordoned to be removed, with what becomes of their pods, and that this is taken
// back. The claims that it creates and deletes have their own lines.
func (d *Disrupt) logCommand(before, c plan.Command, first bool) {
	log := d.Log.WithValues("commandID", c.ID, "reason", c.Reason, "decision", c.Decision(), "nodes", nodesOf(c))
	switch {
	case before.Phase == c.Phase && !first:
	case c.Phase == plan.Abandoned && before.Phase == plan.Proposed:
		log.V(1).Info("dropped a proposal", "code", explain.Code(c.Why.Code), "cause", explain.Verdict(nil, c.Why))
	case c.Phase == plan.Abandoned:
		log.Info("abandoned disruption", "phase", before.Phase, "code", explain.Code(c.Why.Code), "cause", explain.Verdict(nil, c.Why))
	case before.Phase == plan.Proposed && c.Phase != plan.Proposed:
		d.Recorder.Emit(disrupting(c)...)
		log.Info("disrupting nodes", "nodeClaims", claimsOf(c), "pods", c.Worth.Pods, "savingPerHour", explain.USD(c.Worth.Saving), "replacements", replacementsOf(c),
			"podsMoveTo", landingsOf(c))
	default:
		log.V(1).Info("disruption goes on", "phase", c.Phase)
	}
}

// poolsOf are the pools of a command's candidates, each once.
func poolsOf(c plan.Command) []string {
	pools := make([]string, len(c.Candidates))
	for i, candidate := range c.Candidates {
		pools[i] = candidate.Pool
	}
	slices.Sort(pools)
	return slices.Compact(pools)
}

func nodesOf(c plan.Command) []string {
	nodes := make([]string, len(c.Candidates))
	for i, candidate := range c.Candidates {
		nodes[i] = candidate.Node
	}
	return nodes
}

// measure sets the gauges.
func (d *Disrupt) measure(snap *model.Snapshot, proposal disruption.Proposal, took time.Duration, id string) {
	looked, method := plan.Empty, disruption.MethodEmpty
	if proposal.Eligible[plan.Underutilized] > 0 {
		looked, method = plan.Underutilized, disruption.MethodMulti
	}
	telemetry.ObserveExample(d.Metrics.DisruptionEvaluation.WithLabelValues(strings.ToLower(string(looked)), method), took.Seconds(), telemetry.ExemplarPlan, id)
	for _, reason := range []plan.Reason{plan.Empty, plan.Drifted, plan.Underutilized} {
		d.Metrics.DisruptionEligibleNodes.WithLabelValues(strings.ToLower(string(reason))).Set(float64(proposal.Eligible[reason]))
	}
	guard := plan.NewGuard(snap)
	d.Metrics.NodePoolsAllowedDisruptions.Reset()
	d.Metrics.NodePoolsConsumingBudgets.Reset()
	for _, pool := range snap.Pools {
		for _, reason := range []plan.Reason{plan.Empty, plan.Drifted, plan.Underutilized} {
			allowance := guard.Allowance(pool.Name, reason)
			d.Metrics.NodePoolsAllowedDisruptions.WithLabelValues(pool.Name, string(reason)).
				Set(float64(min(allowance.Remaining(), max(0, allowance.Total-allowance.Leaving))))
			d.Metrics.NodePoolsConsumingBudgets.WithLabelValues(pool.Name, string(reason)).Set(float64(allowance.Leaving))
		}
	}
}

// blocked tells users of nodes that somebody or a PodDisruptionBudget protects, and of pools whose budgets keep a node that could go.
func (d *Disrupt) blocked(snap *model.Snapshot, proposal disruption.Proposal) {
	told := map[string]bool{}
	for _, kept := range proposal.Kept {
		switch kept.Verdict.Code {
		case plan.ReplacementsFailed:
			if pool := snap.Pool(kept.Pool); pool != nil && !told[kept.Pool+" "+string(kept.Reason)] {
				told[kept.Pool+" "+string(kept.Reason)] = true
				d.backingOff(snap, pool, kept.Reason)
			}
		case plan.NodeProtected, plan.PDBBlocks, plan.PDBsConflict:
			d.protected(snap, kept)
		case plan.BudgetExhausted, plan.BudgetUnreadable:
			if pool := snap.Pool(kept.Pool); pool != nil && !told[kept.Pool] {
				told[kept.Pool] = true
				d.Recorder.Emit(telemetry.PoolDisruptionBlocked(poolObject(pool), karpv1.DisruptionReason(kept.Reason)))
			}
		}
	}
}

// backingOff tells that nodes of the pool are not replaced for the reason for a while. The text stays the same until the
// next failure, so that one event stands for the pause.
func (d *Disrupt) backingOff(snap *model.Snapshot, pool *model.Pool, reason plan.Reason) {
	b, until, failing := plan.BackoffOf(pool.PoolSpec, reason, snap.Now)
	if !failing {
		return
	}
	switch reason {
	case plan.Drifted:
		d.Recorder.Emit(telemetry.DriftBackoff(poolObject(pool), telemetry.Failing{Failures: b.Failures, Until: until, Why: b.Why}))
	case plan.Underutilized:
		d.Recorder.Emit(telemetry.ConsolidationBackoff(poolObject(pool), telemetry.Failing{Failures: b.Failures, Until: until, Why: b.Why}))
	case plan.Expired:
		d.Recorder.Emit(telemetry.ExpirationBackoff(poolObject(pool), telemetry.Failing{Failures: b.Failures, Until: until, Why: b.Why}))
	}
}

func (d *Disrupt) protected(snap *model.Snapshot, kept disruption.Kept) {
	n := snap.Node(kept.Node)
	if d.Why == nil || n == nil {
		return
	}
	why := d.Why(snap, kept.Verdict)
	node, claim := objectsOf(n)
	d.Recorder.Emit(telemetry.DisruptionBlocked(node, why), telemetry.DisruptionBlocked(claim, why))
}
