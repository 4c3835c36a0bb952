package offline

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/plugin/history"
	"github.com/karpenter-go/karpenter/plugin/panel"
	"github.com/karpenter-go/karpenter/plugin/top"
)

// NodeOutcome is the result for a node. Money is USD.
type NodeOutcome struct {
	Node      string `json:"node"`
	NodeClaim string `json:"nodeClaim,omitempty"`
	NodePool  string `json:"nodePool,omitempty"`
	// PoolMissing means that the NodePool does not exist.
	PoolMissing bool `json:"nodePoolMissing,omitempty"`
	// Outcome is Foreign (no claim belongs to it), Deleting, UnderWay (a command in progress removes it), Proposed (a
	// command would be started now) or Kept.
	Outcome      string `json:"outcome"`
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
	// PricePerHour is omitted if it is unknown, and so are the costs.
	PricePerHour float64 `json:"pricePerHour,omitempty"`
	now          time.Time
	// unlaunched means that the type and the price are the cheapest ones that the claim may get.
	unlaunched bool
	// nameless means that there is no node yet: Node is the name of the claim.
	nameless bool
	// CostPerHour and CostPerMonth include the costs of nodes beyond their price.
	CostPerHour  float64 `json:"costPerHour,omitempty"`
	CostPerMonth float64 `json:"costPerMonth,omitempty"`
	// Cordoned means that kube-scheduler places no new pods on it, because of kubectl cordon or another controller.
	Cordoned bool `json:"cordoned,omitempty"`
	// PodsToMove is the number of pods that their controllers recreate elsewhere; MovePrice is the assumed price of
	// moving them.
	PodsToMove int     `json:"podsToMove"`
	MovePrice  float64 `json:"movePrice"`
	// Drifted is why it no longer matches its pool, RenewedFrom when a replacement may be launched because of its
	// age, ExpiresAt when it is deleted for its age in any case.
	Drifted     string     `json:"drifted,omitempty"`
	RenewedFrom *time.Time `json:"renewedFrom,omitempty"`
	ExpiresAt   *time.Time `json:"expiresAt,omitempty"`
	// Step is the command that removes it, Phase the progress of that command.
	Step  *Step  `json:"step,omitempty"`
	Phase string `json:"phase,omitempty"`
	// Drain is the state of the drain of a node that is being deleted.
	Drain *DrainOutcome `json:"drain,omitempty"`
	// Reasons are why it is kept, by the reason for which it might be removed.
	Reasons []KeptReason `json:"reasons,omitempty"`
	// Obstacles are all that keeps a node from being removed for being underutilized, where Reasons have the first.
	Obstacles []panel.Obstacle `json:"obstacles,omitempty"`
	// RemovalsPaused names the limit (nodepool or fleet) that pauses involuntary removals in its pool. Disputed is
	// the newest event about a machine that the cloud does not find.
	RemovalsPaused string `json:"removalsPaused,omitempty"`
	Disputed       string `json:"disputed,omitempty"`
	// Alone is the effect of removing this node alone, regardless of what protects it.
	Alone *AloneOutcome `json:"alone,omitempty"`
	// Assumed are DaemonSets that are expected on new nodes of its type because of labels that existing ones show.
	Assumed []Assumed `json:"assumed,omitempty"`
	// PriceSource is the source and the date of prices; omitted for invented prices.
	PriceSource string `json:"priceSource,omitempty"`
	// Past is what a log of the controller says of the node.
	Past []*history.Node `json:"past,omitempty"`
	Gaps
}

// KeptReason is why a node is not removed for a reason.
type KeptReason struct {
	// For is Empty, Drifted, Expired or Underutilized.
	For string `json:"for,omitempty"`
	Reason
	// ChangesAt is when this may change by time alone.
	ChangesAt *time.Time `json:"changesAt,omitempty"`
	// ofEach is Message with "each node" in place of the node.
	node, ofEach string
}

func keptReasonOf(snap *model.Snapshot, k disruption.Kept) KeptReason {
	return KeptReason{
		For: string(k.Reason), node: k.Node, ofEach: explain.OfEach(snap, k.Node, k.Verdict),
		Reason: Reason{Code: explain.Code(k.Verdict.Code), NodePool: k.Pool, Message: explain.Verdict(snap, k.Verdict)},
	}
}

// ofAll returns a message that is true of all nodes for which it is given. If the messages differ, it returns that of
// the first node as an example.
func ofAll(same []KeptReason) string {
	first := same[0]
	switch {
	case len(same) == 1:
		return first.Message
	case slices.ContainsFunc(same, func(r KeptReason) bool { return r.ofEach != first.ofEach }):
		return "for example, " + first.Message
	}
	return first.ofEach
}

