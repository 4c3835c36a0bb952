package disrupt

import (
	"cmp"
	"slices"
	"strings"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// This file reports which nodes are kept and why, and the scores of consolidation.

// blocked emits events for nodes that a user or a PodDisruptionBudget protects, and for pools whose budgets keep a
// node that could be removed.
func (r *Reporter) blocked(snap *model.Snapshot, proposal disruption.Proposal) {
	reported := map[string]bool{}
	r.halted(snap, proposal.Halted)
	for _, kept := range proposal.Kept {
		switch kept.Verdict.Code {
		case plan.NodeProtected, plan.PDBBlocks, plan.PDBsConflict:
			r.protected(snap, kept)
		case plan.BudgetExhausted, plan.BudgetUnreadable:
			if pool := snap.Pool(kept.Pool); pool != nil && !reported[kept.Pool] {
				reported[kept.Pool] = true
				r.Recorder.Emit(telemetry.PoolDisruptionBlocked(telemetry.PoolObject(pool.Name, pool.UID), karpv1.DisruptionReason(kept.Reason)))
			}
		}
	}
}

// halted reports that too many nodes are not ready for voluntary disruption.
func (r *Reporter) halted(snap *model.Snapshot, v plan.Verdict) {
	paused := 0.0
	if !v.OK() {
		paused = 1
		for _, pool := range snap.Pools {
			r.Recorder.Emit(telemetry.VoluntaryDisruptionPaused(telemetry.PoolObject(pool.Name, pool.UID), explain.Verdict(nil, v)))
		}
	}
	r.Metrics.VoluntaryDisruptionPaused.WithLabelValues("nodes_unready").Set(paused)
}

func (r *Reporter) protected(snap *model.Snapshot, kept disruption.Kept) {
	n := snap.Node(kept.Node)
	if r.Why == nil || n == nil {
		return
	}
	why := r.Why(snap, kept.Verdict)
	node, claim := objectsOf(n)
	r.Recorder.Emit(telemetry.DisruptionBlocked(node, why), telemetry.DisruptionBlocked(claim, why))
}

// passing reports whether a code describes a state that ends by itself, or that is reported on the pool. There is no
// event for each node then.
func passing(code plan.Code) bool {
	switch code {
	case plan.NodeTaken, plan.NodeLeaving, plan.NodeNotReady, plan.NodeNominated, plan.NodeTooYoung, plan.NodeUnsettled, plan.NodeExpecting, plan.NodeHoldsRoom, plan.BudgetExhausted,
		plan.BudgetUnreadable, plan.Paused, plan.NodesUnready, plan.ZoneShifted:
		return true
	}
	return false
}

// keptNodes reports for every node that is kept the reason: in a gauge, in the log when it changes, and in an event
// where an obstacle requires action, the most expensive nodes first.
func (r *Reporter) keptNodes(snap *model.Snapshot, proposal disruption.Proposal) {
	type obstacle struct {
		node    *model.Node
		verdict plan.Verdict
		cost    int64
	}
	var obstacles []obstacle
	codes := make(map[string]string, len(proposal.Kept))
	r.Metrics.DisruptionKeptNodes.Reset()
	for _, k := range proposal.Kept {
		n := snap.Node(k.Node)
		if n == nil {
			continue
		}
		code := explain.Code(k.Verdict.Code)
		r.Metrics.DisruptionKeptNodes.WithLabelValues(k.Pool, strings.ToLower(string(k.Reason)), code).Inc()
		key := k.Node + "/" + string(k.Reason)
		if codes[key] = code; r.kept[key] != code {
			r.Log.V(1).Info("keeping a node", "node", k.Node, "nodePool", k.Pool, "reason", k.Reason, "code", code, "costPerHour", explain.USD(r.Options.CostOf(snap, n)))
		}
		if (k.Reason == plan.Underutilized || k.Reason == plan.Empty) && !passing(k.Verdict.Code) {
			o := obstacle{node: n, verdict: k.Verdict}
			if n.Price > 0 { // otherwise the price is unknown
				o.cost = r.Options.CostOf(snap, n)
			}
			obstacles = append(obstacles, o)
		}
	}
	r.kept = codes
	if r.Recorder == nil {
		return
	}
	slices.SortStableFunc(obstacles, func(a, b obstacle) int { return cmp.Compare(b.cost, a.cost) })
	for _, o := range obstacles {
		code, why := explain.Code(o.verdict.Code), explain.Unconsolidatable(snap, o.verdict, o.cost)
		node, claim := objectsOf(o.node)
		r.Recorder.Emit(telemetry.Unconsolidatable(node, code, why), telemetry.Unconsolidatable(claim, code, why))
	}
}

// scores counts the evaluated commands, and reports those that the policy Balanced approves.
func (r *Reporter) scores(snap *model.Snapshot, proposal disruption.Proposal) {
	var commands []plan.Command
	for _, c := range proposal.Commands {
		if c.Reason == plan.Underutilized {
			commands = append(commands, c)
		}
	}
	for i, shares := range r.Options.Shares(snap, commands) {
		for _, s := range shares {
			policy := telemetry.PolicyLabel(karpv1.ConsolidationPolicy(s.Policy))
			r.Metrics.ConsolidationScore.WithLabelValues("approved", s.Pool, policy).Observe(s.Score)
			r.Metrics.ConsolidationMoves.WithLabelValues("approved", s.Pool, policy).Inc()
			if s.Policy == string(karpv1.ConsolidateBalanced) {
				r.approved(snap, commands[i], s)
			}
		}
	}
	for _, k := range proposal.Kept {
		if k.Verdict.Code != plan.ScoreTooLow {
			continue
		}
		policy := telemetry.PolicyLabel(karpv1.ConsolidateBalanced)
		r.Metrics.ConsolidationScore.WithLabelValues("rejected", k.Pool, policy).Observe(float64(k.Verdict.Have) / 1000)
		r.Metrics.ConsolidationMoves.WithLabelValues("rejected", k.Pool, policy).Inc()
	}
}

func (r *Reporter) approved(snap *model.Snapshot, c plan.Command, s disruption.Share) {
	b := telemetry.Balance{Score: s.Score, Least: disruption.LeastScore, Saving: 100 * s.Saving, Disruption: 100 * s.Disruption}
	if len(c.Candidates) > 1 {
		r.Recorder.Emit(telemetry.ConsolidationApproved(telemetry.PoolObject(s.Pool, snap.Pool(s.Pool).UID), b))
		return
	}
	node, claim := candidateObjects(c.Candidates[0])
	r.Recorder.Emit(telemetry.ConsolidationApproved(node, b), telemetry.ConsolidationApproved(claim, b))
}
