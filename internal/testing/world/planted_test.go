package world_test

import (
	"context"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/controller/disrupt"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/testing/world"
)

// TestPlantedDisruptions checks that the properties of plans and of removals by the loops detect bugs.
func TestPlantedDisruptions(t *testing.T) {
	for property, bug := range map[string]struct {
		features []string
		plant    func(*world.Parts)
	}{
		"audited":           {nil, leaveOut},
		"announced":         {nil, giveUp(plan.Underutilized, false)},
		"within budgets":    {nil, giveUp(plan.Underutilized, true)},
		"empty means empty": {nil, giveUp(plan.Empty, true)},
		"PDBs hold":         {[]string{world.PDBs}, giveUp(plan.Underutilized, true)},
		"protection holds":  {[]string{world.Protected}, giveUp(plan.Underutilized, true)},
		"replaced first": {[]string{world.Rollouts}, func(p *world.Parts) {
			p.Disrupt.Writer = rash{p.Disrupt.Writer, func(c plan.Command) bool { return len(c.Replacements) > 0 }, true}
		}},
		"static kept": {[]string{world.Static}, func(p *world.Parts) {
			snapshot, passes := p.Static.Snapshot, 0
			p.Static.Snapshot = func() *model.Snapshot {
				if passes++; passes%10 == 0 {
					return fewer(snapshot())
				}
				return snapshot()
			}
		}},
	} {
		t.Run(property, func(t *testing.T) {
			for seed := range uint64(40) {
				h := world.History{Seed: seed, Features: bug.features}
				if _, err := h.Run(bug.plant); err != nil && strings.Contains(err.Error(), property) {
					return
				}
			}
			t.Error("not detected")
		})
	}
}

// leaveOut leaves the first claim out of each plan.
func leaveOut(p *world.Parts) {
	schedule := p.Provision.Schedule
	p.Provision.Schedule = func(snap *model.Snapshot) *plan.Provision {
		decided := schedule(snap)
		decided.Claims = decided.Claims[min(1, len(decided.Claims)):]
		return decided
	}
}

// fewer returns the snapshot with one replica less in each static pool.
func fewer(s *model.Snapshot) *model.Snapshot {
	less := *s
	less.Pools = nil
	for _, p := range s.Pools {
		pool, spec := *p, *p.PoolSpec
		spec.Replicas = max(0, spec.Replicas-1)
		pool.PoolSpec = &spec
		less.Pools = append(less.Pools, &pool)
	}
	return &less
}

// giveUp removes every node with pods for the reason, at once.
func giveUp(reason plan.Reason, announce bool) func(*world.Parts) {
	return func(p *world.Parts) {
		p.Disrupt.Propose = func(s *model.Snapshot, _ bool) disruption.Proposal {
			var found disruption.Proposal
			for _, n := range s.Nodes {
				if n.Stage == model.Initialized && n.Command == "" && !n.Deleting && len(n.Pods) > 0 {
					candidates := []plan.Candidate{plan.CandidateOf(n)}
					found.Commands = append(found.Commands, plan.NewCommand(s.Now, reason, disruption.MethodSingle, candidates))
				}
			}
			return found
		}
		p.Disrupt.Writer = rash{p.Disrupt.Writer, func(plan.Command) bool { return true }, announce}
	}
}

// rash deletes the candidates of commands at once. announce says that the commands are written first.
type rash struct {
	disrupt.Writer

	which    func(plan.Command) bool
	announce bool
}

// Advance implements disrupt.Writer.
func (r rash) Advance(ctx context.Context, newest func() *model.Snapshot, commands []plan.Command) []execute.Advanced {
	all := make([]execute.Advanced, 0, len(commands))
	for _, cmd := range commands {
		if !r.which(cmd) {
			all = append(all, r.Writer.Advance(ctx, newest, []plan.Command{cmd})...)
			continue
		}
		var actions []plan.Action
		snap := newest()
		for _, c := range cmd.Candidates {
			if n := snap.Claim(c.Claim); n == nil || n.Deleting {
				continue
			}
			if r.announce {
				actions = append(actions, plan.WriteCommand{Claim: c.Claim, UID: c.ClaimUID, Command: cmd})
			}
			actions = append(actions, plan.DeleteClaim{Claim: c.Claim, UID: c.ClaimUID, Reason: cmd.Reason})
		}
		cmd.Phase = plan.Done
		all = append(all, execute.Advanced{Command: cmd, Outcomes: r.Do(ctx, actions)})
	}
	return all
}
