package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// PodMove is a pod that a step moves to another node, by names. To is an existing node, or one that the step adds.
type PodMove struct {
	Pod  string `json:"pod"`
	From string `json:"from"`
	To   string `json:"to"`
}

// movesOf returns the moves of a command that was decided on the snapshot, ordered by node and pod.
func movesOf(snap *model.Snapshot, c *plan.Command) []PodMove {
	to := map[string]string{}
	send := func(pods []*model.Pod, node string) {
		for _, p := range pods {
			to[p.UID] = node
		}
	}
	for i := range c.Replacements {
		send(c.Replacements[i].Pods, c.Replacements[i].Name)
	}
	for _, assignment := range c.Assignments {
		send(assignment.Pods, assignment.Node)
	}
	moves := []PodMove{}
	for _, candidate := range c.Candidates {
		n := snap.Node(candidate.Node)
		if n == nil {
			continue
		}
		for _, p := range n.Pods {
			if node, moved := to[p.UID]; moved {
				moves = append(moves, PodMove{p.Key(), n.Name, node})
			}
		}
	}
	slices.SortFunc(moves, func(a, b PodMove) int {
		return cmp.Or(strings.Compare(a.From, b.From), strings.Compare(a.Pod, b.Pod))
	})
	return moves
}

// fewWays is the maximum number of node pairs that the text of a step names.
const fewWays = 5

// writeMoves prints where the pods of a step move: a line for each pair of nodes, those with most pods first.
func (s *Step) writeMoves(b *strings.Builder, number int, separator string) {
	type way struct {
		from, to string
		pods     []string
	}
	var ways []*way
	index := map[PodMove]*way{}
	for _, m := range s.Moves {
		key := PodMove{From: m.From, To: m.To}
		if index[key] == nil {
			index[key] = &way{from: m.From, to: m.To}
			ways = append(ways, index[key])
		}
		index[key].pods = append(index[key].pods, m.Pod)
	}
	slices.SortStableFunc(ways, func(x, y *way) int { return cmp.Compare(len(y.pods), len(x.pods)) })
	launched := map[string]string{}
	for _, n := range s.Add {
		launched[n.Name] = fmt.Sprintf("new %s (%s)", n.Name, n.InstanceType)
	}
	for i, w := range ways {
		if i == fewWays {
			fmt.Fprintf(b, "STEP %d between %s of nodes more: -o json names them\n", number, plural(len(ways)-fewWays, "pair"))
			return
		}
		fmt.Fprintf(b, "STEP %d from %s to %s: %s\n", number, w.from, cmp.Or(launched[w.to], w.to), names(w.pods, separator))
	}
}
