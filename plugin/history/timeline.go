package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/plugin/table"
)

// Text returns the answer as lines that fit a width in characters, 0 for unlimited.
func (a *NodeRecords) Text(width int) string {
	return table.Wrap(a.span()+Timelines(a.Records), width, 21)
}

// Names returns the node.
func (a *NodeRecords) Names() []string { return namesOf(a.Records) }

// Timelines returns what happened to nodes as lines, each after an empty line; empty without nodes.
func Timelines(nodes []*Node) string {
	text := ""
	for _, n := range nodes {
		text += "\n" + n.timeline()
	}
	return text
}

// timeline returns what happened to the node as lines.
func (n *Node) timeline() string {
	head := "node " + n.Name()
	if n.Node != "" && n.NodeClaim != "" && n.Node != n.NodeClaim {
		head += ", nodeclaim " + n.NodeClaim
	}
	if n.NodePool != "" {
		head += ", pool " + n.NodePool
	}
	text := head + "\n"
	if m := n.machine(); m != "" {
		text += m
		if n.PricePerHour != nil {
			text += ", " + n.PricePerHour.Text(4) + " USD per hour"
		}
		text += "\n"
	}
	if n.BeforeLog {
		text += "launched before the log begins\n"
	}
	for _, s := range n.stages() {
		text += s.at.Format(second) + "  " + s.text + "\n"
	}
	if n.PaidSeconds != nil {
		text += "paid for " + n.paidFor()
		if n.Cost != nil {
			text += ": " + n.Cost.Text(4) + " USD"
		}
		text += "\n"
	}
	return text
}

type stage struct {
	at   time.Time
	text string
}

// stages returns the steps of the node in the order of their time.
func (n *Node) stages() []stage {
	var list []stage
	add := func(at *time.Time, text string) {
		if at != nil {
			list = append(list, stage{*at, text})
		}
	}
	if !n.BeforeLog {
		add(n.Created, "created"+because(n.LaunchedFor, n.LaunchedBy)+n.Pods.list(" for "))
	}
	add(n.Launched, "launched")
	add(n.Registered, "joined the cluster")
	add(n.Initialized, "ready for pods")
	leaves := "leaves" + because(n.Reason, n.RemovedBy)
	if n.failed {
		leaves = "cannot be launched" + because(n.Reason, "")
	}
	if n.Detail != "" {
		leaves += ": " + n.Detail
	}
	add(n.Leaving, leaves)
	add(n.Draining, "drain begins"+n.Evicted.list(", evicts "))
	add(n.Drained, "drained")
	add(n.gone, "Node object removed")
	gone := "machine is gone"
	if n.failed {
		gone = "removed; no machine was launched"
	}
	if n.Leaving == nil && n.Reason != "" {
		gone += because(n.Reason, "")
	}
	add(n.Deleted, gone)
	slices.SortStableFunc(list, func(a, b stage) int { return a.at.Compare(b.at) })
	return list
}

func because(reason, command string) string {
	switch {
	case reason == "" && command == "":
		return ""
	case command == "":
		return " (" + reason + ")"
	}
	return fmt.Sprintf(" (%s, command %s)", orUnknown(reason), command)
}

// shownPods is how many pods a sentence names.
const shownPods = 8

// list returns the pods after some words; empty if there are none.
func (p *Pods) list(before string) string {
	if p == nil {
		return ""
	}
	text := before + table.Plural(p.Count, "pod")
	if p.Nodes > 1 {
		text += fmt.Sprintf(" of %d new nodes", p.Nodes)
	}
	shown := p.Names[:min(len(p.Names), shownPods)]
	if len(shown) > 0 {
		text += ": " + strings.Join(shown, ", ")
		if more := p.Count - len(shown); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	return text
}

// Text returns the answer as lines that fit a width in characters, 0 for unlimited.
func (a *PodRecords) Text(width int) string {
	return table.Wrap(a.span()+"\npod "+a.Pod+Stages(a.Stages), width, 21)
}

// Names returns the pod.
func (a *PodRecords) Names() []string { return []string{"pod/" + a.Pod} }

// Stages returns what happened to a pod as lines, after an empty line; empty without stages.
func Stages(stages []PodStage) string {
	text := ""
	for _, s := range stages {
		name := s.Node
		if name == "" {
			name = "of nodeclaim " + s.NodeClaim
		}
		if s.machine != "" {
			name += " (" + s.machine + ")"
		}
		what := "evicted from node " + name
		if s.What == launchedFor {
			what = "node " + name + " was launched for it"
			if s.Nodes > 1 {
				what = fmt.Sprintf("node %s was launched, one of %d for it and other pods", name, s.Nodes)
			}
		}
		text += s.Time.Format(second) + "  " + what + because(s.Reason, s.CommandID) + "\n"
	}
	if text != "" {
		text = "\n" + text
	}
	return text
}
