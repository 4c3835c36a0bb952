package overlay

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/karpenter-go/karpenter/cloud"
)

// Pool is a pool with the provider's answer.
type Pool struct {
	Name string
	// Labels are those of the pool's template.
	Labels map[string]string
	Types  []cloud.InstanceType
}

// Outcome is the effect of a set of overlays on the catalogs that it was resolved for. It can be applied to other
// catalogs of the same pools.
type Outcome struct {
	set *Set
	// winners are the overlays that have an effect, in order.
	winners []*compiled
	// known are the results for the catalogs that it was resolved for.
	known   []*result
	reports []Report
	// rules say what the rules of the price file do, by the names of their overlays.
	rules map[string]*tally
}

// result is the effect on the pools with equal facts and the same types.
type result struct {
	ofPool facts
	from   []cloud.InstanceType
	types  []cloud.InstanceType
	marks  Marks
	pools  []string
}

// isOf reports whether the result is that of a pool with the facts and types.
func (r *result) isOf(ofPool facts, types []cloud.InstanceType) bool {
	same := len(r.from) == len(types) && (len(types) == 0 || &r.from[0] == &types[0])
	return same && reflect.DeepEqual(r.ofPool, ofPool)
}

// Marks names the types of a catalog that overlays have changed.
type Marks struct {
	Price, Capacity map[string]bool
}

// Resolve finds conflicts in the catalogs of all pools. Pools whose catalog is unknown are left out.
func (s *Set) Resolve(pools []Pool) *Outcome {
	out := &Outcome{set: s}
	conflicts := s.conflicts(pools)
	for _, o := range s.overlays {
		if conflicts[o.name] == nil {
			out.winners = append(out.winners, o)
		}
	}
	out.reports = s.reports(out, pools, conflicts)
	return out
}

// touched identifies the price of an offering, or a resource of a type, in one pool.
type touched struct {
	pool, typ, offering int
	resource            string
}

// conflict is why an overlay has no effect.
type conflict struct {
	with  *compiled
	first string // what both change
	more  int    // the number of others
}

func (c *conflict) String() string {
	text := fmt.Sprintf("conflicts with %q (same weight %d) on %s", c.with.name, c.with.weight, c.first)
	if c.more > 0 {
		text += fmt.Sprintf(", and %d more", c.more)
	}
	return text
}

// conflicts returns the overlays that lose to an earlier one of the same weight, by name.
func (s *Set) conflicts(pools []Pool) map[string]*conflict {
	lost := map[string]*conflict{}
	for from := 0; from < len(s.overlays); {
		to := from
		for to < len(s.overlays) && s.overlays[to].weight == s.overlays[from].weight {
			to++
		}
		if to > from+1 {
			s.conflictsAmong(s.overlays[from:to], pools, lost)
		}
		from = to
	}
	return lost
}

// conflictsAmong finds the conflicts of overlays with one weight.
func (s *Set) conflictsAmong(same []*compiled, pools []Pool, lost map[string]*conflict) {
	owners := map[touched]*compiled{}
	for _, o := range same {
		var mine []touched
		for p := range pools {
			ofPool := s.ofPool(pools[p].Name, pools[p].Labels)
			for t := range pools[p].Types {
				mine = o.touches(mine, touched{pool: p, typ: t}, &pools[p].Types[t], s.matching(o, ofPool, &pools[p].Types[t]))
			}
		}
		for _, at := range mine {
			owner := owners[at]
			switch c := lost[o.name]; {
			case owner == nil:
			case c == nil:
				lost[o.name] = &conflict{with: owner, first: describe(&pools[at.pool], at)}
			default:
				c.more++
			}
		}
		if lost[o.name] == nil {
			for _, at := range mine {
				owners[at] = o
			}
		}
	}
}

// touches appends what the overlay changes of a type with these matching offerings.
func (o *compiled) touches(list []touched, at touched, t *cloud.InstanceType, offerings []int) []touched {
	if len(offerings) == 0 {
		return list
	}
	for _, k := range offerings {
		if o.prices(&t.Offerings[k]) {
			list = append(list, touched{pool: at.pool, typ: at.typ, offering: k})
		}
	}
	for _, resource := range o.resources {
		list = append(list, touched{pool: at.pool, typ: at.typ, resource: resource})
	}
	return list
}

func describe(p *Pool, at touched) string {
	t := &p.Types[at.typ]
	if at.resource != "" {
		return fmt.Sprintf("%s of %s in pool %q", at.resource, t.Name, p.Name)
	}
	return fmt.Sprintf("price of %s in pool %q", offeringName(t, at.offering), p.Name)
}

// offeringName returns type/zone/capacity type, and the reservation if there is one.
func offeringName(t *cloud.InstanceType, k int) string {
	o := &t.Offerings[k]
	name := t.Name + "/" + o.Zone + "/" + o.CapacityType
	if o.ReservationID != "" {
		name += "/" + o.ReservationID
	}
	return name
}

