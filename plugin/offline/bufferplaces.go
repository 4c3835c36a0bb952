package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/cluster/room"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/plugin/table"
)

// BufferDetails is where the room of one CapacityBuffer is. Money is USD per hour.
type BufferDetails struct {
	BufferOutcome
	// Requests are those of one pod.
	Requests map[string]string `json:"requests,omitempty"`
	// PricePerHour is the part of the prices of nodes that the room is, NewPricePerHour that of nodes to launch.
	PricePerHour    float64       `json:"pricePerHour"`
	NewPricePerHour float64       `json:"newPricePerHour,omitempty"`
	Places          []BufferPlace `json:"places"`
	// Refusals are why pods have no room.
	Refusals []explain.Refused `json:"refusals,omitempty"`
	// PriceSource is the source and the date of prices; omitted for invented prices.
	PriceSource string `json:"priceSource,omitempty"`
	Gaps

	trees []string
}

// BufferPlace is a node with room for pods of the buffer.
type BufferPlace struct {
	// State is Ready (an initialized node), Starting (a node in flight, or one that is launched for pods) or New (a node
	// that is launched for room).
	State string `json:"state"`
	// Node is the name of the node, of the claim while there is no node.
	Node         string `json:"node"`
	NodePool     string `json:"nodePool,omitempty"`
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
	// PricePerHour is the part of the node's price that the room is.
	PricePerHour float64 `json:"pricePerHour"`
	// Pods are the names of the virtual pods.
	Pods []string `json:"pods"`
}

// ExplainBuffer decides, and returns where the room of a CapacityBuffer is, named NAMESPACE/NAME, or NAME if only
// one namespace has it.
func (o *Manifests) ExplainBuffer(p *Policy, name string) (*BufferDetails, error) {
	d := o.Decide(p, 1)
	outcomes := d.bufferOutcomes()
	var names []string
	at := -1
	for i, details := range outcomes {
		names = append(names, details.Buffer)
		if details.Buffer != name && !strings.HasSuffix(details.Buffer, "/"+name) {
			continue
		}
		if at >= 0 {
			return nil, fmt.Errorf("there are CapacityBuffers %s and %s: give a namespace", outcomes[at].Buffer, details.Buffer)
		}
		at = i
	}
	if at < 0 {
		return nil, fmt.Errorf("there is no CapacityBuffer %s that a controller of this project keeps room for%s", name, didYouMean(name, names))
	}
	b := &BufferDetails{BufferOutcome: outcomes[at], Places: []BufferPlace{}, PriceSource: d.source, Gaps: o.gaps()}
	d.places(b, d.from.requests[at])
	return b, nil
}

// places sets where the pods of the buffer have room, and why others have none.
func (d *Decision) places(b *BufferDetails, q *room.Request) {
	p := d.plan.Virtual
	if p == nil {
		return
	}
	of := func(pods []*model.Pod) []*model.Pod {
		return slices.DeleteFunc(slices.Clone(pods), func(p *model.Pod) bool { return p.Controller.UID != string(q.Buffer.UID) })
	}
	for _, placed := range p.Placed {
		if pods := of(placed.Pods); len(pods) > 0 {
			b.add(d.snap, d.placeOn(placed.Node), pods)
		}
	}
	for i := range p.Claims {
		if pods := of(p.Claims[i].Pods); len(pods) > 0 {
			b.add(d.snap, d.placeOfClaim(&p.Claims[i], "New"), pods)
		}
	}
	for _, r := range p.Refused {
		if r.Pods = of(r.Pods); len(r.Pods) > 0 {
			b.request(d.snap, r.Pods[0])
			b.Refusals = append(b.Refusals, explain.RefusedOf(d.snap, r))
			b.trees = append(b.trees, explain.Tree(d.snap, r))
		}
	}
}

// placed is a place and the node, as the prices and the sizes are known.
type placed struct {
	BufferPlace
	node *model.Node
}

