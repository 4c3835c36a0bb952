package futile

import (
	"fmt"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Restrain returns the plan without the claims that are only for pods of paused owners, and refuses those pods. The pods
// may still be placed on existing nodes, on nodes in flight, and on new nodes that other pods need too.
func (l *Launches) Restrain(snap *model.Snapshot, p *plan.Provision) *plan.Provision {
	l.adopt(snap)
	waits := func(pod *model.Pod) bool {
		o := l.owners[ownerOf(pod)]
		return pod.Node == "" && o != nil && o.pause.Active(snap.Now)
	}
	restrained, dropped := *p, map[string]bool{}
	restrained.Claims, restrained.Refused = nil, slices.Clip(p.Refused)
	for i := range p.Claims {
		c := &p.Claims[i]
		if len(c.Pods) == 0 || slices.ContainsFunc(c.Pods, func(pod *model.Pod) bool { return !waits(pod) }) {
			restrained.Claims = append(restrained.Claims, *c)
			continue
		}
		for _, pods := range byOwner(c.Pods) {
			for _, pod := range pods {
				dropped[pod.UID] = true
			}
			o := l.owners[ownerOf(pods[0])]
			v := plan.PausedVerdict(o.pause)
			if o.shown {
				v.Pool = o.pool
			}
			restrained.Refused = append(restrained.Refused, plan.Refusal{Pods: pods, Verdict: v})
		}
	}
	if len(dropped) == 0 {
		return p
	}
	restrained.Order = slices.DeleteFunc(slices.Clone(p.Order), func(pod *model.Pod) bool { return dropped[pod.UID] })
	return &restrained
}

// usedNodes returns the claims of nodes that run pods, other than those of DaemonSets, or get some by the plan.
func usedNodes(snap *model.Snapshot, p *plan.Provision) map[string]bool {
	used := map[string]bool{}
	for _, placed := range p.Placed {
		if n := snap.NodeOrClaim(placed.Node); n != nil && len(placed.Pods) > 0 {
			used[n.Claim] = true
		}
	}
	for _, n := range snap.Nodes {
		if slices.ContainsFunc(n.Pods, func(p *model.Pod) bool { return !p.Daemon }) {
			used[n.Claim] = true
		}
	}
	return used
}

// unfit explains why a node that has joined cannot run the pod, as far as that is evident.
func unfit(n *model.Node, p *model.Pod) string {
	if taint, refused := model.Untolerated(n.Taints, p.Tolerations); refused {
		key := taint.Key
		if taint.Value != "" {
			key += "=" + taint.Value
		}
		return fmt.Sprintf("its node has the taint %s:%s, which the pods do not tolerate: add it to startupTaints of the "+
			"NodePool if it is removed automatically, or a toleration to the pods", key, taint.Effect)
	}
	if len(p.Alternatives) == 1 {
		for _, r := range p.Alternatives[0] {
			if _, has := n.Labels[r.Key]; !has && r.Operator == label.In {
				return fmt.Sprintf("its node lacks the label %s, which the pods require", r.Key)
			}
		}
	}
	if !p.Requests.Fits(n.Free()) {
		return "its node has joined with less capacity than the pods need"
	}
	return "its node has joined and remains empty, and the pods are planned onto another node"
}

// byOwner groups the pods by owner, in the order in which the owners first appear.
func byOwner(pods []*model.Pod) [][]*model.Pod {
	var groups [][]*model.Pod
	at := map[string]int{}
	for _, p := range pods {
		i, known := at[ownerOf(p)]
		if !known {
			i = len(groups)
			at[ownerOf(p)] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], p)
	}
	return groups
}

// ownerOf returns the UID of the pod's controller, or the pod's own UID where it has none.
func ownerOf(p *model.Pod) string {
	if p.Controller.UID != "" {
		return p.Controller.UID
	}
	return p.UID
}

// ownerName returns the kind and name of the controller as text.
func ownerName(p *model.Pod) string {
	if p.Controller.UID != "" {
		return p.Controller.Kind + " " + p.Namespace + "/" + p.Controller.Name
	}
	return "pod " + p.Key()
}
