// Package provider is a cloud in memory and its provider, in a module of its own: an example of all that a provider
// outside of the repository needs.
package provider

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// Class is the kind of the node classes. Its objects are known to the cloud by name.
var Class = metav1.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "MemoryClass"}

// Cloud holds machines by the UID of their claim, which makes a launch idempotent.
type Cloud struct {
	// Ready has the classes that exist, by name: nil for one that is ready.
	Ready map[string]error

	mu       sync.Mutex
	machines map[types.UID]*cloud.Machine
	// sold reports whether an offering is unavailable. loses: answers of launches are lost. hangs: requests block.
	sold         func(typeName string, o cloud.Offering) bool
	loses, hangs bool
}

// request waits for the cloud and locks it until done is called.
func (c *Cloud) request(ctx context.Context) (done func(), err error) {
	c.mu.Lock()
	if c.hangs {
		c.mu.Unlock()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return c.mu.Unlock, nil
}

// Provider implements cloud.Provider. It has no state: a new process continues where another one ended.
type Provider struct{ Cloud *Cloud }

// Name implements cloud.Provider.
func (Provider) Name() string { return "memory" }

// NodeClasses implements cloud.Provider.
func (Provider) NodeClasses() []client.Object {
	class := &metav1.PartialObjectMetadata{}
	class.APIVersion, class.Kind = Class.Group+"/"+Class.Version, Class.Kind
	return []client.Object{class}
}

// Declared implements cloud.Provider.
func (Provider) Declared() cloud.Declared { return cloud.Declared{} }

// Ready implements cloud.Provider.
func (p Provider) Ready(ctx context.Context, class cloud.ClassRef) error {
	done, err := p.Cloud.request(ctx)
	if err != nil {
		return err
	}
	defer done()
	problem, exists := p.Cloud.Ready[class.Name]
	switch {
	case !exists:
		return fmt.Errorf("class %s: %w", class.Name, cloud.ErrNotFound)
	case problem != nil:
		return &cloud.NodeClassNotReadyError{Class: class, Reason: "Invalid", Message: problem.Error()}
	}
	return nil
}

// Catalog implements cloud.Provider: two sizes, in two zones.
func (p Provider) Catalog(ctx context.Context, _ *karpv1.NodePool) ([]cloud.InstanceType, error) {
	done, err := p.Cloud.request(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return p.Cloud.catalog(), nil
}

func (c *Cloud) catalog() []cloud.InstanceType {
	var all []cloud.InstanceType
	for name, cpus := range map[string]int64{"small": 2, "large": 8} {
		t := cloud.InstanceType{
			Name: name,
			Requirements: []cloud.Requirement{
				{Key: corev1.LabelInstanceTypeStable, Operator: "In", Values: []string{name}},
				{Key: corev1.LabelArchStable, Operator: "In", Values: []string{karpv1.ArchitectureAMD64}},
				{Key: corev1.LabelOSStable, Operator: "In", Values: []string{"linux"}},
			},
			Capacity: map[string]int64{"cpu": cpus * 1000, "memory": cpus << 32, "pods": 110},
		}
		for i, zone := range []string{"zone-a", "zone-b"} {
			o := cloud.Offering{Zone: zone, CapacityType: karpv1.CapacityTypeOnDemand, Price: float64(cpus) + float64(i)/10}
			o.Available = c.sold == nil || !c.sold(name, o)
			t.Offerings = append(t.Offerings, o)
		}
		all = append(all, t)
	}
	cloud.SortCatalog(all)
	return all
}

// Launch implements cloud.Provider.
func (p Provider) Launch(ctx context.Context, claim *karpv1.NodeClaim) (*cloud.Machine, error) {
	class := claim.Spec.NodeClassRef
	ref := cloud.ClassRef{Group: class.Group, Kind: class.Kind, Name: class.Name}
	if err := p.Ready(ctx, ref); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &cloud.NodeClassNotReadyError{Class: ref, Reason: "NotReady", Message: err.Error()}
	}
	done, err := p.Cloud.request(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	machine, err := p.Cloud.launch(claim)
	if p.Cloud.loses {
		return nil, fmt.Errorf("launching %s: no answer", claim.Name)
	}
	return machine, err
}

func (c *Cloud) launch(claim *karpv1.NodeClaim) (*cloud.Machine, error) {
	if m := c.machines[claim.UID]; m != nil {
		copied := *m
		return &copied, nil
	}
	need := cloud.NeedOf(claim)
	choices := need.Choices(c.catalog())
	i := slices.IndexFunc(choices, func(choice cloud.Choice) bool { return choice.Offering.Available })
	if i < 0 {
		return nil, &cloud.InsufficientCapacityError{Message: "no allowed offering is available"}
	}
	if c.machines == nil {
		c.machines = map[types.UID]*cloud.Machine{}
	}
	m := &cloud.Machine{
		ProviderID: "memory:///" + string(claim.UID), Claim: claim.Name, Labels: need.MachineLabels(choices[i]), Created: time.Now(),
		Capacity: choices[i].Type.Capacity, Allocatable: choices[i].Type.Allocatable(),
	}
	c.machines[claim.UID] = m
	copied := *m
	return &copied, nil
}

// Terminate implements cloud.Provider.
func (p Provider) Terminate(ctx context.Context, providerID string) error {
	done, err := p.Cloud.request(ctx)
	if err != nil {
		return err
	}
	defer done()
	for uid, m := range p.Cloud.machines {
		if m.ProviderID == providerID {
			delete(p.Cloud.machines, uid)
			return nil
		}
	}
	return fmt.Errorf("machine %s: %w", providerID, cloud.ErrNotFound)
}

// Machine implements cloud.Provider.
func (p Provider) Machine(ctx context.Context, providerID string) (*cloud.Machine, error) {
	machines, err := p.Machines(ctx)
	if err != nil {
		return nil, err
	}
	for i := range machines {
		if machines[i].ProviderID == providerID {
			return &machines[i], nil
		}
	}
	return nil, fmt.Errorf("machine %s: %w", providerID, cloud.ErrNotFound)
}

// Machines implements cloud.Provider.
func (p Provider) Machines(ctx context.Context) ([]cloud.Machine, error) {
	done, err := p.Cloud.request(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var all []cloud.Machine
	for _, m := range p.Cloud.machines {
		all = append(all, *m)
	}
	return all, nil
}
