package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// Limits for the rows of pods and DaemonSets.
//
// A group has a row of words for each alternative of its node affinity and each preference, and a row has a bit for
// each value that any requirement mentions. Authors of pods control both, so the memory for rows grows with the
// product. Each constraint between pods requires a counter each time a preference is dropped, so the cost of such
// preferences is quadratic, and each topology key makes every row longer. So there is a limit for each shape, and one
// for all together: above it, the cheapest shapes are admitted first, and those of virtual pods last. The pods of the
// other shapes are rejected, and their values and topology keys are not mentioned. The selection does not depend on
// the order in which the objects were added. The same limits hold for DaemonSets, whose rows cost the same. The pods
// of those that are set aside are not expected on new nodes.

// cost counts terms (alternatives and preferences beyond those of ordinary pods), distinct values, constraints
// between pods (spread, affinity and anti-affinity) beyond those of ordinary pods, and distinct topology keys.
type cost struct{ terms, values, between, keys int }

// The limits: for one shape or DaemonSet, and for all of them. At that of all, a plan takes about 120 MiB.
var (
	mostOfOne = cost{2 << 10, 8 << 10, 128, 16}
	mostOfAll = cost{4 << 10, 16 << 10, 2 << 10, 256}
)

// This many preferences and constraints between pods are free for each object.
const (
	fewPreferences = 8
	fewBetween     = 16
)

func (c cost) plus(d cost) cost {
	return cost{c.terms + d.terms, c.values + d.values, c.between + d.between, c.keys + d.keys}
}

func (c cost) exceeds(most cost) bool {
	return c.terms > most.terms || c.values > most.values || c.between > most.between || c.keys > most.keys
}

func (c cost) sum() int { return c.terms + c.values + c.between + c.keys }

// priced is an object whose rows have a cost.
type priced struct {
	cost
	// requirements are those that authors of pods write: those of volumes come from storage. topology are the distinct
	// topology keys that cost a bit in every row.
	requirements [][]label.Requirement
	topology     []string
	// aside is the reason for which the object is set aside, nil if it is admitted.
	aside *Rejection
}

func newPriced(alternatives [][]label.Requirement, preferred []Preference, between int, topology []string) priced {
	p := priced{requirements: slices.Clip(alternatives), topology: topology}
	p.terms = max(1, len(alternatives)) - 1 + max(0, len(preferred)-fewPreferences)
	for _, preference := range preferred {
		p.requirements = append(p.requirements, preference.Requirements)
	}
	for _, reqs := range p.requirements {
		for _, r := range reqs {
			p.values += len(r.Values)
		}
	}
	p.between, p.keys = max(0, between-fewBetween), len(topology)
	return p
}

// asideText is how a rejection names an object and what follows.
type asideText struct{ one, all, field, effect string }

var (
	podsAside    = asideText{"a pod", "all pods together", "spec", "no node is launched for the pod"}
	daemonsAside = asideText{"a DaemonSet", "all DaemonSets together", "spec.template.spec", "its pods are not expected on new nodes"}
)

// refusal returns a rejection that states which limit the costs of one object, or of all, exceed.
func (t asideText) refusal(costs, most cost, of string) *Rejection {
	field, why := t.field+".affinity.nodeAffinity",
		fmt.Sprintf("too many alternatives, or too many values: %s may have %d terms and %d values", of, most.terms, most.values)
	switch {
	case costs.between > most.between:
		field, why = t.field, fmt.Sprintf("too many topology spread constraints and terms of pod affinity: %s may have %d beyond %d for each",
			of, most.between, fewBetween)
	case costs.keys > most.keys:
		field, why = t.field, fmt.Sprintf("too many topology keys: %s may have %d", of, most.keys)
	}
	if of == t.all {
		why += ", and those with the fewest come first"
	}
	return &Rejection{Unsupported: true, Field: field, Reason: why + "; " + t.effect}
}

// admitted adds up the objects of a kind that have rows, each value and topology key once.
type admitted struct {
	cost
	seen map[[2]string]bool // label key and value, or topology key alone
}

// admit adds the object. If that exceeds a limit, it adds nothing and returns why.
func (a *admitted) admit(p *priced, text asideText) *Rejection {
	if p.exceeds(mostOfOne) {
		return text.refusal(p.cost, mostOfOne, text.one)
	}
	costs := cost{terms: p.terms, between: p.between}
	var unseen [][2]string
	for _, reqs := range p.requirements {
		for _, r := range reqs {
			key := label.Canonical(r.Key)
			for _, value := range r.Values {
				if at := [2]string{key, value}; !a.seen[at] {
					unseen = append(unseen, at)
				}
			}
		}
	}
	costs.values = len(unseen)
	for _, key := range p.topology {
		if at := [2]string{"", key}; !a.seen[at] {
			unseen = append(unseen, at)
		}
	}
	costs.keys = len(unseen) - costs.values
	if costs = costs.plus(a.cost); costs.exceeds(mostOfAll) {
		return text.refusal(costs, mostOfAll, text.all)
	}
	a.cost = costs
	for _, at := range unseen {
		a.seen[at] = true
	}
	return nil
}

// weigh computes the cost of a new shape. The next snapshot mentions its values, unless it is set aside.
func (in *interner) weigh(s *shapeRecord) {
	s.priced = newPriced(s.Alternatives, s.Preferred, len(s.Spread)+len(s.Terms), s.ownKeys())
	s.terms += (max(1, len(s.VolumeAlternatives)) - 1) * max(1, len(s.Alternatives))
	in.fresh = append(in.fresh, s)
	if s.exceeds(mostOfOne) {
		s.aside = podsAside.refusal(s.cost, mostOfOne, podsAside.one)
		return
	}
	in.terms += s.terms
	in.between += s.between
}

