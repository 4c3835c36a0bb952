package sim

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// bug is a wrong decision function, and the property that must detect it. Properties that would detect it earlier are
// skipped.
type bug struct {
	plant    func(*Options)
	property string
	skip     []string
	// first is the seed to begin with, for bugs that few histories reveal.
	first uint64
}

// planted holds bugs of provisioning and of command processing; those of disruption are in planteddisruption_test.go.
var planted = map[string]bug{
	"claims get a new name with every plan": {
		plant: func(o *Options) {
			schedule, n := o.Schedule, 0
			o.Schedule = func(s *model.Snapshot, last *plan.Provision) *plan.Provision {
				p := schedule(s, last)
				for i := range p.Claims {
					n++
					p.Claims[i].Name = fmt.Sprintf("%s-%d", p.Claims[i].Pool, n)
				}
				return p
			}
		},
		property: BoughtOnce, skip: []string{Deterministic}, first: 100,
	},
	"own writes are forgotten": {
		plant:    func(o *Options) { o.Forget = func(string) bool { return true } },
		property: BoughtOnce, skip: []string{Checked, Settles, ComesToRest, CommandsEnd, StaticStands, Overlooked, NoPodStuck, NothingLeaked}, first: 16,
	},
	"claims in flight are no nodes": {
		plant: func(o *Options) {
			schedule := o.Schedule
			o.Schedule = func(s *model.Snapshot, last *plan.Provision) *plan.Provision {
				var flying []string
				for _, n := range s.Nodes {
					if n.Stage == model.Launching {
						flying = append(flying, n.Name)
					}
				}
				return schedule(s.Without(flying...), last)
			}
		},
		property: Idempotent, skip: []string{Audited},
	},
	"plans are not checked before they are carried out": {
		plant: func(o *Options) {
			o.CheckProvision = func(_ *model.Snapshot, p *plan.Provision) (*plan.Provision, []guard.Dropped) { return p, nil }
		},
		property: Checked, first: 20,
	},
	"the first claim of a plan is left out": {
		plant: func(o *Options) {
			schedule := o.Schedule
			o.Schedule = func(s *model.Snapshot, last *plan.Provision) *plan.Provision {
				p := schedule(s, last)
				p.Claims = p.Claims[min(1, len(p.Claims)):]
				return p
			}
		},
		property: Audited,
	},
	"the first claim of a plan is left out, and plans are not checked": {
		plant: func(o *Options) {
			schedule := o.Schedule
			o.Schedule = func(s *model.Snapshot, last *plan.Provision) *plan.Provision {
				p := schedule(s, last)
				p.Claims = p.Claims[min(1, len(p.Claims)):]
				return p
			}
		},
		property: NoPodStuck, skip: []string{Audited, Deterministic},
	},
	"claims for pods that ask something of each other are left out, and plans are not checked": {
		plant: func(o *Options) {
			schedule := o.Schedule
			o.Schedule = func(s *model.Snapshot, last *plan.Provision) *plan.Provision {
				p := schedule(s, last)
				p.Claims = slices.DeleteFunc(p.Claims, func(c plan.NewClaim) bool {
					return slices.ContainsFunc(c.Pods, func(q *model.Pod) bool { return len(q.Spread)+len(q.Terms) > 0 })
				})
				return p
			}
		},
		property: NoPodStuck, skip: []string{Audited, Deterministic}, first: Related,
	},
	"pools that no pod tolerates make a plan dearer": {
		plant: func(o *Options) {
			schedule := o.Schedule
			o.Schedule = func(s *model.Snapshot, last *plan.Provision) *plan.Provision {
				p := schedule(s, last)
				if s.Pool("idle-0") != nil {
					p.Claims = append(p.Claims, p.Claims...)
				}
				return p
			}
		},
		property: Neutral,
	},
	"a plan depends on how often one was made": {
		plant: func(o *Options) {
			schedule, n := o.Schedule, 0
			o.Schedule = func(s *model.Snapshot, last *plan.Provision) *plan.Provision {
				p := schedule(s, last)
				if n++; n%2 == 0 {
					slices.Reverse(p.Claims)
				}
				return p
			}
		},
		property: Deterministic,
	},
	"nodes go without a command, a taint and a second look": {
		plant: func(o *Options) {
			o.Advance = func(s *model.Snapshot, opts disruption.Options, commands []plan.Command) []Stepped {
				return rash(s, commands, func(plan.Candidate) bool { return false })
			}
		},
		property: Announced,
	},
	"nodes go at once, without a taint and a second look": {
		plant: func(o *Options) {
			written := map[string]bool{}
			o.Advance = func(s *model.Snapshot, opts disruption.Options, commands []plan.Command) []Stepped {
				return rash(s, commands, func(c plan.Candidate) bool {
					first := !written[c.ClaimUID]
					written[c.ClaimUID] = true
					return first
				})
			}
		},
		property: EmptyMeansEmpty, skip: []string{WithinBudgets, Announced},
	},
	"budgets are ignored": {
		plant: func(o *Options) {
			propose, advance := o.Propose, o.Advance
			o.Propose = func(s *model.Snapshot, opts disruption.Options) disruption.Proposal {
				return propose(unlimited(s), opts)
			}
			o.Advance = func(s *model.Snapshot, opts disruption.Options, commands []plan.Command) []Stepped {
				return advance(unlimited(s), opts, commands)
			}
		},
		property: WithinBudgets, skip: []string{Deterministic},
	},
	"commands live in memory": {
		plant: func(o *Options) {
			o.Resume = func(_ *model.Snapshot, known ...plan.Command) []plan.Command { return known }
		},
		property: CommandsEnd, skip: []string{ComesToRest}, first: 6,
	},
	"nothing is rolled back": {
		plant: func(o *Options) {
			advance := o.Advance
			o.Advance = func(s *model.Snapshot, opts disruption.Options, commands []plan.Command) []Stepped {
				steps := advance(s, opts, commands)
				for i := range steps {
					if steps[i].Command.Phase == plan.Abandoned {
						steps[i].Actions = nil
					}
				}
				return steps
			}
		},
		property: CommandsEnd, skip: []string{ComesToRest}, first: 11,
	},
	"something is always left to clean": {
		plant: func(o *Options) {
			o.StaleTaintActions = func(s *model.Snapshot) []plan.Action {
				for _, n := range s.Nodes {
					return []plan.Action{plan.ClearDisruptionReason{Claim: n.Claim, UID: n.ClaimUID}}
				}
				return nil
			}
		},
		property: ComesToRest,
	},
}

