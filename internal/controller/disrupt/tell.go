package disrupt

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// This file reports the decisions of the loop: which nodes are kept and why, the worth of the commands, and their
// progress.

// passing reports whether a code describes a state that ends by itself, or that is reported on the pool. There is no
// event for each node then.
func passing(code plan.Code) bool {
	switch code {
	case plan.NodeTaken, plan.NodeLeaving, plan.NodeNotReady, plan.NodeNominated, plan.NodeTooYoung, plan.NodeUnsettled, plan.NodeExpecting, plan.BudgetExhausted, plan.BudgetUnreadable,
		plan.ReplacementsFailed:
		return true
	}
	return false
}

// tellKept reports for every node that is kept the reason: in a gauge, in the log when it changes, and in an event
// where an obstacle requires action, the most expensive nodes first.
func (d *Loop) tellKept(snap *model.Snapshot, proposal disruption.Proposal) {
	type obstacle struct {
		node    *model.Node
		verdict plan.Verdict
		cost    int64
	}
	var obstacles []obstacle
	told := make(map[string]string, len(proposal.Kept))
	d.Metrics.DisruptionKeptNodes.Reset()
	for _, k := range proposal.Kept {
		n := snap.Node(k.Node)
		if n == nil {
			continue
		}
		code := explain.Code(k.Verdict.Code)
		d.Metrics.DisruptionKeptNodes.WithLabelValues(k.Pool, strings.ToLower(string(k.Reason)), code).Inc()
		key := k.Node + "/" + string(k.Reason)
		if told[key] = code; d.told[key] != code {
			d.Log.V(1).Info("keeping a node", "node", k.Node, "nodePool", k.Pool, "reason", k.Reason, "code", code, "costPerHour", explain.USD(d.Options.CostOf(snap, n)))
		}
		if (k.Reason == plan.Underutilized || k.Reason == plan.Empty) && !passing(k.Verdict.Code) {
			o := obstacle{node: n, verdict: k.Verdict}
			if n.Price > 0 { // otherwise the price is unknown
				o.cost = d.Options.CostOf(snap, n)
			}
			obstacles = append(obstacles, o)
		}
	}
	d.told = told
	if d.Recorder == nil {
		return
	}
	slices.SortStableFunc(obstacles, func(a, b obstacle) int { return cmp.Compare(b.cost, a.cost) })
	for _, o := range obstacles {
		code, why := explain.Code(o.verdict.Code), explain.Unconsolidatable(snap, o.verdict, o.cost)
		node, claim := objectsOf(o.node)
		d.Recorder.Emit(telemetry.Unconsolidatable(node, code, why), telemetry.Unconsolidatable(claim, code, why))
	}
}

// tellScores counts the evaluated commands, and reports those that the policy Balanced approves.
func (d *Loop) tellScores(snap *model.Snapshot, proposal disruption.Proposal) {
	var commands []plan.Command
	for _, c := range proposal.Commands {
		if c.Reason == plan.Underutilized {
			commands = append(commands, c)
		}
	}
	for i, shares := range d.Options.Shares(snap, commands) {
		for _, s := range shares {
			policy := telemetry.PolicyLabel(karpv1.ConsolidationPolicy(s.Policy))
			d.Metrics.ConsolidationScore.WithLabelValues("approved", s.Pool, policy).Observe(s.Score)
			d.Metrics.ConsolidationMoves.WithLabelValues("approved", s.Pool, policy).Inc()
			if s.Policy == string(karpv1.ConsolidateBalanced) {
				d.approved(snap, commands[i], s)
			}
		}
	}
	for _, k := range proposal.Kept {
		if k.Verdict.Code != plan.ScoreTooLow {
			continue
		}
		policy := telemetry.PolicyLabel(karpv1.ConsolidateBalanced)
		d.Metrics.ConsolidationScore.WithLabelValues("rejected", k.Pool, policy).Observe(float64(k.Verdict.Have) / 1000)
		d.Metrics.ConsolidationMoves.WithLabelValues("rejected", k.Pool, policy).Inc()
	}
}

func (d *Loop) approved(snap *model.Snapshot, c plan.Command, s disruption.Share) {
	b := telemetry.Balance{Score: s.Score, Least: disruption.LeastScore, Saving: 100 * s.Saving, Disruption: 100 * s.Disruption}
	if len(c.Candidates) > 1 {
		d.Recorder.Emit(telemetry.ConsolidationApproved(telemetry.PoolObject(s.Pool, snap.Pool(s.Pool).UID), b))
		return
	}
	node, claim := candidateObjects(c.Candidates[0])
	d.Recorder.Emit(telemetry.ConsolidationApproved(node, b), telemetry.ConsolidationApproved(claim, b))
}

// tellCommand reports the progress of a command. first marks the first step.
func (d *Loop) tellCommand(before, c plan.Command, first bool) {
	saving := explain.USD(c.Worth.Saving)
	for _, candidate := range c.Candidates {
		node, claim := candidateObjects(candidate)
		switch {
		case c.Reason != plan.Underutilized:
		case c.Phase == plan.Abandoned && before.Phase != plan.Abandoned:
			reason, why := classOf(c.Why.Code), explain.Verdict(nil, c.Why)
			d.Recorder.Emit(telemetry.ConsolidationRejected(node, c.ID, reason, why, saving), telemetry.ConsolidationRejected(claim, c.ID, reason, why, saving))
		case first:
			text := summary(c)
			d.Recorder.Emit(telemetry.ConsolidationCandidate(node, c.ID, text, saving), telemetry.ConsolidationCandidate(claim, c.ID, text, saving))
		}
	}
	if c.Phase == plan.Launching {
		d.tellReplacements(c, before.Phase != plan.Launching)
	}
}