// matching returns the indexes of the type's offerings that an overlay matches.
func (s *Set) matching(o *compiled, ofPool facts, t *cloud.InstanceType) []int {
	return s.among(o, s.ofType(ofPool, t), t)
}

func (s *Set) among(o *compiled, ofType facts, t *cloud.InstanceType) []int {
	var list []int
	for k := range t.Offerings {
		ofOffering := s.ofOffering(ofType, &t.Offerings[k])
		if !slices.ContainsFunc(o.wants, func(w want) bool {
			if _, restricted := ofOffering[w.key]; restricted {
				return !ofOffering.meets(w)
			}
			return !ofType.meets(w)
		}) && (o.rule == nil || o.rule.Matches(t.Name, &t.Offerings[k])) {
			list = append(list, k)
		}
	}
	return list
}

// Apply returns the pool's types with all changes, and which types these are. Without changes it returns the given
// slice. Pools that no overlay distinguishes share the result if they share their types.
func (out *Outcome) Apply(p Pool) ([]cloud.InstanceType, Marks) {
	if known := out.resultOf(p); known != nil {
		return known.types, known.marks
	}
	return out.apply(p, nil)
}

// resultOf returns the known result for a pool, nil if there is none.
func (out *Outcome) resultOf(p Pool) *result {
	ofPool := out.set.ofPool(p.Name, p.Labels)
	for _, r := range out.known {
		if r.isOf(ofPool, p.Types) {
			return r
		}
	}
	return nil
}

// apply calls note, if it is not nil, for each change that is made or overruled.
func (out *Outcome) apply(p Pool, note func(Change)) (types []cloud.InstanceType, marks Marks) {
	types = p.Types
	if len(out.winners) == 0 {
		return types, marks
	}
	ofPool := out.set.ofPool(p.Name, p.Labels)
	for i := range p.Types {
		t, price, capacity := out.applyTo(p.Name, ofPool, &p.Types[i], note)
		committed := out.commit(p.Name, ofPool, &t, &p.Types[i], note)
		if !price && !capacity && !committed {
			continue
		}
		if marks.Price == nil {
			types = slices.Clone(types)
			marks = Marks{Price: map[string]bool{}, Capacity: map[string]bool{}}
		}
		types[i] = t
		if price {
			marks.Price[t.Name] = true
		}
		if capacity {
			marks.Capacity[t.Name] = true
		}
	}
	return types, marks
}

// applyTo returns a copy of a type with its changes. It shares what does not change.
func (out *Outcome) applyTo(pool string, ofPool facts, raw *cloud.InstanceType, note func(Change)) (t cloud.InstanceType, price, capacity bool) {
	t = *raw
	ofType := out.set.ofType(ofPool, raw)
	priced, owned := map[int]string{}, map[string]string{}
	for _, o := range out.winners {
		offerings := out.set.among(o, ofType, raw)
		if len(offerings) == 0 || o.limited() {
			continue
		}
		for _, k := range offerings {
			if !o.prices(&t.Offerings[k]) {
				continue
			}
			c := Change{Overlay: o.name, Pool: pool, Type: raw.Name, Offering: offeringName(raw, k), Raw: raw.Offerings[k].Price, By: priced[k]}
			if c.By == "" || o.stack {
				if !price {
					t.Offerings, price = slices.Clone(raw.Offerings), true
				}
				t.Offerings[k] = o.priced(t.Name, &t.Offerings[k])
				priced[k], c.By = o.name, ""
			}
			c.Price = t.Offerings[k].Price
			tell(note, c)
		}
		for _, resource := range o.resources {
			c := Change{Overlay: o.name, Pool: pool, Type: raw.Name, Resource: resource, Amount: o.capacity[resource], By: owned[resource]}
			if c.By == "" {
				if !capacity {
					t.Capacity, capacity = maps.Clone(raw.Capacity), true
				}
				if t.Capacity == nil {
					t.Capacity = map[string]int64{}
				}
				t.Capacity[resource], owned[resource] = c.Amount, o.name
			}
			tell(note, c)
		}
	}
	return t, price, capacity
}

// priced returns an offering with the price of the overlay. An offering that the cloud has refused stays unavailable.
func (o *compiled) priced(typeName string, offering *cloud.Offering) cloud.Offering {
	with := *offering
	if o.rule != nil {
		with.Price = o.rule.Of(typeName, with.Price)
	} else {
		with.Price = o.adjust(with.Price)
	}
	if o.opens && with.Unpriced {
		with.Unpriced, with.Available = false, with.RetryAt.IsZero()
	}
	return with
}

func tell(note func(Change), c Change) {
	if note != nil {
		note(c)
	}
}