// rash deletes the candidates of every command; announce selects those for which the command is written first.
func rash(s *model.Snapshot, commands []plan.Command, announce func(plan.Candidate) bool) []Stepped {
	steps := make([]Stepped, len(commands))
	for i, cmd := range commands {
		cmd.Phase = plan.Draining
		steps[i].Command = cmd
		for _, c := range cmd.Candidates {
			n := s.Claim(c.Claim)
			switch {
			case n == nil:
				steps[i].Command.Phase = plan.Done
			case n.Deleting:
			case announce(c):
				steps[i].Actions = append(steps[i].Actions, plan.WriteCommand{Claim: c.Claim, UID: c.ClaimUID, Command: cmd})
			default:
				steps[i].Actions = append(steps[i].Actions, plan.DeleteClaim{Claim: c.Claim, UID: c.ClaimUID, Reason: cmd.Reason})
			}
		}
	}
	return steps
}

// unlimited returns the snapshot without budgets.
func unlimited(s *model.Snapshot) *model.Snapshot {
	free := *s
	free.Pools = slices.Clone(s.Pools)
	for i, p := range free.Pools {
		pool, spec := *p, *p.PoolSpec
		spec.Budgets = nil
		pool.PoolSpec = &spec
		free.Pools[i] = &pool
	}
	return &free
}

