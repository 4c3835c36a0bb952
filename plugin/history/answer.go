package history

import (
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/plugin/bill"
)

// Query selects a part of the past.
type Query struct {
	// Since and Until limit the time; zero for the span of the log.
	Since, Until time.Time
	// Filter selects nodes and commands that have the text in a name, type, zone, capacity type, pool or reason, in any case.
	Filter string
}

// Head is the part of an answer that is the same for all views.
type Head struct {
	From  *time.Time `json:"from,omitempty"`
	Until *time.Time `json:"until,omitempty"`
	Lines Lines      `json:"lines"`
}

// Lines counts the lines of the log.
type Lines struct {
	All      int `json:"all"`
	Unread   int `json:"unread"`
	Events   int `json:"aboutNodes"`
	Repeated int `json:"repeated"`
}

// View answers questions about a log: what had happened until the end of the time, and what things cost within it.
type View struct {
	log   *Log
	past  *Past
	query Query
}

// View returns what the query selects of the log.
func (l *Log) View(q Query) *View {
	v := &View{log: l, past: l.Past(), query: q}
	from, until := v.span()
	v.past.Nodes = slices.DeleteFunc(v.past.Nodes, func(n *Node) bool { return n.first().After(until) })
	for _, n := range v.past.Nodes {
		n.asOf(until)
		n.settle(from, until)
	}
	for _, c := range v.past.Commands {
		c.settle(until)
	}
	return v
}

func (v *View) head() Head {
	h := Head{Lines: Lines{v.log.Lines, v.log.Unread, v.log.Events, v.log.Repeated}}
	if !v.past.From.IsZero() {
		from, until := v.span()
		h.From, h.Until = &from, &until
	}
	return h
}

// within reports whether a time is known, and that of the answer has it.
func (v *View) within(at *time.Time) bool {
	from, until := v.span()
	return at != nil && !at.Before(from) && !at.After(until)
}

// span returns the time of the answer.
func (v *View) span() (from, until time.Time) {
	from, until = v.past.From, v.past.Until
	if v.query.Since.After(from) {
		from = v.query.Since
	}
	if u := v.query.Until; !u.IsZero() && u.Before(until) {
		until = u
	}
	return from, until
}

// Nodes is the answer about all nodes.
type Nodes struct {
	Head

	Nodes []*Node `json:"nodes"`
	Total Total   `json:"total"`
}

// Total sums up nodes. What is launched, removed or failed is so within the time.
type Total struct {
	Nodes    int `json:"nodes"`
	Launched int `json:"launched"`
	Removed  int `json:"removed"`
	Failed   int `json:"failed"`
	// Cost is that of the nodes whose price and time are known, USD, nil if there are none; Unpriced counts the others that
	// had a machine.
	Cost     *bill.USD `json:"cost,omitempty" jsonschema:"type=number"`
	Unpriced int       `json:"unpriced"`
	// BeforeLog counts the nodes that were launched before the log begins.
	BeforeLog int `json:"beforeLog"`
}

// Nodes returns the nodes that existed in the time, in the order of their launch.
func (v *View) Nodes() *Nodes {
	a := &Nodes{Head: v.head(), Nodes: []*Node{}}
	for _, n := range v.past.Nodes {
		if v.has(n) {
			a.Nodes = append(a.Nodes, n)
			v.add(&a.Total, n)
		}
	}
	slices.SortStableFunc(a.Nodes, func(x, y *Node) int { return x.first().Compare(y.first()) })
	return a
}

func (v *View) add(t *Total, n *Node) {
	t.Nodes++
	switch {
	case n.failed && (v.within(n.Leaving) || v.within(n.Deleted)):
		t.Failed++
	case n.BeforeLog:
		t.BeforeLog++
	case v.within(n.Launched):
		t.Launched++
	}
	if v.within(n.Deleted) && !n.failed {
		t.Removed++
	}
	if n.Cost != nil {
		t.Cost = plus(t.Cost, *n.Cost)
	} else if !n.failed {
		t.Unpriced++
	}
}

func plus(sum *bill.USD, u bill.USD) *bill.USD {
	if sum != nil {
		u += *sum
	}
	return &u
}

// first is the earliest time that is known of the node; zero if that is only that it was there before the log.
func (n *Node) first() time.Time {
	for _, at := range []*time.Time{n.Created, n.Launched} {
		if at != nil {
			return *at
		}
	}
	if n.failed && n.Leaving != nil {
		return *n.Leaving
	}
	return time.Time{}
}

// has reports whether the query selects the node.
func (v *View) has(n *Node) bool {
	if from, _ := v.span(); n.Deleted != nil && n.Deleted.Before(from) {
		return false
	}
	return v.matches(n.Node, n.NodeClaim, n.NodePool, n.InstanceType, n.Zone, n.CapacityType, n.Reason, n.LaunchedFor)
}

