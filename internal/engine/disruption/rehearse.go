package disruption

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// A plan has a seat for every pod. But a pod that is evicted is started again under another name, and kube-scheduler
// has bound it before anybody can promise it a node: to the emptiest one that it may be on (NodeResourcesFit with
// LeastAllocated), whatever the plan. Where room is tight and pods are of many sizes, the small ones spread over the
// room that was meant for the large ones, and in the end one of these fits nowhere. A node has to be bought for it that
// the plan did not reckon with.
//
// So all commands of a round, and those under way, are rehearsed together: their pods are placed by kube-scheduler's rule
// in the order in which drains ask them to leave, and in another, and who is left over is noted. What the commands cost then
// is in spare.go.
//
// Representation: nodes of the same size stand on a shelf, the emptiest first, so that a few looks at each shelf find the
// best of all, or nearly: the rule also likes cpu and memory to be used evenly. Of the constraints the node's own are
// asked exactly (resources, taints, labels), those between pods roughly: by host, who must not be together is not; by zone
// and the like, a pod goes where the plan has it. Cost: pods times shelves, for each order.

// rehearsal is a stage on which pods are placed, and the pods.
type rehearsal struct {
	snap *model.Snapshot
	// open are the nodes that take pods, by name; later are those that are not there when the first nodes drain.
	open  []*model.Node
	later map[string]bool
	// seat is the node of each pod by the plan, by UID.
	seat map[string]*model.Node
	cast []*player
}

// player is a pod that has to find a place.
type player struct {
	pod   *model.Pod
	group *model.Group
	// command is the ID of the one that moves it, "" for a pod that waits or whose node is being deleted anyway.
	command string
	// second: it moves when what its command buys is there.
	second bool
	// part is the larger of its parts of its node's cpu and memory, by which the node's drain orders, and turn its place there;
	// of a pod without a node its size.
	// That critical pods are asked when the others are gone is left out: they are few.
	part float64
	turn int
	// size is the larger of its parts of all that pods ask for, ticket a number drawn for it.
	size   float64
	ticket uint64
	bonds  *bonds
}

// bonds are what the rules between pods ask of a group's nodes.
type bonds struct {
	// keys are the labels on which the node must be as the planned one.
	keys []int
	// shut are the marks by host that must not be there.
	shut []int
	// fixed: nothing less than the planned node will do.
	fixed bool
	// own are the marks that the group's pods bring.
	own []int
}

// free reports whether rules between pods leave the group alone.
func (d *bonds) free() bool { return len(d.keys) == 0 && len(d.shut) == 0 && !d.fixed }

// rehearse makes the stage for commands that begin together, some of them under way already, and for everybody else who looks for
// a place. Nobody goes to nodes that are closed.
func rehearse(snap *model.Snapshot, commands []plan.Command, closed func(*model.Node) bool) *rehearsal {
	r := &rehearsal{later: map[string]bool{}, seat: map[string]*model.Node{}}
	mover := map[string]*plan.Command{}
	var leaving []string
	for i := range commands {
		for _, c := range commands[i].Candidates {
			mover[c.Node] = &commands[i]
		}
	}
	for _, n := range snap.Nodes {
		if n.Deleting || mover[n.Name] != nil {
			leaving = append(leaving, n.Name)
		}
	}
	r.snap = snap.Without(leaving...)
	r.snap.Pools = snap.Pools
	bought := map[string]bool{}
	for i := range commands {
		for k := range commands[i].Replacements {
			bought[commands[i].Replacements[k].Name] = true
		}
	}
	for _, n := range r.snap.Nodes {
		if !n.Disrupted && (bought[n.Claim] || !closed(n)) {
			r.open = append(r.open, n)
			if n.Stage < model.Initialized {
				r.later[n.Name] = true
			}
		}
	}
	for i := range commands {
		r.furnish(snap, &commands[i])
	}
	r.enter(snap, mover)
	return r
}

// furnish puts what the command buys on the stage, and notes its seats.
func (r *rehearsal) furnish(snap *model.Snapshot, cmd *plan.Command) {
	sit := func(n *model.Node, words []string) {
		for _, word := range words {
			uid, _, _ := strings.Cut(word, "/")
			r.seat[uid] = n
		}
	}
	for i := range cmd.Replacements {
		c := &cmd.Replacements[i]
		n := snap.Claim(c.Name)
		if n == nil {
			if types := c.Types(); len(types) > 0 {
				n = snap.Future(replacementSpec(snap, c), types[:1])
			}
			if n == nil {
				continue
			}
			r.open = append(r.open, n)
			r.later[n.Name] = true
		}
		sit(n, c.Promises())
	}
	for i := range cmd.Landing {
		if n := cmd.Landing[i].On(snap); n != nil {
			sit(n, cmd.Landing[i].Pods)
		}
	}
	for _, s := range cmd.Seats {
		if n := snap.Node(s.Node); n != nil {
			for _, p := range s.Pods {
				r.seat[p.UID] = n
			}
		}
	}
}

