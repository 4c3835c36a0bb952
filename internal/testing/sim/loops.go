package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// timers are those of the controllers.
var timers = controller.Production()

const (
	// mostSteps bounds the steps that a command takes within one tick.
	mostSteps = 8
	// staticResync is the period of the loop of static pools. In production changes start a pass too.
	staticResync = 10 * time.Second
)

type provisionLoop struct {
	last time.Time
	// version and catalogs identify the input of the last plan.
	version, catalogs int
	// plan is the latest plan, nil before the first.
	plan *plan.Provision
	// targets holds the nodes of the pods in the latest plan; nil before the first.
	targets nominate.Targets
}

type disruptLoop struct {
	at    time.Time
	known []plan.Command
	// next is when time alone may allow a removal; version and catalogs identify the input of the last decision.
	next     time.Time
	decided  bool
	version  uint64
	catalogs int
}

type staticLoop struct {
	at   time.Time
	made disruption.Creations
}

// loops begins a pass of a loop that is due.
func (p *process) loops() {
	since := p.w.now.Sub(p.provision.last)
	news := p.provision.version != p.view.version || p.provision.catalogs != p.w.catalogs
	switch {
	case (news && since > timers.BatchIdle || since > timers.PodRetrigger) && (p.pending() > 0 || p.leaving() || len(p.w.setting.virtual()) > 0):
		p.plan()
	case !p.w.now.Before(p.static.at):
		p.stand()
	case !p.w.now.Before(p.disrupt.at):
		p.tick()
	}
}

// plan is a pass of the provision loop: decide on a snapshot, check on a later one, write, nominate.
func (p *process) plan() {
	p.provision.last, p.provision.version, p.provision.catalogs = p.w.now, p.view.version, p.w.catalogs
	snap := p.snapshot()
	last := p.provision.plan
	decided := p.w.opts.Schedule(snap, last)
	decided.Stamp(snap)
	p.w.check.planned(p, snap, judged{decided, last})
	p.provision.plan = decided
	p.provision.targets = nominate.TargetsOf(decided)
	ambushed := len(decided.Claims) > 0 && p.w.spring(atPlan)
	if ambushed || !p.w.calm && p.w.rng.IntN(8) == 0 { // a large cluster, or too little CPU
		p.busy = p.w.now.Add(p.w.between(500*time.Millisecond, 5*time.Second))
	}
	p.then = func() {
		snap := p.snapshot()
		kept, dropped := p.w.opts.CheckProvision(snap, p.restrain(snap, decided))
		for _, d := range dropped {
			p.w.say("process %d drops claim %s: code %d", p.id, d.Claim, d.Verdict.Code)
		}
		p.w.check.kept(p, kept)
		var actions []plan.Action
		for _, c := range kept.Claims {
			actions = append(actions, plan.CreateClaim{NewClaim: c, Reason: "provisioned"})
		}
		made := kept.Claims
		if v := decided.Virtual; v != nil {
			room, _ := p.w.opts.CheckProvision(p.snapshot(), &plan.Provision{Claims: p.w.opts.Restrain(&p.launches, snap, v).Claims})
			for _, c := range room.Claims {
				actions = append(actions, plan.CreateClaim{NewClaim: c, Reason: "virtual"})
			}
			made = slices.Concat(made, room.Claims)
		}
		p.carryOut(actions, func() {
			p.launches.Launched(p.snapshot(), made)
			for _, placed := range kept.Placed {
				p.nominated[placed.Node] = p.clock().Add(timers.Nomination)
			}
			nominations, _ := nominate.Nominations(p.snapshot(), kept)
			p.carryOut(nominations, nil)
		})
	}
}

// nominations returns the nominations for a node that is about to open.
func (p *process) nominations(c *claim, n *node) []plan.Action {
	snap := p.snapshot()
	if p.provision.targets == nil { // after a restart: with the claims in flight, planning gives the same plan
		p.provision.plan = p.w.opts.Schedule(snap, nil)
		p.provision.targets = nominate.TargetsOf(p.provision.plan)
	}
	return p.provision.targets.Nominate(snap, c.name, n.name)
}

