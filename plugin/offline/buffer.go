package offline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api"
	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
	"github.com/karpenter-go/karpenter/internal/cluster/room"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/plugin/table"
)

// buffers are the CapacityBuffers of files, those of the cluster that a controller of this project keeps room for, and
// what they refer to.
type buffers struct {
	objects []sourced[*autoscalingv1beta1.CapacityBuffer]
	// referents are the objects of files that buffers may refer to, by type and key.
	referents map[string]client.Object
	// shapes are what was read of a cluster, by key of the buffer.
	shapes map[string]capture.BufferShape
	// quotas are the ResourceQuotas by namespace.
	quotas map[string][]corev1.ResourceQuota
}

func newBuffers() buffers {
	return buffers{referents: map[string]client.Object{}, shapes: map[string]capture.BufferShape{}, quotas: map[string][]corev1.ResourceQuota{}}
}

// refer keeps an object of a file that buffers may refer to. Those of a cluster are trimmed, and read again.
func (b *buffers) refer(object any, live bool) {
	switch o := object.(type) {
	case *corev1.PodTemplate, *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.ReplicaSet, *corev1.ReplicationController, *batchv1.Job:
		if o := o.(client.Object); !live {
			b.referents[referentKey(o)] = o
		}
	}
}

func referentKey(o client.Object) string { return fmt.Sprintf("%T %s", o, key(o)) }

// request returns what a buffer asks for. Objects of files take precedence.
func (b *buffers) request(buffer *autoscalingv1beta1.CapacityBuffer) *room.Request {
	q := &room.Request{Buffer: buffer}
	referent, err := room.Referent(buffer)
	known, read := b.shapes[key(buffer)]
	switch {
	case err != nil:
		q.Err = err
	case referent != nil && b.referents[referentKey(referent)] != nil:
		q.Shape, q.Err = room.ShapeOf(b.referents[referentKey(referent)])
	case read && known.Fault != nil:
		q.Err = known.Fault
	case read:
		q.Shape = known.Shape
	case referent == nil:
		q.Err = &room.UnresolvedError{Reason: autoscalingv1beta1.ReasonResolutionFailed,
			Message: fmt.Sprintf("the scale of %s %s is known to a cluster only", buffer.Spec.ScalableRef.Kind, buffer.Spec.ScalableRef.Name)}
	default:
		q.Err = room.NotFound(buffer)
	}
	return q
}

// readBuffers reads the buffers of the cluster, and what they and those of files refer to.
func (l *Cluster) readBuffers(ctx context.Context, c client.Client, o *Manifests) error {
	if err := l.list(ctx, c, o, &autoscalingv1beta1.CapacityBufferList{}); err != nil || len(o.buffers.objects) == 0 {
		return err
	}
	if err := l.list(ctx, c, o, &corev1.ResourceQuotaList{}); err != nil {
		return err
	}
	for _, b := range o.buffers.objects {
		if q := o.buffers.request(b.object); q.Shape != nil {
			continue
		}
		reader := room.Reader(c)
		if referent, err := room.Referent(b.object); err == nil && referent == nil {
			if reader, err = l.discovering(); err != nil {
				return err
			}
		}
		read, err := capture.ShapeOf(ctx, reader, b.object)
		if err != nil {
			return err
		}
		o.buffers.shapes[read.Buffer] = read
	}
	return nil
}

// discovering returns a client that asks the API server for the paths of kinds. Any kind may have a scale subresource.
func (l *Cluster) discovering() (client.Client, error) {
	config, err := l.Config()
	if err != nil {
		return nil, err
	}
	scheme, err := api.NewScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reading what CapacityBuffers refer to: %w", err)
	}
	return c, nil
}

// captured returns what was read of a cluster for the buffers, ordered by their keys.
func (b *buffers) captured() []capture.BufferShape {
	var list []capture.BufferShape
	for _, s := range b.shapes {
		list = append(list, s)
	}
	slices.SortFunc(list, func(x, y capture.BufferShape) int { return strings.Compare(x.Buffer, y.Buffer) })
	return list
}