// enter lists everybody who looks for a place.
func (r *rehearsal) enter(snap *model.Snapshot, mover map[string]*plan.Command) {
	var all [2]float64
	for _, g := range r.snap.Groups {
		d := bondsOf(r.snap, g)
		for _, p := range g.Pods {
			q := &player{pod: p, group: g, bonds: d}
			if cmd := mover[p.Node]; cmd != nil && p.Node != "" && snap.Node(p.Node) != nil {
				q.command, q.second = cmd.ID, len(cmd.Replacements) > 0
			}
			if n := snap.Node(p.Node); n != nil && p.Node != "" {
				q.part = largestPart(p.Requests, n.Usable)
			}
			h := fnv.New64a()
			_, _ = h.Write([]byte(p.UID))
			q.ticket = h.Sum64()
			r.cast = append(r.cast, q)
			all[0] += float64(p.Requests.At(quantity.CPU))
			all[1] += float64(p.Requests.At(quantity.Memory))
		}
	}
	for _, q := range r.cast {
		q.size = max(float64(q.pod.Requests.At(quantity.CPU))/max(1, all[0]), float64(q.pod.Requests.At(quantity.Memory))/max(1, all[1]))
		if q.pod.Node == "" {
			q.part = q.size
		}
	}
	slices.SortFunc(r.cast, func(a, b *player) int {
		return cmp.Or(strings.Compare(a.pod.Node, b.pod.Node), cmp.Compare(b.part, a.part), strings.Compare(a.pod.Key(), b.pod.Key()))
	})
	for i, q := range r.cast {
		if i > 0 && r.cast[i-1].pod.Node == q.pod.Node {
			q.turn = r.cast[i-1].turn + 1
		}
	}
}

// largestPart is the larger of the parts of the cpu and the memory that are asked for.
func largestPart(requests, of quantity.Vector) float64 {
	part := 0.0
	for _, r := range []quantity.Resource{quantity.CPU, quantity.Memory} {
		if all := of.At(r); all > 0 {
			part = max(part, float64(requests.At(r))/float64(all))
		}
	}
	return part
}

func bondsOf(snap *model.Snapshot, g *model.Group) *bonds {
	d := &bonds{fixed: len(g.HostPorts) > 0 || len(g.Shared) > 0, own: slices.Clone(g.Matches)}
	ask := func(key string, mark int, anti bool) {
		switch k, known := snap.Space.Lookup(key); {
		case key == model.LabelHostname && anti:
			d.shut = append(d.shut, mark)
		case key == model.LabelHostname:
			d.fixed = true
		case known && !slices.Contains(d.keys, int(k)):
			d.keys = append(d.keys, int(k))
		}
	}
	for i := range g.Spread {
		if s := &g.Spread[i]; !s.Soft {
			ask(s.Key, 0, false)
		}
	}
	for i := range g.Terms {
		if t := &g.Terms[i]; t.Required() {
			ask(t.Key, g.TermMarks[i], t.Anti)
		}
	}
	for _, mark := range g.CarrierMarks {
		if mark >= 0 {
			d.own = append(d.own, mark)
		}
	}
	for _, mark := range g.BlockedBy {
		ask(snap.Marks[mark].Key, mark, true)
	}
	return d
}

// order is one in which pods may be started again.
type order func(a, b *player) int

// asDrainsAsk is the order in which drains ask pods to leave: one of each node in turn, the largest first.
func asDrainsAsk(a, b *player) int {
	return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(b.size, a.size))
}

// atRandom is any order, the same each time.
func atRandom(a, b *player) int { return cmp.Compare(a.ticket, b.ticket) }

// leftOver are the pods that find no place in that order, by command.
func (r *rehearsal) leftOver(o order) map[string][]*player {
	left := map[string][]*player{}
	for _, q := range r.play(o) {
		if q.command != "" {
			left[q.command] = append(left[q.command], q)
		}
	}
	return left
}

// play places everybody in an order and returns who found no place. First come the pods that wait for nothing, while what
// is bought is not there yet.
func (r *rehearsal) play(o order) []*player {
	cast := slices.Clone(r.cast)
	slices.SortFunc(cast, func(a, b *player) int {
		return cmp.Or(compareBools(a.second, b.second), o(a, b), strings.Compare(a.pod.Key(), b.pod.Key()))
	})
	s := newStage(r)
	var left []*player
	for _, q := range cast {
		if !s.place(q) {
			left = append(left, q)
		}
	}
	return left
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
