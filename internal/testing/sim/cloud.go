package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// place is an offering of a type.
type place struct{ kind, zone, capacityType string }

// machine is an entry of the cloud's ledger; entries are never removed.
type machine struct {
	id              string
	claim, claimUID string
	place           place
	kind            *model.InstanceType
	price           int64
	labels          map[string]string
	bought          time.Time
	// ending and gone are the times at which termination began and ended, or zero.
	ending, gone time.Time
}

// cloud launches machines.
type cloud struct {
	w      *world
	ledger []*machine
	// empty holds the places without capacity; refused is until when the catalog shows them as unavailable.
	empty   map[place]bool
	refused map[place]time.Time
	// strange counts the next machines that never join.
	strange int
}

// alive returns the machines that cost money.
func (c *cloud) alive() []*machine {
	return slices.DeleteFunc(slices.Clone(c.ledger), func(m *machine) bool { return !m.gone.IsZero() })
}

func (c *cloud) machine(id string) *machine {
	for _, m := range c.ledger {
		if m.id == id {
			return m
		}
	}
	return nil
}

// launch launches one machine for a claim, or returns the existing one. It returns nil if there is no capacity.
func (c *cloud) launch(of *claim) *machine {
	for _, m := range c.ledger {
		if m.claimUID == of.uid {
			return m
		}
	}
	var best *machine
	partition := c.partition(of)
	for i := range c.w.setting.types {
		t := &c.w.setting.types[i]
		if !covers(t, of) {
			continue
		}
		for _, o := range t.Offerings {
			at := place{t.Name, o.Zone, o.CapacityType}
			labels := labelsAt(t, o, partition)
			if !compatible(of.requirements, labels) || o.ReservationID != "" && c.taken(o.ReservationID) >= o.ReservationCount ||
				best != nil && best.price <= o.Price {
				continue
			}
			if c.empty[at] {
				c.refuse(at)
				continue
			}
			best = &machine{claim: of.name, claimUID: of.uid, place: at, kind: t, price: o.Price, labels: labels, bought: c.w.now}
		}
	}
	if best == nil {
		return nil
	}
	best.id = fmt.Sprintf("machine-%d", len(c.ledger))
	c.ledger = append(c.ledger, best)
	if best.place.capacityType == reserved {
		c.publish()
	}
	c.w.say("cloud sells %s (%v) for claim %s", best.id, best.place, of.name)
	c.w.check.sold(best)
	c.w.kubelet(best)
	return best
}

func covers(t *model.InstanceType, of *claim) bool {
	for _, a := range of.requests {
		if amountOf(t.Allocatable, a.Name) < a.Value {
			return false
		}
	}
	return true
}

// compatible ignores requirements on labels that the type lacks: the user's own labels are set by the claim. Without the label
// of reservations a machine is in none.
func compatible(all []label.Requirement, labels map[string]string) bool {
	return !slices.ContainsFunc(all, func(r label.Requirement) bool {
		value, there := labels[r.Key]
		return (there || r.Key == labelReservation) && !allows(r, value, there)
	})
}

// labelsAt returns the labels of a machine, in a partition if it is not "".
func labelsAt(t *model.InstanceType, o model.Offering, partition string) map[string]string {
	labels := map[string]string{model.LabelZone: o.Zone, model.LabelCapacityType: o.CapacityType, model.LabelType: t.Name}
	for _, r := range t.Requirements {
		if r.Key == labelArch {
			labels[labelArch] = r.Values[0]
		}
	}
	if o.ReservationID != "" {
		labels[labelReservation] = o.ReservationID
	}
	if partition != "" {
		labels[labelPartition] = partition
	}
	return labels
}

// refuse marks a place without capacity as unavailable in the catalog for a while.
func (c *cloud) refuse(at place) {
	if c.refused[at].After(c.w.now) {
		return
	}
	c.refused[at] = c.w.now.Add(3 * time.Minute)
	c.publish()
	c.w.after(3*time.Minute+time.Second, c.publish)
}

// publish gives all pools a catalog in which recently refused places are unavailable.
func (c *cloud) publish() {
	types := slices.Clone(c.w.setting.types)
	for i := range types {
		types[i].Offerings = slices.Clone(types[i].Offerings)
		for j := range types[i].Offerings {
			o := &types[i].Offerings[j]
			o.Available = !c.refused[place{types[i].Name, o.Zone, o.CapacityType}].After(c.w.now)
			if o.ReservationID != "" {
				o.ReservationCount -= c.taken(o.ReservationID)
				o.Available = o.Available && o.ReservationCount > 0
			}
		}
	}
	c.w.setting.offer(types)
	c.w.catalogs++
}

