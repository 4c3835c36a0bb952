package disrupt

import (
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// disrupter is the name of the loop in metrics.
const disrupter = "disruption"

// reasons are those by which the metrics of pools and nodes are labeled.
var reasons = [...]plan.Reason{plan.Empty, plan.Drifted, plan.Underutilized}

// Reporter tells what the loop decides and does: which nodes are kept and why, the worth of the commands, and their
// progress, in metrics, in events and in the log. It decides nothing. Set the exported fields before the loop starts.
type Reporter struct {
	// Options are those of the loop's decisions. Reports about costs and scores use them too.
	Options disruption.Options
	// Why describes in words why a node is protected. It may be nil: then there are no events about it.
	Why      func(*model.Snapshot, plan.Verdict) string
	Metrics  *telemetry.Metrics
	Recorder *telemetry.Recorder
	Log      logr.Logger

	// kept holds, by node and reason, the last logged reason why a node is kept.
	kept map[string]string
}

// begin exports the duration of the decision in progress. Call the returned function when it ends.
func (r *Reporter) begin(by clock.PassiveClock) (end func()) {
	return r.Metrics.Passes.Begin(disrupter, by)
}

// decided reports a decision. The reasons why nodes in use are kept are only reported after a search.
func (r *Reporter) decided(t *decision) {
	log := r.Log.WithValues(telemetry.PlanID, t.id)
	telemetry.LogSlow(log, t.elapsed)
	r.blocked(t.snap, t.proposal)
	if t.search {
		r.measure(t)
		r.keptNodes(t.snap, t.proposal)
		r.scores(t.snap, t.proposal)
	}
	for _, c := range t.proposal.Commands {
		log.V(1).Info("proposing a command", "commandID", c.ID, "reason", c.Reason, "nodes", nodesOf(c))
	}
}

// failed logs the actions that failed.
func (r *Reporter) failed(doing string, outcomes []execute.Outcome) {
	for _, o := range execute.Failures(outcomes) {
		r.Log.Error(o.Err, doing)
	}
}

// stepped counts and reports one step of a command. newest returns the newest snapshot.
func (r *Reporter) stepped(s *step, newest func() *model.Snapshot) {
	c := s.after
	decision, reason, method := c.Decision(), strings.ToLower(string(c.Reason)), c.Method
	r.progress(s)
	if c.Phase == plan.Launching {
		r.replacements(newest(), c, s.before.Phase != plan.Launching)
	}
	switch {
	case s.abandons() && s.first:
		r.Metrics.DisruptionFailedValidations.WithLabelValues(method).Inc()
	case s.abandons():
		r.Metrics.DisruptionQueueFailures.WithLabelValues(decision, reason, method).Inc()
	case s.first:
		r.Metrics.DisruptionDecisions.WithLabelValues(decision, reason, method).Inc()
		for _, pool := range poolsOf(c) {
			r.Metrics.DisruptionDecisionsByPool.WithLabelValues(pool, decision, reason, method).Inc()
		}
	}
	r.logStep(s)
	execute.LogCreated(r.Log.WithValues("commandID", c.ID), s.outcomes, podsOfReplacement(newest, c))
	for _, o := range execute.Failures(s.outcomes) {
		r.Log.Error(o.Err, "executing a command", "commandID", c.ID)
	}
}

// progress emits the events about a proposal for consolidation, and about its rejection.
func (r *Reporter) progress(s *step) {
	c := s.after
	saving := explain.USD(c.Worth.Saving)
	for _, candidate := range c.Candidates {
		node, claim := candidateObjects(candidate)
		switch {
		case c.Reason != plan.Underutilized:
		case s.abandons():
			reason, why := classOf(c.Why.Code), explain.Verdict(nil, c.Why)
			r.Recorder.Emit(telemetry.ConsolidationRejected(node, c.ID, reason, why, saving), telemetry.ConsolidationRejected(claim, c.ID, reason, why, saving))
		case s.first:
			text := summary(c)
			r.Recorder.Emit(telemetry.ConsolidationCandidate(node, c.ID, text, saving), telemetry.ConsolidationCandidate(claim, c.ID, text, saving))
		}
	}
}

// replacements reports the claims for which a command waits. fresh means that they were just created.
func (r *Reporter) replacements(snap *model.Snapshot, c plan.Command, fresh bool) {
	for i := range c.Replacements {
		n := snap.Claim(c.Replacements[i].Name)
		if n == nil {
			continue
		}
		_, claim := objectsOf(n)
		if fresh {
			r.Recorder.Emit(telemetry.DisruptionLaunching(claim, karpv1.DisruptionReason(c.Reason)))
		}
		if n.Stage != model.Initialized {
			r.Recorder.Emit(telemetry.DisruptionWaitingReadiness(claim))
		}
	}
}

// logStep logs, at level info, that nodes are cordoned for removal, with the destination of their pods, and that
// this is undone. The claims that the command creates and deletes have their own log lines.
func (r *Reporter) logStep(s *step) {
	before, c := s.before, s.after
	log := r.Log.WithValues("commandID", c.ID, "reason", c.Reason, "decision", c.Decision(), "nodes", nodesOf(c))
	switch {
	case before.Phase == c.Phase && !s.first:
	case c.Phase == plan.Abandoned && before.Phase == plan.Proposed:
		log.V(1).Info("dropped a proposal", "code", explain.Code(c.Why.Code), "cause", explain.Verdict(nil, c.Why))
	case c.Phase == plan.Abandoned:
		log.Info("abandoned disruption", "phase", before.Phase, "code", explain.Code(c.Why.Code), "cause", explain.Verdict(nil, c.Why))
	case before.Phase == plan.Proposed && c.Phase != plan.Proposed:
		r.Recorder.Emit(disrupting(c)...)
		log.Info("disrupting nodes", "nodeClaims", claimsOf(c), "method", c.Method, "pods", c.Worth.Pods,
			"savingPerHour", explain.USD(c.Worth.Saving), "replacements", replacementsOf(c), "podsMoveTo", destinationsOf(c))
	default:
		log.V(1).Info("disruption continues", "phase", c.Phase)
	}
}

// measure sets the gauges.
func (r *Reporter) measure(t *decision) {
	looked, method := plan.Empty, disruption.MethodEmpty
	if t.proposal.Eligible[plan.Underutilized] > 0 {
		looked, method = plan.Underutilized, disruption.MethodMulti
	}
	telemetry.ObserveExample(r.Metrics.DisruptionEvaluation.WithLabelValues(strings.ToLower(string(looked)), method), t.elapsed.Seconds(), telemetry.ExemplarPlan, t.id)
	for _, reason := range reasons {
		r.Metrics.DisruptionEligibleNodes.WithLabelValues(strings.ToLower(string(reason))).Set(float64(t.proposal.Eligible[reason]))
	}
	g := guard.New(t.snap)
	r.Metrics.NodePoolsAllowedDisruptions.Reset()
	r.Metrics.NodePoolsConsumingBudgets.Reset()
	for _, pool := range t.snap.Pools {
		for _, reason := range reasons {
			allowance := g.Allowance(pool.Name, reason)
			r.Metrics.NodePoolsAllowedDisruptions.WithLabelValues(pool.Name, string(reason)).
				Set(float64(min(allowance.Remaining(), max(0, allowance.Total-allowance.Leaving))))
			r.Metrics.NodePoolsConsumingBudgets.WithLabelValues(pool.Name, string(reason)).Set(float64(allowance.Leaving))
		}
	}
}