// AloneOutcome is a step for one node, and what prevents it, regardless of budgets and protections.
type AloneOutcome struct {
	SavingPerHour  float64     `json:"savingPerHour"`
	SavingPerMonth float64     `json:"savingPerMonth"`
	Add            []AddedNode `json:"add,omitempty"`
	Code           string      `json:"code,omitempty"`
	Message        string      `json:"message,omitempty"`
}

// Names returns the node as `kubectl get -o name` does: its claim while there is no node.
func (o *NodeOutcome) Names() []string {
	if o.nameless {
		return []string{"nodeclaim.karpenter.sh/" + o.NodeClaim}
	}
	return []string{"node/" + o.Node}
}

// ExplainNode decides, and returns the result for a node, named by itself or by its claim.
func (o *Manifests) ExplainNode(p *Policy, name string) (*NodeOutcome, error) {
	known := o.nodeNames() // before the model changes
	decision := o.Disrupt(p, 1)
	outcome := decision.nodeOutcome(name)
	if outcome == nil {
		return nil, fmt.Errorf("there is no node %s, and no claim of that name%s", name, didYouMean(name, known))
	}
	outcome.Gaps = o.gaps()
	if outcome.NodeClaim != "" {
		outcome.RemovalsPaused = decision.removalsPaused(outcome.NodePool)
	}
	return outcome, nil
}

// nodeOutcome returns the result for the node or claim in the decision; nil if there is none.
func (d *DisruptDecision) nodeOutcome(name string) *NodeOutcome {
	n := d.first.Node(name)
	if n == nil {
		n = d.first.Claim(name)
	}
	if n == nil {
		return nil
	}
	var cost int64
	if n.LeastPrice() > 0 {
		cost = d.opts.CostOf(d.first, n)
	}
	o := &NodeOutcome{PriceSource: d.source, Node: n.Name, NodeClaim: n.Claim, NodePool: n.Pool, InstanceType: cmp.Or(n.Labels[model.LabelType], n.LeastType()), Zone: n.Labels[model.LabelZone],
		CapacityType: n.Labels[model.LabelCapacityType], PricePerHour: usd(n.LeastPrice()), CostPerHour: usd(cost), CostPerMonth: usd(cost) * quantity.HoursPerMonth,
		PodsToMove: n.Reschedulable(), MovePrice: usd(d.opts.PriceOfMoving(d.first, n)), Drifted: n.Drifted, Cordoned: n.Cordoned()}
	o.Assumed = assumedOfType(d.first.Pool(n.Pool), o.InstanceType)
	o.unlaunched, o.nameless = n.Stage == model.Launching, n.Stage < model.Registered
	o.now, o.PoolMissing = d.first.Now, n.Ours() && n.Pool != "" && d.first.Pool(n.Pool) == nil
	if !n.ExpiresAt.IsZero() && !n.Deleting {
		o.ExpiresAt = &n.ExpiresAt
		if from := disruption.RenewFrom(n); !o.PoolMissing && n.Pool != "" {
			o.RenewedFrom = &from
		}
	}
	switch {
	case !n.Ours():
		o.Outcome = "Foreign"
	case n.Deleting:
		o.Outcome, o.Drain = "Deleting", d.removed.drainOf(d.first, n)
	case n.Command != "":
		o.Outcome = "UnderWay"
		o.readCommand(d.first, n)
	case d.stepRemoving(n.Name) != nil:
		step := d.stepRemoving(n.Name).told()
		o.Outcome, o.Step = "Proposed", &step
	default:
		o.Outcome = "Kept"
		o.Reasons, o.Obstacles = d.keptReasons(n.Name), panel.Obstacles(d.first, n)
		o.Alone = d.alone(n)
	}
	return o
}

// readCommand reads the command on the node's claim.
func (o *NodeOutcome) readCommand(snap *model.Snapshot, n *model.Node) {
	command, err := plan.DecodeCommand(n.Command)
	if err != nil {
		o.Phase = "unreadable"
		return
	}
	o.Phase = string(command.Shown(n))
	stored := decidedStep{Command: command, unpriced: unpricedNode(snap, &command)}
	step := stored.told()
	for i := range command.Replacements {
		step.Add = append(step.Add, replacementUnderWay(snap, &command.Replacements[i]))
	}
	o.Step = &step
}

