package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// Limits for the rows of pods.
//
// A group has a row of words for each alternative of its node affinity and each preference, and a row has a bit for
// each value that any requirement mentions. Pod authors control both, so the memory for rows grows with the product.
// Each constraint between pods requires a counter each time a preference is dropped, so the cost of such preferences
// is quadratic, and each topology key makes every row longer. Below the limits, every shape is admitted. Above them,
// the cheapest shapes are admitted first, within the share of their controller, of their namespace and of the whole
// cluster. The pods of the other shapes are rejected, and their values and topology keys are not mentioned. Shapes of
// virtual pods are admitted last. The selection does not depend on the order in which the objects were added.

// cost counts terms (alternatives and preferences beyond those of ordinary pods), distinct values, constraints
// between pods (spread, affinity and anti-affinity) beyond those of ordinary pods, and distinct topology keys.
type cost struct{ terms, values, between, keys int }

// The limits: for the pods of one controller, or one pod without a controller; for a namespace; for the cluster. At
// the last limit, rows take about 200 MiB.
var (
	mostOfController = cost{2 << 10, 8 << 10, 128, 16}
	mostOfNamespace  = cost{4 << 10, 16 << 10, 512, 64}
	mostOfAll        = cost{16 << 10, 64 << 10, 4 << 10, 256}
)

// This many preferences and constraints between pods are free for each pod.
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

func (s *shapeRecord) compare(o *shapeRecord) int {
	return cmp.Or(cmp.Compare(bit(s.Virtual != ""), bit(o.Virtual != "")), cmp.Compare(s.sum(), o.sum()),
		strings.Compare(s.Signature, o.Signature))
}

// weigh computes the cost of a new shape. The next snapshot admits the shape and mentions its values and topology
// keys.
func (b *Builder) weigh(s *shapeRecord) {
	s.terms = max(1, len(s.Alternatives))*max(1, len(s.VolumeAlternatives)) - 1 + max(0, len(s.Preferred)-fewPreferences)
	s.eachRequirement(func(r label.Requirement) { s.values += max(1, len(r.Values)) })
	s.between = max(0, len(s.Spread)+len(s.Terms)-fewBetween)
	s.keys = len(s.ownKeys())
	b.terms += s.terms
	b.between += s.between
	b.fresh = append(b.fresh, s)
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

// eachRequirement calls do for the requirements that pod authors write. Requirements of volumes are excluded: they
// come from storage.
func (s *shapeRecord) eachRequirement(do func(label.Requirement)) {
	for _, reqs := range s.Alternatives {
		for _, r := range reqs {
			do(r)
		}
	}
	for _, p := range s.Preferred {
		for _, r := range p.Requirements {
			do(r)
		}
	}
}

// admit decides which shapes have rows. If all of them together are below the lowest limit, it admits all.
func (b *Builder) admit() {
	fresh := slices.DeleteFunc(b.fresh, func(s *shapeRecord) bool { return b.shapes[s.Signature] != s })
	b.fresh = nil
	all := cost{b.terms, b.mentions.Len(), b.between, len(b.topology)}
	for _, s := range fresh {
		all.values += s.values
		all.keys += s.keys
	}
	if b.asides > 0 || all.exceeds(mostOfController) {
		if len(fresh) > 0 || b.shapesChanged {
			b.judge(fresh)
		}
		b.shapesChanged = false
		return
	}
	for _, s := range fresh {
		b.mentionShape(s.Shape)
		b.markShape(s)
	}
}

// judge admits the cheapest shapes and rejects the others.
func (b *Builder) judge(fresh []*shapeRecord) {
	owners := b.owners()
	taken := map[string]cost{}
	seen := newSeen()
	changed := map[*Shape]*shapeRecord{}
	longer := false
	for _, s := range slices.SortedFunc(maps.Values(b.shapes), (*shapeRecord).compare) {
		costs := seen.unseen(s)
		shares := []share{
			{"controller/" + owners[s.Shape], "the pods of its controller", mostOfController},
			{"namespace/" + s.Namespace, "the pods of namespace " + s.Namespace, mostOfNamespace},
			{"", "all pods", mostOfAll},
		}
		exceeded := slices.IndexFunc(shares, func(to share) bool { return taken[to.key].plus(costs).exceeds(to.most) })
		if exceeded >= 0 {
			if s.aside == nil {
				s.aside, changed[s.Shape] = shares[exceeded].refusal(taken[shares[exceeded].key].plus(costs)), s
				b.asides++
				longer = longer || s.marked // its mentions make every row longer
			}
			continue
		}
		seen.see(s)
		for _, to := range shares {
			taken[to.key] = taken[to.key].plus(costs)
		}
		if s.aside != nil {
			s.aside, changed[s.Shape] = nil, s
			b.asides--
			fresh = append(fresh, s)
		}
	}
	b.turn(changed)
	for _, s := range fresh {
		if s.aside == nil {
			b.mentionShape(s.Shape)
		}
		b.markShape(s)
	}
	if longer {
		b.unmentioned = fewMentions + 1
	}
}

// share is the maximum cost of some pods together.
type share struct {
	key, of string
	most    cost
}

// refusal returns a rejection that states which limit of the share the cost exceeds.
func (s share) refusal(costs cost) *Rejection {
	field, why := "spec.affinity.nodeAffinity", fmt.Sprintf("too many alternatives, or too many values, that no other pod mentions: %s may have %d terms and %d values",
		s.of, s.most.terms, s.most.values)
	switch {
	case costs.between > s.most.between:
		field, why = "spec", fmt.Sprintf("too many topology spread constraints and terms of pod affinity: %s may have %d beyond %d for each pod",
			s.of, s.most.between, fewBetween)
	case costs.keys > s.most.keys:
		field, why = "spec", fmt.Sprintf("too many topology keys that no other pod uses: %s may have %d", s.of, s.most.keys)
	}
	return &Rejection{Unsupported: true, Field: field, Reason: why + ", and those with the fewest come first; no node is launched for the pod"}
}

// turn rejects the pods of shapes that are rejected now, and restores the pods of shapes that are admitted now.
func (b *Builder) turn(changed map[*Shape]*shapeRecord) {
	if len(changed) == 0 {
		return
	}
	b.rejectedDirty = true
	for _, s := range changed {
		b.unmark(s) // and mark again by the new state
		b.markShape(s)
	}
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
			b.dirtyNodes[pod.Node] = true
		case pod.state == Bound:
			b.strays[pod.Node][uid] = &pod
		case own:
		case s.aside != nil:
			b.drop(s, record.at)
			b.dirtyShapes[s.Signature] = s
		default:
			record.at = len(s.pending)
			s.pending = append(s.pending, &pod)
			b.dirtyShapes[s.Signature] = s
		}
		record.pod = &pod
		b.pods[uid] = record
	}
}

