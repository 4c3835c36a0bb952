package history

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/plugin/bill"
)

// Node is what the log has of a node. Times are nil where it does not.
type Node struct {
	NodeClaim    string `json:"nodeClaim,omitempty"`
	Node         string `json:"node,omitempty"`
	NodePool     string `json:"nodePool,omitempty"`
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
	ProviderID   string `json:"providerID,omitempty"`
	// PricePerHour is in USD; nil if it is not known.
	PricePerHour *bill.USD `json:"pricePerHour,omitempty" jsonschema:"type=number"`
	// BeforeLog says that the log has nothing of its launch.
	BeforeLog bool `json:"beforeLog,omitempty"`

	// LaunchedFor is why it was launched, Pods for which pods, LaunchedBy the command that it is a replacement for.
	LaunchedFor string `json:"launchedFor,omitempty"`
	Pods        *Pods  `json:"pods,omitempty"`
	LaunchedBy  string `json:"launchedBy,omitempty"`

	Created     *time.Time `json:"created,omitempty"`
	Launched    *time.Time `json:"launched,omitempty"`
	Registered  *time.Time `json:"registered,omitempty"`
	Initialized *time.Time `json:"initialized,omitempty"`
	// Leaving is when the command or the deletion began that removed it.
	Leaving  *time.Time `json:"leaving,omitempty"`
	Draining *time.Time `json:"draining,omitempty"`
	Drained  *time.Time `json:"drained,omitempty"`
	Deleted  *time.Time `json:"deleted,omitempty"`

	// Reason is why it left, RemovedBy by which command, Detail more about it. Evicted are the pods that had to leave.
	Reason    string `json:"reason,omitempty"`
	RemovedBy string `json:"removedBy,omitempty"`
	Detail    string `json:"detail,omitempty"`
	Evicted   *Pods  `json:"evicted,omitempty"`

	// PaidSeconds is how much of the time of the answer the machine is paid for, Cost what it cost in that time, USD. They
	// are nil if they are not known.
	PaidSeconds *int64    `json:"paidSeconds,omitempty"`
	Cost        *bill.USD `json:"cost,omitempty" jsonschema:"type=number"`

	gone    *time.Time // the Node object is gone
	failed  bool       // no machine was launched
	command *Command
}

// Pods is a number of pods, and the names of those that the log names.
type Pods struct {
	Count int      `json:"count"`
	Names []string `json:"names,omitempty"`
	// Nodes is the number of new nodes that the pods are for together, if it is more than one.
	Nodes int `json:"nodes,omitempty"`
}

// Past is what happened.
type Past struct {
	// From and Until are the span of the log.
	From, Until time.Time
	Nodes       []*Node
	Commands    []*Command

	byClaim, byNode map[string]*Node
	plans           map[string]*event // upstream's pods for new nodes, by reconciliation
	lastPlan        *event
}

// Past returns what the lines say, in the order of their time.
func (l *Log) Past() *Past {
	p := &Past{From: l.From, Until: l.Until, byClaim: map[string]*Node{}, byNode: map[string]*Node{}, plans: map[string]*event{}}
	for _, e := range l.ordered() {
		p.add(e)
	}
	return p
}

func (p *Past) add(e *event) {
	switch e.step {
	case found:
		p.plan(e)
	case disrupting:
		p.begin(e)
	case abandoned:
		p.abandon(e)
	default:
		n := p.node(e)
		n.describe(e)
		p.advance(n, e)
	}
}

// node returns the node that an event is about. A name of a claim that is gone begins another node.
func (p *Past) node(e *event) *Node {
	n := p.byClaim[e.claim]
	if n == nil && e.node != "" {
		if n = p.byNode[e.node]; n != nil && n.NodeClaim != "" && e.claim != "" && n.NodeClaim != e.claim {
			n = nil
		}
	}
	if n == nil || n.Deleted != nil && e.step < disrupting {
		n = &Node{BeforeLog: e.step != created && e.step != launched && e.step != failed}
		p.Nodes = append(p.Nodes, n)
	}
	if e.claim != "" {
		n.NodeClaim = e.claim
		p.byClaim[e.claim] = n
	}
	if e.node != "" {
		n.Node = e.node
		p.byNode[e.node] = n
	}
	return n
}

