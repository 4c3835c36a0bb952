package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// A seat is the place on a node that a plan has for a pod. The claim of a node that is bought remembers those that it
// is bought for until it is initialised; the seats of a command, on nodes that are there and on those it buys, stand in the
// command until its last claim is gone. Whoever plans anew meanwhile finds the same seats: pods that are started again
// under other names take those of their predecessors, by controller, if they still fit. Else every new plan would pack them
// another way, and where a plan is tight buy a node for the rest.
type seat struct {
	pod, owner string
	// since is when the command was made: a pod of the controller that came to the node later has come for a seat. It is
	// zero for seats of claims, which begin with nobody on them.
	since time.Time
	// claimed: the seat is of a claim, old: a newer claim has a seat for the pod.
	claimed, old bool
}

// perch is where a seat is: the name of a claim, which need not be there yet, or that of a node that is not ours.
type perch struct{ claim, node string }

func perchOf(n *model.Node) perch {
	if n.Claim != "" {
		return perch{claim: n.Claim}
	}
	return perch{node: n.Name}
}

// Seated returns the snapshot with the seats that pods hold by claims in flight and by the commands of the nodes of another
// snapshot, from which it was derived, that are leaving.
func Seated(snap, of *model.Snapshot, leaving func(*model.Node) bool) *model.Snapshot {
	return snap.Promising(inherited(snap, commanded(of, leaving)))
}

// commanded are the seats of commands.
func commanded(snap *model.Snapshot, leaving func(*model.Node) bool) map[perch][]seat {
	var seats map[perch][]seat
	read := reader{}
	seen := map[string]bool{}
	for _, n := range snap.Nodes {
		if n.Command == "" || !leaving(n) {
			continue
		}
		cmd := read.command(n)
		if cmd == nil || cmd.Phase == Abandoned || seen[cmd.ID] {
			continue
		}
		seen[cmd.ID] = true
		if seats == nil {
			seats = map[perch][]seat{}
		}
		cmd.seats(snap, func(at perch, s seat) { seats[at] = append(seats[at], s) })
	}
	return seats
}

// seats tells of every seat on nodes that are there or are still to come.
func (c *Command) seats(snap *model.Snapshot, tell func(at perch, s seat)) {
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

// reader reads commands; every candidate of one carries the same text.
type reader map[string]*Command

// command is the node's, nil where it cannot be read or is another's.
func (r reader) command(n *model.Node) *Command {
	cmd, known := r[n.Command]
	if !known {
		if read, err := DecodeCommand(n.Command); err == nil {
			cmd = &read
		}
		r[n.Command] = cmd
	}
	if cmd == nil || !cmd.names(n) {
		return nil
	}
	return cmd
}

// inherited is, by node, whom its seats are for now, where pods took those of their predecessors.
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

// markOld marks the seats that claims have for a pod which a newer claim has a seat for. The place may be another pod's by now.
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

// compareSeats orders two nodes whose claims have a seat for the pod with that UID: the newer seat first. Reservations are newer
// than claims, and are taken back when the pod goes elsewhere.
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

// seatsOf are the seats of a node, each once: what its claim promises, and what commands do. A claim may be created for a pod and
// reserved for it too.
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

// seated are whom the seats of a node are for, with heirs for its vacant seats, who are taken from the orphans. A seat is
// vacant when nobody is to be found for whom it was bought and none of his controller has come to the node for it; an old one has
// no heir.
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
