package sim

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// plantedInDisruption holds bugs in the selection of nodes to remove.
var plantedInDisruption = map[string]bug{
	"PodDisruptionBudgets are not looked at": {
		plant: func(o *Options) {
			propose, advance := o.Propose, o.Advance
			free := func(s *model.Snapshot) *model.Snapshot { f := *s; f.PDBs = nil; return &f }
			o.Propose = func(s *model.Snapshot, opts disruption.Options) disruption.Proposal { return propose(free(s), opts) }
			o.Advance = func(s *model.Snapshot, opts disruption.Options, commands []plan.Command) []Stepped {
				return advance(free(s), opts, commands)
			}
		},
		property: PDBsHold,
	},
	"every node is given up, whatever forbids it": {
		plant: giveUp, property: ProtectionHolds, first: 40,
		skip: []string{PDBsHold, Housed, WithinBudgets, Settles, ComesToRest, NothingLeaked, CommandsEnd, NoPodStuck, StaticStands, Overlooked},
	},
	"every node is given up, wherever its pods go": {
		plant: giveUp, property: Housed, skip: []string{PDBsHold, ProtectionHolds, WithinBudgets},
	},
	"the dearest type is bought": {
		plant: func(o *Options) {
			propose := o.Propose
			o.Propose = func(s *model.Snapshot, opts disruption.Options) disruption.Proposal {
				p := propose(s, opts)
				for i := range p.Commands {
					for k := range p.Commands[i].Replacements {
						r := &p.Commands[i].Replacements[k]
						r.Requirements = dearest(s.Pool(r.Pool), r.Requirements)
					}
				}
				return p
			}
			o.Advance = credulous
		},
		property: Cheaper, skip: []string{Housed},
	},
	"nodes go before their replacements come": {
		plant: func(o *Options) {
			advance := o.Advance
			o.Advance = func(s *model.Snapshot, opts disruption.Options, commands []plan.Command) []Stepped {
				steps := advance(s, opts, commands)
				for i := range steps {
					if steps[i].Command.Phase != plan.Launching || len(steps[i].Actions) > 0 {
						continue
					}
					for _, c := range steps[i].Command.Candidates {
						steps[i].Actions = append(steps[i].Actions, plan.DeleteClaim{Claim: c.Claim, UID: c.ClaimUID, Reason: steps[i].Command.Reason})
					}
				}
				return steps
			}
		},
		property: ReplacedFirst, skip: []string{PDBsHold, ProtectionHolds, Housed},
	},
	"a replacement that is gone was never there": {
		plant: func(o *Options) {
			advance := o.Advance
			o.Advance = func(s *model.Snapshot, opts disruption.Options, commands []plan.Command) []Stepped {
				commands = slices.Clone(commands)
				for i := range commands {
					if commands[i].Phase == plan.Launching {
						commands[i].Phase = plan.Cordoned
					}
				}
				return advance(s, opts, commands)
			}
		},
		property: BoughtOnce, skip: []string{Settles, ComesToRest, CommandsEnd, StaticStands, NoPodStuck, Overlooked, NothingLeaked}, first: 160,
	},
	"every command is taken back": {
		plant: func(o *Options) {
			o.Advance = func(s *model.Snapshot, _ disruption.Options, commands []plan.Command) []Stepped {
				g := guard.New(s)
				g.Judge = func(plan.Command) plan.Verdict { return plan.Verdict{Code: plan.SavingTooSmall} }
				return stepAll(g, commands)
			}
		},
		property: Settles, first: 5,
	},
	"nothing wakes when a node may be removed": {
		plant: func(o *Options) {
			propose := o.Propose
			o.Propose = func(s *model.Snapshot, opts disruption.Options) disruption.Proposal {
				p := propose(s, opts)
				p.Next = time.Time{}
				return p
			}
		},
		property: Overlooked, first: 5,
	},
	"nothing waits for pods that were sent": {
		plant: func(o *Options) {
			advance := o.Advance
			o.Advance = func(s *model.Snapshot, opts disruption.Options, commands []plan.Command) []Stepped {
				steps := advance(s, opts, commands)
				for i := range steps {
					steps[i].Actions = slices.DeleteFunc(steps[i].Actions, func(a plan.Action) bool { _, notes := a.(plan.MarkPodsSent); return notes })
				}
				return steps
			}
		},
		property: Expected, first: 20,
	},
	"nodes are emptied again and again": {
		plant: func(o *Options) {
			propose := o.Propose
			o.Propose = func(s *model.Snapshot, opts disruption.Options) disruption.Proposal {
				p := propose(s, opts)
				for _, n := range s.Nodes {
					if n.Stage == model.Initialized && n.Command == "" && !n.Deleting && len(p.Commands) == 0 && len(n.Pods) > 0 {
						candidates := []plan.Candidate{plan.CandidateOf(n)}
						p.Commands = []plan.Command{plan.NewCommand(s.Now, plan.Underutilized, disruption.MethodSingle, candidates)}
					}
				}
				p.Next = s.Now.Add(time.Minute)
				return p
			}
			o.Advance = credulous
		},
		property: Churns,
		skip:     []string{PDBsHold, ProtectionHolds, Housed, WithinBudgets, Settles, ComesToRest, Cheaper, ReplacedFirst, Expected, Overlooked},
	},
	"static pools lose a node too many": {
		plant: func(o *Options) {
			static := o.Static
			o.Static = func(s *model.Snapshot) disruption.Standing {
				standing := static(s)
				for _, n := range s.Nodes {
					if pool := s.Pool(n.Pool); pool != nil && pool.Static && !n.Deleting && len(standing.Surplus) == 0 {
						standing.Surplus = []*model.Node{n}
					}
				}
				return standing
			}
		},
		property: StaticKept,
	},
	"static pools are forgotten": {
		plant: func(o *Options) {
			o.Static = func(*model.Snapshot) disruption.Standing { return disruption.Standing{} }
		},
		property: StaticStands,
	},
}

// giveUp removes every node as underutilized, at once.
func giveUp(o *Options) {
	o.Propose = func(s *model.Snapshot, _ disruption.Options) disruption.Proposal {
		var p disruption.Proposal
		for _, n := range s.Nodes {
			if n.Stage == model.Initialized && n.Command == "" && !n.Deleting {
				p.Commands = append(p.Commands, plan.NewCommand(s.Now, plan.Underutilized, disruption.MethodSingle, []plan.Candidate{plan.CandidateOf(n)}))
			}
		}
		return p
	}
	written := map[string]bool{}
	o.Advance = func(s *model.Snapshot, _ disruption.Options, commands []plan.Command) []Stepped {
		return rash(s, commands, func(c plan.Candidate) bool {
			first := !written[c.ClaimUID]
			written[c.ClaimUID] = true
			return first
		})
	}
}

// credulous steps commands without Judge.
func credulous(s *model.Snapshot, _ disruption.Options, commands []plan.Command) []Stepped {
	return stepAll(guard.New(s), commands)
}

// dearest returns the requirements with the most expensive type of the pool that the others allow.
func dearest(pool *model.Pool, all []label.Requirement) []label.Requirement {
	var most int64
	name := ""
	others := slices.DeleteFunc(slices.Clone(all), func(r label.Requirement) bool { return r.Key == model.LabelType })
	for i := range pool.Catalog.Types {
		t := &pool.Catalog.Types[i]
		for _, o := range t.Offerings {
			if o.Price > most && compatible(others, labelsAt(t, o, "")) {
				most, name = o.Price, t.Name
			}
		}
	}
	return append(others, label.Requirement{Key: model.LabelType, Operator: label.In, Values: []string{name}})
}
