package nominate

import (
	"math"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Nominations and priorities.
//
// kube-scheduler tries pods in the order of their priorities, and reserves the capacity of a nominated pod for no pod
// of a higher priority. Of pods that a spread constraint counts together, only some may be nominated to a node at a
// time (see spreadLimit). Until these are bound, they exclude the others from the node that is planned for them. If
// kube-scheduler tries the others first, they take the capacity planned for pods of lower priority, one more node is
// launched for the latter, and the planned capacity of the former stays free.
//
// So pods of such a shape are not nominated while they outrank other pods of the plan. They need no nomination against
// pods of lower priority, because kube-scheduler tries these later. As soon as none of them excludes another, they are
// nominated.

// withhold finds the shapes whose pods are not nominated: those of which some pods cannot be nominated, and which may
// take capacity of pods of lower priority on another node of the plan than their own. A claim that does not exist yet
// counts as admissible for all pods.
func (n *nominator) withhold(targets Targets) {
	if !ranked(n.snap) {
		return
	}
	excluded, homes, lowest := map[*model.Shape]*model.Pod{}, map[*model.Shape]map[string]bool{}, map[string]int32{}
	for name, pods := range targets {
		if node := n.snap.NodeOrClaim(name); node != nil && !node.Ours() {
			continue
		}
		pods = n.present(pods)
		n.exclude(pods, excluded)
		for _, pod := range pods {
			if homes[pod.Shape] == nil {
				homes[pod.Shape] = map[string]bool{}
			}
			homes[pod.Shape][name] = true
			if least, some := lowest[name]; !some || pod.Priority < least {
				lowest[name] = pod.Priority
			}
		}
	}
	n.withheld = map[*model.Shape]bool{}
	for shape, pod := range excluded {
		own := homes[shape]
		for name, least := range lowest {
			if least >= pod.Priority || len(own) == 1 && own[name] {
				continue
			}
			if node := n.snap.NodeOrClaim(name); node == nil || n.admits(node, pod) {
				n.withheld[shape] = true
				break
			}
		}
	}
}

// exclude adds the shapes of which some pods cannot be nominated to a node beside the others, each with one of them. It
// ignores existing nominations, so that the result does not change when they are written.
func (n *nominator) exclude(pods []*model.Pod, excluded map[*model.Shape]*model.Pod) {
	with := nominatedPods{nominator: n}
	for _, pod := range pods {
		switch {
		case with.exceeds(pod):
			excluded[pod.Shape] = pod
		case len(with.all) < MostNominated:
			with.add(pod)
		}
	}
}

// ranked reports whether a pending spread pod has a higher priority than another pending pod. Otherwise withhold finds
// no shape.
func ranked(snap *model.Snapshot) bool {
	least, most := int32(math.MaxInt32), int32(math.MinInt32)
	for _, g := range snap.Groups {
		shape := g.Pods[0].Shape
		least = min(least, shape.Priority)
		if len(shape.Spread) > 0 {
			most = max(most, shape.Priority)
		}
	}
	return most > least
}
