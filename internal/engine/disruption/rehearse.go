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

// A plan has a place for every pod. But an evicted pod is recreated under another name, and kube-scheduler binds it
// before it can be nominated to a node: to the emptiest node that it may use (NodeResourcesFit with LeastAllocated),
// whatever the plan. Where room is tight and pods differ in size, the small pods spread over the room that was
// planned for the large ones, and in the end a large pod fits nowhere. A node must then be launched that the plan did
// not include.
//
// So all commands of a round, and those in progress, are rehearsed together: their pods are placed by
// kube-scheduler's rule in the order in which drains evict them, and in a second order, and the pods without room are
// recorded. The resulting cost of the commands is computed in spare.go.
//
// Representation: nodes of the same size are kept in a size class, the emptiest first, so that examining a few nodes of
// each size class finds the best node, or nearly the best: the rule also prefers even use of cpu and memory. The
// constraints of the node itself are checked exactly (resources, taints, labels). Constraints between pods are
// approximated: by host, pods that exclude each other are kept apart; by zone and other keys, a pod stays in the
// domain that the plan has for it. Cost: pods times sizes, for each order.

// rehearsal holds the nodes and the pods to place.
type rehearsal struct {
	snap *model.Snapshot
	// open holds the nodes that accept pods, by name; later holds those that do not exist when the first nodes drain.
	open  []*model.Node
	later map[string]bool
	// assigned is the planned node of each pod, by UID.
	assigned map[string]*model.Node
	pods     []*movingPod
}

// movingPod is a pod to place.
type movingPod struct {
	pod   *model.Pod
	group *model.Group
	// command is the ID of the command that moves the pod, "" for a pod that is pending or is on a node that is being
	// deleted.
	command string
	// afterLaunch pods move when the replacements of their command exist.
	afterLaunch bool
	// part is the larger of the pod's shares of its node's cpu and memory, by which the drain of the node orders the
	// pods; turn is its position there. For a pod without a node, part is its size. The rule that drains evict
	// critical pods last is ignored: they are few.
	part float64
	turn int
	// size is the larger of its shares of the total cpu and memory requests, tieBreak a pseudorandom number.
	size     float64
	tieBreak uint64
	podRules *podRules
}

// podRules holds the constraints of the rules between pods on the node of a group's pods.
type podRules struct {
	// keys are the labels whose values must equal those of the planned node.
	keys []int
	// excluded holds the marks by host that must not be on the node.
	excluded []int
	// fixed means that only the planned node is acceptable.
	fixed bool
	// own holds the marks of the group's pods.
	own []int
}

// free reports whether the group has no rules between pods.
func (d *podRules) free() bool { return len(d.keys) == 0 && len(d.excluded) == 0 && !d.fixed }

// rehearse returns the rehearsal of commands that begin together, including those in progress, and of all other pods
// that need a place. No pod is placed on closed nodes.
func rehearse(snap *model.Snapshot, commands []plan.Command, closed func(*model.Node) bool) *rehearsal {
	r := &rehearsal{later: map[string]bool{}, assigned: map[string]*model.Node{}}
	commandOf := map[string]*plan.Command{}
	var leaving []string
	for i := range commands {
		for _, c := range commands[i].Candidates {
			commandOf[c.Node] = &commands[i]
		}
	}
	for _, n := range snap.Nodes {
		if n.Deleting || commandOf[n.Name] != nil {
			leaving = append(leaving, n.Name)
		}
	}
	r.snap = snap.Without(leaving...)
	r.snap.Pools = snap.Pools
	replacements := map[string]bool{}
	for i := range commands {
		for k := range commands[i].Replacements {
			replacements[commands[i].Replacements[k].Name] = true
		}
	}
	for _, n := range r.snap.Nodes {
		if !n.Disrupted && (replacements[n.Claim] || !closed(n)) {
			r.open = append(r.open, n)
			if n.Stage < model.Initialized {
				r.later[n.Name] = true
			}
		}
	}
	for i := range commands {
		r.addReplacements(snap, &commands[i])
	}
	r.addPods(snap, commandOf)
	return r
}

