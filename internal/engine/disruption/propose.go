package disruption

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Proposal is what should be begun now.
type Proposal struct {
	// Commands in the order in which they take from the budgets.
	Commands []plan.Command
	// Kept are all nodes of ours that no command takes, by name, and why.
	Kept []Kept
	// Eligible is the number of nodes that may leave, budgets left aside.
	Eligible int
	// Next is the earliest time at which a node that stays for a while only could leave; zero when time alone
	// changes nothing.
	Next time.Time
}

// Kept is a node that stays, and why.
type Kept struct {
	Node    string
	Pool    string
	Verdict plan.Verdict
}

// The methods by their names in metrics (core specification 5.1).
const (
	MethodEmpty  = "empty"
	MethodMulti  = "multi"
	MethodSingle = "single"
)

// Propose decides which nodes should leave. Commands that are under way already are not proposed again; their nodes
// are kept as taken.
func Propose(snap *model.Snapshot, opts Options) Proposal {
	guard := plan.NewGuard(snap)
	var p Proposal
	p.empty(snap, guard)
	p.underutilized(snap, guard, opts)
	slices.SortFunc(p.Kept, func(a, b Kept) int { return strings.Compare(a.Node, b.Node) })
	return p
}

// underutilized proposes what makes the fleet cheaper.
func (p *Proposal) underutilized(snap *model.Snapshot, guard *plan.Guard, opts Options) {
	taken := map[string]bool{}
	for _, c := range p.Commands {
		for _, candidate := range c.Candidates {
			taken[candidate.Node] = true
		}
	}
	var nodes []*model.Node
	for _, n := range snap.Nodes {
		if n.Ours() && n.Command == "" && !taken[n.Name] {
			if v := guard.Removable(n, plan.Underutilized); !v.OK() {
				p.keep(n, v)
				continue
			}
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return
	}
	w := settle(snap, opts, func(n *model.Node) bool { return leaving(n) || taken[n.Name] })
	p.Commands = append(p.Commands, w.consolidate(guard, nodes, p.keep)...)
}

// empty proposes the nodes without inhabitants.
func (p *Proposal) empty(snap *model.Snapshot, guard *plan.Guard) {
	var eligible []*model.Node
	for _, n := range snap.Nodes {
		if !n.Ours() {
			continue
		}
		if n.Command != "" {
			p.keep(n, plan.Verdict{Code: plan.NodeTaken, Node: n.Name})
			continue
		}
		if v := guard.Removable(n, plan.Empty); !v.OK() {
			p.keep(n, v)
			p.wake(snap, n, v)
			continue
		}
		eligible = append(eligible, n)
	}
	p.Eligible = len(eligible)
	slices.SortFunc(eligible, func(a, b *model.Node) int {
		return cmp.Or(cmp.Compare(b.Price, a.Price), strings.Compare(a.Name, b.Name))
	})
	for _, n := range eligible {
		command := plan.NewCommand(snap.Now, plan.Empty, MethodEmpty, []plan.Candidate{plan.CandidateOf(n)})
		if v := guard.Admit(command); !v.OK() {
			p.keep(n, v)
			continue
		}
		p.Commands = append(p.Commands, command)
	}
}

func (p *Proposal) keep(n *model.Node, v plan.Verdict) {
	p.Kept = append(p.Kept, Kept{Node: n.Name, Pool: n.Pool, Verdict: v})
}

// wake notes when the reason to keep a node ends by itself.
func (p *Proposal) wake(snap *model.Snapshot, n *model.Node, v plan.Verdict) {
	var at time.Time
	switch v.Code {
	case plan.NodeTooYoung:
		at = plan.QuietFrom(n, snap.Pool(n.Pool))
	case plan.NodeNominated:
		at = n.NominatedUntil
	}
	if at.After(snap.Now) && (p.Next.IsZero() || at.Before(p.Next)) {
		p.Next = at
	}
}
