package reserve

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// seat is a pod's reservation on a node. The claim of a launched node lists the pods it was launched for until it is
// initialized. The seats of a command, on existing nodes and on its replacements, are stored in the command until its
// last claim is gone. Every plan made meanwhile finds the same seats: pods that controllers recreate under other names
// take those of their predecessors, by controller, if they still fit. Otherwise every new plan would pack them
// differently and, where capacity is short, launch a node for the rest.
type seat struct {
	pod, owner string
	// since is when the command was created: a pod of the controller that was created later and is on the node has used
	// a seat. It is zero for seats of claims, whose nodes are empty at first.
	since time.Time
	// claimed reports that the seat belongs to a claim, old that a newer claim has a seat for the pod.
	claimed, old bool
}

// perch identifies where a seat is: the name of a claim, which may not exist yet, or of a node without a claim.
type perch struct{ claim, node string }

func perchOf(n *model.Node) perch {
	if n.Claim != "" {
		return perch{claim: n.Claim}
	}
	return perch{node: n.Name}
}

// Seated returns the snapshot with the reservations by claims in flight and by commands. The commands are read from the
// nodes of another snapshot, from which snap was derived, that are being removed.
func Seated(snap, of *model.Snapshot, leaving func(*model.Node) bool) *model.Snapshot {
	return snap.Promising(inherited(snap, commanded(of, leaving)))
}

// commanded returns the seats of commands.
func commanded(snap *model.Snapshot, leaving func(*model.Node) bool) map[perch][]seat {
	var seats map[perch][]seat
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
		if seats == nil {
			seats = map[perch][]seat{}
		}
		commandSeats(cmd, snap, func(at perch, s seat) { seats[at] = append(seats[at], s) })
	}
	return seats
}

// commandSeats calls tell for every seat on existing nodes and on replacements.
func commandSeats(c *plan.Command, snap *model.Snapshot, tell func(at perch, s seat)) {
	say := func(at perch, words []string, since time.Time) {
		for _, word := range words {
			pod, owner, _ := strings.Cut(word, "/")
			tell(at, seat{pod: pod, owner: owner, since: since})
		}
	}
	since := c.Created.Truncate(time.Second)
	for i := range c.Landing {
		if n := c.Landing[i].On(snap); n != nil {
			say(perchOf(n), c.Landing[i].Pods, since)
		}
	}
	for i := range c.Replacements {
		say(perch{claim: c.Replacements[i].Name}, c.Replacements[i].Promises(), time.Time{})
	}
}

// inherited returns, by node, the UIDs of the pods that its seats are now for, including pods that took over a seat.
func inherited(snap *model.Snapshot, commanded map[perch][]seat) map[string][]string {
	if len(commanded) == 0 && !slices.ContainsFunc(snap.Nodes, func(n *model.Node) bool { return n.Owners != nil }) {
		return nil
	}
	var tables []table
	planned, orphans := map[string]bool{}, map[string][]*model.Pod{}
	promised := map[string]bool{}
	for _, n := range snap.Nodes {
		for _, uid := range n.Promised {
			promised[uid] = true
		}
		given := commanded[perchOf(n)]
		if n.Deleting || n.Owners == nil && given == nil {
			continue
		}
		tables = append(tables, table{n, seatsOf(n, given)})
		for _, s := range tables[len(tables)-1].seats {
			promised[s.pod] = true
		}
	}
	for _, g := range snap.Groups {
		for _, p := range g.Pods {
			planned[p.UID] = true
			if !promised[p.UID] && p.Controller.UID != "" {
				orphans[p.Controller.UID] = append(orphans[p.Controller.UID], p)
			}
		}
	}
	markOld(tables)
	seats := map[string][]string{}
	for _, t := range tables {
		seats[t.node.Name] = seated(t.node, t.seats, planned, orphans)
	}
	return seats
}

// table is a node with its seats.
type table struct {
	node  *model.Node
	seats []seat
}

// markOld marks the seats of claims for a pod that has a seat on a newer claim. Another pod may use the capacity by
// now.
func markOld(tables []table) {
	newest := map[string]*model.Node{}
	for _, t := range tables {
		for _, s := range t.seats {
			if !s.claimed || s.owner == "" {
				continue
			}
			if other := newest[s.pod]; other == nil || compareSeats(s.pod, t.node, other) < 0 {
				newest[s.pod] = t.node
			}
		}
	}
	for _, t := range tables {
		for i := range t.seats {
			s := &t.seats[i]
			s.old = s.claimed && s.owner != "" && newest[s.pod] != t.node
		}
	}
}

// compareSeats orders two nodes whose claims have a seat for the pod with that UID: the newer seat first. Reservations
// are newer than claims, and are removed when the pod goes elsewhere.
func compareSeats(uid string, a, b *model.Node) int {
	pod := model.Pod{UID: uid}
	without := func(n *model.Node) int {
		if slices.ContainsFunc(n.ReservedFor, pod.NamedBy) {
			return 0
		}
		return 1
	}
	return cmp.Or(without(a)-without(b), CompareLaunches(a, b))
}

// seatsOf returns the seats of a node, each once: those of its claim, and those of commands. A claim may be created for
// a pod and also have a reservation for it.
func seatsOf(n *model.Node, commanded []seat) []seat {
	var seats []seat
	known := make(map[string]int, len(n.Promised))
	for i, uid := range n.Promised {
		s := seat{pod: uid, claimed: true}
		if i < len(n.Owners) {
			s.owner = n.Owners[i]
		}
		if at, again := known[uid]; again {
			seats[at].owner = cmp.Or(seats[at].owner, s.owner)
			continue
		}
		known[uid] = len(seats)
		seats = append(seats, s)
	}
	for _, s := range commanded {
		if !slices.Contains(n.Promised, s.pod) {
			seats = append(seats, s)
		}
	}
	return seats
}

// seated returns the UIDs of the pods that the seats of a node are for, including successors for vacant seats, which
// are removed from the orphans. A seat is vacant when its pod is gone and no pod of the same controller has been bound
// to the node in its place. An old seat has no successor.
func seated(n *model.Node, seats []seat, planned map[string]bool, orphans map[string][]*model.Pod) []string {
	promised := make([]string, len(seats))
	meant := make(map[string]bool, len(seats))
	for i, s := range seats {
		promised[i] = s.pod
		meant[s.pod] = true
	}
	came := map[string]bool{}
	arrived := func(s seat) bool {
		for _, p := range n.Pods {
			if p.Controller.UID == s.owner && !meant[p.UID] && !came[p.UID] && !p.Created.Before(s.since) {
				came[p.UID] = true
				return true
			}
		}
		return false
	}
	for _, s := range seats {
		switch {
		case s.owner == "" || s.old || planned[s.pod] || arrived(s):
		case len(orphans[s.owner]) > 0:
			promised = append(promised, orphans[s.owner][0].UID)
			orphans[s.owner] = orphans[s.owner][1:]
		}
	}
	return promised
}