// ownKeys returns the distinct topology keys of the shape that cost a bit in every row because of it.
func (s *shapeRecord) ownKeys() []string {
	keys := slices.DeleteFunc(s.topologyKeys(), isFixedKey)
	slices.Sort(keys)
	return slices.Compact(keys)
}

// isFixedKey reports whether rows contain the key in any case.
func isFixedKey(key string) bool {
	return key == LabelHostname || key == LabelZone || key == LabelCapacityType
}

func (s *shapeRecord) compare(o *shapeRecord) int {
	return cmp.Or(cmp.Compare(bit(s.Virtual != ""), bit(o.Virtual != "")), cmp.Compare(s.sum(), o.sum()),
		strings.Compare(s.Signature, o.Signature))
}

// admit decides which shapes have rows. It returns those that are set aside or admitted again, by their former form.
func (in *interner) admit() (changed map[*Shape]*shapeRecord) {
	fresh := slices.DeleteFunc(in.fresh, func(s *shapeRecord) bool { return in.shapes[s.Signature] != s })
	in.fresh = nil
	all := cost{in.terms, in.mentions.Len(), in.between, len(in.topology)}
	for _, s := range fresh {
		all.values += s.values
		all.keys += s.keys
	}
	if in.asides > 0 && (len(fresh) > 0 || in.shapesChanged) || in.asides == 0 && all.exceeds(mostOfAll) && len(fresh) > 0 {
		var again []*shapeRecord
		again, changed = in.judge()
		fresh = append(fresh, again...)
	}
	in.shapesChanged = false
	for _, s := range fresh {
		if s.aside == nil {
			in.mentionShape(s.Shape)
		}
		in.markShape(s)
	}
	return changed
}

// judge admits the cheapest shapes and sets the others aside. changed includes those that are admitted again.
func (in *interner) judge() (again []*shapeRecord, changed map[*Shape]*shapeRecord) {
	all := admitted{seen: map[[2]string]bool{}}
	changed = map[*Shape]*shapeRecord{}
	for _, s := range slices.SortedFunc(maps.Values(in.shapes), (*shapeRecord).compare) {
		why := all.admit(&s.priced, podsAside)
		if (why == nil) == (s.aside == nil) {
			continue
		}
		if s.aside, changed[s.Shape] = why, s; why == nil {
			in.asides--
			again = append(again, s)
			continue
		}
		in.asides++
		if s.marked {
			in.unmentioned = fewMentions + 1 // its mentions make every row longer
		}
	}
	for _, s := range changed {
		in.unmark(s) // and mark again by the new state
		in.markShape(s)
	}
	return again, changed
}

// turn rejects the pods of shapes that are rejected now, and restores the pods of shapes that are admitted now.
func (b *Builder) turn(changed map[*Shape]*shapeRecord) {
	if len(changed) == 0 {
		return
	}
	b.freezer.rejectedDirty = true
	for uid, record := range b.pods {
		s := changed[record.pod.Shape]
		if s == nil {
			continue
		}
		record = b.pods[uid] // its index may have changed
		pod := *record.pod
		pod.Shape = s.Shape
		own := pod.Rejected != nil && !pod.rejectedByBuilder
		if !own {
			pod.Rejected, pod.rejectedByBuilder = s.aside, s.aside != nil
		}
		switch {
		case pod.state == Bound && b.nodes[pod.Node] != nil:
			b.nodes[pod.Node].pods[uid] = &pod
			b.freezer.dirtyNodes[pod.Node] = true
		case pod.state == Bound:
			b.strays[pod.Node][uid] = &pod
		case own:
		case s.aside != nil:
			b.drop(s, record.at)
			b.freezer.dirtyShapes[s.Signature] = s
		default:
			record.at = len(s.pending)
			s.pending = append(s.pending, &pod)
			b.freezer.dirtyShapes[s.Signature] = s
		}
		record.pod = &pod
		b.pods[uid] = record
	}
}

// AsideDaemon is a DaemonSet that is not considered, because of what its rows would cost.
type AsideDaemon struct {
	*DaemonSpec
	Why *Rejection
}

// admitDaemons decides which DaemonSets have rows.
func (b *Builder) admitDaemons() {
	if !b.daemonsChanged {
		return
	}
	b.daemonsChanged = false
	all := admitted{seen: map[[2]string]bool{}}
	for _, d := range slices.SortedFunc(maps.Values(b.daemons), func(c, d *daemonRecord) int {
		return cmp.Or(cmp.Compare(c.sum(), d.sum()), strings.Compare(c.spec.UID, d.spec.UID))
	}) {
		b.turnDaemon(d, all.admit(&d.priced, daemonsAside))
	}
}

// turnDaemon admits the DaemonSet, or sets it aside if there is a reason to.
func (b *Builder) turnDaemon(d *daemonRecord, why *Rejection) {
	if why == nil && !d.mentioned {
		b.shared.mention(d.spec.Alternatives...)
	}
	if why != nil && d.mentioned {
		b.shared.unmentioned = fewMentions + 1 // its values make every row longer
	}
	if (why == nil) != (d.aside == nil) {
		d.frozen, b.freezer.daemonsDirty = nil, true
	}
	d.mentioned, d.aside = why == nil, why
}
