package futile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Restrain returns the plan without the claims that are only for pods of paused owners, and refuses those pods. The pods
// may still be placed on existing nodes, on nodes in flight, and on new nodes that other pods need too. The same holds for
// the plan of the virtual pods.
func (l *Launches) Restrain(snap *model.Snapshot, p *plan.Provision) *plan.Provision {
	l.adopt(snap)
	restrained := l.restrain(snap, p)
	if p.Virtual != nil {
		if room := l.restrain(snap, p.Virtual); room != p.Virtual {
			whole := *restrained
			whole.Virtual, restrained = room, &whole
		}
	}
	return restrained
}

// restrain returns the part of the plan that need not wait, which may be all of it. After a pause, one claim is tried.
func (l *Launches) restrain(snap *model.Snapshot, p *plan.Provision) *plan.Provision {
	tried, shown := map[string]bool{}, l.shown()
	waits := func(pod *model.Pod) bool {
		o := l.owners[ownerOf(pod)]
		return o != nil && (o.pause.Active(snap.Now) || o.trial(snap, tried[ownerOf(pod)]))
	}
	restrained, dropped, changed := *p, map[string]bool{}, false
	restrained.Claims, restrained.Refused = nil, slices.Clip(p.Refused)
	for i := range p.Claims {
		c := &p.Claims[i]
		by := holds(snap, shown, c, tried)
		if by == nil && (len(c.Pods) == 0 || slices.ContainsFunc(c.Pods, func(pod *model.Pod) bool { return !waits(pod) })) {
			kept := larger(snap, shown, c)
			changed = changed || len(kept.Options) != len(c.Options)
			restrained.Claims = append(restrained.Claims, kept)
			for _, pod := range c.Pods {
				tried[ownerOf(pod)] = true
			}
			for _, o := range shown {
				tried[o.pause.Scope] = tried[o.pause.Scope] || o.shows.stopsAll(snap, c)
			}
			continue
		}
		for _, pods := range byOwner(c.Pods) {
			for _, pod := range pods {
				dropped[pod.UID] = true
			}
			o := by
			if o == nil {
				o = l.owners[ownerOf(pods[0])]
			}
			restrained.Refused = append(restrained.Refused, plan.Refusal{Pods: pods, Verdict: o.verdict(snap)})
		}
	}
	if len(dropped) == 0 && !changed {
		return p
	}
	restrained.Order = slices.DeleteFunc(slices.Clone(p.Order), func(pod *model.Pod) bool { return dropped[pod.UID] })
	return &restrained
}

// shown returns what nodes of pools have shown, by scope.
func (l *Launches) shown() []*owner {
	var list []*owner
	for _, scope := range slices.Sorted(maps.Keys(l.owners)) {
		if o := l.owners[scope]; o.shows != nil {
			list = append(list, o)
		}
	}
	return list
}

// larger returns the claim without the types that nodes of the pool have shown to be too small for it.
func larger(snap *model.Snapshot, shown []*owner, c *plan.NewClaim) plan.NewClaim {
	claim := *c
	for _, o := range shown {
		if o.pause.Remembered(snap.Now) {
			claim = o.shows.larger(snap, claim)
		}
	}
	return claim
}

// holds returns the pause of the claim's pool that all pods of the claim have to wait for, nil if there is none.
func holds(snap *model.Snapshot, shown []*owner, c *plan.NewClaim, tried map[string]bool) *owner {
	for _, o := range shown {
		if o.shows.stopsAll(snap, c) && (o.pause.Active(snap.Now) || o.trial(snap, tried[o.pause.Scope])) {
			return o
		}
	}
	return nil
}

// trial reports whether launches have to wait after a pause, because one is being tried. tried says that the plan itself
// has one.
func (o *owner) trial(snap *model.Snapshot, tried bool) bool {
	if o.pause.Until.IsZero() || !o.pause.Remembered(snap.Now) {
		return false
	}
	if tried {
		return true
	}
	for _, since := range o.pods {
		if !since.IsZero() {
			return true // for less than a minute
		}
	}
	return slices.ContainsFunc(o.launches, func(m launch) bool {
		n := snap.Claim(m.claim)
		return n != nil && !n.Deleting && !m.at.Before(o.pause.Until) &&
			(n.Stage < model.Initialized || n.Disrupted || n.Command != "") // judged when it has joined, or is gone
	})
}

// verdict returns why launches for the owner have to wait.
func (o *owner) verdict(snap *model.Snapshot) plan.Verdict {
	v := plan.PausedVerdict(o.pause)
	if o.shown {
		v.Pool = o.pool
	}
	if !o.pause.Active(snap.Now) {
		v.Need = 0
	}
	return v
}

// roomOf returns the plan of the virtual pods.
func roomOf(p *plan.Provision) *plan.Provision {
	if p.Virtual == nil {
		return &plan.Provision{}
	}
	return p.Virtual
}

// runsPods reports whether pods run on the node, other than those of DaemonSets.
func runsPods(n *model.Node) bool {
	return slices.ContainsFunc(n.Pods, func(p *model.Pod) bool { return !p.Daemon })
}

// usedNodes returns the claims of nodes that run pods, other than those of DaemonSets, or get some by the plan. Room that
// virtual pods get counts.
func usedNodes(snap *model.Snapshot, p *plan.Provision) map[string]bool {
	used := map[string]bool{}
	for _, placed := range slices.Concat(p.Placed, roomOf(p).Placed) {
		if n := snap.NodeOrClaim(placed.Node); n != nil && len(placed.Pods) > 0 {
			used[n.Claim] = true
		}
	}
	for _, n := range snap.Nodes {
		if runsPods(n) {
			used[n.Claim] = true
		}
	}
	return used
}

// unfit explains why a node that has joined cannot run the pod, as far as that is evident.
func unfit(snap *model.Snapshot, n *model.Node, p *model.Pod) string {
	if why := mismatch(n, p); why != "" {
		return why
	}
	if !p.Requests.Fits(n.Free()) {
		return short(snap, n, p)
	}
	return "its node has joined and remains empty, and the pods are planned onto another node"
}

// mismatch returns which taint or label of the node keeps the pod away, "" for none. The taint of nodes that are being
// removed says nothing.
func mismatch(n *model.Node, p *model.Pod) string {
	taints := slices.DeleteFunc(slices.Clone(n.Taints), func(t model.Taint) bool { return strings.HasPrefix(t.Key, "karpenter.sh/") })
	if taint, refused := model.Untolerated(taints, p.Tolerations); refused {
		return fmt.Sprintf("its node has the taint %s, which the pods do not tolerate: add it to startupTaints of the "+
			"NodePool if it is removed automatically, or a toleration to the pods", taint)
	}
	if len(p.Alternatives) == 1 {
		for _, r := range p.Alternatives[0] {
			if lacks(n, p, r.Key) {
				return fmt.Sprintf("its node lacks the label %s, which the pods require", r.Key)
			}
		}
	}
	return ""
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