// replacementUnderWay describes a replacement of a stored command: by its node, if its claim has been created, else
// by the requested properties. A stored command does not contain the replacement's possible types, but the claim's
// requirements list them, cheapest first.
func replacementUnderWay(snap *model.Snapshot, r *plan.NewClaim) AddedNode {
	if n := snap.Claim(r.Name); n != nil {
		return AddedNode{n.Name, n.Pool, cmp.Or(n.Labels[model.LabelType], n.LeastType()), n.Labels[model.LabelZone], n.Labels[model.LabelCapacityType], usd(n.LeastPrice())}
	}
	added := AddedNode{Name: r.Name, NodePool: r.Pool}
	for _, q := range r.Requirements {
		if len(q.Values) == 0 || q.Operator != label.In {
			continue
		}
		switch q.Key {
		case model.LabelType:
			added.InstanceType = q.Values[0]
		case model.LabelZone:
			added.Zone = strings.Join(q.Values, "|")
		case model.LabelCapacityType:
			added.CapacityType = strings.Join(q.Values, "|")
		}
	}
	return added
}

// stepRemoving returns the step that removes the node, nil for none.
func (d *DisruptDecision) stepRemoving(node string) *decidedStep {
	for i := range d.steps {
		for _, c := range d.steps[i].Candidates {
			if c.Node == node {
				return &d.steps[i]
			}
		}
	}
	return nil
}

func (d *DisruptDecision) keptReasons(node string) []KeptReason {
	var list []KeptReason
	for _, k := range d.proposal.Kept {
		if k.Node != node {
			continue
		}
		r := keptReasonOf(d.first, k)
		if at := disruption.ChangesAt(d.first, d.opts, k); !at.IsZero() {
			r.ChangesAt = &at
		}
		list = append(list, r)
	}
	return list
}

func (d *DisruptDecision) alone(n *model.Node) *AloneOutcome {
	command, against := disruption.IfAlone(d.first, d.opts, n.Name)
	a := &AloneOutcome{SavingPerHour: usd(command.Worth.Saving), SavingPerMonth: usd(command.Worth.Saving) * quantity.HoursPerMonth}
	step := decidedStep{Command: command}
	a.Add = step.told().Add
	if !against.OK() {
		a.Code, a.Message = explain.Code(against.Code), explain.Verdict(d.first, against)
	}
	return a
}

// Text returns the outcome as the lines that explain prints.
func (o *NodeOutcome) Text() string { return o.result() + history.Timelines(o.Past) }

// result returns the lines about the node as it is.
func (o *NodeOutcome) result() string {
	var b strings.Builder
	fmt.Fprintf(&b, "node %s", o.Node)
	if o.Outcome == "Foreign" {
		b.WriteString(" has no NodeClaim and is not managed\n" + incomplete(o.Incomplete))
		return b.String()
	}
	if o.NodeClaim != o.Node {
		fmt.Fprintf(&b, " (claim %s)", o.NodeClaim)
	}
	kind := fmt.Sprintf("%s in %s as %s", cmp.Or(o.InstanceType, "unknown type"), cmp.Or(o.Zone, "unknown zone"),
		cmp.Or(o.CapacityType, "unknown capacity type"))
	if o.unlaunched {
		kind = fmt.Sprintf("not launched yet, cheapest option %s", cmp.Or(o.InstanceType, "of unknown type"))
	}
	fmt.Fprintf(&b, " %s: %s, %s\n", o.ofPool(), kind, o.cost())
	switch o.Outcome {
	case "Deleting":
		o.Drain.write(&b, o.now)
	case "UnderWay":
		fmt.Fprintf(&b, "  is being removed: command in phase %s", o.Phase)
		o.writeStep(&b)
	case "Proposed":
		b.WriteString("  would be removed now")
		o.writeStep(&b)
	case "Kept":
		b.WriteString("  is kept\n")
	}
	if o.Cordoned {
		fmt.Fprintf(&b, "  is cordoned: no new pods are placed on it; kubectl uncordon %s reverts this\n", o.Node)
	}
	if o.Disputed != "" {
		fmt.Fprintf(&b, "  %s\n", o.Disputed)
	}
	if o.RemovalsPaused != "" {
		b.WriteString(aboutRemovals(o.RemovalsPaused, o.NodePool))
	}
	if o.PodsToMove > 0 && o.Outcome != "Deleting" {
		fmt.Fprintf(&b, "  has %s to move, at a price of %.4f USD\n", plural(o.PodsToMove, "pod"), o.MovePrice)
	}
	o.writeReasons(&b)
	if o.Drifted != "" {
		fmt.Fprintf(&b, "  has drifted: %s\n", o.Drifted)
	}
	switch {
	case o.ExpiresAt == nil:
	case o.PoolMissing || o.NodePool == "": // no pool replaces it before
		fmt.Fprintf(&b, "  will be deleted (expireAfter) at %s\n", o.ExpiresAt.UTC().Format(time.RFC3339))
	default:
		fmt.Fprintf(&b, "  will be replaced (expireAfter) from %s, at the latest %s\n", o.RenewedFrom.UTC().Format(time.RFC3339), o.ExpiresAt.UTC().Format(time.RFC3339))
	}
	o.writeAlone(&b)
	for i := range o.Assumed {
		o.Assumed[i].write(&b)
	}
	b.WriteString(indented(pricesAre(o.PriceSource)))
	b.WriteString(incomplete(o.Incomplete))
	return b.String()
}