func (v *View) matches(texts ...string) bool {
	filter := strings.ToLower(v.query.Filter)
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), filter) })
}

// Commands is the answer about commands.
type Commands struct {
	Head

	Commands []*Command `json:"commands"`
	// Saved is the sum over the commands of what each saved until the end of the time, USD; nil if none has a saving.
	Saved *bill.USD `json:"saved,omitempty" jsonschema:"type=number"`
}

// Commands returns the commands of the time.
func (v *View) Commands() *Commands {
	a := &Commands{Head: v.head(), Commands: []*Command{}}
	for _, c := range v.past.Commands {
		if !v.within(&c.Time) || !v.selects(c) {
			continue
		}
		a.Commands = append(a.Commands, c)
		if c.Saved != nil {
			a.Saved = plus(a.Saved, *c.Saved)
		}
	}
	return a
}

// selects reports whether the text of the query selects the command, whenever it was.
func (v *View) selects(c *Command) bool {
	return v.matches(slices.Concat(c.Nodes, c.NodeClaims, []string{c.ID, c.Reason, c.Decision})...)
}

// NodeRecords is the answer about one node.
type NodeRecords struct {
	Head

	// Records are those of all nodes with the name, the last one last.
	Records []*Node `json:"records"`
}

// MissingError says that the log does not name an object. Known are the names that it has.
type MissingError struct {
	Object string
	Known  []string
}

// Error implements error.
func (e *MissingError) Error() string { return "the log does not name " + e.Object }

func (v *View) missing(object string, known []string) error {
	if u := v.query.Until; !u.IsZero() {
		object += " until " + u.Format(second)
	}
	return &MissingError{object, known}
}

// Node returns what the log has of a node, by its name or that of its claim.
func (v *View) Node(name string) (*NodeRecords, error) {
	a := &NodeRecords{Head: v.head()}
	var names []string
	for _, n := range v.past.Nodes {
		if n.Node == name || n.NodeClaim == name {
			a.Records = append(a.Records, n)
		}
		names = append(names, n.Node, n.NodeClaim)
	}
	if len(a.Records) == 0 {
		return nil, v.missing("a node "+name, names)
	}
	return a, nil
}

// PodRecords is the answer about one pod.
type PodRecords struct {
	Head

	Pod    string     `json:"pod"`
	Stages []PodStage `json:"stages"`
}

// PodStage is what the log says about a pod and a node.
type PodStage struct {
	Time time.Time `json:"time"`
	// What is "launched for", or "evicted from".
	What string `json:"what"`
	// Nodes is the number of nodes that were launched for it and others together, if it is more than one.
	Nodes     int    `json:"nodes,omitempty"`
	Node      string `json:"node,omitempty"`
	NodeClaim string `json:"nodeClaim,omitempty"`
	Reason    string `json:"reason,omitempty"`
	CommandID string `json:"commandID,omitempty"`
	machine   string
}

// These are the values of PodStage.What.
const (
	launchedFor = "launched for"
	evictedFrom = "evicted from"
)

// Pod returns where a pod was, by its name NAMESPACE/NAME.
func (v *View) Pod(name string) (*PodRecords, error) {
	a := &PodRecords{Head: v.head(), Pod: name}
	var names []string
	for _, n := range v.past.Nodes {
		stage := PodStage{Node: n.Node, NodeClaim: n.NodeClaim, machine: n.machine()}
		if n.Pods != nil && slices.Contains(n.Pods.Names, name) {
			stage.Time, stage.What, stage.Reason, stage.CommandID, stage.Nodes = n.first(), launchedFor, n.LaunchedFor, n.LaunchedBy, n.Pods.Nodes
			a.Stages = append(a.Stages, stage)
		}
		if n.Evicted != nil && slices.Contains(n.Evicted.Names, name) {
			stage.Time, stage.What, stage.Reason, stage.CommandID, stage.Nodes = *n.Draining, evictedFrom, n.Reason, n.RemovedBy, 0
			a.Stages = append(a.Stages, stage)
		}
		for _, pods := range []*Pods{n.Pods, n.Evicted} {
			if pods != nil {
				names = append(names, pods.Names...)
			}
		}
	}
	if len(a.Stages) == 0 {
		return nil, v.missing("a pod "+name, names)
	}
	slices.SortStableFunc(a.Stages, func(x, y PodStage) int { return x.Time.Compare(y.Time) })
	return a, nil
}

// machine describes the machine in words.
func (n *Node) machine() string {
	words := slices.DeleteFunc([]string{n.InstanceType, n.Zone, n.CapacityType}, func(w string) bool { return w == "" })
	return strings.Join(words, ", ")
}
