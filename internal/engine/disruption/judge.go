package disruption

import (
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
)

// Judge returns a function that reports, for one snapshot, whether a stored command is still correct: its pods have
// room on existing nodes or on nodes that the commands launch, and its saving still suffices. All commands in
// progress are evaluated together, because they share room; the first call of the function evaluates them. The judge
// does not check whether the command would be proposed again. A command stands while it is correct, whatever
// alternatives exist, so that a busy cluster cannot prevent it from being carried out.
//
// The returned function is not safe for concurrent use.
func Judge(snap *model.Snapshot, opts Options) func(plan.Command) plan.Verdict {
	var j *judgment
	return func(cmd plan.Command) plan.Verdict {
		if j == nil {
			j = judgeAll(snap, opts)
		}
		return j.verdict(cmd)
	}
}

// judgment holds the results for all commands of a snapshot.
type judgment struct {
	*projection
	// against holds the commands, by ID, that are no longer correct, and the reason.
	against map[string]plan.Verdict
	// future holds the replacements that do not exist yet, by claim.
	future map[string]*model.Node
	// nodes are the candidates of all commands. command is the command of a candidate, by node. replacements holds the
	// replacements of all commands, by claim.
	nodes        []*model.Node
	command      map[string]string
	replacements map[string]bool
	// launcher is the command that launches a claim, by claim.
	launcher map[string]string
	// prices are those of the replacements without the candidates, by claim, nano-USD per hour.
	prices map[string]int64
	// destinations holds the UIDs of the claims of nodes to which commands in progress move pods. These nodes are open
	// although pods of one command have just been bound to them; otherwise every command would wait until the pods of
	// the others settle.
	destinations map[string]bool
}

func judgeAll(snap *model.Snapshot, opts Options) *judgment {
	j := &judgment{
		against: map[string]plan.Verdict{}, future: map[string]*model.Node{},
		command: map[string]string{}, replacements: map[string]bool{}, launcher: map[string]string{}, destinations: map[string]bool{},
	}
	// 1. Collect the nodes to remove and the claims to launch for them.
	commands := guard.Resume(snap)
	awaiting := j.collect(snap, commands)
	// 2. Pods that are pending or on nodes that are being deleted are placed first, but not on nodes that were
	// launched for other pods.
	settled := opts
	settled.Placement.Closed = func(n *model.Node) bool { return awaiting[n.Claim] }
	j.projection = project(snap, settled, func(n *model.Node) bool { return n.Deleting })
	j.opts = opts
	// 3. Add the claims that are not launched yet as nodes.
	var futures []*model.Node
	for i := range commands {
		for k := range commands[i].Replacements {
			r := &commands[i].Replacements[k]
			if commands[i].Phase == plan.Abandoned || snap.Claim(r.Name) != nil {
				continue
			}
			n := j.snap.Future(r.FutureSpec(snap), r.Types())
			// A claim without an available offering has no price, and must not count as cheap.
			if n == nil || n.Price <= 0 && commands[i].Reason == plan.Underutilized {
				j.against[commands[i].ID] = plan.Verdict{Code: plan.ReplacementChanged, Node: r.Name}
				continue
			}
			j.future[r.Name] = n
			futures = append(futures, n)
		}
	}
	j.snap = j.snap.With(futures...)
	// 4. All other pods move, to the assignments of the commands.
	for _, n := range j.snap.Nodes {
		if j.command[n.Name] != "" {
			j.nodes = append(j.nodes, n)
		}
	}
	j.prices = j.snap.PricesWithout(j.nodes, j.launched(commands))
	for id, v := range j.fewest() {
		if j.against[id].OK() {
			j.against[id] = v
		}
	}
	return j
}

// launched returns the replacements as nodes, in the order of the commands.
func (j *judgment) launched(commands []plan.Command) (nodes []*model.Node) {
	for i := range commands {
		for k := range commands[i].Replacements {
			name := commands[i].Replacements[k].Name
			if n := j.snap.Claim(name); n != nil && j.replacements[name] && j.command[n.Name] == "" {
				nodes = append(nodes, n)
			}
		}
	}
	return nodes
}