// owners returns, for each shape, the lowest UID of the controllers of its pods; a pod without a controller counts as
// its own.
func (b *Builder) owners() map[*Shape]string {
	owners := make(map[*Shape]string, len(b.shapes))
	for uid, record := range b.pods {
		owner := cmp.Or(record.pod.Controller.UID, uid)
		if least, known := owners[record.pod.Shape]; !known || owner < least {
			owners[record.pod.Shape] = owner
		}
	}
	return owners
}

// seen holds the values and topology keys that admitted shapes mention.
type seen struct {
	values map[string]map[string]bool // by label key
	keys   map[string]bool
}

func newSeen() seen { return seen{map[string]map[string]bool{}, map[string]bool{}} }

// unseen returns the cost of a shape, without the values and keys that admitted shapes mention.
func (n seen) unseen(s *shapeRecord) cost {
	costs := cost{terms: s.terms, between: s.between}
	s.eachRequirement(func(r label.Requirement) { costs.values += n.unseenValues(r) })
	if s.keys > 0 {
		for _, key := range s.ownKeys() {
			if !n.keys[key] {
				costs.keys++
			}
		}
	}
	return costs
}

// unseenValues returns how many values of the requirement are new.
func (n seen) unseenValues(r label.Requirement) int {
	known, unseen := n.values[label.Canonical(r.Key)], 0
	for _, value := range r.Values {
		if !known[value] {
			unseen++
		}
	}
	return unseen
}

func (n seen) seeValues(r label.Requirement) {
	key := label.Canonical(r.Key)
	if n.values[key] == nil {
		n.values[key] = map[string]bool{}
	}
	for _, value := range r.Values {
		n.values[key][value] = true
	}
}

func (n seen) see(s *shapeRecord) {
	s.eachRequirement(n.seeValues)
	if s.keys > 0 {
		for _, key := range s.ownKeys() {
			n.keys[key] = true
		}
	}
}