// reprice changes the prices of a zone and capacity type by up to a third.
func (c *cloud) reprice(d Disturbance) {
	zone, capacityType := []string{"a", "b", "c"}[d.Which%3], []string{"spot", "on-demand"}[d.Much%2]
	types := slices.Clone(c.w.setting.types)
	for i := range types {
		types[i].Offerings = slices.Clone(types[i].Offerings)
		for j := range types[i].Offerings {
			if o := &types[i].Offerings[j]; o.Zone == zone && o.CapacityType == capacityType {
				o.Price = o.Price * int64(67+d.Much%67) / 100
			}
		}
	}
	c.w.setting.types = types
	c.publish()
}

// price returns the current price of the machine's place.
func (c *cloud) price(m *machine) int64 {
	for i := range c.w.setting.types {
		for _, o := range c.w.setting.types[i].Offerings {
			if m.place == (place{c.w.setting.types[i].Name, o.Zone, o.CapacityType}) {
				return o.Price
			}
		}
	}
	return m.price
}

// terminate begins the termination of a machine. It returns false if the machine no longer exists.
func (c *cloud) terminate(id string) bool {
	m := c.machine(id)
	if m == nil || !m.gone.IsZero() {
		return false
	}
	if m.ending.IsZero() {
		m.ending = c.w.now
		c.w.after(c.w.between(500*time.Millisecond, 8*time.Second), func() { c.end(m) })
	}
	return true
}

// end ends the machine and its cost.
func (c *cloud) end(m *machine) {
	if m.gone.IsZero() {
		m.gone = c.w.now
		c.w.say("%s is gone", m.id)
		if m.place.capacityType == reserved {
			c.publish()
		}
	}
}

// drought removes the capacity of a random part of the places, or restores that of all.
func (c *cloud) drought(share int) {
	c.empty = map[place]bool{}
	for i := range c.w.setting.types {
		t := &c.w.setting.types[i]
		for _, o := range t.Offerings {
			if c.w.rng.IntN(100) < share {
				c.empty[place{t.Name, o.Zone, o.CapacityType}] = true
			}
		}
	}
}

// kubelet makes a machine join, unless it never does, and its node ready.
func (w *world) kubelet(m *machine) {
	if w.cloud.strange > 0 {
		w.cloud.strange--
		w.say("%s will never join", m.id)
		return
	}
	delay := w.between(time.Second, 10*time.Second)
	if w.rng.IntN(10) == 0 {
		delay = w.between(30*time.Second, 6*time.Minute)
	}
	w.after(delay, func() { w.join(m) })
}

func (w *world) join(m *machine) {
	if !m.gone.IsZero() || !m.ending.IsZero() {
		return
	}
	n := &node{meta: meta{name: "node-" + m.id}, provider: m.id, labels: maps.Clone(m.labels), taints: []model.Taint{unregisteredTaint, notReadyTaint},
		capacity: w.setting.promised(m, m.kind.Capacity), allocatable: w.setting.promised(m, m.kind.Allocatable)}
	n.labels[model.LabelHostname] = n.name
	if w.setting.foreign != nil {
		if taint, tainted := w.setting.foreign(); tainted {
			n.taints = append(n.taints, taint)
		}
	}
	labeled := false
	if of := w.api.claim(m.claim); of != nil {
		labeled = w.marked(n, of.pool)
	}
	w.api.create(n)
	w.say("%s joins as %s", m.id, n.name)
	if labeled { // DaemonSets tolerate the taints of a node that has not registered
		w.daemon(n)
	}
	w.after(w.between(200*time.Millisecond, 5*time.Second), func() {
		if m.gone.IsZero() {
			w.api.update(n.key(), n.uid, 0, func(o object) { o.(*node).turn(true, false) })
			w.after(w.between(0, 3*time.Second), func() { w.daemon(n) })
		}
	})
}

// daemon creates a pod of every DaemonSet on a node.
func (w *world) daemon(n *node) {
	if w.api.node(n.name) == nil {
		return
	}
	for _, d := range w.setting.daemons {
		if !accepts(d.Alternatives, n.labels) {
			continue
		}
		w.place(&pod{meta: meta{name: d.Name + "-" + n.name}, app: d.UID, requests: d.Requests, tolerations: d.Tolerations, daemon: true, node: n.name}, n)
	}
}
