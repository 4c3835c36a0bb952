package disrupt

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/batch"
	"github.com/karpenter-go/karpenter/internal/controller/decisions"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
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
	// Options are those that Propose uses. Reports about costs and scores use them too.
	Options disruption.Options
	Writer  Writer
	// Why describes in words why a node is protected. It may be nil: then there are no events about it.
	Why func(*model.Snapshot, plan.Verdict) string
	// Changed receives when a change may allow the removal of a node. It may be nil: then only the timer triggers a
	// pass.
	Changed <-chan struct{}

	Timers   controller.Timers
	Clock    clock.WithTicker
	Metrics  *telemetry.Metrics
	Recorder *telemetry.Recorder
	History  *decisions.History
	Log      logr.Logger

	// told holds, by node, the last logged reason why it is kept.
	told map[string]string
	// known holds the commands in progress, as far as this process has advanced them.
	known []plan.Command
	// next is when the passing of time alone may allow the removal of a node. seen is the version of the last
	// snapshot that was evaluated. version is that of the last one with the search, or 0 to evaluate any snapshot.
	// resting is the time before which no search runs.
	next          time.Time
	seen, version uint64
	resting       time.Time
	// setbacks holds the latest setbacks, by claim.
	setbacks map[string]setback
}

// restShare is the pause before the next search, in multiples of the duration of a decision: the search for savings
// in a large and busy cluster must not take CPU time from urgent work. Decisions without the search continue.
const restShare = 10

// disrupter is the name of the loop in metrics.
const disrupter = "disruption"

// Start runs the loop until the context ends. It never returns an error: the next tick retries whatever failed.
func (d *Loop) Start(ctx context.Context) error {
	for {
		// 1. Wait for the timer, for the time at which a node may be removed, or for a change.
		received, ok := batch.Wait(ctx, d.Clock, d.pause(), d.Changed, nil)
		if received != nil {
			ok = batch.End(ctx, d.Clock, d.Changed, batch.Window{Idle: d.Timers.BatchIdle, Longest: d.Timers.BatchIdle})
		}
		if !ok {
			return nil
		}
		d.Tick(ctx)
	}
}

func (d *Loop) pause() time.Duration {
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
	commands := plan.Resume(snap, d.known...)
	// 4. Propose new commands.
	resumed := len(commands)
	if decide, search := d.due(snap); decide {
		commands = append(commands, d.decide(snap, search)...)
	}
	// 5. Check again on the newest snapshot, and execute, step by step.
	d.known = d.advance(ctx, commands, resumed)
	// 6. Clean up after a crash during a rollback.
	snap = d.Snapshot()
	for _, o := range execute.Failures(d.Writer.Do(ctx, plan.Orphans(snap))) {
		d.Log.Error(o.Err, "removing the taint of a command that is gone")
	}
	// 7. Record which pods are expected on nodes that were launched to replace nodes that are being removed.
	for _, o := range execute.Failures(d.Writer.Do(ctx, plan.Notices(snap))) {
		d.Log.Error(o.Err, "noting that pods are to come")
	}
}

// decide proposes commands, and records and reports the decision. The reasons why nodes in use are kept are only
// reported after a search.
func (d *Loop) decide(snap *model.Snapshot, search bool) []plan.Command {
	began := d.Clock.Now()
	proposal := d.pass(snap, search)
	d.holdBack(snap, &proposal)
	took := d.Clock.Since(began)
	id := telemetry.PassID(disrupter, began, snap.Version)
	log := d.Log.WithValues(telemetry.PlanID, id)
	telemetry.LogSlow(log, took)
	d.next, d.seen = proposal.Next, snap.Version
	d.History.Add(decisions.Record{Snapshot: snap, Proposal: &proposal})
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

// pass returns the proposed commands, and exports the duration of the pass in progress.
func (d *Loop) pass(snap *model.Snapshot, search bool) disruption.Proposal {
	defer d.Metrics.Passes.Begin(disrupter, d.Clock)()
	return d.Propose(snap, search)
}

// advance steps the commands until no further step is possible now, and returns those that are still in progress. The
// commands from index resumed on are new.
func (d *Loop) advance(ctx context.Context, commands []plan.Command, resumed int) []plan.Command {
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

func (d *Loop) logFailures(a execute.Advanced) bool {
	failures := execute.Failures(a.Outcomes)
	for _, o := range failures {
		d.Log.Error(o.Err, "carrying out a command", "commandID", a.Command.ID)
	}
	return len(failures) > 0
}

// observe counts and logs the result of one step of a command. first marks the first step.
func (d *Loop) observe(before plan.Command, after execute.Advanced, first bool) {
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

// logCommand logs, at level info, that nodes are cordoned for removal, with the destination of their pods, and that
// this is undone. The claims that the command creates and deletes have their own log lines.
func (d *Loop) logCommand(before, c plan.Command, first bool) {
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

// poolsOf returns the pools of a command's candidates, each once.
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
func (d *Loop) measure(snap *model.Snapshot, proposal disruption.Proposal, took time.Duration, id string) {
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

// blocked emits events for nodes that a user or a PodDisruptionBudget protects, and for pools whose budgets keep a
// node that could be removed.
func (d *Loop) blocked(snap *model.Snapshot, proposal disruption.Proposal) {
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
				d.Recorder.Emit(telemetry.PoolDisruptionBlocked(telemetry.PoolObject(pool.Name, pool.UID), karpv1.DisruptionReason(kept.Reason)))
			}
		}
	}
}

// backingOff reports that nodes of the pool are temporarily not replaced for the reason. The text stays the same
// until the next failure, so that one event covers the pause.
func (d *Loop) backingOff(snap *model.Snapshot, pool *model.Pool, reason plan.Reason) {
	b, until, failing := plan.BackoffOf(pool.PoolSpec, reason, snap.Now)
	if !failing {
		return
	}
	switch reason {
	case plan.Drifted:
		d.Recorder.Emit(telemetry.DriftBackoff(telemetry.PoolObject(pool.Name, pool.UID), telemetry.Failing{Failures: b.Failures, Until: until, Why: b.Why}))
	case plan.Underutilized:
		d.Recorder.Emit(telemetry.ConsolidationBackoff(telemetry.PoolObject(pool.Name, pool.UID), telemetry.Failing{Failures: b.Failures, Until: until, Why: b.Why}))
	case plan.Expired:
		d.Recorder.Emit(telemetry.ExpirationBackoff(telemetry.PoolObject(pool.Name, pool.UID), telemetry.Failing{Failures: b.Failures, Until: until, Why: b.Why}))
	}
}

func (d *Loop) protected(snap *model.Snapshot, kept disruption.Kept) {
	n := snap.Node(kept.Node)
	if d.Why == nil || n == nil {
		return
	}
	why := d.Why(snap, kept.Verdict)
	node, claim := objectsOf(n)
	d.Recorder.Emit(telemetry.DisruptionBlocked(node, why), telemetry.DisruptionBlocked(claim, why))
}