// tellReplacements reports the claims for which a command waits. fresh means that they were just created.
func (d *Loop) tellReplacements(c plan.Command, fresh bool) {
	snap := d.Snapshot()
	for i := range c.Replacements {
		n := snap.Claim(c.Replacements[i].Name)
		if n == nil {
			continue
		}
		_, claim := objectsOf(n)
		if fresh {
			d.Recorder.Emit(telemetry.DisruptionLaunching(claim, karpv1.DisruptionReason(c.Reason)))
		}
		if n.Stage != model.Initialized {
			d.Recorder.Emit(telemetry.DisruptionWaitingReadiness(claim))
		}
	}
}

// summary returns the effect of a command, as a clause.
func summary(c plan.Command) string {
	text := c.Decision() + " " + telemetry.Count(len(c.Candidates), "node")
	if len(c.Replacements) > 0 {
		text += fmt.Sprintf(" by %d", len(c.Replacements))
	}
	return text + ", moving " + telemetry.Count(c.Worth.Pods, "pod")
}

// disrupting returns the events that report a command on its nodes and claims.
func disrupting(c plan.Command) []telemetry.Event {
	text := string(c.Reason)
	if c.Worth.Pods > 0 {
		text += ", moving " + telemetry.Count(c.Worth.Pods, "pod")
		if to := append(replacementsOf(c), landingsOf(c)...); len(to) > 0 {
			text += " to " + strings.Join(few(to), ", ")
		}
	}
	if c.Worth.Saving > 0 {
		text += fmt.Sprintf(", saving %s USD per hour", strconv.FormatFloat(explain.USD(c.Worth.Saving), 'g', 4, 64))
	}
	var list []telemetry.Event
	for _, candidate := range c.Candidates {
		node, claim := candidateObjects(candidate)
		list = append(list, telemetry.Disrupting(node, c.ID, text), telemetry.Disrupting(claim, c.ID, text))
	}
	return list
}

// few returns the first five words, and the number of the remaining ones.
func few(words []string) []string {
	const most = 5
	if len(words) <= most {
		return words
	}
	return append(words[:most:most], fmt.Sprintf("and %d more", len(words)-most))
}

func claimsOf(c plan.Command) []string {
	claims := make([]string, len(c.Candidates))
	for i, candidate := range c.Candidates {
		claims[i] = candidate.Claim
	}
	return claims
}

// replacementsOf returns the claims that a command creates, each with the cheapest instance that it may get, where
// that is known.
func replacementsOf(c plan.Command) []string {
	claims := make([]string, len(c.Replacements))
	for i := range c.Replacements {
		r := &c.Replacements[i]
		claims[i] = "nodeclaim/" + r.Name
		if len(r.Options) > 0 {
			claims[i] = telemetry.Instance{ID: claims[i], Type: r.Options[0].Type, Zone: r.Options[0].Zone, CapacityType: r.Options[0].CapacityType}.String()
		}
	}
	return claims
}

// landingsOf returns the existing nodes that receive pods of a command's nodes.
func landingsOf(c plan.Command) []string {
	nodes := make([]string, len(c.Landing))
	for i, l := range c.Landing {
		nodes[i] = "node/" + l.Node
		if l.Claim != "" {
			nodes[i] = "nodeclaim/" + l.Claim
		}
	}
	return nodes
}

// classOf returns the name that events use for the reason for which a command was dropped.
func classOf(code plan.Code) string {
	switch code {
	case plan.BudgetExhausted, plan.BudgetUnreadable:
		return "budget"
	case plan.PodsHomeless, plan.NoSaving, plan.SavingTooSmall, plan.RoomTooTight, plan.ScoreTooLow, plan.SpotForbidden, plan.ReplacementChanged, plan.ReplacementLost, plan.ReplacementsFailed:
		return "scheduling"
	case plan.NodeGone, plan.NodeLeaving, plan.NodeBusy, plan.NodeProtected, plan.NodeNominated, plan.NodeTooYoung, plan.NodeNotReady, plan.NodeTaken, plan.NodeUnsettled, plan.NodeExpecting,
		plan.PolicyForbids, plan.PoolGone, plan.PoolRefused, plan.PriceUnknown, plan.PDBBlocks, plan.PDBsConflict:
		return "churn"
	}
	return "unknown"
}

// objectsOf returns the objects for events about the node.
func objectsOf(n *model.Node) (*corev1.Node, *karpv1.NodeClaim) {
	return candidateObjects(plan.CandidateOf(n))
}

func candidateObjects(c plan.Candidate) (*corev1.Node, *karpv1.NodeClaim) {
	return telemetry.NodeObject(c.Node, c.NodeUID), telemetry.ClaimObject(c.Claim, c.ClaimUID)
}