// collect records the candidates, replacements and destinations of the commands. It returns the replacements whose pods
// are still on nodes that are not being deleted. Once all candidates are, the replacements are the places of pods that
// are pending or about to be: these would otherwise be placed on the room of the pods of other commands.
func (j *judgment) collect(snap *model.Snapshot, commands []plan.Command) (awaiting map[string]bool) {
	awaiting = map[string]bool{}
	for i := range commands {
		cmd := &commands[i]
		if cmd.Phase == plan.Abandoned {
			continue
		}
		leaving := true
		for _, c := range cmd.Candidates {
			j.command[c.Node] = cmd.ID
			if n := snap.Node(c.Node); n != nil && !n.Deleting {
				leaving = false
			}
		}
		for _, l := range cmd.Destinations {
			j.destinations[l.ClaimUID] = l.Claim != ""
		}
		for k := range cmd.Replacements {
			name := cmd.Replacements[k].Name
			j.replacements[name], j.launcher[name] = true, cmd.ID
			awaiting[name] = !leaving
		}
	}
	return awaiting
}

// fewest returns the commands whose pods have no room. It evaluates them with the planned assignments and, if that
// fails because other pods have taken some assignments, without. Without the assignments, pods that fit anywhere might
// take the room of pods that do not, and proposed commands would be reverted again and again.
func (j *judgment) fewest() map[string]plan.Verdict {
	free := j.snap
	j.snap = free.WithReservations(reserve.Derive(free, reserve.Sources{Commands: j.began, Leaving: departing}))
	against := j.move()
	if len(against) == 0 {
		return nil
	}
	assigned := j.snap
	j.snap = free
	if other := j.move(); len(other) < len(against) {
		return other
	}
	j.snap = assigned
	return against
}

// closed reports whether no pod may be moved to the node.
func (j *judgment) closed(n *model.Node) bool {
	return j.unsettled(n) && !j.replacements[n.Claim] && !(j.destinations[n.ClaimUID] && readyForPods(n))
}

// move places the pods of all candidates, and returns the commands whose pods have no room.
func (j *judgment) move() map[string]plan.Verdict {
	against := map[string]plan.Verdict{}
	if len(j.nodes) == 0 {
		return against
	}
	o := j.without(j.nodes, j.closed)
	blame := func(h unplacedPod) {
		id := j.command[h.node.Name]
		v, known := against[id]
		if !known {
			v = h.verdict(0)
		}
		v.Have++
		against[id] = v
	}
	for _, h := range o.unplaced {
		blame(h)
	}
	origin := j.origins(j.nodes)
	for i := range o.claims {
		for _, p := range o.claims[i].Pods {
			if n := origin[p]; n != nil {
				blame(unplacedPod{pod: p, node: n})
			}
		}
	}
	for i := range o.room {
		for _, p := range o.room[i].Pods {
			blame(unplacedPod{pod: p, node: j.originOf(p, j.nodes)})
		}
	}
	// The claim of another command may never become a node.
	for _, s := range o.assignments {
		n := j.snap.Node(s.Node)
		if n == nil || n.Stage == model.Initialized || j.launcher[n.Claim] == "" {
			continue
		}
		for _, p := range s.Pods {
			if from := origin[p]; from != nil && j.command[from.Name] != j.launcher[n.Claim] {
				blame(unplacedPod{pod: p, node: from})
			}
		}
	}
	return against
}

func (j *judgment) verdict(cmd plan.Command) plan.Verdict {
	if v := j.against[cmd.ID]; !v.OK() {
		return v
	}
	if cmd.Reason != plan.Underutilized { // required changes need not pay
		return plan.Verdict{}
	}
	c := &change{}
	for _, candidate := range cmd.Candidates {
		if n := j.began.Claim(candidate.Claim); n != nil {
			c.nodes = append(c.nodes, n)
		}
	}
	if len(c.nodes) == 0 {
		return plan.Verdict{}
	}
	j.computeWorth(c)
	saving, paid := c.worth.Saving, len(cmd.Replacements) > 0
	for i := range cmd.Replacements {
		r := &cmd.Replacements[i]
		n := j.began.Claim(r.Name)
		if n == nil {
			n, paid = j.future[r.Name], false
		}
		if n == nil {
			return plan.Verdict{Code: plan.ReplacementChanged, Node: r.Name}
		}
		price, known := j.prices[r.Name]
		if !known {
			price = n.Price
		}
		saving -= price + j.nodePrice(r.Pool)
	}
	if !paid {
		if v := j.keepsShare(c, cmd); !v.OK() {
			return v
		}
	}
	// Launched replacements are paid for in any case. Then it suffices that keeping the current nodes costs more.
	least := j.least(c)
	if paid {
		least = 1
	}
	if saving < least {
		return c.refuse(plan.SavingTooSmall, least, saving)
	}
	return plan.Verdict{}
}
