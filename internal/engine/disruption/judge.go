package disruption

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Judge answers, for one snapshot, whether commands that were stored are still right: their pods have a place on nodes
// that are there or that the commands buy, and what they save is still worth it. All commands under way are judged
// together, because they count on the same room; the work is done when the first is asked about. What was proposed is
// not asked for again: a command stands as long as it is right, whatever else would be right now, so that a busy cluster
// cannot keep it from being carried out.
//
// The function returned is not safe for concurrent use.
func Judge(snap *model.Snapshot, opts Options) func(plan.Command) plan.Verdict {
	var j *judgement
	return func(cmd plan.Command) plan.Verdict {
		if j == nil {
			j = judgeAll(snap, opts)
		}
		return j.verdict(cmd)
	}
}

// judgement is what became of all commands of a snapshot.
type judgement struct {
	*world
	// against are the commands, by ID, that are no longer right, and why.
	against map[string]plan.Verdict
	// future are the replacements that are not there yet, by claim.
	future map[string]*model.Node
	// nodes are the candidates of all commands; command says of which, by node, and bought what has been bought, by claim.
	nodes   []*model.Node
	command map[string]string
	bought  map[string]bool
	// buyer is the command that buys a claim, by claim.
	buyer map[string]string
	// landing are the UIDs of the claims of nodes that commands under way send pods to. They are counted on, though the pods
	// of one command have just come there, or every command would have to wait for the others' pods to settle.
	landing map[string]bool
	// stage is the rehearsal of all commands, left who was left over, by command; nil until asked.
	stage *rehearsal
	left  map[string][]*player
}

func judgeAll(snap *model.Snapshot, opts Options) *judgement {
	j := &judgement{against: map[string]plan.Verdict{}, future: map[string]*model.Node{}}
	// 1. Who leaves, and what is bought for them.
	command, bought := map[string]string{}, map[string]bool{}
	j.command, j.bought, j.buyer = command, bought, map[string]string{}
	j.landing = map[string]bool{}
	commands := plan.Resume(snap)
	for i := range commands {
		if commands[i].Phase == plan.Abandoned {
			continue
		}
		for _, c := range commands[i].Candidates {
			command[c.Node] = commands[i].ID
		}
		for _, l := range commands[i].Landing {
			j.landing[l.ClaimUID] = l.Claim != ""
		}
		for k := range commands[i].Replacements {
			bought[commands[i].Replacements[k].Name] = true
			j.buyer[commands[i].Replacements[k].Name] = commands[i].ID
		}
	}
	// 2. Pods that are pending or on nodes that are being deleted take their places first, but not those that were bought
	// for others.
	settled := opts
	settled.Placement.Closed = func(n *model.Node) bool { return bought[n.Claim] }
	j.world = settle(snap, settled, func(n *model.Node) bool { return n.Deleting })
	j.opts = opts
	// 3. What is still to be bought is there.
	var futures []*model.Node
	for i := range commands {
		for k := range commands[i].Replacements {
			r := &commands[i].Replacements[k]
			if commands[i].Phase == plan.Abandoned || snap.Claim(r.Name) != nil {
				continue
			}
			n := j.snap.Future(replacementSpec(snap, r), r.Types())
			// What is not for sale has no price, and must not pass for cheap.
			if n == nil || n.Price <= 0 && commands[i].Reason == plan.Underutilized {
				j.against[commands[i].ID] = plan.Verdict{Code: plan.ReplacementChanged, Node: r.Name}
				continue
			}
			j.future[r.Name] = n
			futures = append(futures, n)
		}
	}
	j.snap = j.snap.With(futures...)
	// 4. Everybody else moves, to the seats that the commands have for them.
	for _, n := range j.snap.Nodes {
		if command[n.Name] != "" {
			j.nodes = append(j.nodes, n)
		}
	}
	for id, v := range j.fewest() {
		if j.against[id].OK() {
			j.against[id] = v
		}
	}
	return j
}