// TestPlantedBugs checks that the properties can fail: each bug is detected by its property.
func TestPlantedBugs(t *testing.T) {
	all := maps.Clone(planted)
	maps.Copy(all, plantedInDisruption)
	for name, bug := range all {
		t.Run(name, func(t *testing.T) {
			const histories = 120
			for seed := bug.first; seed < bug.first+histories; seed++ {
				opts := Production() // a bug may keep a counter
				opts.Skip = bug.skip
				bug.plant(&opts)
				f := Run(NewHistory(seed), opts).Failure
				if f == nil {
					continue
				}
				if f.Property != bug.property {
					t.Fatalf("seed %d: detected by %q, want %q: %v", seed, f.Property, bug.property, f)
				}
				t.Logf("seed %d: %v", seed, f)
				return
			}
			t.Fatalf("not detected in %d histories, want %q to fail", histories, bug.property)
		})
	}
}

// TestWorldsNotAtRest breaks a world at rest and checks that the matching property detects it.
func TestWorldsNotAtRest(t *testing.T) {
	broken := map[string]struct {
		breaks   func(*world)
		property string
	}{
		"nothing": {func(*world) {}, ""},
		"a machine without a claim": {func(w *world) {
			w.cloud.ledger = append(w.cloud.ledger, &machine{id: "stray", claim: "none"})
		}, NothingLeaked},
		"a machine that went":  {func(w *world) { w.cloud.alive()[0].gone = w.now }, NothingLeaked},
		"a node without claim": {func(w *world) { w.api.create(&node{meta: meta{name: "stray"}, provider: "stray"}) }, NothingLeaked},
		"a claim that went": {func(w *world) {
			c := w.api.claims()[0]
			w.api.remove(c.key(), c.uid)
		}, NothingLeaked},
		"a taint that stayed": {func(w *world) {
			n := w.api.nodes()[0]
			w.api.update(n.key(), n.uid, 0, func(o object) { o.(*node).taint(disruptedTaint) })
		}, CommandsEnd},
		"a command that stayed": {func(w *world) {
			c := w.api.claims()[0]
			w.api.update(c.key(), c.uid, 0, func(o object) { o.(*claim).command = "{}" })
		}, CommandsEnd},
		"a pod that waits": {func(w *world) {
			p := pod{meta: meta{name: "waiting"}, requests: amounts(100, gibi/8)}
			w.api.create(&p)
		}, NoPodStuck},
		"a nomination to nowhere": {func(w *world) {
			p := pod{meta: meta{name: "waiting"}, requests: amounts(1_000_000, gibi), nominated: "gone"}
			w.api.create(&p)
		}, NoPodStuck},
	}
	for name, test := range broken {
		t.Run(name, func(t *testing.T) {
			w := quietWorld()
			w.settle(epoch.Add(patience))
			if w.failure != nil {
				t.Fatal(w.failure)
			}
			test.breaks(w)
			w.check.settled()
			switch {
			case test.property == "" && w.failure != nil:
				t.Error(w.failure)
			case test.property != "" && (w.failure == nil || w.failure.Property != test.property):
				t.Errorf("got %v, want %q to fail", w.failure, test.property)
			}
		})
	}
}

// quietWorld returns a world with one app of five pods, a pool without consolidation, and no disturbances.
func quietWorld() *world {
	w := newWorld(1, Production())
	clear(w.api.objects[pdbKind])
	w.setting.pools = w.setting.pools[:1]
	pool := *w.setting.pools[0]
	pool.Requirements, pool.Taints, pool.Limits, pool.ConsolidateAfter = pool.Requirements[:1], nil, nil, time.Hour
	w.setting.pools[0] = &pool
	w.setting.apps = []*app{{name: "app", replicas: 5, pod: pod{app: "app", requests: amounts(500, gibi)}}}
	return w
}
