package reserve

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Sources are what Derive reads in addition to the snapshot's claims. The zero value stands for no command and no last
// plan.
type Sources struct {
	// Commands is the snapshot whose nodes carry the commands in progress. The nodes may be missing in the snapshot
	// that the reservations are for. Nil means no commands.
	Commands *model.Snapshot
	// Leaving reports which nodes of Commands are being removed. Commands on other nodes have no reservations.
	Leaving func(*model.Node) bool
	// Last is the last plan, nil if there is none, as after a restart.
	Last *plan.Provision
}

// Derive returns the reservations of a snapshot: those that claims record, those of commands in progress, those that
// successors inherit, and those of the last plan. The order of their precedence is that of model.Source. Nominations
// are recorded on the pods.
//
// The claim of a launched node records the pods it was launched for until it is initialized. The reservations of a
// command, on existing nodes and on its replacements, are stored in the command until its last claim is gone. Every
// plan made meanwhile finds the same reservations. Otherwise every new plan would pack the pods differently and, where
// capacity is short, launch a node for the rest.
//
// Pods that are still pending keep the nodes of the last plan. Otherwise a repeated plan knows the nodes of pods that
// are nominated or had a claim launched for them, and must place all others anew: those on nodes that are not open yet,
// and those that are not nominated yet. It may find them unschedulable, and launch nodes. The names of the last plan's
// claims that did not get their first one are kept too: that name may be free by now, and the claim under the other
// name may exist although the reply to its creation was lost.
//
// Virtual pods keep the nodes of the last plan too: else it may place other ones on their nodes, and launch nodes for them.
func Derive(snap *model.Snapshot, from Sources) model.Reservations {
	d := derivation{snap: snap, derived: map[string][]model.Reservation{}}
	if from.Commands != nil {
		d.commands = commanded(from.Commands, from.Leaving)
	}
	d.inherit()
	result := model.Reservations{Nodes: d.derived}
	if from.Last != nil && len(snap.Groups) > 0 {
		pending := snap.PendingPods()
		d.keep(from.Last, pending)
		result.Turns, result.ClaimNames = turns(pending, from.Last), from.Last.Renamed
	}
	if from.Last != nil && from.Last.Virtual != nil {
		d.keep(from.Last.Virtual, snap.VirtualPods())
	}
	return result
}

// derivation computes the reservations of one snapshot.
type derivation struct {
	snap     *model.Snapshot
	commands map[location][]candidate
	// derived holds the reservations by name of the node, for nodes on which they differ from those of the claim.
	derived map[string][]model.Reservation
}

// of returns the reservations of the node as derived so far.
func (d *derivation) of(n *model.Node) []model.Reservation {
	if list, derived := d.derived[n.Name]; derived {
		return list
	}
	return n.Reservations
}

// candidate is a reservation that a successor may inherit.
type candidate struct {
	model.Reservation
	// since is when the command was created: a pod of the controller that was created later and is on the node has used
	// a reservation. It is zero for reservations of claims, whose nodes are empty at first.
	since time.Time
	// superseded reports that a newer claim has a reservation for the pod.
	superseded bool
}

// recordedOnClaim reports whether the claim of the node records the reservation.
func (c candidate) recordedOnClaim() bool { return c.Source != model.FromCommand }

// location identifies where a reservation of a command is: the name of a claim, which may not exist yet, or of a node
// without a claim.
type location struct{ claim, node string }

func locationOf(n *model.Node) location {
	if n.Claim != "" {
		return location{claim: n.Claim}
	}
	return location{node: n.Name}
}

// commanded returns the reservations of commands in progress.
func commanded(snap *model.Snapshot, leaving func(*model.Node) bool) map[location][]candidate {
	var all map[location][]candidate
	read := plan.CommandReader{}
	seen := map[string]bool{}
	for _, n := range snap.Nodes {
		if n.Command == "" || !leaving(n) {
			continue
		}
		cmd := read.Command(n)
		if cmd == nil || cmd.Phase == plan.Abandoned || seen[cmd.ID] {
			continue
		}
		seen[cmd.ID] = true
		if all == nil {
			all = map[location][]candidate{}
		}
		addCommanded(all, snap, cmd)
	}
	return all
}

// addCommanded adds the reservations of a command on existing nodes and on replacements.
func addCommanded(all map[location][]candidate, snap *model.Snapshot, cmd *plan.Command) {
	add := func(at location, pods []model.PodRef, since time.Time) {
		for _, pod := range pods {
			all[at] = append(all[at], candidate{Reservation: model.Reservation{Pod: pod, Source: model.FromCommand}, since: since})
		}
	}
	since := cmd.Created.Truncate(time.Second)
	for i := range cmd.Destinations {
		if n := cmd.Destinations[i].On(snap); n != nil {
			add(locationOf(n), cmd.Destinations[i].Pods, since)
		}
	}
	for i := range cmd.Replacements {
		add(location{claim: cmd.Replacements[i].Name}, cmd.Replacements[i].PodRefs(), time.Time{})
	}
}

// holder is a node with its reservations.
type holder struct {
	node *model.Node
	list []candidate
}

