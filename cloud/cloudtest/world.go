package cloudtest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// Harness creates a cloud without machines for one test and shuts it down with the test.
type Harness func(t *testing.T) World

// World is a cloud and the operations that a test can apply to it. All fields but Chooses and SellOut are required.
type World struct {
	// Provider starts the provider as a new process would: for the same cloud, with no state in memory. An earlier one
	// may still run, as when an old leader does not know yet that it has lost the lease.
	Provider func(t *testing.T) cloud.Provider
	// Class is ready. NotReady exists but is not ready. Missing does not exist.
	Class, NotReady, Missing cloud.ClassRef
	// SellOut makes exactly these offerings unavailable for machines of Class. The provider is not notified. It is nil for a
	// cloud in which every offering is available.
	SellOut func(t *testing.T, offerings ...Offering)
	// LoseAnswers makes the cloud execute requests that launch a machine without returning a response, until restore is
	// called.
	LoseAnswers func(t *testing.T) (restore func())
	// Chooses says which part of the choice the cloud makes.
	Chooses Choosing
	// Hang makes every request to the cloud block until its context ends, until restore is called.
	Hang func(t *testing.T) (restore func())
}

// Choosing is how the cloud chooses among the offerings that a launch allows.
type Choosing int

const (
	// CheapestFirst is the order of cloud.Need.Choices.
	CheapestFirst Choosing = iota
	// AmongEqualPrices chooses the cheapest offering, in any zone.
	AmongEqualPrices
	// AmongAll considers more than the price, as EC2's allocation strategies for spot do.
	AmongAll
)

// Offering identifies one offering of the catalog.
type Offering struct {
	InstanceType string
	Zone         string
	CapacityType string
}

func offeringOf(c cloud.Choice) Offering {
	return Offering{InstanceType: c.Type.Name, Zone: c.Offering.Zone, CapacityType: c.Offering.CapacityType}
}

// Run runs the suite.
func Run(t *testing.T, harness Harness) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, World)
	}{
		{"catalog is complete and always the same", testCatalog},
		{"declared labels are well-formed", testDeclared},
		{"launch keeps what the claim asks for", testLaunch},
		{"launch respects requests", testRequests},
		{"launch twice is one machine", testLaunchTwice},
		{"launch at the same time is one machine", testLaunchConcurrently},
		{"launch whose answer is lost is one machine", testLostAnswer},
		{"launch per claim is one machine each", testMachinePerClaim},
		{"terminate until not found", testTerminate},
		{"what does not exist is not found", testNotFound},
		{"unavailable offering is followed by the next", testNextOffering},
		{"cloud without capacity is insufficient capacity", testInsufficientCapacity},
		{"class that is not ready", testClassNotReady},
		{"slow cloud", testSlow},
		{"new machine has not drifted", testNotDrifted},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, harness(t)) })
	}
}

var claims atomic.Int64

// claim returns a new claim of a class with requirements. It exists in the test only: a provider receives claims as
// arguments and does not read them.
func claim(class cloud.ClassRef, requirements ...karpv1.Requirement) *karpv1.NodeClaim {
	name := fmt.Sprintf("conformance-%d", claims.Add(1))
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: uuid.NewUUID(),
			Labels: map[string]string{karpv1.LabelNodePool: "conformance", karpv1.NodeClassLabel(class.Group, class.Kind): class.Name},
		},
		Spec: karpv1.NodeClaimSpec{
			NodeClassRef: karpv1.NodeClassReference{Group: class.Group, Kind: class.Kind, Name: class.Name},
			Requirements: append([]karpv1.Requirement{}, requirements...),
		},
	}
}

func requirement(key string, operator karpv1.Operator, values ...string) karpv1.Requirement {
	return karpv1.Requirement{Key: key, Operator: operator, Values: values}
}

func pool(class cloud.ClassRef) *karpv1.NodePool {
	p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "conformance"}}
	p.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: class.Group, Kind: class.Kind, Name: class.Name}
	return p
}

func catalog(t *testing.T, w World, p cloud.Provider) []cloud.InstanceType {
	t.Helper()
	types, err := p.Catalog(t.Context(), pool(w.Class))
	if err != nil {
		t.Fatalf("Catalog: %v", err)
	}
	if len(types) < 2 {
		t.Fatalf("Catalog has %d types, want two at least", len(types))
	}
	return types
}

func launch(t *testing.T, p cloud.Provider, c *karpv1.NodeClaim) *cloud.Machine {
	t.Helper()
	machine, err := p.Launch(t.Context(), c)
	if err != nil {
		t.Fatalf("Launch(%s): %v", c.Name, err)
	}
	return machine
}

// onlyMachines checks that these are all the machines that exist and are not terminating.
func onlyMachines(t *testing.T, p cloud.Provider, want ...string) {
	t.Helper()
	machines, err := p.Machines(t.Context())
	if err != nil {
		t.Fatalf("Machines: %v", err)
	}
	unseen := map[string]bool{}
	for _, id := range want {
		unseen[id] = true
	}
	for _, m := range machines {
		if !unseen[m.ProviderID] {
			if !m.Terminating {
				t.Errorf("Machines lists %s (claim %q), want %v", m.ProviderID, m.Claim, want)
			}
			continue
		}
		delete(unseen, m.ProviderID)
	}
	for id := range unseen {
		t.Errorf("Machines does not list %s", id)
	}
}

// eventually polls until done returns true.
func eventually(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, done); err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

func terminated(p cloud.Provider, id string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		err := p.Terminate(ctx, id)
		if errors.Is(err, cloud.ErrNotFound) {
			return true, nil
		}
		return false, err
	}
}

// cheapest returns the first available choice for a claim.
func cheapest(t *testing.T, types []cloud.InstanceType, c *karpv1.NodeClaim) cloud.Choice {
	t.Helper()
	for _, choice := range cloud.NeedOf(c).Choices(types) {
		if choice.Offering.Available {
			return choice
		}
	}
	t.Fatalf("the catalog has nothing available for claim %s", c.Name)
	return cloud.Choice{}
}

// right returns the choice that was launched if the cloud may make it. want is the first of all choices.
func (w World) right(t *testing.T, choices []cloud.Choice, want cloud.Choice, got Offering) cloud.Choice {
	t.Helper()
	for _, choice := range choices {
		if !choice.Offering.Available || offeringOf(choice) != got {
			continue
		}
		if w.Chooses == AmongAll || w.Chooses == AmongEqualPrices && choice.Offering.Price == want.Offering.Price || got == offeringOf(want) {
			return choice
		}
	}
	t.Errorf("launched %+v, want the cheapest, %+v", got, offeringOf(want))
	return want
}

func machineOffering(m *cloud.Machine) Offering {
	return Offering{
		InstanceType: m.Labels[corev1.LabelInstanceTypeStable],
		Zone:         m.Labels[corev1.LabelTopologyZone],
		CapacityType: m.Labels[karpv1.LabelCapacityType],
	}
}
