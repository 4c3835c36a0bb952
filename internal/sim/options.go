package sim

import (
	"github.com/karpenter-go/karpenter/internal/engine/audit"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/sim/removals"
)

// Options are the decisions of the process. Production has the real ones; tests replace one by a broken one, to see
// that a property notices.
type Options struct {
	// Schedule plans, on the seats that the last plan of the process gave its pods; nil before the first.
	Schedule       func(snap *model.Snapshot, last *plan.Provision) *plan.Provision
	CheckProvision func(*model.Snapshot, *plan.Provision) (*plan.Provision, []plan.Dropped)
	// Reserve notes on claims what else in the API does not remember of a plan.
	Reserve func(*model.Snapshot, *plan.Provision) []plan.Action
	Propose func(*model.Snapshot, disruption.Options) disruption.Proposal
	Resume  func(*model.Snapshot, ...plan.Command) []plan.Command
	// Advance takes one step with every command, in order, with the same budgets.
	Advance func(*model.Snapshot, disruption.Options, []plan.Command) []Stepped
	// Static says what static pools lack and have too much of.
	Static  func(*model.Snapshot) disruption.Standing
	Orphans func(*model.Snapshot) []plan.Action
	// Notices says which claims expect pods of nodes that leave without a command.
	Notices func(*model.Snapshot) []plan.Action
	// Audit returns what is wrong with a plan.
	Audit func(*model.Snapshot, *plan.Provision) []string
	// Forget drops the memory of own writes of that object: the process then knows what the watch has shown.
	Forget func(object string) bool
	// Removals changes what the controllers of production that remove machines see of the world, and what becomes of their writes.
	Removals func(removals.World) removals.World
	// Skip names properties that are not checked, so that a bug which breaks several shows in another.
	Skip []string
}

// Stepped is a command after one step, and the writes that lead on.
type Stepped struct {
	Command plan.Command
	Actions []plan.Action
}

// Production are the functions that the binary runs.
func Production() Options {
	return Options{
		Schedule:       schedule,
		CheckProvision: plan.CheckProvision,
		Reserve:        plan.Reservations,
		Propose:        disruption.Propose,
		Resume:         plan.Resume,
		Advance:        advance,
		Static:         disruption.Static,
		Orphans:        plan.Orphans,
		Notices:        plan.Notices,
		Audit:          problems,
	}
}

func schedule(snap *model.Snapshot, last *plan.Provision) *plan.Provision {
	return placement.Schedule(plan.Reseated(plan.Ahead(snap), last), placement.Options{})
}

func advance(snap *model.Snapshot, opts disruption.Options, commands []plan.Command) []Stepped {
	guard := plan.NewGuard(snap)
	guard.Judge = disruption.Judge(snap, opts)
	return stepAll(guard, commands)
}

func stepAll(guard *plan.Guard, commands []plan.Command) []Stepped {
	steps := make([]Stepped, len(commands))
	for i, c := range commands {
		steps[i].Command, steps[i].Actions = guard.Step(c)
	}
	return steps
}

func problems(snap *model.Snapshot, p *plan.Provision) []string {
	var texts []string
	for _, problem := range audit.Provision(plan.Ahead(snap), p) {
		texts = append(texts, problem.String())
	}
	return texts
}

func (o *Options) remember(written object) bool {
	return o.Forget == nil || !o.Forget(written.key().name)
}
