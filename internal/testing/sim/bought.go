package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Bought is the first seed of wide worlds in which capacity is paid in advance: reservations, commitments, and a placement
// group with partitions. The range ends before Late. A seventh of the worlds from LateNights on are like that too.
const Bought = uint64(1) << 35

func boughtAhead(seed uint64) bool {
	return seed >= Bought && seed < Late || seed >= LateNights && seed%7 == 3
}

// Labels of a machine in a reservation, and in a partition.
const (
	labelReservation = "example.com/reservation"
	labelPartition   = "example.com/partition"
)

const (
	reserved = "reserved"
	onDemand = "on-demand"
)

// commitment is a lower price of a family's on-demand capacity in some zones, up to a limit.
type commitment struct {
	name, family string
	zones        []string
	percent      int64 // of the list price
	// limit is in millicores, or in nano-USD per hour at the price of the commitment.
	limit int64
	usd   bool
}

func (m commitment) String() string {
	return fmt.Sprintf("commitment %s: %s in %v at %d %% up to %d, in USD: %t", m.name, m.family, m.zones, m.percent, m.limit, m.usd)
}

// covers reports whether machines of the type in the zone are bought with the commitment.
func (m commitment) covers(t *model.InstanceType, zone, capacityType string) bool {
	return t.Name[:1] == m.family && capacityType == onDemand && slices.Contains(m.zones, zone)
}

// units returns what a machine of the type takes of the limit.
func (m commitment) units(t *model.InstanceType, listed int64) int64 {
	if m.usd {
		return max(1, listed*m.percent/100)
	}
	return amountOf(t.Capacity, "cpu")
}

// buy adds reservations, commitments and partitions to the world. It uses its own random numbers.
func (s *setting) buy(seed uint64) {
	if !boughtAhead(seed) {
		return
	}
	rng := rand.New(rand.NewPCG(seed, 0xb06e))
	s.known = maps.Clone(wellKnown)
	s.known[labelReservation], s.known[labelPartition], s.known[model.FieldCommitment] = true, true, true
	s.types = slices.Clone(s.types)
	for i := range s.types {
		t := &s.types[i]
		t.Offerings = slices.Clone(t.Offerings)
		for k := range t.Offerings {
			t.Offerings[k].Requirements = []label.Requirement{{Key: labelReservation, Operator: label.DoesNotExist}}
		}
	}
	for i := range 1 + rng.IntN(3) {
		s.reserve(rng, fmt.Sprintf("reservation-%d", i))
	}
	for i := range 1 + rng.IntN(2) {
		m := commitment{name: fmt.Sprintf("commitment-%d", i), family: []string{"m", "a", "g", "n"}[rng.IntN(4)],
			zones: [][]string{{"a"}, {"b", "c"}, {"a", "b", "c"}}[rng.IntN(3)], percent: 40 + rng.Int64N(50), usd: rng.IntN(2) == 0}
		if m.limit = 2000 + rng.Int64N(20)*1000; m.usd {
			m.limit = (1 + rng.Int64N(10)) * 40_000_000
		}
		s.commitments = append(s.commitments, m)
	}
	if related(seed) && rng.IntN(2) == 0 {
		s.partitions = []string{"1", "2", "3"}[:2+rng.IntN(2)]
		for i := range s.types {
			s.types[i].Requirements = append(slices.Clip(s.types[i].Requirements),
				label.Requirement{Key: labelPartition, Operator: label.In, Values: s.partitions})
		}
		if a := s.apps[rng.IntN(len(s.apps))]; a.pod.relation == (relation{}) {
			a.pod.relation = relation{key: labelPartition, skew: 1 + rng.IntN(2)}
		}
	}
	s.offer(s.types)
}

// reserve adds a reservation of a type that costs less than on-demand capacity, at most one for each type and zone.
func (s *setting) reserve(rng *rand.Rand, id string) {
	t := &s.types[rng.IntN(len(s.types))]
	zone, count := []string{"a", "b", "c"}[rng.IntN(3)], 1+rng.IntN(3)
	at := slices.IndexFunc(t.Offerings, func(o model.Offering) bool { return o.Zone == zone && o.CapacityType == onDemand })
	if at < 0 || slices.ContainsFunc(t.Offerings, func(o model.Offering) bool { return o.Zone == zone && o.CapacityType == reserved }) {
		return
	}
	t.Offerings = append(t.Offerings, model.Offering{Zone: zone, CapacityType: reserved, Price: t.Offerings[at].Price / 10_000_000,
		Available: true, ReservationID: id, ReservationCount: count,
		Requirements: []label.Requirement{{Key: labelReservation, Operator: label.In, Values: []string{id}}}})
	t.Requirements = slices.Clone(t.Requirements)
	for i := range t.Requirements {
		if r := &t.Requirements[i]; r.Key == model.LabelCapacityType && !slices.Contains(r.Values, reserved) {
			r.Values = slices.Sorted(slices.Values(append(slices.Clone(r.Values), reserved)))
		}
	}
}