// describe adds what the event says of the machine. A price of the launch is not replaced by a later one.
func (n *Node) describe(e *event) {
	set := func(to *string, value string) { *to = cmp.Or(*to, value) }
	set(&n.NodePool, e.pool)
	set(&n.InstanceType, e.kind)
	set(&n.Zone, e.zone)
	set(&n.CapacityType, e.capacity)
	set(&n.ProviderID, e.id)
	if n.PricePerHour == nil && e.price > 0 {
		n.PricePerHour = new(bill.USD(e.price))
	}
}

// advance records the step of the event, once.
func (p *Past) advance(n *Node, e *event) {
	first := func(to **time.Time) {
		if *to == nil {
			*to = new(e.at)
		}
	}
	switch e.step {
	case created:
		first(&n.Created)
		p.launchedFor(n, e)
	case failed:
		first(&n.Leaving)
		n.failed, n.Reason, n.Detail = true, e.reason, e.detail
	case launched:
		first(&n.Launched)
		n.LaunchedFor, n.failed = cmp.Or(n.LaunchedFor, e.reason), false
		if n.Pods == nil && e.pods.count > 0 {
			n.Pods = &Pods{Count: e.pods.count}
		}
	case registered:
		first(&n.Registered)
	case initialized:
		first(&n.Initialized)
	case claimDeleted:
		first(&n.Leaving)
		n.Reason, n.Detail, n.RemovedBy, n.command = e.reason, e.detail, "", nil
	case draining:
		first(&n.Draining)
		if n.Evicted == nil && e.pods.count > 0 {
			n.Evicted = &Pods{Count: e.pods.count, Names: e.pods.names}
		}
	case drained:
		first(&n.Drained)
	case nodeGone:
		first(&n.gone)
	case deleted:
		n.end(e)
	}
}

// end records that the machine is gone.
func (n *Node) end(e *event) {
	if n.Deleted != nil {
		return
	}
	n.Deleted = new(e.at)
	if n.Created == nil && e.lifetime > 0 {
		n.Created = new(e.at.Add(-e.lifetime))
	}
	if e.reason != "" && n.Reason == "" {
		n.Reason = e.reason
	}
	if n.Launched == nil && e.id == "" && e.node == "" && n.ProviderID == "" {
		n.failed = true
	}
}

// launchedFor records why and for which pods the claim was created.
func (p *Past) launchedFor(n *Node, e *event) {
	n.LaunchedFor, n.LaunchedBy = cmp.Or(n.LaunchedFor, e.reason), cmp.Or(n.LaunchedBy, e.commandID)
	if e.reason != "" { // a line of this project
		if e.pods.count > 0 {
			n.Pods = &Pods{Count: e.pods.count, Names: e.pods.names}
		}
		return
	}
	if strings.HasSuffix(e.logger, "disruption") || strings.HasSuffix(e.logger, "deprovisioning") {
		if c := p.lastCommand(e); c != nil {
			n.LaunchedFor, n.LaunchedBy = c.Reason, c.ID
			if !slices.Contains(c.Replacements, n.NodeClaim) {
				c.Replacements = append(c.Replacements, n.NodeClaim)
			}
		}
		return
	}
	n.LaunchedFor = "provisioned"
	plan := p.plans[e.reconcile]
	if e.reconcile == "" && p.lastPlan != nil && e.at.Sub(p.lastPlan.at) <= near {
		plan = p.lastPlan
	}
	if plan != nil {
		n.Pods = &Pods{Count: plan.pods.count, Names: plan.pods.names}
		if plan.nodes > 1 {
			n.Pods.Nodes = plan.nodes
		}
	}
}

// near is how long after a decision upstream's lines about its effects come, where nothing else joins them.
const near = 10 * time.Second

// lastCommand returns the command of the same reconciliation as the event, or the last one just before it.
func (p *Past) lastCommand(e *event) *Command {
	for _, c := range slices.Backward(p.Commands) {
		if e.reconcile != "" && c.reconcile == e.reconcile || e.reconcile == "" && e.at.Sub(c.Time) <= near {
			return c
		}
	}
	return nil
}

