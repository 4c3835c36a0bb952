package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// An order in which the pods of the plan can be bound, each admissible at its turn. On one node the pods go in the order
// in which they were put there, because rules by hostname were asked in that order; across nodes a pod waits until the
// rules by domain admit it, as kube-scheduler would make it wait.

// queueOf is what is still to be bound at one place.
type queueOf struct {
	shares []share
	tally  tally
	// atom is the place's domain on a key.
	atom func(label.Key) int
}

// listOrder writes the order down.
func (r *run) listOrder() {
	queues := r.queues()
	if len(r.counters.byKey) == 0 && len(r.counters.totals) == 0 {
		for _, q := range queues {
			for _, s := range q.shares {
				r.result.Order = append(r.result.Order, s.pods...)
			}
		}
		return
	}
	r.unbind(queues)
	for moved := true; moved; {
		moved = false
		for _, q := range queues {
			for q.bindNext(r) {
				moved = true
			}
		}
	}
	// What is left waits for itself in a circle; it goes last, in any order.
	for _, q := range queues {
		for _, s := range q.shares {
			r.result.Order = append(r.result.Order, s.pods...)
		}
	}
}

// queues lists the places that get pods: nodes, then bins.
func (r *run) queues() []*queueOf {
	var queues []*queueOf
	add := func(p *place, row label.Row) {
		if len(p.shares) > 0 {
			queues = append(queues, &queueOf{shares: slices.Clone(p.shares), tally: slices.Clone(p.tally), atom: func(key label.Key) int {
				return domainOf(r.snap.Space, row, key)
			}})
		}
	}
	for _, n := range r.nodes {
		add(&n.place, n.node.Row)
	}
	for _, b := range r.bins {
		add(&b.place, b.row)
	}
	return queues
}

// unbind takes the plan's pods out of all counts: nobody is bound yet.
func (r *run) unbind(queues []*queueOf) {
	for _, q := range queues {
		for _, s := range q.shares {
			q.count(r, s.task, -len(s.pods))
		}
	}
}

func (q *queueOf) count(r *run, t *task, n int) {
	for _, c := range t.rules.touched {
		if atom := q.atom(c.key); atom >= 0 {
			c.counts[atom] += n
			c.total += n
		}
	}
	for _, slot := range t.rules.hostTouched {
		q.tally = q.tally.add(slot, n)
		r.counters.totals[slot] += n
	}
}

// bindNext binds the first pod of the queue if the rules admit it now.
func (q *queueOf) bindNext(r *run) bool {
	if len(q.shares) == 0 {
		return false
	}
	s := &q.shares[0]
	if !q.admits(r, s.task) {
		return false
	}
	q.count(r, s.task, 1)
	r.result.Order = append(r.result.Order, s.pods[0])
	if s.pods = s.pods[1:]; len(s.pods) == 0 {
		q.shares = q.shares[1:]
	}
	return true
}

func (q *queueOf) admits(r *run, t *task) bool {
	if len(t.rules.hostSpreads)+len(t.rules.hostApart)+len(t.rules.hostAffinities) > 0 {
		if limit, _ := t.rules.onHost(q.tally, r.firstOfItsKind(t)); limit == 0 {
			return false
		}
	}
	if len(t.rules.spreads)+len(t.rules.apart)+len(t.rules.affinities) == 0 {
		return true
	}
	d := &domain{}
	for _, key := range t.rules.pins {
		atom := q.atom(key)
		if atom < 0 {
			atom = r.snap.Space.Absent(key)
		}
		d.atoms = append(d.atoms, atom)
	}
	return r.admits(t, d).OK()
}

// everybody lists the pods of a place.
func (p *place) everybody() []*model.Pod {
	var pods []*model.Pod
	for _, s := range p.shares {
		pods = append(pods, s.pods...)
	}
	return pods
}