// placeOn returns a place on a node, on one in flight, or on one that is launched for pods.
func (d *Decision) placeOn(name string) placed {
	n := d.snap.Node(name)
	if n == nil {
		at := slices.IndexFunc(d.plan.Claims, func(c plan.NewClaim) bool { return c.Name == name })
		if at < 0 {
			return placed{BufferPlace: BufferPlace{State: "Starting", Node: name}}
		}
		return d.placeOfClaim(&d.plan.Claims[at], "Starting")
	}
	state := "Starting"
	if room.IsReady(n) {
		state = "Ready"
	}
	return placed{BufferPlace{State: state, Node: name, NodePool: n.Pool, InstanceType: cmp.Or(n.Labels[model.LabelType], n.LeastType()),
		Zone: n.Labels[model.LabelZone], CapacityType: n.Labels[model.LabelCapacityType]}, n}
}

// placeOfClaim returns a place on a node to launch, as its cheapest offering.
func (d *Decision) placeOfClaim(c *plan.NewClaim, state string) placed {
	first := c.Options[0]
	return placed{BufferPlace{State: state, Node: c.Name, NodePool: c.Pool, InstanceType: first.Type, Zone: first.Zone,
		CapacityType: first.CapacityType},
		d.snap.Future(c.FutureSpec(d.snap), c.Types())}
}

// add adds a place with the pods.
func (b *BufferDetails) add(snap *model.Snapshot, at placed, pods []*model.Pod) {
	b.request(snap, pods[0])
	var price int64
	for _, p := range pods {
		at.Pods = append(at.Pods, p.Name)
		price += room.Share(at.node, p)
	}
	at.PricePerHour = usd(price)
	if at.State == "New" {
		b.NewPricePerHour += at.PricePerHour
	} else {
		b.PricePerHour += at.PricePerHour
	}
	b.Places = append(b.Places, at.BufferPlace)
}

// request sets the requests of one pod; all pods of a buffer are equal.
func (b *BufferDetails) request(snap *model.Snapshot, p *model.Pod) {
	if b.Requests == nil {
		b.Requests = map[string]string{}
		for _, a := range explain.RequestsOf(snap, p) {
			b.Requests[a.Name] = explain.Quantity(a.Name, a.Value)
		}
	}
}

// Names returns the buffer as `kubectl get -o name` does.
func (b *BufferDetails) Names() []string {
	_, name, _ := strings.Cut(b.Buffer, "/")
	return []string{"capacitybuffer.autoscaling.x-k8s.io/" + name}
}

var placeColumns = []table.Column[BufferPlace]{
	{Title: "ROOM ON", Cell: func(p *BufferPlace) string { return p.Node }},
	{Title: "STATE", Cell: func(p *BufferPlace) string { return p.State }},
	{Title: "POOL", Cell: func(p *BufferPlace) string { return p.NodePool }},
	{Title: "TYPE", Cell: func(p *BufferPlace) string { return p.InstanceType }},
	{Title: "ZONE", Cell: func(p *BufferPlace) string { return p.Zone }},
	{Title: "CAPACITY", Cell: func(p *BufferPlace) string { return p.CapacityType }},
	{Title: "VIRTUAL PODS", Right: true, Cell: func(p *BufferPlace) string { return strconv.Itoa(len(p.Pods)) }},
	{Title: "USD/HOUR", Right: true, Cell: func(p *BufferPlace) string { return fmt.Sprintf("%.4f", p.PricePerHour) }},
}

// Text returns the numbers, a line per node with room, and why there is no room.
func (b *BufferDetails) Text() string {
	var out strings.Builder
	out.WriteString(b.line())
	fmt.Fprintf(&out, "status %s, %s: %s\n", b.Status, b.Reason, b.Message)
	if len(b.Places) > 0 {
		out.WriteString("\n" + table.Text(placeColumns, b.Places, 0) + "\n")
	}
	for i, r := range b.Refusals {
		fmt.Fprintf(&out, "%s without room\n  %s\n\n", plural(len(r.Pods), "virtual pod"),
			strings.ReplaceAll(strings.TrimSpace(b.trees[i]), "\n", "\n  "))
	}
	if b.Replicas > 0 {
		fmt.Fprintf(&out, "price of the room: %.4f USD per hour", b.PricePerHour)
		if b.New > 0 {
			fmt.Fprintf(&out, ", %.4f more with the new nodes", b.NewPricePerHour)
		}
		out.WriteString("\n" + pricesAre(b.PriceSource))
	}
	return out.String() + incomplete(b.Incomplete)
}