// plan records for which pods upstream creates nodes: a line has their names, the next one the number of nodes.
func (p *Past) plan(e *event) {
	before := p.plans[e.reconcile]
	if e.reconcile == "" && p.lastPlan != nil && e.at.Sub(p.lastPlan.at) <= near {
		before = p.lastPlan
	}
	if e.nodes > 0 && before != nil {
		before.nodes = e.nodes
		if len(before.pods.names) == 0 || e.pods.count < before.pods.count && e.nodes == 1 && len(before.pods.names) <= e.pods.count {
			before.pods.count = e.pods.count
		}
		return
	}
	plan := *e
	p.plans[e.reconcile], p.lastPlan = &plan, &plan
}

// begin records a command, and for its nodes that it removes them.
func (p *Past) begin(e *event) {
	c := e.command
	p.Commands = append(p.Commands, c)
	for i := range max(len(c.Nodes), len(c.NodeClaims)) {
		of := *e
		of.claim, of.node, of.kind, of.capacity = at(c.NodeClaims, i), at(c.Nodes, i), at(c.kinds, i), at(c.capacities, i)
		if !of.known() {
			continue
		}
		n := p.node(&of)
		n.describe(&of)
		n.Leaving, n.Reason, n.RemovedBy, n.command = new(e.at), c.Reason, c.ID, c
	}
	for _, name := range c.Replacements {
		if n := p.byClaim[name]; n != nil { // upstream creates them before it writes the line
			n.LaunchedFor, n.LaunchedBy = c.Reason, c.ID
		}
	}
}

// abandon records that a command was rolled back: its nodes stay.
func (p *Past) abandon(e *event) {
	for _, c := range p.Commands {
		if c.ID == e.commandID {
			c.Abandoned = cmp.Or(e.command.Abandoned, "unknown")
			for _, n := range p.Nodes {
				if n.command == c && n.Deleted == nil {
					n.Leaving, n.Reason, n.RemovedBy, n.command = nil, "", "", nil
				}
			}
		}
	}
}

// Name is the name of the node, or of its claim if none has joined.
func (n *Node) Name() string { return cmp.Or(n.Node, n.NodeClaim) }

// paid returns from when to when the machine is paid; false if its begin is not known, or no machine was launched. Before
// the log, the creation of the claim stands for the launch.
func (n *Node) paid(until time.Time) (from, to time.Time, known bool) {
	begin := n.Launched
	if begin == nil {
		begin = n.Created
	}
	if begin == nil || n.failed || n.Launched == nil && !n.BeforeLog {
		return time.Time{}, time.Time{}, false
	}
	end := until
	if n.Deleted != nil {
		end = *n.Deleted
	}
	return *begin, end, true
}

// asOf leaves out the steps that came after a time. What is known of the machine stays.
func (n *Node) asOf(until time.Time) {
	for _, at := range []**time.Time{&n.Created, &n.Launched, &n.Registered, &n.Initialized, &n.Leaving, &n.Draining, &n.Drained,
		&n.gone, &n.Deleted} {
		if *at != nil && (*at).After(until) {
			*at = nil
		}
	}
	if n.Leaving == nil && n.Deleted == nil {
		n.Reason, n.RemovedBy, n.Detail, n.command, n.failed = "", "", "", nil, false
	}
	if n.Draining == nil {
		n.Evicted = nil
	}
}

// settle computes what the node has cost in a time.
func (n *Node) settle(from, until time.Time) {
	begin, end, known := n.paid(until)
	if !known {
		return
	}
	d := overlap(begin, end, from, until)
	n.PaidSeconds = new(int64(d.Round(time.Second) / time.Second))
	if n.PricePerHour != nil {
		n.Cost = new(n.PricePerHour.Over(d))
	}
}

// settle computes what the command has saved until a time.
func (c *Command) settle(until time.Time) {
	if c.SavingPerHour != nil && c.consolidates() && c.Abandoned == "" {
		c.Saved = new(c.SavingPerHour.Over(until.Sub(c.Time)))
	}
}
