package aws

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/class"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// reservedHistory is a random history of machines in the reservations of a class. It plans like the controller: of the
// pods, which need a machine each, as many as a reservation has room for are launched into it.
type reservedHistory struct {
	*world
	t       *testing.T
	rand    *rand.Rand
	p       *Provider
	upkeep  *reservedUpkeep
	claims  map[string]*karpv1.NodeClaim
	created int
	// raced means that something has happened since EC2 was last asked that the provider cannot know of.
	raced bool
}

// TestReservedHistories checks over random launches, terminations, restarts, reclaims and launches of a second replica
// that reservations are used up before machines are bought on demand, and that the labels of claims are what EC2 says.
func TestReservedHistories(t *testing.T) {
	seeds := []uint64{1, 2, 3, 4, 5, rand.Uint64(), rand.Uint64(), rand.Uint64()}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playReserved(t, rand.New(rand.NewPCG(seed, 44))) })
		})
	}
}

func playReserved(t *testing.T, r *rand.Rand) {
	h := &reservedHistory{world: newVirtualWorld(t, quick(), "m5.large"), t: t, rand: r, claims: map[string]*karpv1.NodeClaim{}}
	of := h.class(t, "default")
	of.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{Tags: map[string]string{"team": "a"}}}
	check(t, h.api.Update(t.Context(), of))
	h.reserve()
	h.restart()
	h.minute()
	for range 25 {
		switch r.IntN(8) {
		case 0:
			h.reserve()
		case 1:
			h.shrink()
		case 2:
			h.restart()
		case 3:
			h.replica()
		case 4, 5:
			h.terminate()
		default:
			h.minute()
		}
		h.buy(1 + r.IntN(3))
		h.agree()
	}
}

// reserve adds a reservation for up to three machines.
func (h *reservedHistory) reserve() {
	zones := []string{"us-east-1a", "us-east-1b", "us-east-1c"}
	h.sim.AddReservation(awssim.CapacityReservation{Type: "m5.large", Zone: zones[h.rand.IntN(len(zones))], Criteria: "targeted",
		Total: 1 + h.rand.IntN(3), Interruptible: h.rand.IntN(3) == 0, Tags: map[string]string{"team": "a"}})
	h.raced = true
}

// shrink ends a reservation, or lets its owner reclaim a machine.
func (h *reservedHistory) shrink() {
	active := slices.DeleteFunc(h.sim.Reservations(), func(r awssim.CapacityReservation) bool { return r.State != "active" || r.Total == 0 })
	if len(active) == 0 {
		return
	}
	h.raced = true
	if one := active[h.rand.IntN(len(active))]; one.Interruptible {
		check(h.t, h.sim.Reclaim(one.ID, one.Total-1))
	} else {
		check(h.t, h.sim.CancelReservation(one.ID))
	}
}

func (h *reservedHistory) restart() {
	h.p = h.provider(h.t)
	h.upkeep = &reservedUpkeep{Provider: h.p}
}

// replica launches by a provider that shares no memory with the other.
func (h *reservedHistory) replica() {
	h.raced = true
	if _, err := h.launch(h.provider(h.t), karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In",
		Values: []string{"reserved", "on-demand"}}); err != nil {
		h.t.Errorf("the replica: %v", err)
	}
}

// terminate terminates a machine, and waits until EC2 has confirmed it.
func (h *reservedHistory) terminate() {
	if len(h.claims) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(h.claims))
	claim := h.claims[names[h.rand.IntN(len(names))]]
	err := h.p.Terminate(h.t.Context(), claim.Status.ProviderID)
	for try := 0; err == nil && try < 20; try++ {
		time.Sleep(5 * time.Second)
		err = h.p.Terminate(h.t.Context(), claim.Status.ProviderID)
	}
	if !errors.Is(err, cloud.ErrNotFound) {
		h.t.Fatalf("terminating: %v", err)
	}
	h.drop(claim)
}

func (h *reservedHistory) drop(claim *karpv1.NodeClaim) {
	check(h.t, h.api.Delete(h.t.Context(), claim))
	delete(h.claims, claim.Name)
}

// minute reconciles the class after a minute, which asks EC2 for its reservations.
func (h *reservedHistory) minute() {
	time.Sleep(61 * time.Second)
	_, err := h.p.Machines(h.t.Context()) // as the collection of machines without claims does
	check(h.t, err)
	r := &class.Reconciler{Client: h.api, Sources: h.p.sources, DeleteTemplates: h.p.launcher.DeleteTemplates, Now: time.Now,
		Counted: h.p.counted}
	_, err = r.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "default"}})
	check(h.t, err)
	h.raced = false
}

// free returns how many more machines EC2 would start in the reservations.
func (h *reservedHistory) free() (n int) {
	for _, r := range h.sim.Reservations() {
		if r.State == "active" {
			n += max(0, r.Available)
		}
	}
	return n
}

