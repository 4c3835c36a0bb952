package bound

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Rules by hostname limit how many pods one node holds. A set is the groups that share such a limit: groups that
// carry an anti-affinity term and are selected by it (limit one), or that count themselves by a hostname spread
// constraint (limit maxSkew: the lowest count is taken as zero, because a new node is always possible). A group may
// be in several sets; the tightest set counts, then the largest. Ignoring a rule only lowers the bound.

// sets holds the sets of a problem, by mark.
type sets struct {
	rooms map[int]int
	pods  map[int]int
	// numbers holds the numbers of the sets with more than one group, by mark. groups holds the number of groups per
	// mark.
	numbers, groups map[int]int
	roomy           []int
}

func (p *problem) setsOf() *sets {
	s := &sets{rooms: map[int]int{}, pods: map[int]int{}, numbers: map[int]int{}, groups: map[int]int{}}
	for _, g := range p.snap.Groups {
		for _, m := range marksOf(g) {
			s.rooms[m.mark] = max(s.rooms[m.mark], m.room)
			s.pods[m.mark] += len(g.Pods)
			s.groups[m.mark]++
		}
	}
	return s
}

// markRoom is the number of pods with the mark that one node holds.
type markRoom struct{ mark, room int }

// marksOf returns the rules by hostname of the group that count its own pods.
func marksOf(g *model.Group) []markRoom {
	var list []markRoom
	for i := range g.Terms {
		if mark := g.CarrierMarks[i]; mark >= 0 && g.Terms[i].Key == model.LabelHostname && slices.Contains(g.BlockedBy, mark) {
			list = append(list, markRoom{mark, 1})
		}
	}
	for i := range g.Spread {
		if s := &g.Spread[i]; !s.Soft && s.Key == model.LabelHostname && slices.Contains(g.Matches, g.SpreadMarks[i]) {
			list = append(list, markRoom{g.SpreadMarks[i], max(1, s.MaxSkew)})
		}
	}
	return list
}

// mostOf returns how many pods of the group one node holds, apart from resources.
func mostOf(g *model.Group) int {
	most := unbounded
	if len(g.HostPorts) > 0 {
		most = 1
	}
	for _, m := range marksOf(g) {
		most = min(most, m.room)
	}
	return most
}

// of returns the mark of the set that the group counts in, or -1 for none.
func (s *sets) of(g *model.Group) int {
	best := -1
	for _, m := range marksOf(g) {
		if s.groups[m.mark] > 1 && (best < 0 || s.rooms[m.mark] < s.rooms[best] ||
			s.rooms[m.mark] == s.rooms[best] && s.pods[m.mark] > s.pods[best]) {
			best = m.mark
		}
	}
	if best < 0 {
		return -1
	}
	n, known := s.numbers[best]
	if !known {
		n = len(s.roomy)
		s.numbers[best] = n
		s.roomy = append(s.roomy, s.rooms[best])
	}
	return n
}

// room returns how many pods of the set one node holds, 0 for no set.
func (s *sets) room(set int) int {
	if set < 0 {
		return 0
	}
	return s.roomy[set]
}
