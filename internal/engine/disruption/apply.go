package disruption

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// After returns the snapshot that results when the command is carried out and every new node is of its cheapest
// option: its candidates are removed, and its pods are on the nodes where the plan places them. New nodes count as
// initialized for the consolidateAfter of their pool, so that later decisions may use them. Nodes that a
// consolidation launches or moves pods to are recorded for hysteresis. A command of another snapshot, or a stored
// one, has no assignments for its pods; After then returns the snapshot with these pods pending. A claim of a static
// pool has no options: see Chosen.
func After(snap *model.Snapshot, cmd plan.Command) *model.Snapshot {
	cmd = Chosen(snap, cmd)
	names := make([]string, len(cmd.Candidates))
	for i, c := range cmd.Candidates {
		names[i] = c.Node
	}
	next := snap.Without(names...)
	assignments := cmd.Assignments
	var nodes []*model.Node
	for i := range cmd.Replacements {
		r := &cmd.Replacements[i]
		if len(r.Options) == 0 {
			continue
		}
		if n := next.Future(futureSpec(snap, cmd, r), []string{r.Options[0].Type}); n != nil {
			nodes = append(nodes, n)
			assignments = append(assignments[:len(assignments):len(assignments)], model.Assignment{Node: n.Name, Pods: r.Pods})
		}
	}
	next = next.With(nodes...).Bound(assignments)
	if cmd.Reason == plan.Underutilized {
		for _, assignment := range cmd.Assignments {
			n := next.Node(assignment.Node) // its own copy, because pods were bound to it
			spec := *n.NodeSpec
			spec.ConsolidatedAt = snap.Now
			n.NodeSpec = &spec
		}
	}
	return next
}

// Chosen returns the command with an option for each claim of a static pool, which has none: the cheapest offering of
// the pool, which the provider chooses. A claim for which nothing is available stays without.
func Chosen(snap *model.Snapshot, cmd plan.Command) plan.Command {
	cmd.Replacements = slices.Clone(cmd.Replacements)
	for i := range cmd.Replacements {
		r := &cmd.Replacements[i]
		if pool := snap.Pool(r.Pool); len(r.Options) > 0 || pool == nil || !pool.Static {
			continue
		}
		if option, found := r.Cheapest(snap); found {
			r.Options = []plan.Option{option}
		}
	}
	return cmd
}

func futureSpec(snap *model.Snapshot, cmd plan.Command, r *plan.NewClaim) model.NodeSpec {
	labels := map[string]string{model.LabelType: r.Options[0].Type, model.LabelZone: r.Options[0].Zone,
		model.LabelCapacityType: r.Options[0].CapacityType, model.LabelPool: r.Pool}
	for key, value := range r.Labels {
		labels[key] = value
	}
	since := snap.Now
	var taints []model.Taint
	if pool := snap.Pool(r.Pool); pool != nil {
		taints = pool.Taints
		since = since.Add(-max(0, pool.ConsolidateAfter))
	}
	spec := model.NodeSpec{Name: r.Name, UID: r.Name, Claim: r.Name, ClaimUID: r.Name, Pool: r.Pool, Stage: model.Initialized, Ready: true,
		Created: since, InitializedAt: since, Labels: labels, Taints: taints, Requirements: r.Requirements}
	if cmd.Reason == plan.Underutilized {
		spec.Replacement, spec.ConsolidatedAt = true, snap.Now
	}
	return spec
}