// room returns the reservations in which the provider offers room, once for each further machine.
func (h *reservedHistory) room() (ids []string) {
	types, err := h.p.Catalog(h.t.Context(), poolOf("default"))
	check(h.t, err)
	for _, t := range types {
		for i := range t.Offerings {
			if o := &t.Offerings[i]; o.ReservationID != "" && o.Available {
				ids = append(ids, slices.Repeat([]string{o.ReservationID}, o.ReservationCount)...)
			}
		}
	}
	return ids
}

// buy launches machines for pods, together, and plans again for those that are refused.
func (h *reservedHistory) buy(pods int) {
	free, reserved, raced := h.free(), 0, h.raced
	for wanted, pods := min(free, pods), pods; pods > 0; {
		room := h.room()
		if !raced && len(room) != free-reserved {
			h.t.Errorf("the provider offers room for %d, and EC2 has %d of %d left", len(room), free-reserved, free)
		}
		machines, refused := make([]*karpv1.NodeClaim, pods), make([]error, pods)
		var all sync.WaitGroup
		for i := range pods {
			all.Go(func() {
				at := karpv1.Requirement{Key: awsv1.LabelCapacityReservationID, Operator: "DoesNotExist"}
				if i < len(room) {
					at.Operator, at.Values = "In", room[i:i+1]
				}
				machines[i], refused[i] = h.launch(h.p, at)
			})
		}
		all.Wait()
		pods = 0
		for i := range machines {
			var insufficient *cloud.InsufficientCapacityError
			switch {
			case errors.As(refused[i], &insufficient) && raced:
				pods++
			case refused[i] != nil:
				h.t.Fatalf("launching: %v", refused[i])
			case machines[i].Labels[karpv1.LabelCapacityType] == karpv1.CapacityTypeReserved:
				reserved++
			}
		}
		if pods == 0 && !raced && reserved != wanted || reserved > free {
			h.t.Errorf("%d of the machines are reserved, want %d", reserved, wanted)
		}
	}
}

var launching sync.Mutex // protects the claims of a history

func (h *reservedHistory) launch(p *Provider, requirements ...karpv1.Requirement) (*karpv1.NodeClaim, error) {
	launching.Lock()
	h.created++
	c := h.claim(h.t, fmt.Sprint("claim-", h.created), requirements...)
	launching.Unlock()
	machine, err := p.Launch(h.t.Context(), c)
	if err != nil {
		return nil, errors.Join(err, h.api.Delete(h.t.Context(), c))
	}
	maps.Copy(c.Labels, machine.Labels)
	c.Annotations = machine.Annotations
	err = h.api.Update(h.t.Context(), c)
	c.Status.ProviderID, c.Status.ImageID = machine.ProviderID, machine.ImageID
	err = errors.Join(err, h.api.Status().Update(h.t.Context(), c))
	launching.Lock()
	defer launching.Unlock()
	h.claims[c.Name] = c
	return c, err
}

// agree checks after two looks at the machines that the claims have the labels of their reservations, and that no
// reservation has more machines than its size.
func (h *reservedHistory) agree() {
	for range 2 {
		time.Sleep(reservationsEvery)
		check(h.t, h.upkeep.examineReserved(h.t.Context()))
	}
	out, err := h.clients.EC2.DescribeInstances(h.t.Context(), &ec2.DescribeInstancesInput{})
	check(h.t, err)
	in := map[string]string{} // reservations by instance
	for _, r := range out.Reservations {
		for i := range r.Instances {
			if name := r.Instances[i].State.Name; name == "running" || name == "pending" {
				in[aws.ToString(r.Instances[i].InstanceId)] = aws.ToString(r.Instances[i].CapacityReservationId)
			}
		}
	}
	used := map[string]int{}
	for name, claim := range h.claims {
		check(h.t, h.api.Get(h.t.Context(), types.NamespacedName{Name: name}, claim))
		id, _ := instanceOf(claim.Status.ProviderID)
		at, runs := in[id]
		if !runs { // reclaimed
			h.drop(claim)
			continue
		}
		used[at]++
		if got := claim.Labels[awsv1.LabelCapacityReservationID]; got != at ||
			(at != "") != (claim.Labels[karpv1.LabelCapacityType] == "reserved") {
			h.t.Errorf("claim %s is %s, in reservation %q, and EC2 has it in %q", name, claim.Labels[karpv1.LabelCapacityType], got, at)
		}
	}
	for _, r := range h.sim.Reservations() {
		if used[r.ID] > r.Total {
			h.t.Errorf("%d machines are in reservation %s of %d", used[r.ID], r.ID, r.Total)
		}
	}
	if len(h.claims) != len(in) {
		h.t.Errorf("%d machines run for %d claims", len(in), len(h.claims))
	}
}
