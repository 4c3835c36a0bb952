package disruption

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/futile"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
)

// Proposal holds the commands to begin now.
type Proposal struct {
	// Commands in the order in which they use the budgets.
	Commands []plan.Command
	// Kept states why managed nodes that are in no command are kept, by name, then reason. Every node has an entry
	// for the reason that applies to it (Empty for a node without pods to move, else Underutilized), and one for each
	// other reason for which it should be removed and is not.
	Kept []Kept
	// Eligible is the number of nodes that may be removed, by reason, regardless of budgets.
	Eligible map[plan.Reason]int
	// Next is the earliest time at which a node that is kept only temporarily could be removed; zero if time alone
	// changes nothing.
	Next time.Time
	// Halted is why no command may begin, whatever the node; OK if commands may.
	Halted plan.Verdict
}

// Kept is a node that is kept, the reason for which it might be removed, and the verdict that keeps it.
type Kept struct {
	Node    string
	Pool    string
	Reason  plan.Reason
	Verdict plan.Verdict
}

// The methods by their names in metrics.
const (
	MethodEmpty  = "empty"
	MethodMulti  = "multi"
	MethodSingle = "single"
)

// run holds the state of one call of Propose.
type run struct {
	snap  *model.Snapshot
	opts  Options
	guard *guard.Guard
	p     *Proposal
	// ahead is the projected state from which what-ifs start, nil until first used.
	ahead *projection
	// holdsRoom are empty nodes that are kept for virtual pods. A cheaper node may replace them.
	holdsRoom []*model.Node
}

// Propose decides which nodes to remove. It does not propose commands again that are already in progress; their nodes
// are kept as taken. The methods run in a fixed order: first what needs no search, then what is required, then what
// saves cost. Budgets and room that one method uses are not available to the next.
func Propose(snap *model.Snapshot, opts Options) Proposal {
	g := guard.New(snap)
	p := Proposal{Eligible: map[plan.Reason]int{}}
	r := &run{snap: snap, opts: opts, guard: g, p: &p}
	for _, n := range snap.Nodes {
		if n.Ours() && n.Command != "" {
			p.keep(n, "", plan.Verdict{Code: plan.NodeTaken, Node: n.Name})
		}
	}
	if v := opts.UnreadyBrake.Verdict(snap); !v.OK() {
		p.Halted = v
		p.halt(r, v)
		return p
	}
	p.empty(r)
	if opts.Static {
		commands, kept := StaticDrift(snap, g)
		p.Commands = append(p.Commands, commands...)
		for _, k := range kept {
			p.stays(r, snap.Node(k.Node), k.Reason, k.Verdict)
		}
	}
	p.drifted(r)
	p.expiring(r)
	if !opts.NoSearch {
		p.underutilized(r)
	}
	p.wakeForRoom(r)
	p.sort()
	return p
}

// halt keeps every node for the reason that applies to it.
func (p *Proposal) halt(r *run, v plan.Verdict) {
	for _, n := range r.candidates() {
		reason := plan.Underutilized
		if n.Reschedulable() == 0 {
			reason = plan.Empty
		}
		v.Node = n.Name
		p.keep(n, reason, v)
	}
	p.sort()
}

func (p *Proposal) sort() {
	slices.SortFunc(p.Kept, func(a, b Kept) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(string(a.Reason), string(b.Reason)))
	})
}

