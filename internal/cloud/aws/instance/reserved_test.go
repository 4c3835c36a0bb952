package instance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

const zoneA = "us-east-1a"

// described returns the offerings in words: zone, capacity type, reservation with its count, price in nano-USD, and - if
// it is not available.
func described(t cloud.InstanceType) []string {
	var list []string
	for _, o := range t.Offerings {
		text := fmt.Sprintf("%s %s %.0f", o.Zone, o.CapacityType, o.Price*1e9)
		if o.ReservationID != "" {
			text += fmt.Sprintf(" %s:%d", o.ReservationID, o.ReservationCount)
		}
		if !o.Available {
			text += " -"
		}
		list = append(list, text)
	}
	return list
}

// TestReservedOfferings checks the offerings of a type with reservations.
func TestReservedOfferings(t *testing.T) {
	left := map[string]int{"cr-full": 0, "cr-two": 2, "cr-old": 1, "cr-far": 4}
	two := Reservation{ID: "cr-two", Type: "m5.large", Zone: zoneA, Kind: "default"}
	ordinary := []string{"us-east-1a on-demand 1000000000", "us-east-1a spot 500000000"}
	for name, c := range map[string]struct {
		change func(*Class, *Market, *Settings, *catalog.Type)
		list   []Reservation
		want   []string
	}{
		"none":      {nil, nil, ordinary},
		"one":       {nil, []Reservation{two}, []string{ordinary[0], "us-east-1a reserved 100 cr-two:2", ordinary[1]}},
		"of a type": {nil, []Reservation{{ID: "cr-two", Type: "m5.xlarge", Zone: zoneA}}, ordinary},
		"of a zone": {nil, []Reservation{{ID: "cr-far", Type: "m5.large", Zone: "us-east-1f"}}, ordinary},
		"used up": {nil, []Reservation{{ID: "cr-full", Type: "m5.large", Zone: zoneA}},
			[]string{ordinary[0], "us-east-1a reserved 100 cr-full:0 -", ordinary[1]}},
		"not counted": {nil, []Reservation{{ID: "cr-new", Type: "m5.large", Zone: zoneA}},
			[]string{ordinary[0], "us-east-1a reserved 100 cr-new:0 -", ordinary[1]}},
		"expiring": {nil, []Reservation{{ID: "cr-old", Type: "m5.large", Zone: zoneA, Kind: "capacity-block", Expiring: true}},
			[]string{ordinary[0], "us-east-1a reserved 100 cr-old:1 -", ordinary[1]}},
		"gate off": {func(_ *Class, _ *Market, s *Settings, _ *catalog.Type) { s.IgnoreReservations = true }, []Reservation{two}, ordinary},
		"no price": {func(_ *Class, m *Market, _ *Settings, _ *catalog.Type) {
			m.OnDemand = func(string) (float64, bool) { return 0, false }
		}, []Reservation{two}, []string{"us-east-1a on-demand 0 -", "us-east-1a reserved 0 cr-two:2", ordinary[1]}},
		"tiny price": {func(_ *Class, m *Market, _ *Settings, _ *catalog.Type) {
			m.OnDemand = func(string) (float64, bool) { return 0.0042, true }
		}, []Reservation{two}, []string{"us-east-1a on-demand 4200000", "us-east-1a reserved 1 cr-two:2", ordinary[1]}},
		"sold in blocks only": {func(_ *Class, _ *Market, _ *Settings, it *catalog.Type) {
			it.Usage, it.Zones = []string{catalog.UsageCapacityBlock}, nil
		},
			[]Reservation{two}, []string{"us-east-1a reserved 100 cr-two:2"}},
		"subnets without addresses": {func(_ *Class, m *Market, _ *Settings, _ *catalog.Type) {
			m.Unavailable = func(o Offer) time.Time {
				if o.CapacityType == karpv1.CapacityTypeReserved && slices.Contains(o.Subnets, "subnet-us-east-1a") {
					return time.Now()
				}
				return time.Time{}
			}
		}, []Reservation{two}, []string{ordinary[0], "us-east-1a reserved 100 cr-two:2 -", ordinary[1]}},
	} {
		t.Run(name, func(t *testing.T) {
			class, market, settings, it := al2023(zoneA), freeMarket(), defaults(), sold([]catalog.Type{*known(t, "m5.large")}, zoneA)
			class.Subnets[0].ID, class.Reservations = "subnet-us-east-1a", c.list
			market.Left = func(id string) (int, string) { return left[id], "" }
			if c.change != nil {
				c.change(class, market, settings, &it[0])
			}
			typeSet, err := NewTypeSet(it, class, settings, nil)
			if err != nil {
				t.Fatal(err)
			}
			types := typeSet.Catalog(market)
			if len(types) != 1 {
				t.Fatalf("%d types, excluded %v", len(types), typeSet.Excluded())
			}
			if diff := cmp.Diff(c.want, described(types[0])); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestReservedLabels checks that nodes have the labels of their reservation, and others none of them.
func TestReservedLabels(t *testing.T) {
	class, market := al2023(zoneA), freeMarket()
	class.Reservations = []Reservation{{ID: "cr-1", Type: "m5.large", Zone: zoneA, Kind: "capacity-block", Interruptible: true}}
	market.Left = func(string) (int, string) { return 1, "dedicated" }
	types := typeSetOf(t, sold([]catalog.Type{*known(t, "m5.large"), *known(t, "m5.xlarge")}, zoneA), class, nil).Catalog(market)
	for i := range types {
		for j := range types[i].Offerings {
			o := &types[i].Offerings[j]
			got := cloud.Need{}.MachineLabels(cloud.Choice{Type: &types[i], Offering: o})
			want := map[string]string{"id": "", "type": "", "interruptible": ""}
			if o.ReservationID != "" {
				want = map[string]string{"id": "cr-1", "type": "capacity-block", "interruptible": "true"}
				if got[awsv1.LabelInstanceTenancy] != "dedicated" {
					t.Errorf("tenancy is %q", got[awsv1.LabelInstanceTenancy])
				}
			}
			if diff := cmp.Diff(want, map[string]string{"id": got[awsv1.LabelCapacityReservationID],
				"type": got[awsv1.LabelCapacityReservationType], "interruptible": got[awsv1.LabelCapacityReservationInterruptible]}); diff != "" {
				t.Errorf("%s %s: (-want +got)\n%s", types[i].Name, o.CapacityType, diff)
			}
			none := cloud.NeedOf(&karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{Requirements: []karpv1.Requirement{
				{Key: awsv1.LabelCapacityReservationID, Operator: "DoesNotExist"}}}})
			if allowed := none.AllowsType(&types[i]) && none.AllowsOffering(o); allowed != (o.ReservationID == "") {
				t.Errorf("%s %s is allowed without reservation: %v", types[i].Name, o.CapacityType, allowed)
			}
		}
	}
}

// ledgerModel is a plain second implementation of Reserved for one reservation: it keeps all events and counts them anew.
type ledgerModel struct {
	available, total int
	asked, sold      time.Time
	launched, gone   map[string]time.Time
	there            map[string]time.Time
}

func (m *ledgerModel) left() int {
	if m.asked.IsZero() || !m.sold.IsZero() && !m.asked.After(m.sold) {
		return 0
	}
	n := m.available
	for _, at := range m.launched {
		if !at.Before(m.asked) {
			n--
		}
	}
	for id, at := range m.gone {
		if at.After(m.asked) && !m.there[id].Before(m.asked) {
			n++
		}
	}
	return min(max(0, n), max(m.total, m.available))
}

// TestReservedCounts compares counts with those of the model over random events.
func TestReservedCounts(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		now := time.Unix(1_000_000, 0)
		counter := NewReserved(func() time.Time { return now })
		model := &ledgerModel{total: 5, launched: map[string]time.Time{}, gone: map[string]time.Time{}, there: map[string]time.Time{}}
		for step := range 60 {
			now = now.Add(time.Duration(1+r.IntN(20)) * time.Second)
			id := fmt.Sprint("i-", r.IntN(8))
			before, version := counterLeft(counter), counter.Version()
			switch r.IntN(5) {
			case 0:
				asked := now.Add(-time.Duration(r.IntN(30)) * time.Second)
				available := r.IntN(6)
				counter.Read([]CountedReservation{{ID: "cr-1", Available: available, Total: 5}}, asked)
				if !asked.Before(model.asked) {
					model.available, model.asked = available, asked
				}
			case 1:
				counter.Launched("cr-1", id)
				if _, known := model.launched[id]; !known {
					model.launched[id] = now
				}
				if model.gone[id].IsZero() {
					model.there[id] = now
				}
			case 2:
				counter.Gone(id)
				if _, launched := model.launched[id]; launched && model.gone[id].IsZero() {
					model.gone[id] = now
				}
			case 3:
				counter.SoldOut("cr-1")
				model.sold = now
			case 4:
				counter.Gone("i-unknown")
			}
			// A machine that is gone is forgotten with the next answer; its ID is not used again in reality.
			for id, at := range model.gone {
				if !at.After(model.asked) {
					delete(model.gone, id)
					delete(model.launched, id)
				}
			}
			if got, want := counterLeft(counter), model.left(); got != want {
				t.Fatalf("seed %d, step %d: %d left, want %d", seed, step, got, want)
			}
			if changed := counter.Version() != version; changed != (before != counterLeft(counter)) {
				t.Fatalf("seed %d, step %d: from %d to %d, and the version changed: %v", seed, step, before, counterLeft(counter), changed)
			}
		}
	}
}

func counterLeft(r *Reserved) int {
	n, _ := r.Left("cr-1")
	return n
}