// tick is a pass of the disrupt loop: resume, propose, then step by step.
func (p *process) tick() {
	snap := p.snapshot()
	commands := p.w.opts.Resume(snap, p.disrupt.known...)
	proposed := p.decide(snap)
	p.disrupt.known = nil
	if len(proposed) > 0 && p.w.spring(atProposal) {
		p.busy = p.w.now.Add(p.w.between(200*time.Millisecond, 3*time.Second))
	}
	p.then = func() { p.advance(append(commands, proposed...), 0) }
}

// disruption returns the options of disruption.
func (p *process) disruption() disruption.Options {
	opts := p.w.setting.disruption
	opts.Last = p.provision.plan
	return opts
}

// decide proposes commands if anything has changed since the last time, or a time has been reached.
func (p *process) decide(snap *model.Snapshot) []plan.Command {
	d := &p.disrupt
	if d.decided && d.version == snap.Version && d.catalogs == p.w.catalogs && (d.next.IsZero() || snap.Now.Before(d.next)) {
		return nil
	}
	proposal := p.w.opts.Propose(snap, p.disruption())
	d.decided, d.version, d.catalogs, d.next = true, snap.Version, p.w.catalogs, proposal.Next
	p.w.check.proposed(p, proposal.Commands)
	for _, c := range proposal.Commands {
		p.w.say("process %d proposes %s: %s %s, %d replacements, worth %v", p.id, c.ID, c.Reason, candidates(c), len(c.Replacements), c.Worth)
	}
	return proposal.Commands
}

func candidates(c plan.Command) string {
	all := make([]string, len(c.Candidates))
	for i, candidate := range c.Candidates {
		all[i] = candidate.Node
	}
	return strings.Join(all, " ")
}

// stand is a pass of the loop that maintains the number of nodes of static pools.
func (p *process) stand() {
	p.static.at = p.w.now.Add(staticResync)
	if !slices.ContainsFunc(p.w.setting.pools, func(pool *model.PoolSpec) bool { return pool.Static }) {
		return
	}
	snap := p.snapshot()
	decided := p.w.opts.Static(snap)
	pauses := p.static.made.Admit(snap, &decided)
	p.carryOut(append(decided.Actions(), pauses...), nil)
}

// advance takes one step of every command on the newest snapshot, repeatedly, until no command has more to do now.
func (p *process) advance(commands []plan.Command, step int) {
	if len(commands) == 0 || step == mostSteps {
		p.disrupt.known = append(p.disrupt.known, commands...)
		p.rest()
		return
	}
	snap := p.snapshot()
	steps := p.w.opts.Advance(snap, p.disruption(), commands)
	p.w.check.stepped(p, steps)
	var again []plan.Command
	var actions []plan.Action
	for i, s := range steps {
		if s.Command.Phase != commands[i].Phase {
			p.w.say("process %d: command %s is %s (code %d)", p.id, s.Command.ID, s.Command.Phase, s.Command.Why.Code)
		}
		if s.Command.Phase == plan.Abandoned && s.Command.Created.Equal(commands[i].PhaseSince) && commands[i].Phase == plan.Proposed {
			p.disrupt.decided = false
		}
		actions = append(actions, s.Actions...)
		switch {
		case len(s.Actions) > 0:
			again = append(again, s.Command)
		case !s.Command.Phase.Over():
			p.disrupt.known = append(p.disrupt.known, s.Command)
		}
	}
	p.carryOut(actions, func() {
		if p.failed > 0 {
			p.disrupt.known = append(p.disrupt.known, again...)
			p.rest()
			return
		}
		p.advance(again, step+1)
	})
}

// rest ends the pass: it removes taints without a command, and schedules the next pass.
func (p *process) rest() {
	p.disrupt.at = p.w.now.Add(timers.DisruptionPoll)
	if len(p.disrupt.known) > 0 {
		p.disrupt.at = p.w.now.Add(timers.CommandRetry)
	}
	if next := p.disrupt.next; next.After(p.w.now) && next.Before(p.disrupt.at) {
		p.disrupt.at = next
	}
	snap := p.snapshot()
	p.carryOut(slices.Concat(p.w.opts.StaleTaintActions(snap), guard.Undone(snap), p.w.opts.Arriving(snap)), nil)
}
