package sim

import (
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/futile"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
	"github.com/karpenter-go/karpenter/internal/testing/audit"
)

// Options holds the decision functions of the process. Production returns the production functions; tests replace one
// by a broken one, to check that a property detects it.
type Options struct {
	// Schedule plans with the reservations of the last plan of the process; nil before the first.
	Schedule       func(snap *model.Snapshot, last *plan.Provision) *plan.Provision
	CheckProvision func(*model.Snapshot, *plan.Provision) (*plan.Provision, []guard.Dropped)
	// Restrain takes claims out of a plan that have to wait.
	Restrain func(*futile.Launches, *model.Snapshot, *plan.Provision) *plan.Provision
	Propose  func(*model.Snapshot, disruption.Options) disruption.Proposal
	Resume   func(*model.Snapshot, ...plan.Command) []plan.Command
	// Advance takes one step of every command, in order, with shared budgets.
	Advance func(*model.Snapshot, disruption.Options, []plan.Command) []Stepped
	// Static returns the missing and surplus nodes of static pools.
	Static            func(*model.Snapshot) disruption.Standing
	StaleTaintActions func(*model.Snapshot) []plan.Action
	// Arriving returns the annotations for claims that await pods of nodes being removed without a command.
	Arriving func(*model.Snapshot) []plan.Action
	// Audit returns the problems of a plan.
	Audit func(*model.Snapshot, *plan.Provision) []string
	// Forget reports whether the own write to the object is dropped: the process then knows only what the watch has
	// shown.
	Forget func(object string) bool
	// Skip lists properties that are not checked, so that a bug that violates several is reported by another.
	Skip []string
	// Neutral is the only change that the property Neutral tries, with each plan; "" for all in turn.
	Neutral string
}

// Stepped is a command after one step, and the writes of the step.
type Stepped struct {
	Command plan.Command
	Actions []plan.Action
}

// Production returns the functions that the controller runs.
func Production() Options {
	return Options{
		Schedule:          schedule,
		CheckProvision:    guard.CheckProvision,
		Restrain:          (*futile.Launches).Restrain,
		Propose:           disruption.Propose,
		Resume:            guard.Resume,
		Advance:           advance,
		Static:            disruption.Static,
		StaleTaintActions: guard.StaleTaintActions,
		Arriving:          reserve.Arriving,
		Audit:             problems,
	}
}

func schedule(snap *model.Snapshot, last *plan.Provision) *plan.Provision {
	return placement.Schedule(reserve.Ahead(snap, last), placement.Options{})
}

func advance(snap *model.Snapshot, opts disruption.Options, commands []plan.Command) []Stepped {
	g := guard.New(snap)
	g.Judge = disruption.Judge(snap, opts)
	return stepAll(g, commands)
}

func stepAll(g *guard.Guard, commands []plan.Command) []Stepped {
	steps := make([]Stepped, len(commands))
	for i, c := range commands {
		steps[i].Command, steps[i].Actions = g.Step(c)
	}
	return steps
}

func problems(snap *model.Snapshot, p *plan.Provision) []string {
	var texts []string
	for _, problem := range audit.Provision(reserve.Ahead(snap, nil), p) {
		texts = append(texts, problem.String())
	}
	return texts
}

func (o *Options) remember(written object) bool {
	return o.Forget == nil || !o.Forget(written.key().name)
}