// fewest are the commands whose pods go nowhere, with the seats that they were planned or, where that is better because
// somebody else has taken some, without: pods that may go anywhere may otherwise take the room of those that may not, and
// what was proposed would be taken back for ever.
func (j *judgement) fewest() map[string]plan.Verdict {
	free := j.snap
	j.snap = plan.Seated(free, j.began, departing)
	against := j.move()
	if len(against) == 0 {
		return nil
	}
	seated := j.snap
	j.snap = free
	if other := j.move(); len(other) < len(against) {
		return other
	}
	j.snap = seated
	return against
}

// closed reports whether nobody is sent to the node.
func (j *judgement) closed(n *model.Node) bool {
	return j.unsettled(n) && !j.bought[n.Claim] && !(j.landing[n.ClaimUID] && reached(n))
}

// move asks where the pods of all candidates go, and returns the commands whose pods go nowhere.
func (j *judgement) move() map[string]plan.Verdict {
	against := map[string]plan.Verdict{}
	if len(j.nodes) == 0 {
		return against
	}
	o := j.without(j.nodes, j.closed)
	blame := func(pod *model.Pod, n *model.Node) {
		id := j.command[n.Name]
		v := against[id]
		if v.OK() {
			v = plan.Verdict{Code: plan.PodsHomeless, Node: n.Name, Holder: &plan.Holder{Pod: pod.Key()}}
		}
		v.Have++
		against[id] = v
	}
	for _, h := range o.homeless {
		blame(h.pod, h.node)
	}
	origin := j.origins(j.nodes)
	for i := range o.claims {
		for _, p := range o.claims[i].Pods {
			if n := origin[p]; n != nil {
				blame(p, n)
			}
		}
	}
	// What another command buys may never come.
	for _, s := range o.seats {
		n := j.snap.Node(s.Node)
		if n == nil || n.Stage == model.Initialized || j.buyer[n.Claim] == "" {
			continue
		}
		for _, p := range s.Pods {
			if from := origin[p]; from != nil && j.command[from.Name] != j.buyer[n.Claim] {
				blame(p, from)
			}
		}
	}
	return against
}

func (j *judgement) verdict(cmd plan.Command) plan.Verdict {
	if v := j.against[cmd.ID]; !v.OK() {
		return v
	}
	if cmd.Reason != plan.Underutilized { // what must be need not pay
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
	j.reckon(c)
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
		saving -= n.Price + j.nodePrice(r.Pool)
	}
	if !paid {
		if v := j.keepsShare(c, cmd); !v.OK() {
			return v
		}
	}
	// What has been bought is paid in any case; then it is enough that leaving things as they are costs more. Else it must not
	// lose by what kube-scheduler will make of it.
	least := j.least(c)
	if paid {
		least = 1
	}
	if saving < least {
		return plan.Verdict{Code: plan.SavingTooSmall, Node: c.nodes[0].Name, Need: least, Have: saving}
	}
	if paid {
		return plan.Verdict{}
	}
	return j.atRisk(cmd.ID, c.nodes[0], saving)
}

// atRisk asks whether what may have to be bought for pods of the command that kube-scheduler leaves over would take all of
// the saving.
func (j *judgement) atRisk(id string, first *model.Node, saving int64) plan.Verdict {
	if j.stage == nil {
		j.stage = rehearse(j.began, j.underWay(), j.closed)
		j.left = j.stage.leftOver(asDrainsAsk)
	}
	if len(j.left[id]) == 0 {
		return plan.Verdict{}
	}
	claims, homeless := j.spares(j.stage, j.left[id])
	if homeless != nil {
		return stranding(first, homeless)
	}
	if have := saving - j.priceOf(claims); have < 1 {
		return plan.Verdict{Code: plan.RoomTooTight, Node: first.Name, Need: 1, Have: have}
	}
	return plan.Verdict{}
}

func replacementSpec(snap *model.Snapshot, r *plan.NewClaim) model.NodeSpec {
	spec := model.NodeSpec{Name: r.Name, Claim: r.Name, ClaimUID: r.Name, Pool: r.Pool, Stage: model.Launching, Created: snap.Now,
		Labels: r.Labels, Requirements: r.Requirements}
	if pool := snap.Pool(r.Pool); pool != nil {
		spec.Taints = pool.Taints
	}
	return spec
}
