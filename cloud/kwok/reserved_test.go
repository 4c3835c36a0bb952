package kwok

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
)

const reservedJSON = `{"instanceTypes": [{"name": "m", "arch": "amd64", "os": ["linux"],
 "capacity": {"cpu": "2", "memory": "4Gi", "pods": "29"}, "overhead": {}, "offerings": [
 {"zone": "a", "capacityType": "on-demand", "price": 0.1},
 {"zone": "a", "capacityType": "reserved", "price": 0, "reservationID": "r-1", "reservationCount": 2,
  "reservationEnd": "2026-01-02T00:00:00Z"},
 {"zone": "a", "capacityType": "reserved", "price": 0.01, "reservationID": "r-2", "reservationCount": 0}]}]}`

// reservedProvider returns a provider of reservedJSON without the gate, or with it.
func reservedProvider(t *testing.T, clock *clocktesting.FakeClock, gate bool) *Provider {
	t.Helper()
	list, labels, err := ReadInstanceTypes(strings.NewReader(reservedJSON), "types.json")
	if err != nil {
		t.Fatal(err)
	}
	if !gate {
		list = cloud.WithoutReserved(list)
	}
	s := scheme()
	if err := karpv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	class := &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	class.StatusConditions().SetTrue(status.ConditionReady)
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(class).Build()
	p, err := New(Options{Client: c, Types: list, ProviderLabels: labels, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.queue.ShutDown)
	return p
}

// launched launches machines and returns their capacity types, and how often each occurs.
func launched(t *testing.T, p *Provider, n int) map[string]int {
	t.Helper()
	got := map[string]int{}
	for i := range n {
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i), UID: types.UID(fmt.Sprint("u", i))}}
		claim.Spec.NodeClassRef = karpv1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: "KWOKNodeClass", Name: "c"}
		m, err := p.Launch(t.Context(), claim)
		if err != nil {
			t.Fatal(err)
		}
		got[m.Labels[karpv1.LabelCapacityType]+" "+m.Labels[LabelReservation]]++
	}
	return got
}

// counts returns the machines that the catalog says each reservation has room for; -1 if it is not available.
func counts(t *testing.T, p *Provider) map[string]int {
	t.Helper()
	list, err := p.Catalog(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, o := range list[0].Offerings {
		if o.ReservationID != "" {
			if got[o.ReservationID] = o.ReservationCount; !o.Available {
				got[o.ReservationID] = -1
			}
		}
	}
	return got
}

// TestReservations verifies (RS-2) that of five machines as many use a reservation as it has room for, that the catalog
// counts them, and that nothing is left when it ends.
func TestReservations(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	p := reservedProvider(t, clock, true)
	if key := p.Declared().ReservationKey; key != LabelReservation {
		t.Errorf("the label of reservations is %q", key)
	}
	if got := fmt.Sprint(counts(t, p)); got != "map[r-1:2 r-2:0]" {
		t.Errorf("at first there is room for %s", got)
	}
	if got := fmt.Sprint(launched(t, p, 5)); got != "map[on-demand :3 reserved r-1:2]" {
		t.Errorf("machines are %s", got)
	}
	if got := fmt.Sprint(counts(t, p)); got != "map[r-1:0 r-2:0]" {
		t.Errorf("after the launches there is room for %s", got)
	}
	clock.Step(24 * time.Hour)
	if got := fmt.Sprint(counts(t, p)); got != "map[r-1:-1 r-2:0]" {
		t.Errorf("after the end there is room for %s", got)
	}
}

// TestGateReservedCapacity verifies (RS-1) that without the feature gate nothing reserved is offered or launched.
func TestGateReservedCapacity(t *testing.T) {
	p := reservedProvider(t, clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), false)
	if got := counts(t, p); len(got) > 0 || p.Declared().ReservationKey != "" {
		t.Errorf("reservations are offered: %v", got)
	}
	if got := fmt.Sprint(launched(t, p, 2)); got != "map[on-demand :2]" {
		t.Errorf("machines are %s", got)
	}
}

// TestReservationEnds verifies (RS-3) that at the end of a reservation its machines are on-demand: the labels of claim, node
// and machine; so that a pool of reserved capacity only has drifted, and one of both has not.
func TestReservationEnds(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	p := reservedProvider(t, clock, true)
	launched(t, p, 1)
	machines, err := p.Machines(t.Context())
	if err != nil || len(machines) != 1 {
		t.Fatal(machines, err)
	}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c0", UID: "u0", Labels: machines[0].Labels}}
	name := strings.TrimPrefix(machines[0].ProviderID, providerScheme)
	node := p.node(&record{Name: name, Labels: machines[0].Labels, NodeLabels: map[string]string{}})
	for _, object := range []client.Object{claim.DeepCopy(), node} {
		if err := p.opts.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	pool := func(capacityTypes ...string) *karpv1.NodePool {
		pool := &karpv1.NodePool{}
		pool.Spec.Template.Spec.Requirements = []karpv1.Requirement{
			{Key: karpv1.LabelCapacityType, Operator: karpv1.OperatorIn, Values: capacityTypes}}
		return pool
	}
	for _, ended := range []bool{false, true} {
		if err := p.endReservations(t.Context()); err != nil {
			t.Fatal(err)
		}
		now, there := &karpv1.NodeClaim{}, &corev1.Node{}
		if err := p.opts.Client.Get(t.Context(), client.ObjectKey{Name: "c0"}, now); err != nil {
			t.Fatal(err)
		}
		if err := p.opts.Client.Get(t.Context(), client.ObjectKeyFromObject(node), there); err != nil {
			t.Fatal(err)
		}
		machine, err := p.Machine(t.Context(), machines[0].ProviderID)
		if err != nil {
			t.Fatal(err)
		}
		for of, labels := range map[string]map[string]string{"claim": now.Labels, "node": there.Labels, "machine": machine.Labels} {
			if got := labels[karpv1.LabelCapacityType] == "on-demand" && labels[LabelReservation] == ""; got != ended {
				t.Errorf("ended %v: labels of the %s are %v", ended, of, labels)
			}
		}
		if got := cloud.RequirementsDrift(now, pool("reserved"), karpv1.CoreRules()); got != ended {
			t.Errorf("ended %v: in a pool of reserved capacity, drifted is %v", ended, got)
		}
		if cloud.RequirementsDrift(now, pool("reserved", "on-demand"), karpv1.CoreRules()) {
			t.Errorf("ended %v: drifted in a pool of both", ended)
		}
		clock.Step(24 * time.Hour)
	}
}
