package plan

import (
	"cmp"
	"slices"
	"strings"
)

// ClaimsInTurns returns the claims in the order of creation: by the highest priority of their pods, and among equals
// one of each namespace in turn, so that no namespace waits for all claims of another. The namespace of a claim is that
// of its first pod.
func (p *Provision) ClaimsInTurns() []NewClaim {
	type place struct {
		namespace string
		priority  int32
		turn, at  int
	}
	type owner struct {
		namespace string
		priority  int32
	}
	places, turns := make([]place, len(p.Claims)), map[owner]int{}
	for i := range p.Claims {
		o := owner{}
		for j, pod := range p.Claims[i].Pods {
			if j == 0 {
				o = owner{pod.Namespace, pod.Priority}
			}
			o.priority = max(o.priority, pod.Priority)
		}
		places[i] = place{o.namespace, o.priority, turns[o], i}
		turns[o]++
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.turn, b.turn),
			strings.Compare(a.namespace, b.namespace), cmp.Compare(a.at, b.at))
	})
	claims := make([]NewClaim, len(places))
	for i, at := range places {
		claims[i] = p.Claims[at.at]
	}
	return claims
}