// ofPool returns the pool of the node, in words.
func (o *NodeOutcome) ofPool() string {
	switch {
	case o.NodePool == "":
		return "without a pool"
	case o.PoolMissing:
		return "of pool " + o.NodePool + ", which does not exist"
	}
	return "of pool " + o.NodePool
}

// cost returns the price and the cost, in words.
func (o *NodeOutcome) cost() string {
	if o.PricePerHour == 0 {
		return "price unknown"
	}
	return fmt.Sprintf("%.4f USD per hour; %.2f USD a month including per-node overhead", o.PricePerHour, o.CostPerMonth)
}

// indented returns the line indented by one level; "" stays empty.
func indented(line string) string {
	if line == "" {
		return ""
	}
	return "  " + line
}

func (o *NodeOutcome) writeReasons(b *strings.Builder) {
	for _, r := range o.Reasons {
		fmt.Fprintf(b, "  %s: %s\n", cmp.Or(r.For, r.Code), r.Message)
		if r.ChangesAt != nil {
			fmt.Fprintf(b, "    may change at %s\n", r.ChangesAt.UTC().Format(time.RFC3339))
		}
	}
	for i := range o.Obstacles {
		about := &o.Obstacles[i]
		named := slices.ContainsFunc(o.Reasons, func(r KeptReason) bool { return r.Message == about.Message })
		if !named || len(about.Pods) > 1 {
			fmt.Fprintf(b, "  also keeps it: %s\n", about.Text())
		}
	}
}

func (o *NodeOutcome) writeStep(b *strings.Builder) {
	if o.Step == nil {
		b.WriteByte('\n')
		return
	}
	s := o.Step
	launched := "nothing"
	if len(s.Add) > 0 {
		launched = additions(s.Add)
	}
	fmt.Fprintf(b, ": %s, remove %s, launch %s, %s moved, %s\n",
		s.Reason, names(s.Remove, ","), launched, plural(s.Moved, "pod"), savingPerHour(s.Saving))
}

func (o *NodeOutcome) writeAlone(b *strings.Builder) {
	a := o.Alone
	switch {
	case a == nil:
	case a.Code != "":
		fmt.Fprintf(b, "  removing only this node would not help: %s\n", a.Message)
	case len(a.Add) > 0:
		fmt.Fprintf(b, "  removing only this node: %s, %.2f a month, with %s launched\n", savingPerHour(a.SavingPerHour), max(a.SavingPerMonth, -a.SavingPerMonth), additions(a.Add))
	case o.PodsToMove == 0:
		fmt.Fprintf(b, "  removing only this node: %s, %.2f a month; it has no pods to move\n", savingPerHour(a.SavingPerHour), a.SavingPerMonth)
	default:
		fmt.Fprintf(b, "  removing only this node: %s, %.2f a month; its pods fit on other nodes\n",
			savingPerHour(a.SavingPerHour), a.SavingPerMonth)
	}
}

// nodeNames returns the names of nodes and claims.
func (o *objects) nodeNames() []string {
	var names []string
	for _, n := range o.nodes {
		names = append(names, n.object.Name)
	}
	for _, c := range o.claims {
		names = append(names, c.object.Name)
	}
	return names
}

// savingPerHour returns a saving in words. A negative one is a cost, for example of nodes that are replaced because
// of drift.
func savingPerHour[T float64 | top.Sum](amount T) string {
	switch usd := float64(amount); {
	case math.IsNaN(usd):
		return "saves an unknown amount"
	case usd < 0:
		return fmt.Sprintf("costs %.4f USD per hour more", -usd)
	case usd == 0:
		return "costs as much as before"
	}
	return fmt.Sprintf("saves %.4f USD per hour", float64(amount))
}
