package futile

import (
	"maps"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Restrain returns the plan without the claims that are only for pods of paused owners, and refuses those pods. The pods
// may still be placed on existing nodes, on nodes in flight, and on new nodes that other pods need too. The same holds for
// the plan of the virtual pods, of which those of workloads get a node once.
func (l *Launches) Restrain(snap *model.Snapshot, p *plan.Provision) *plan.Provision {
	l.adopt(snap)
	restrained := l.restrain(snap, p)
	if p.Virtual != nil {
		if part := l.restrain(snap, l.once(snap, p.Virtual)); part != p.Virtual {
			whole := *restrained
			whole.Virtual, restrained = part, &whole
		}
	}
	return restrained
}

// restrain returns the part of the plan that need not wait, which may be all of it.
func (l *Launches) restrain(snap *model.Snapshot, p *plan.Provision) *plan.Provision {
	trials, causes := l.trials(snap), l.causes()
	restrained, dropped, changed := *p, map[string]bool{}, false
	restrained.Claims, restrained.Refused = nil, slices.Clip(p.Refused)
	for i := range p.Claims {
		c := &p.Claims[i]
		stopping := slices.DeleteFunc(slices.Clone(causes), func(o *counter) bool { return !o.cause.stopsAll(snap, c) })
		by := slices.IndexFunc(stopping, func(o *counter) bool { return o.waits(snap, trials) })
		if by < 0 && (len(c.Pods) == 0 || slices.ContainsFunc(c.Pods, func(pod *model.Pod) bool {
			return !l.counters[ownerOf(pod)].waits(snap, trials)
		})) {
			kept := larger(snap, causes, c)
			changed = changed || len(kept.Options) != len(c.Options)
			restrained.Claims = append(restrained.Claims, kept)
			for _, pod := range c.Pods {
				trials[ownerOf(pod)] = true
			}
			for _, o := range stopping {
				trials[o.pause.Scope] = true
			}
			continue
		}
		for _, pods := range byOwner(c.Pods) {
			for _, pod := range pods {
				dropped[pod.UID] = true
			}
			o := l.counters[ownerOf(pods[0])]
			if by >= 0 {
				o = stopping[by]
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

// once returns the plan of the virtual pods without the claims that are only for pods of workloads for which a claim was
// created before, unless it was lost. Another pod has taken their room: kube-scheduler binds pods that find room before this
// controller sees them. Until they exist, the pod that does not find room may be another one, or none.
func (l *Launches) once(snap *model.Snapshot, p *plan.Provision) *plan.Provision {
	if len(l.replicas) == 0 {
		return p
	}
	virtual := snap.VirtualPods()
	maps.DeleteFunc(l.replicas, func(uid, _ string) bool { return virtual[uid] == nil })
	again := func(pod *model.Pod) bool { return l.replicas[pod.UID] != "" }
	part, waits := *p, map[string]bool{}
	part.Claims = slices.DeleteFunc(slices.Clone(p.Claims), func(c plan.NewClaim) bool {
		if len(c.Pods) == 0 || slices.ContainsFunc(c.Pods, func(pod *model.Pod) bool { return !again(pod) }) {
			return false
		}
		for _, pod := range c.Pods {
			waits[pod.UID] = true
		}
		return true
	})
	if len(waits) == 0 {
		return p
	}
	part.Order = slices.DeleteFunc(slices.Clone(p.Order), func(pod *model.Pod) bool { return waits[pod.UID] })
	return &part
}

// larger returns the claim without the types that nodes of the pool have shown to be too small for it.
func larger(snap *model.Snapshot, causes []*counter, c *plan.NewClaim) plan.NewClaim {
	claim := *c
	for _, o := range causes {
		if o.pause.Remembered(snap.Now) {
			claim = o.cause.larger(snap, claim)
		}
	}
	return claim
}

// waits reports whether launches for the scope have to wait: for the end of the pause, or of the one claim that is tried
// after it.
func (o *counter) waits(snap *model.Snapshot, trials map[string]bool) bool {
	if o == nil {
		return false
	}
	return o.pause.Active(snap.Now) || !o.pause.Until.IsZero() && o.pause.Remembered(snap.Now) && trials[o.pause.Scope]
}

// trials returns the scopes for which a launch is in progress, or a pod is on a node for less than a minute.
func (l *Launches) trials(snap *model.Snapshot) map[string]bool {
	trials := map[string]bool{}
	for scope, o := range l.counters {
		for _, since := range o.pods {
			trials[scope] = trials[scope] || !since.IsZero()
		}
	}
	for _, m := range l.launches {
		n := m.current(snap)
		if n == nil || n.Deleting || n.Stage == model.Initialized && !n.Disrupted && n.Command == "" {
			continue // it is judged when it has joined, or is gone
		}
		for scope := range m.scopes {
			if o := l.counters[scope]; o != nil && !m.at.Before(o.pause.Until) {
				trials[scope] = true
			}
		}
	}
	return trials
}

// verdict returns why launches for the owner have to wait.
func (o *counter) verdict(snap *model.Snapshot) plan.Verdict {
	v := plan.PausedVerdict(o.pause)
	if o.stored {
		v.Pool = o.pool
	}
	if !o.pause.Active(snap.Now) {
		v.Need = 0
	}
	return v
}

// virtualPlan returns the plan of the virtual pods.
func virtualPlan(p *plan.Provision) *plan.Provision {
	if p.Virtual == nil {
		return &plan.Provision{}
	}
	return p.Virtual
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