// offer gives the types to all pools, with the offerings of commitments.
func (s *setting) offer(types []model.InstanceType) {
	if s.commitments != nil {
		types = slices.Clone(types)
		for i := range types {
			types[i].Offerings = s.committed(&types[i])
		}
	}
	catalog := &model.Catalog{Types: types, WellKnown: s.known}
	for i, p := range s.pools {
		fresh := *p
		fresh.Catalog = catalog
		s.pools[i] = &fresh
	}
}

// committed returns the offerings of a type: what a commitment covers is offered twice.
func (s *setting) committed(t *model.InstanceType) (all []model.Offering) {
	with := func(o model.Offering, r label.Requirement) model.Offering {
		o.Requirements = append(slices.Clip(o.Requirements), r)
		return o
	}
	for _, o := range t.Offerings {
		all = append(all, with(o, label.Requirement{Key: model.FieldCommitment, Operator: label.DoesNotExist}))
		for rank, m := range s.commitments {
			if !m.covers(t, o.Zone, o.CapacityType) {
				continue
			}
			c := with(o, label.Requirement{Key: model.FieldCommitment, Operator: label.In, Values: []string{m.name}})
			c.ReservationID, c.Limit = model.CommitmentID(rank, m.name), m.limit
			c.Price, c.Units = max(1, o.Price*m.percent/100), m.units(t, o.Price)
			if m.usd {
				c.PerPrice = 1
			}
			all = append(all, c)
		}
	}
	return all
}

// taken returns how many machines a reservation has.
func (c *cloud) taken(id string) (n int) {
	for _, m := range c.alive() {
		if m.labels[labelReservation] == id && id != "" {
			n++
		}
	}
	return n
}

// partition selects one of the partitions that the claim allows, one with the fewest machines.
func (c *cloud) partition(of *claim) string {
	count := map[string]int{}
	for _, m := range c.alive() {
		count[m.labels[labelPartition]]++
	}
	free := slices.DeleteFunc(slices.Clone(c.w.setting.partitions), func(value string) bool {
		return slices.ContainsFunc(of.requirements, func(r label.Requirement) bool {
			return r.Key == labelPartition && !allows(r, value, true)
		})
	})
	if len(free) == 0 {
		return ""
	}
	return slices.MinFunc(free, func(a, b string) int { return cmp.Or(count[a]-count[b], cmp.Compare(a, b)) })
}

// bill returns what the machines of the claims cost together, nano-USD per hour. A commitment covers the oldest first, the
// last of them in part.
func (w *world) bill(claims []*claim) (sum int64) {
	claims = slices.SortedFunc(slices.Values(claims), func(a, b *claim) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.name, b.name))
	})
	left := make([]int64, len(w.setting.commitments))
	for i, m := range w.setting.commitments {
		left[i] = m.limit
	}
	for _, of := range claims {
		at := w.cloud.machine(of.provider)
		if at == nil {
			continue
		}
		listed, rest := w.cloud.price(at), 1.0
		for i, m := range w.setting.commitments {
			if need := m.units(at.kind, listed); rest > 0 && m.covers(at.kind, at.place.zone, at.place.capacityType) {
				part := min(rest, float64(left[i])/float64(need))
				left[i] -= int64(float64(part*float64(need)) + 0.5)
				rest -= part
				sum += int64(float64(part * float64(listed) * float64(m.percent) / 100))
			}
		}
		sum += int64(float64(rest*float64(listed))) + w.setting.disruption.Placement.NodePriceOf(w.setting.pool(of.pool))
	}
	return sum
}

// billed returns what all nodes cost without the replacements of the command, and without its candidates.
func (d departure) billed() (before, after int64) {
	var old, fresh []*claim
	for _, of := range list[*claim](d.listed) {
		if !of.deleting.IsZero() {
			continue
		}
		if !slices.ContainsFunc(d.command.Replacements, func(r plan.NewClaim) bool { return r.Name == of.name }) {
			old = append(old, of)
		}
		if !slices.ContainsFunc(d.command.Candidates, func(c plan.Candidate) bool { return c.ClaimUID == of.uid }) {
			fresh = append(fresh, of)
		}
	}
	return d.w.bill(old), d.w.bill(fresh)
}

// describeBought says what is paid in advance.
func (s *setting) describeBought() (lines []string) {
	for _, t := range s.types {
		for _, o := range t.Offerings {
			if o.ReservationID != "" {
				lines = append(lines, o.ReservationID+": "+strconv.Itoa(o.ReservationCount)+" of "+t.Name+" in "+o.Zone)
			}
		}
	}
	for _, m := range s.commitments {
		lines = append(lines, m.String())
	}
	if s.partitions != nil {
		lines = append(lines, fmt.Sprintf("partitions %v", s.partitions))
	}
	return lines
}
