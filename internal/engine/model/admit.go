package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// What the rows of pods may cost.
//
// A group has a row of words for each alternative of its node affinity and each preference, and a row has a bit for each value
// that any requirement mentions. Both are chosen by the authors of pods, so that rows take memory in proportion to the
// product. Each constraint between pods costs a counter each time a preference is dropped, so that preferences of this kind
// cost the square of their number, and each topology key makes every row longer. Up to the bounds below, every shape is
// admitted. Beyond, the lightest shapes are admitted first, as far as the share of their controller, of their namespace and
// of all allows; the pods of the others are set aside, and their values and topology keys are not mentioned. Which ones
// these are does not depend on the order in which the world was told.

// cost is a number of terms, alternatives and preferences beyond what ordinary pods have, of distinct values, of
// constraints between pods (spread, affinity and anti-affinity) beyond what ordinary pods have, and of distinct topology keys.
type cost struct{ terms, values, between, keys int }

// The bounds: of one controller's pods, or one pod without a controller; of a namespace; of all. At the last, rows take some 200 MiB.
var (
	mostOfController = cost{2 << 10, 8 << 10, 128, 16}
	mostOfNamespace  = cost{4 << 10, 16 << 10, 512, 64}
	mostOfAll        = cost{16 << 10, 64 << 10, 4 << 10, 256}
)

// So many preferences, and so many constraints between pods, of a pod count for nothing.
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
	return cmp.Or(cmp.Compare(s.sum(), o.sum()), strings.Compare(s.Signature, o.Signature))
}

// weigh notes what a new shape costs. It is admitted, and its values and topology keys are mentioned, with the next snapshot.
func (b *Builder) weigh(s *shapeRecord) {
	s.terms = max(1, len(s.Alternatives))*max(1, len(s.VolumeAlternatives)) - 1 + max(0, len(s.Preferred)-fewPreferences)
	s.eachRequirement(func(r label.Requirement) { s.values += max(1, len(r.Values)) })
	s.between = max(0, len(s.Spread)+len(s.Terms)-fewBetween)
	s.keys = len(s.ownKeys())
	b.terms += s.terms
	b.between += s.between
	b.fresh = append(b.fresh, s)
}

// ownKeys are the topology keys of the shape, each once, that cost a bit in every row because of it.
func (s *shapeRecord) ownKeys() []string {
	keys := slices.DeleteFunc(s.topologyKeys(), isFixedKey)
	slices.Sort(keys)
	return slices.Compact(keys)
}

// isFixedKey reports whether rows have room for the key in any case.
func isFixedKey(key string) bool {
	return key == LabelHostname || key == LabelZone || key == LabelCapacityType
}

// eachRequirement goes through what the authors of pods write; what volumes demand is the storage's.
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

// admit decides which shapes have rows. As long as all of them together stay below the least bound there is nothing to decide.
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

// judge admits the lightest shapes and sets the others aside.
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
				longer = longer || s.marked // what it mentions makes every row longer
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

// share is what some pods may cost together.
type share struct {
	key, of string
	most    cost
}

// refusal says what of the share a cost exceeds.
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

// turn sets aside the pods of shapes that have become aside, and takes back those of the others.
func (b *Builder) turn(changed map[*Shape]*shapeRecord) {
	if len(changed) == 0 {
		return
	}
	b.rejectedDirty = true
	for _, s := range changed {
		b.unmark(s) // and again, by what has become of it
		b.markShape(s)
	}
	for uid, record := range b.pods {
		s := changed[record.pod.Shape]
		if s == nil {
			continue
		}
		record = b.pods[uid] // its place may have changed
		pod := *record.pod
		pod.Shape = s.Shape
		own := pod.Rejected != nil && !pod.crowded
		if !own {
			pod.Rejected, pod.crowded = s.aside, s.aside != nil
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

// owners is, for each shape, the least of the controllers of its pods; a pod without one counts as its own.
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

// seen are the values and topology keys that admitted shapes mention.
type seen struct {
	values map[string]map[string]bool // by label key
	keys   map[string]bool
}

func newSeen() seen { return seen{map[string]map[string]bool{}, map[string]bool{}} }

// unseen is the cost of a shape, less what admitted shapes mention.
func (n seen) unseen(s *shapeRecord) cost {
	costs := cost{terms: s.terms, between: s.between}
	s.eachRequirement(func(r label.Requirement) {
		known := n.values[label.Canonical(r.Key)]
		for _, value := range r.Values {
			if !known[value] {
				costs.values++
			}
		}
	})
	if s.keys > 0 {
		for _, key := range s.ownKeys() {
			if !n.keys[key] {
				costs.keys++
			}
		}
	}
	return costs
}

func (n seen) see(s *shapeRecord) {
	s.eachRequirement(func(r label.Requirement) {
		key := label.Canonical(r.Key)
		if n.values[key] == nil {
			n.values[key] = map[string]bool{}
		}
		for _, value := range r.Values {
			n.values[key][value] = true
		}
	})
	if s.keys > 0 {
		for _, key := range s.ownKeys() {
			n.keys[key] = true
		}
	}
}