// addReplacements adds the replacements of the command, and records its assignments.
func (r *rehearsal) addReplacements(snap *model.Snapshot, cmd *plan.Command) {
	assign := func(n *model.Node, pods []model.PodRef) {
		for _, pod := range pods {
			r.assigned[pod.UID] = n
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
		assign(n, c.PodRefs())
	}
	for i := range cmd.Destinations {
		if n := cmd.Destinations[i].On(snap); n != nil {
			assign(n, cmd.Destinations[i].Pods)
		}
	}
	for _, s := range cmd.Assignments {
		if n := snap.Node(s.Node); n != nil {
			for _, p := range s.Pods {
				r.assigned[p.UID] = n
			}
		}
	}
}

// addPods collects all pods that need a place.
func (r *rehearsal) addPods(snap *model.Snapshot, commandOf map[string]*plan.Command) {
	var all [2]float64
	for _, g := range r.snap.Groups {
		d := podRulesOf(r.snap, g)
		for _, p := range g.Pods {
			q := &movingPod{pod: p, group: g, podRules: d}
			if cmd := commandOf[p.Node]; cmd != nil && p.Node != "" && snap.Node(p.Node) != nil {
				q.command, q.afterLaunch = cmd.ID, len(cmd.Replacements) > 0
			}
			if n := snap.Node(p.Node); n != nil && p.Node != "" {
				q.part = largestPart(p.Requests, n.Usable)
			}
			h := fnv.New64a()
			_, _ = h.Write([]byte(p.UID))
			q.tieBreak = h.Sum64()
			r.pods = append(r.pods, q)
			all[0] += float64(p.Requests.At(quantity.CPU))
			all[1] += float64(p.Requests.At(quantity.Memory))
		}
	}
	for _, q := range r.pods {
		q.size = max(float64(q.pod.Requests.At(quantity.CPU))/max(1, all[0]), float64(q.pod.Requests.At(quantity.Memory))/max(1, all[1]))
		if q.pod.Node == "" {
			q.part = q.size
		}
	}
	slices.SortFunc(r.pods, func(a, b *movingPod) int {
		return cmp.Or(strings.Compare(a.pod.Node, b.pod.Node), cmp.Compare(b.part, a.part), strings.Compare(a.pod.Key(), b.pod.Key()))
	})
	for i, q := range r.pods {
		if i > 0 && r.pods[i-1].pod.Node == q.pod.Node {
			q.turn = r.pods[i-1].turn + 1
		}
	}
}

// largestPart returns the larger of the shares of the cpu and of the memory that are requested.
func largestPart(requests, of quantity.Vector) float64 {
	part := 0.0
	for _, r := range []quantity.Resource{quantity.CPU, quantity.Memory} {
		if all := of.At(r); all > 0 {
			part = max(part, float64(requests.At(r))/float64(all))
		}
	}
	return part
}

func podRulesOf(snap *model.Snapshot, g *model.Group) *podRules {
	d := &podRules{fixed: len(g.HostPorts) > 0 || len(g.Shared) > 0, own: slices.Clone(g.Matches)}
	ask := func(key string, mark int, anti bool) {
		switch k, known := snap.Space.Lookup(key); {
		case key == model.LabelHostname && anti:
			d.excluded = append(d.excluded, mark)
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

// order compares pods by when they are recreated.
type order func(a, b *movingPod) int

// asDrainsAsk is the order in which drains evict pods: one of each node in turn, the largest first.
func asDrainsAsk(a, b *movingPod) int {
	return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(b.size, a.size))
}

// atRandom is a pseudorandom but reproducible order.
func atRandom(a, b *movingPod) int { return cmp.Compare(a.tieBreak, b.tieBreak) }

// unplaced returns the pods without room in the order, by command.
func (r *rehearsal) unplaced(o order) map[string][]*movingPod {
	left := map[string][]*movingPod{}
	for _, q := range r.placeAll(o) {
		if q.command != "" {
			left[q.command] = append(left[q.command], q)
		}
	}
	return left
}

// placeAll places all pods in the order and returns those without room. The pods that do not wait for replacements are
// first, while the replacements do not exist yet.
func (r *rehearsal) placeAll(o order) []*movingPod {
	pods := slices.Clone(r.pods)
	slices.SortFunc(pods, func(a, b *movingPod) int {
		return cmp.Or(compareBools(a.afterLaunch, b.afterLaunch), o(a, b), strings.Compare(a.pod.Key(), b.pod.Key()))
	})
	s := newSchedulerSim(r)
	var left []*movingPod
	for _, q := range pods {
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
