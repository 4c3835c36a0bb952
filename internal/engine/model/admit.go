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
// product. Up to the bounds below, every shape is admitted. Beyond, the lightest shapes are admitted first, as far as the
// share of their controller, of their namespace and of all allows; the pods of the others are set aside, and their values
// are not mentioned. Which ones these are does not depend on the order in which the world was told.

// cost is a number of terms, alternatives and preferences beyond what ordinary pods have, and of distinct values.
type cost struct{ terms, values int }

// The bounds: of one controller's pods, or one pod without a controller; of a namespace; of all. At the last, rows take some 200 MiB.
var (
	mostOfController = cost{2 << 10, 8 << 10}
	mostOfNamespace  = cost{4 << 10, 16 << 10}
	mostOfAll        = cost{16 << 10, 64 << 10}
)

// fewPreferences is how many preferences count for nothing.
const fewPreferences = 8

func (c cost) plus(d cost) cost       { return cost{c.terms + d.terms, c.values + d.values} }
func (c cost) exceeds(most cost) bool { return c.terms > most.terms || c.values > most.values }
func (c cost) String() string         { return fmt.Sprintf("%d terms and %d values", c.terms, c.values) }
func (s *shapeRecord) compare(o *shapeRecord) int {
	return cmp.Or(cmp.Compare(s.terms+s.values, o.terms+o.values), strings.Compare(s.Signature, o.Signature))
}

// weigh notes what a new shape costs. It is admitted, and its values are mentioned, with the next snapshot.
func (b *Builder) weigh(s *shapeRecord) {
	s.terms = max(1, len(s.Alternatives))*max(1, len(s.VolumeAlternatives)) - 1 + max(0, len(s.Preferred)-fewPreferences)
	s.eachRequirement(func(r label.Requirement) { s.values += max(1, len(r.Values)) })
	b.terms += s.terms
	b.fresh = append(b.fresh, s)
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
	values := b.mentions.Len()
	for _, s := range fresh {
		values += s.values
	}
	if b.asides > 0 || (cost{b.terms, values}).exceeds(mostOfController) {
		if len(fresh) > 0 || b.shapesChanged {
			b.judge(fresh)
		}
		b.shapesChanged = false
		return
	}
	for _, s := range fresh {
		b.mentionShape(s.Shape)
	}
}

// judge admits the lightest shapes and sets the others aside.
func (b *Builder) judge(fresh []*shapeRecord) {
	owners := b.owners()
	taken := map[string]cost{}
	seen := map[string]map[string]bool{}
	changed := map[*Shape]*shapeRecord{}
	for _, s := range slices.SortedFunc(maps.Values(b.shapes), (*shapeRecord).compare) {
		costs := cost{s.terms, s.unseen(seen)}
		shares := []share{
			{"controller/" + owners[s.Shape], "the pods of its controller", mostOfController},
			{"namespace/" + s.Namespace, "the pods of namespace " + s.Namespace, mostOfNamespace},
			{"", "all pods", mostOfAll},
		}
		exceeded := slices.IndexFunc(shares, func(to share) bool { return taken[to.key].plus(costs).exceeds(to.most) })
		if exceeded >= 0 {
			if s.aside == nil {
				s.aside, changed[s.Shape] = shares[exceeded].refusal(), s
				b.asides++
			}
			continue
		}
		s.see(seen)
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
		delete(changed, s.Shape)
	}
	if len(changed) > 0 { // what they mention makes every row longer
		b.unmentioned = fewMentions + 1
	}
}

// share is what some pods may cost together.
type share struct {
	key, of string
	most    cost
}

func (s share) refusal() *Rejection {
	return &Rejection{Unsupported: true, Field: "spec.affinity.nodeAffinity", Reason: fmt.Sprintf(
		"too many alternatives, or too many values, that no other pod mentions: %s may have %s, and those with the fewest come first; no node is launched for the pod", s.of, s.most)}
}

// turn sets aside the pods of shapes that have become aside, and takes back those of the others.
func (b *Builder) turn(changed map[*Shape]*shapeRecord) {
	if len(changed) == 0 {
		return
	}
	b.rejectedDirty = true
	for uid, record := range b.pods {
		s := changed[record.pod.Shape]
		if s == nil {
			continue
		}
		own := record.pod.Rejected != nil && !record.pod.crowded
		if own {
			continue
		}
		record = b.pods[uid] // its place may have changed
		pod := *record.pod
		pod.Rejected, pod.crowded = s.aside, s.aside != nil
		switch {
		case pod.state == Bound && b.nodes[pod.Node] != nil:
			b.nodes[pod.Node].pods[uid] = &pod
			b.dirtyNodes[pod.Node] = true
		case pod.state == Bound:
			b.strays[pod.Node][uid] = &pod
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

// unseen counts the values of the shape that no admitted shape mentions.
func (s *shapeRecord) unseen(seen map[string]map[string]bool) int {
	n := 0
	s.eachRequirement(func(r label.Requirement) {
		known := seen[label.Canonical(r.Key)]
		for _, value := range r.Values {
			if !known[value] {
				n++
			}
		}
	})
	return n
}

func (s *shapeRecord) see(seen map[string]map[string]bool) {
	s.eachRequirement(func(r label.Requirement) {
		key := label.Canonical(r.Key)
		if seen[key] == nil {
			seen[key] = map[string]bool{}
		}
		for _, value := range r.Values {
			seen[key][value] = true
		}
	})
}