// candidates returns the managed nodes that are in no command yet.
func (r *run) candidates() []*model.Node {
	taken := r.taken()
	var nodes []*model.Node
	for _, n := range r.snap.Nodes {
		if n.Ours() && n.Command == "" && !taken[n.Name] {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func (r *run) taken() map[string]bool {
	taken := map[string]bool{}
	for _, c := range r.p.Commands {
		for _, candidate := range c.Candidates {
			taken[candidate.Node] = true
		}
	}
	return taken
}

func (r *run) static(n *model.Node) bool {
	pool := r.snap.Pool(n.Pool)
	return pool != nil && pool.Static
}

// projection returns the state from which what-ifs start: all commands in progress and all proposed so far are carried
// out.
func (r *run) projection() *projection {
	if r.ahead == nil {
		taken := r.taken()
		r.ahead = project(r.snap, r.opts, func(n *model.Node) bool { return departing(n) || taken[n.Name] })
	}
	return r.ahead
}

// empty proposes the removal of nodes without pods to move: one command each, the most expensive first. It keeps a
// node on which pending pods have a planned place: where pods are not nominated, kube-scheduler may bind a pod to a
// node that was launched for another pod, and the node that looks unused is the place of that other pod.
func (p *Proposal) empty(r *run) {
	var eligible []*model.Node
	for _, n := range r.candidates() {
		if n.Reschedulable() > 0 {
			continue
		}
		if v := r.guard.Removable(n, plan.Empty); !v.OK() {
			p.stays(r, n, plan.Empty, v)
			continue
		}
		eligible = append(eligible, n)
	}
	p.Eligible[plan.Empty] = len(eligible)
	if len(eligible) > 0 && len(r.snap.Groups) > 0 {
		ahead := project(r.snap, r.opts, departing)
		eligible = slices.DeleteFunc(eligible, func(n *model.Node) bool {
			if ahead.taken[n.Name] {
				p.stays(r, n, plan.Empty, plan.Verdict{Code: plan.NodeNominated, Node: n.Name})
			}
			return ahead.taken[n.Name]
		})
	}
	slices.SortFunc(eligible, func(a, b *model.Node) int {
		return cmp.Or(cmp.Compare(b.Price, a.Price), strings.Compare(a.Name, b.Name))
	})
	var room *projection
	if len(eligible) > 0 && len(r.snap.Virtual) > 0 {
		room = project(r.snap, r.opts, departing)
	}
	for _, n := range eligible {
		if room != nil {
			if pod := room.heldFor(n); pod != nil {
				r.holdsRoom = append(r.holdsRoom, n)
				owner := pod.Controller.Kind + " " + pod.Namespace + "/" + pod.Controller.Name
				p.stays(r, n, plan.Empty, plan.Verdict{Code: plan.NodeHoldsRoom, Node: n.Name, Name: owner, Holder: &plan.Holder{Pod: pod.Key()}})
				continue
			}
		}
		command := plan.NewCommand(r.snap.Now, plan.Empty, MethodEmpty, []plan.Candidate{plan.CandidateOf(n)})
		if pool := r.snap.Pool(n.Pool); pool != nil {
			command.Worth.Saving = n.Price + r.opts.Placement.NodePriceOf(pool.PoolSpec)
		}
		if v := r.guard.Admit(command); !v.OK() {
			p.stays(r, n, plan.Empty, v)
			continue
		}
		p.Commands = append(p.Commands, command)
	}
}

// underutilized proposes the changes that make the fleet cheaper.
func (p *Proposal) underutilized(r *run) {
	var nodes []*model.Node
	for _, n := range r.candidates() {
		if n.Reschedulable() == 0 && !slices.Contains(r.holdsRoom, n) {
			continue
		}
		if v := r.guard.Removable(n, plan.Underutilized); !v.OK() {
			p.stays(r, n, plan.Underutilized, v)
			continue
		}
		nodes = append(nodes, n)
	}
	p.Eligible[plan.Underutilized] = len(nodes)
	if len(nodes) == 0 {
		return
	}
	keep := func(n *model.Node, v plan.Verdict) {
		p.stays(r, n, plan.Underutilized, v)
	}
	found := r.projection().consolidate(r.guard, nodes, keep)
	byWorth(r.snap, r.opts, found)
	found = p.unpaused(r, found)
	p.Commands = append(p.Commands, found...)
}

// unpaused removes the commands that must wait because replacements failed recently, and those with a replacement of a type
// whose nodes have shown to be too small for the pods.
func (p *Proposal) unpaused(r *run, commands []plan.Command) []plan.Command {
	return slices.DeleteFunc(commands, func(c plan.Command) bool {
		v := plan.Verdict{Code: plan.NoSaving}
		if !slices.ContainsFunc(c.Replacements, func(n plan.NewClaim) bool { return futile.TooSmall(r.snap, &n) }) {
			v = r.guard.Paused(c)
		}
		if v.OK() {
			return false
		}
		r.guard.Release(c)
		for _, candidate := range c.Candidates {
			v.Node = candidate.Node
			p.stays(r, r.snap.Node(candidate.Node), c.Reason, v)
		}
		return true
	})
}

func (p *Proposal) keep(n *model.Node, reason plan.Reason, v plan.Verdict) {
	p.Kept = append(p.Kept, Kept{Node: n.Name, Pool: n.Pool, Reason: reason, Verdict: v})
}

// stays records that the node is kept, and the time at which the verdict ends by itself.
func (p *Proposal) stays(r *run, n *model.Node, reason plan.Reason, v plan.Verdict) {
	p.keep(n, reason, v)
	p.wakeAt(r.snap, changesAt(r.guard, r.opts, r.snap, n, Kept{Reason: reason, Verdict: v}))
}

// wakeForRoom records when more nodes become available for pods, if that may allow removing a node that is kept for
// lack of a better place for its pods.
func (p *Proposal) wakeForRoom(r *run) {
	if !slices.ContainsFunc(p.Kept, func(k Kept) bool {
		switch k.Verdict.Code {
		case plan.NodeHoldsRoom, plan.PodsHomeless, plan.NoSaving, plan.SavingTooSmall, plan.ScoreTooLow, plan.SpotForbidden, plan.SpotShareExceeded,
			plan.LaunchedAgain, plan.PodsFollow:
			return true
		}
		return false
	}) {
		return
	}
	for _, n := range r.snap.Nodes {
		if pool := r.snap.Pool(n.Pool); n.Ours() && pool != nil && n.Stage == model.Initialized && n.Ready {
			p.wakeAt(r.snap, guard.QuietFrom(n, pool))
			p.wakeAt(r.snap, reserve.ExpectingUntil(r.snap, n))
			p.wakeAt(r.snap, r.opts.stayUntil(r.snap, n))
		}
	}
}

func (p *Proposal) wakeAt(snap *model.Snapshot, at time.Time) {
	if at.After(snap.Now) && at.Before(model.Forever) && (p.Next.IsZero() || at.Before(p.Next)) {
		p.Next = at
	}
}