// inherit derives the reservations of claims and commands, including those of pods that took over one of them.
func (d *derivation) inherit() {
	if len(d.commands) == 0 && !slices.ContainsFunc(d.snap.Nodes, namesController) {
		return
	}
	var holders []holder
	reserved := map[string]bool{}
	for _, n := range d.snap.Nodes {
		for _, r := range n.Reservations {
			reserved[r.Pod.UID] = true
		}
		given := d.commands[locationOf(n)]
		if n.Deleting || given == nil && !namesController(n) {
			continue
		}
		list := candidatesOf(n, given)
		holders = append(holders, holder{n, list})
		for _, c := range list {
			reserved[c.Pod.UID] = true
		}
	}
	pending, successors := map[string]bool{}, map[string][]*model.Pod{}
	for _, g := range d.snap.Groups {
		for _, p := range g.Pods {
			pending[p.UID] = true
			if !reserved[p.UID] && p.Controller.UID != "" {
				successors[p.Controller.UID] = append(successors[p.Controller.UID], p)
			}
		}
	}
	markSuperseded(holders)
	for _, h := range holders {
		d.derived[h.node.Name] = h.reservations(pending, successors)
	}
}

// namesController reports whether a reservation on the node names a controller, and so may have a successor.
func namesController(n *model.Node) bool {
	return slices.ContainsFunc(n.Reservations, func(r model.Reservation) bool { return r.Pod.Controller != "" })
}

// candidatesOf returns the reservations of a node, each pod once: those of its claim, then those of commands.
func candidatesOf(n *model.Node, commanded []candidate) []candidate {
	list := make([]candidate, 0, len(n.Reservations)+len(commanded))
	known := make(map[string]bool, len(n.Reservations))
	for _, r := range n.Reservations {
		list = append(list, candidate{Reservation: r})
		known[r.Pod.UID] = true
	}
	for _, c := range commanded {
		if !known[c.Pod.UID] {
			list = append(list, c)
		}
	}
	return list
}

// markSuperseded marks the reservations of claims for a pod that has a reservation on a newer claim. Another pod may
// use the capacity by now.
func markSuperseded(holders []holder) {
	newest := map[string]*model.Node{}
	for _, h := range holders {
		for _, c := range h.list {
			if !c.recordedOnClaim() || c.Pod.Controller == "" {
				continue
			}
			if other := newest[c.Pod.UID]; other == nil || model.CompareLaunches(h.node, other) < 0 {
				newest[c.Pod.UID] = h.node
			}
		}
	}
	for _, h := range holders {
		for i := range h.list {
			c := &h.list[i]
			c.superseded = c.recordedOnClaim() && c.Pod.Controller != "" && newest[c.Pod.UID] != h.node
		}
	}
}

// reservations returns the reservations of a node, including those of successors, which are removed from the map. A
// reservation is inherited when its pod is gone and no pod of the same controller has been bound to the node in its
// place. One that is superseded has no successor.
func (h holder) reservations(pending map[string]bool, successors map[string][]*model.Pod) []model.Reservation {
	list := make([]model.Reservation, len(h.list))
	reserved := make(map[string]bool, len(h.list))
	for i, c := range h.list {
		list[i] = c.Reservation
		reserved[c.Pod.UID] = true
	}
	arrived := map[string]bool{}
	used := func(c candidate) bool {
		for _, p := range h.node.Pods {
			if p.Controller.UID == c.Pod.Controller && !reserved[p.UID] && !arrived[p.UID] && !p.Created.Before(c.since) {
				arrived[p.UID] = true
				return true
			}
		}
		return false
	}
	for _, c := range h.list {
		controller := c.Pod.Controller
		if controller == "" || c.superseded || pending[c.Pod.UID] || used(c) || len(successors[controller]) == 0 {
			continue
		}
		next := successors[controller][0]
		successors[controller] = successors[controller][1:]
		list = append(list, model.Reservation{Pod: model.PodRef{UID: next.UID, Controller: controller}, Source: model.FromPredecessor})
	}
	return list
}

// keep adds the reservations of the last plan for pods that still need a node, on nodes and on claims regardless of the
// names of their nodes.
func (d *derivation) keep(last *plan.Provision, pending map[string]*model.Pod) {
	for _, claim := range last.Claims {
		d.keepOn(claim.Name, claim.Pods, pending)
	}
	for _, placed := range last.Placed {
		d.keepOn(placed.Node, placed.Pods, pending)
	}
}

func (d *derivation) keepOn(name string, pods []*model.Pod, pending map[string]*model.Pod) {
	n := d.snap.NodeOrClaim(name)
	if n == nil {
		return
	}
	list := slices.Clone(d.of(n))
	at := make(map[string]int, len(list))
	for i, r := range list {
		at[r.Pod.UID] = i
	}
	for _, pod := range pods {
		if pending[pod.UID] == nil {
			continue
		}
		if i, known := at[pod.UID]; known {
			list[i].Source = model.FromLastPlan
			continue
		}
		list = append(list, model.Reservation{Pod: model.PodRef{UID: pod.UID}, Source: model.FromLastPlan})
	}
	d.derived[n.Name] = list
}

// turns returns the position in the last plan's order of those of its pods that are still pending.
func turns(pending map[string]*model.Pod, last *plan.Provision) map[string]int {
	turns := make(map[string]int, len(pending))
	for i, pod := range last.Order {
		if pending[pod.UID] != nil {
			turns[pod.UID] = i
		}
	}
	return turns
}