// BufferOutcome is what a CapacityBuffer asks for, and what has become of it.
type BufferOutcome struct {
	// Buffer is NAMESPACE/NAME.
	Buffer string `json:"buffer"`
	// Asked is the number of pods that the buffer asks for, Replicas the number that it gets. Limited is why it gets fewer.
	Asked    int64  `json:"asked"`
	Replicas int64  `json:"replicas"`
	Limited  string `json:"limited,omitempty"`
	// Ready of the pods have room on initialized nodes, Starting on nodes in flight or launched for pods, and New on
	// nodes that are launched for room. Without have none.
	Ready    int64 `json:"ready"`
	Starting int64 `json:"starting"`
	New      int64 `json:"new"`
	Without  int64 `json:"without"`
	// Status, Reason and Message are those of the condition Provisioning, or of ReadyForProvisioning if the shape is not
	// known.
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Room is the plan for the virtual pods of all buffers, on what the plan for the pods leaves.
type Room struct {
	Nodes         []NewNode       `json:"nodes"`
	ExistingNodes []ExistingNode  `json:"existingNodes"`
	Unschedulable []Unschedulable `json:"unschedulable"`
	// PricePerHour and CostPerHour are those of the new nodes, in addition to those for the pods.
	PricePerHour float64 `json:"pricePerHour"`
	CostPerHour  float64 `json:"costPerHour"`
}

// bufferOutcomes returns what becomes of the buffers.
func (d *Decision) bufferOutcomes() []BufferOutcome {
	rooms := room.Rooms(d.snap, d.plan.Virtual, explain.Refusal)
	var list []BufferOutcome
	for _, q := range d.from.requests {
		r := rooms[string(q.Buffer.UID)]
		if r == nil {
			r = &room.Room{}
		}
		o := BufferOutcome{Buffer: key(q.Buffer), Asked: q.Asked, Replicas: q.Count, Limited: q.Limited.Message,
			Ready: r.Ready, Starting: r.Starting, New: r.Missing, Without: q.Count - r.Ready - r.Starting - r.Missing}
		c := q.Condition(r)
		o.Status, o.Reason, o.Message = string(c.Status), c.Reason, c.Message
		list = append(list, o)
	}
	return list
}

// room returns the plan for the virtual pods, nil if there are none.
func (d *Decision) room() *Room {
	p := d.plan.Virtual
	if p == nil {
		return nil
	}
	a := &Room{Nodes: []NewNode{}, ExistingNodes: []ExistingNode{}, Unschedulable: []Unschedulable{}}
	prices := priceTables{}
	for i := range p.Claims {
		a.Nodes = append(a.Nodes, d.newNode(&p.Claims[i], prices))
	}
	for _, n := range p.Placed {
		inFlight := d.inFlight(n.Node) || slices.ContainsFunc(d.plan.Claims, func(c plan.NewClaim) bool { return c.Name == n.Node })
		a.ExistingNodes = append(a.ExistingNodes, ExistingNode{Name: n.Node, InFlight: inFlight, Pods: podKeys(n.Pods)})
	}
	for _, r := range p.Refused {
		reasons := reasonsOf(d.snap, r)
		for _, pod := range r.Pods {
			a.Unschedulable = append(a.Unschedulable, Unschedulable{pod.Key(), reasons})
		}
	}
	price, cost := priceOf(d.snap, p, d.opts)
	a.PricePerHour, a.CostPerHour = usd(price), usd(cost)
	return a
}

// writeBuffers prints the plan for the virtual pods and what becomes of each buffer.
func (a *LaunchAnswer) writeBuffers(b *strings.Builder) {
	for i := range a.Buffers {
		b.WriteString(a.Buffers[i].line())
	}
	if a.Room != nil {
		of := "room of CapacityBuffers"
		if len(a.Buffers) == 0 {
			of = "pods that workloads are about to create"
		}
		fmt.Fprintf(b, "%s: %s in addition, price %.4f USD per hour\n",
			of, plural(len(a.Room.Nodes), "new node"), a.Room.PricePerHour)
	}
}

// writeRoom prints the tables of the plan for the virtual pods.
func (a *LaunchAnswer) writeRoom(b *strings.Builder, width int) {
	if a.Room == nil {
		return
	}
	of := &LaunchAnswer{Nodes: a.Room.Nodes, Unschedulable: a.Room.Unschedulable}
	if len(of.Nodes) > 0 {
		columns := slices.Clone(of.nodeColumns())
		columns[0].Title = "NEW NODE (ROOM)"
		b.WriteString(table.Text(columns, of.lines(), width) + "\n")
	}
	if len(a.Room.ExistingNodes) > 0 {
		columns := slices.Clone(existingColumns)
		columns[0].Title, columns[1].Title = "ROOM ON NODE", "VIRTUAL PODS"
		b.WriteString(table.Text(columns, a.Room.ExistingNodes, width) + "\n")
	}
	of.writeUnschedulable(b)
}

// line returns a line about the buffer.
func (o *BufferOutcome) line() string {
	if o.Replicas == 0 {
		return fmt.Sprintf("buffer %s: %s: %s\n", o.Buffer, o.Reason, o.Message)
	}
	limited := ""
	if o.Limited != "" {
		limited = fmt.Sprintf(" (asks for %d: %s)", o.Asked, o.Limited)
	}
	return fmt.Sprintf("buffer %s: %s%s: %d on nodes that are ready, "+
		"%d on nodes being launched or launched for pods, %d on new nodes, %d nowhere\n",
		o.Buffer, plural(int(o.Replicas), "virtual pod"), limited, o.Ready, o.Starting, o.New, o.Without)
}
