package controller_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
)

// memoryCloud is an in-memory cloud: machines are entries of a map, and the test acts as the kubelets.
type memoryCloud struct {
	mu       sync.Mutex
	machines map[string]*cloud.Machine
	bought   map[types.UID]string // provider ID by claim UID: a repeated launch returns the same machine
	launches int
	// refuse, if set, returns the error of a launch.
	refuse func(claim *karpv1.NodeClaim) error
	// hold, if set, blocks a launch after the machine was created and before it returns.
	hold chan struct{}
	// slow is how many times a termination reports "in progress".
	slow int
	// keeps, if set, is the error of each termination.
	keeps error
	asked map[string]int // terminations by provider ID
	ready error
	// types is the catalog. outdated, if set, returns the reason for which a claim has drifted.
	types    []cloud.InstanceType
	outdated func(claim *karpv1.NodeClaim) (string, error)
	// lying describes wrong responses. lists counts the calls of Machines.
	lying lying
	lists int
}

func newMemoryCloud() *memoryCloud {
	return &memoryCloud{machines: map[string]*cloud.Machine{}, bought: map[types.UID]string{}, asked: map[string]int{}}
}

func (c *memoryCloud) Name() string { return "memory" }

func (c *memoryCloud) NodeClasses() []client.Object {
	return []client.Object{&kwokv1alpha1.KWOKNodeClass{}}
}

func (c *memoryCloud) Declared() cloud.Declared {
	return cloud.Declared{Restricted: []string{"memory.example.com"}}
}

func (c *memoryCloud) Ready(context.Context, cloud.ClassRef) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

func (c *memoryCloud) Catalog(context.Context, *karpv1.NodePool) ([]cloud.InstanceType, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.types, nil
}

func (c *memoryCloud) Drifted(_ context.Context, claim *karpv1.NodeClaim, _ *karpv1.NodePool) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.outdated == nil {
		return "", nil
	}
	return c.outdated(claim)
}

// sell sets the catalog and the drift reasons of machines.
func (c *memoryCloud) sell(outdated func(claim *karpv1.NodeClaim) (string, error), types ...cloud.InstanceType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.types, c.outdated = types, outdated
}

func (c *memoryCloud) Launch(ctx context.Context, claim *karpv1.NodeClaim) (*cloud.Machine, error) {
	machine, hold, err := c.launch(claim)
	if err != nil {
		return nil, err
	}
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return machine, nil
}

func (c *memoryCloud) launch(claim *karpv1.NodeClaim) (*cloud.Machine, chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.launches++
	if c.refuse != nil {
		if err := c.refuse(claim); err != nil {
			return nil, nil, err
		}
	}
	id, again := c.bought[claim.UID]
	if !again {
		id = fmt.Sprintf("memory:///%s-%d", claim.Name, len(c.bought))
		c.bought[claim.UID] = id
		c.machines[id] = machine(id, claim.Name, time.Now())
	}
	copied := *c.machines[id]
	return &copied, c.hold, nil
}

func machine(id, claim string, created time.Time) *cloud.Machine {
	return &cloud.Machine{
		ProviderID: id, Claim: claim, ImageID: "image-1", Created: created,
		Labels: map[string]string{
			corev1.LabelInstanceTypeStable: "m-4x", corev1.LabelTopologyZone: "zone-a", karpv1.LabelCapacityType: karpv1.CapacityTypeSpot,
		},
		Annotations: map[string]string{"memory.example.com/rack": "7"},
		Capacity:    map[string]int64{"cpu": 4000, "memory": 16 << 30, "pods": 64},
		Allocatable: map[string]int64{"cpu": 3900, "memory": 15 << 30, "pods": 64},
	}
}

func (c *memoryCloud) Terminate(_ context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[id]++
	m := c.machines[id]
	if m == nil {
		return fmt.Errorf("machine %s: %w", id, cloud.ErrNotFound)
	}
	if c.keeps != nil {
		return fmt.Errorf("request %d: %w", c.asked[id], c.keeps)
	}
	m.Terminating = true
	if c.asked[id] > c.slow {
		delete(c.machines, id)
		return fmt.Errorf("machine %s: %w", id, cloud.ErrNotFound)
	}
	return nil
}

func (c *memoryCloud) Machine(_ context.Context, id string) (*cloud.Machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.machines[id]
	if c.lying.silent {
		return nil, errors.New("no answer")
	}
	if m == nil || c.lying.absent != nil && c.lying.absent(id) {
		return nil, fmt.Errorf("machine %s: %w", id, cloud.ErrNotFound)
	}
	copied := *m
	return &copied, nil
}

func (c *memoryCloud) Machines(context.Context) ([]cloud.Machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var machines []cloud.Machine
	for _, m := range c.machines {
		machines = append(machines, *m)
	}
	c.lists++
	if c.lying.unlisted {
		return nil, errors.New("the cloud does not list")
	}
	if c.lying.list != nil {
		machines = c.lying.list(machines)
	}
	return machines, nil
}

// lose removes a machine, as a deletion in the cloud's console does.
func (c *memoryCloud) lose(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.machines, id)
}

// put adds a machine that was not launched by a claim.
func (c *memoryCloud) put(m *cloud.Machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machines[m.ProviderID] = m
}

func (c *memoryCloud) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machines[id] != nil
}

func (c *memoryCloud) count() (machines, launches int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.machines), c.launches
}

// TestMemoryCloud verifies that the fake keeps the contract of package cloud on which the controllers rely.
func TestMemoryCloud(t *testing.T) {
	c := newMemoryCloud()
	c.slow = 1
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	first, err := c.Launch(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.Launch(t.Context(), claim)
	if err != nil || second.ProviderID != first.ProviderID {
		t.Errorf("launched again: %v, %v; want machine %s", second, err, first.ProviderID)
	}
	if machines, _ := c.Machines(t.Context()); len(machines) != 1 || machines[0].Claim != "a" {
		t.Errorf("machines %v, want one of claim a", machines)
	}
	if err := c.Terminate(t.Context(), first.ProviderID); err != nil {
		t.Errorf("first termination: %v, want nil", err)
	}
	if m, err := c.Machine(t.Context(), first.ProviderID); err != nil || !m.Terminating {
		t.Errorf("machine %v, %v; want it to be terminating", m, err)
	}
	for range 2 {
		if err := c.Terminate(t.Context(), first.ProviderID); !errors.Is(err, cloud.ErrNotFound) {
			t.Errorf("later termination: %v, want not found", err)
		}
	}
	if _, err := c.Machine(t.Context(), first.ProviderID); !errors.Is(err, cloud.ErrNotFound) {
		t.Errorf("machine after its end: %v, want not found", err)
	}
}

// launched returns how many claims have ever had a machine.
func (c *memoryCloud) launched() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.bought)
}
