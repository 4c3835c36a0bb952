// Package relax lists in which order the preferences of pods are dropped. It must not know where the pods can be placed.
package relax

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Level is the set of the group's preferences that are still in force.
type Level struct {
	Spreads []int
	Terms   []int
	// Preference is the index of the preferred node affinity term in force, -1 for none.
	Preference int
	// AvoidTaints: PreferNoSchedule taints that are not tolerated are avoided.
	AvoidTaints bool
}

// Levels lists what is in force, step by step (docs/scheduling.md): first everything, then without the heaviest
// preferred pod affinity, the next, then preferred anti-affinity, preferred node affinity, soft spread, and last the
// avoidance of PreferNoSchedule taints. ignore keeps only the hard rules.
func Levels(s *model.Shape, ignore, preferTaints bool) []Level {
	hard := Level{Preference: -1}
	var affinity, anti, soft, preferred []int
	for i := range s.Spread {
		if s.Spread[i].Soft {
			soft = append(soft, i)
		} else {
			hard.Spreads = append(hard.Spreads, i)
		}
	}
	for i := range s.Terms {
		switch t := &s.Terms[i]; {
		case t.Required():
			hard.Terms = append(hard.Terms, i)
		case t.Anti:
			anti = append(anti, i)
		default:
			affinity = append(affinity, i)
		}
	}
	for i := range s.Preferred {
		preferred = append(preferred, i)
	}
	if ignore {
		return []Level{hard}
	}
	lightest := func(a, b int) int {
		return cmp.Or(cmp.Compare(s.Terms[a].Weight, s.Terms[b].Weight), cmp.Compare(b, a))
	}
	slices.SortFunc(affinity, lightest)
	slices.SortFunc(anti, lightest)
	slices.SortFunc(preferred, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.Preferred[a].Weight, s.Preferred[b].Weight), cmp.Compare(b, a))
	})
	slices.Reverse(soft)
	return relaxations(hard, affinity, anti, preferred, soft, preferTaints)
}

// relaxations drops the last element of each list, list by list. The elements to drop first are at the ends.
func relaxations(hard Level, affinity, anti, preferred, soft []int, avoid bool) []Level {
	var all []Level
	for {
		l := Level{AvoidTaints: avoid, Preference: -1,
			Spreads: slices.Concat(hard.Spreads, soft), Terms: slices.Concat(hard.Terms, affinity, anti)}
		if n := len(preferred); n > 0 {
			l.Preference = preferred[n-1]
		}
		all = append(all, l)
		switch {
		case len(affinity) > 0:
			affinity = affinity[:len(affinity)-1]
		case len(anti) > 0:
			anti = anti[:len(anti)-1]
		case len(preferred) > 0:
			preferred = preferred[:len(preferred)-1]
		case len(soft) > 0:
			soft = soft[:len(soft)-1]
		case avoid:
			avoid = false
		default:
			return all
		}
	}
}
