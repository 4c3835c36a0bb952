package world

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/cloud/kwok"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Class is the node class of all pools.
var Class = karpv1.NodeClassReference{Group: kwokv1alpha1.GroupVersion.Group, Kind: "KWOKNodeClass", Name: "default"}

// ending is how long the cloud takes to end a machine.
const ending = time.Second

// provider is the cloud: a ledger of machines.
type provider struct {
	world *World
	// machines and ended are those that run and those that are gone, by provider ID.
	machines, ended map[string]*machine
	lies            []lie
	// taken are machines of other owners that were terminated.
	taken map[string]bool
}

// machine is a machine that costs money.
type machine struct {
	cloud.Machine

	node string
	// price with that of the node, nano-USD per hour.
	price int64
	// ending and gone are when its end began and when it ended. muted is since when its kubelet is silent, zero while it
	// reports; heard is since when it has reported. A hidden machine is of another owner, and only listed.
	ending, gone, muted, heard time.Time
	hidden                     bool
}

// Name implements cloud.Provider.
func (p *provider) Name() string { return "world" }

// NodeClasses implements cloud.Provider.
func (p *provider) NodeClasses() []client.Object {
	return []client.Object{&kwokv1alpha1.KWOKNodeClass{}}
}

// Declared implements cloud.Provider.
func (p *provider) Declared() cloud.Declared {
	return cloud.Declared{WellKnown: p.world.config.Labels, ReservationKey: kwok.ReservationKey(p.world.config.Types)}
}

// Ready implements cloud.Provider.
func (p *provider) Ready(context.Context, cloud.ClassRef) error { return nil }

// Catalog implements cloud.Provider.
func (p *provider) Catalog(context.Context, *karpv1.NodePool) ([]cloud.InstanceType, error) {
	return p.types(), nil
}

// types returns what the cloud offers now.
func (p *provider) types() []cloud.InstanceType {
	used := map[string]int{}
	for _, m := range p.machines {
		used[m.Labels[kwok.LabelReservation]]++
	}
	return kwok.WithUse(p.world.config.Types, used, p.world.Clock.now)
}

func providerID(claim *karpv1.NodeClaim) string { return "world:///" + string(claim.UID) }

// Launch implements cloud.Provider: the cheapest available offering, and for a repeated request the first machine.
func (p *provider) Launch(_ context.Context, claim *karpv1.NodeClaim) (*cloud.Machine, error) {
	id := providerID(claim)
	if m := p.machine(id); m != nil {
		return &m.Machine, nil
	}
	need := cloud.NeedOf(claim)
	types := p.types()
	if w := p.world; w.process != nil {
		types = w.process.store.Overlaid(claim.Labels[karpv1.LabelNodePool], types)
	}
	choices := slices.DeleteFunc(need.Choices(types), func(c cloud.Choice) bool {
		return !c.Offering.Available || c.Offering.ReservationID != "" && c.Offering.ReservationCount == 0
	})
	if len(choices) == 0 {
		return nil, &cloud.InsufficientCapacityError{Message: "claim " + claim.Name + " allows no offering"}
	}
	c := choices[0]
	m := &machine{
		Machine: cloud.Machine{ProviderID: id, Claim: claim.Name, Labels: need.MachineLabels(c), Capacity: c.Type.Capacity,
			Allocatable: c.Type.Allocatable(), Created: p.world.Clock.now},
		node: claim.Name, price: nano(c.Offering.Price) + p.world.nodePrice(),
	}
	p.machines[id] = m
	p.world.ledger.launched(claim, m.price)
	p.world.Clock.in(p.world.config.MachineTime, func() { p.join(m) })
	return &m.Machine, nil
}

// priceOf returns what the cloud charges for the machine of a claim, USD per hour; 0 if it has none.
func (p *provider) priceOf(claim *karpv1.NodeClaim) float64 {
	m := p.machines[claim.Status.ProviderID]
	if m == nil {
		m = p.ended[claim.Status.ProviderID]
	}
	if m == nil {
		return 0
	}
	return float64(m.price-p.world.nodePrice()) / model.Nano
}

func nano(usd float64) int64 { return int64(math.Round(usd * model.Nano)) }

// adopt adds the machine of a claim that exists from the start.
func (p *provider) adopt(claim *karpv1.NodeClaim) {
	m := &machine{Machine: cloud.Machine{ProviderID: claim.Status.ProviderID, Claim: claim.Name, Labels: claim.Labels,
		Created: claim.CreationTimestamp.Time}, node: claim.Status.NodeName, price: p.world.nodePrice()}
	for _, t := range p.world.config.Types {
		for _, o := range t.Offerings {
			if t.Name == claim.Labels[corev1.LabelInstanceTypeStable] && o.Zone == claim.Labels[corev1.LabelTopologyZone] &&
				o.CapacityType == claim.Labels[karpv1.LabelCapacityType] {
				m.price += nano(o.Price)
			}
		}
	}
	p.machines[m.ProviderID] = m
}

// join lets the kubelet of a machine register its node.
func (p *provider) join(m *machine) {
	if !m.gone.IsZero() || m.Terminating {
		return
	}
	m.heard = p.world.Clock.now
	labels := maps.Clone(m.Labels)
	labels[corev1.LabelHostname] = m.node
	p.world.api.create(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.node, Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: m.ProviderID, Taints: []corev1.Taint{karpv1.UnregisteredTaint()}},
		Status: corev1.NodeStatus{Capacity: cloud.ResourceList(m.Capacity), Allocatable: cloud.ResourceList(m.Allocatable),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: p.world.api.seconds()}}},
	})
}

func missing(id string) error { return fmt.Errorf("machine %s: %w", id, cloud.ErrNotFound) }

// called is the cloud as a process calls it: the process may end before a call, as before a write.
type called struct {
	*provider

	permit func(text string) error
}

// Machine implements cloud.Provider.
func (c called) Machine(ctx context.Context, id string) (*cloud.Machine, error) {
	m, err := c.provider.Machine(ctx, id)
	c.world.removals.asked(m, id, err)
	return m, err
}

// Launch implements cloud.Provider.
func (c called) Launch(ctx context.Context, claim *karpv1.NodeClaim) (*cloud.Machine, error) {
	if err := c.permit("launch " + claim.Name); err != nil {
		return nil, err
	}
	m, err := c.provider.Launch(ctx, claim)
	if lost := c.world.answer(); lost != nil {
		return nil, lost
	}
	return m, err
}

// Terminate implements cloud.Provider.
func (c called) Terminate(ctx context.Context, id string) error {
	if err := c.permit("terminate " + id); err != nil {
		return err
	}
	c.world.removals.ends(id)
	return errors.Join(c.provider.Terminate(ctx, id), c.world.answer())
}
