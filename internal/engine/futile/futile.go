package futile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Launches holds the launches that are not judged yet, and a counter for each scope of pauses. The zero value is ready
// for use.
//
// The pauses of the snapshot take precedence: a pause that disappears from its pool has ended. One that no snapshot has
// shown (its write failed, or the pool has pause.Most) lasts as long as the process.
type Launches struct {
	launches []*launch
	counters map[string]*counter
	// replicas are the virtual pods of workloads for which a claim was created, by UID with the latest one, unless that is
	// gone and has not become a node.
	replicas map[string]string
}

// Launched records the claims that were created for a plan on the snapshot. A claim whose pods all wait for a cause is
// its trial after the pause.
func (l *Launches) Launched(snap *model.Snapshot, claims []plan.NewClaim) {
	for i := range claims {
		c := &claims[i]
		m := &launch{claim: c.Name, pool: c.Pool, generation: c.PoolGeneration, at: snap.Now, pods: map[string]bool{},
			scopes: map[string]string{}}
		for _, pods := range byOwner(c.Pods) {
			o := l.counter(ownerOf(pods[0]), "launches for "+ownerName(pods[0]))
			for _, p := range pods {
				if m.pods[p.UID] = true; p.Virtual == model.VirtualReplica {
					l.launchedFor(p, c.Name)
				}
				if o.counts(snap, p) {
					o.pods[p.UID] = time.Time{}
				}
			}
			m.scopes[o.pause.Scope] = ""
		}
		for _, o := range l.causes() {
			if o.cause.stopsAll(snap, c) {
				m.scopes[o.pause.Scope] = ""
			}
		}
		l.launches = append(l.launches, m)
	}
}

// launchedFor records that the claim was created for the virtual pod of a workload.
func (l *Launches) launchedFor(p *model.Pod, claim string) {
	if l.replicas == nil {
		l.replicas = map[string]string{}
	}
	l.replicas[p.UID] = claim
}

// Empty reports whether no launch and no pause is remembered: Judge does nothing then, whenever it is called.
func (l *Launches) Empty() bool { return len(l.counters)+len(l.launches) == 0 }

// Judge compares the plan with earlier launches, and evaluates the pods and nodes that have left since the last call. It
// returns the writes that begin and end pauses.
func (l *Launches) Judge(snap *model.Snapshot, p *plan.Provision, left []model.Departure) []plan.Action {
	l.adopt(snap)
	if l.Empty() {
		return nil
	}
	before := map[string]pause.Pause{}
	for scope, o := range l.counters {
		before[scope] = o.pause
	}
	succeeded := l.departed(left)
	l.observe(snap, p)
	l.count(snap, p)
	causes := l.causes()
	running(snap, p, func(n *model.Node, pod *model.Pod) {
		for _, o := range causes {
			if o.refutes(snap, n, pod) {
				succeeded[o.pause.Scope] = true
			}
		}
	})
	var actions []plan.Action
	for _, scope := range l.scopes() {
		o := l.counters[scope]
		if succeeded[scope] || o.runs(snap.Now) || o.stored && !o.pause.Remembered(snap.Now) {
			l.reset(o)
		}
		pool := snap.Pool(o.pool)
		switch {
		case pool == nil:
		case o.over && o.stored:
			actions = append(actions, plan.EndPause{Pool: pool.Name, UID: pool.UID, Key: o.pause.Key})
		case o.pause != before[scope] && o.pause.Failures > 0:
			actions = append(actions, plan.SetPause{Pool: pool.Name, UID: pool.UID, Pause: o.pause})
		}
	}
	l.forget(snap)
	return actions
}

// count counts the launches that were futile, now that other nodes are planned.
func (l *Launches) count(snap *model.Snapshot, p *plan.Provision) {
	used, planned, claims := map[string]bool{}, map[string]*model.Pod{}, p.AllClaims()
	for _, placed := range slices.Concat(p.Placed, virtualPlan(p).Placed) {
		used[placed.Node] = used[placed.Node] || len(placed.Pods) > 0
	}
	for i := range claims {
		for _, pod := range claims[i].Pods {
			planned[ownerOf(pod)] = pod
		}
	}
	byPool := plannedPods(claims)
	for _, m := range l.launches {
		for _, at := range byPool[m.pool] {
			cause := m.cause(snap, at.claim, at.pod)
			if cause == nil {
				continue
			}
			l.counter(cause.scope(), cause.name()).failedBy(snap, cause, m, at)
			m.counted = true
			break
		}
		for _, scope := range slices.Sorted(maps.Keys(m.scopes)) {
			pod := planned[scope]
			if pod == nil {
				continue
			}
			if why, over := m.outcome(snap, used, scope, pod); over {
				l.counters[scope].failed(snap, m, pod, why)
				delete(m.scopes, scope)
			}
		}
	}
}

// forget drops the launches that are not judged any more, and the counters that count nothing.
func (l *Launches) forget(snap *model.Snapshot) {
	open := map[string]bool{}
	l.launches = slices.DeleteFunc(l.launches, func(m *launch) bool {
		if snap.Now.Sub(m.at) > launchMemory || len(m.scopes) == 0 && !m.countsForPool(snap) {
			return true
		}
		for scope := range m.scopes {
			open[scope] = true
		}
		return false
	})
	maps.DeleteFunc(l.counters, func(scope string, o *counter) bool {
		return !open[scope] && !o.stored && !o.pause.Remembered(snap.Now)
	})
}

// departed evaluates pods that have left their nodes, and nodes that are being removed: one that has joined since the last
// call has not been observed. It returns the owners of the pods that ended or had run long enough.
func (l *Launches) departed(left []model.Departure) map[string]bool {
	succeeded := map[string]bool{}
	for _, d := range left {
		if d.Removed != nil {
			for _, m := range l.launches {
				m.removed(d.Removed)
			}
			continue
		}
		scope := cmp.Or(d.Controller.UID, d.UID)
		o := l.counters[scope]
		if o == nil {
			continue
		}
		if _, known := o.pods[d.UID]; !known {
			continue
		}
		if !d.Preempted || d.Ran >= ranEnough {
			succeeded[scope] = true
			continue
		}
		for _, m := range l.launches {
			if _, is := m.scopes[scope]; is && (m.pods[d.UID] || d.Node != "" && m.node == d.Node) {
				m.scopes[scope] = fmt.Sprintf("pod %s was preempted on node %s after %s", d.Name, d.Node, d.Ran.Round(time.Second))
			}
		}
	}
	return succeeded
}

// observe updates the launches from their claims, and since when pods are on nodes. During a pause, each pending pod of
// the owner counts like those that launches were for.
func (l *Launches) observe(snap *model.Snapshot, p *plan.Provision) {
	byClaim := make(map[string]*launch, len(l.launches))
	for _, m := range l.launches {
		m.observe(snap)
		if m.lost(snap) {
			for uid := range m.pods {
				if l.replicas[uid] == m.claim {
					delete(l.replicas, uid)
				}
			}
		}
		byClaim[m.claim] = m
	}
	waiting := map[string]bool{}
	for _, g := range slices.Concat(snap.Groups, snap.Virtual) {
		l.observeWaiting(snap, g.Pods, waiting)
	}
	for _, n := range snap.Nodes {
		if plan.Leaving(n.NodeSpec) {
			l.observeWaiting(snap, n.Pods, waiting) // nodes are launched for them like for pending pods
		}
	}
	now := map[string]bool{}
	running(snap, p, func(n *model.Node, pod *model.Pod) { l.observePod(snap, byClaim[n.Claim], pod, now) })
	for _, o := range l.counters {
		for uid := range o.pods {
			switch {
			case now[uid]:
			case waiting[uid]:
				o.pods[uid] = time.Time{}
			default:
				delete(o.pods, uid)
			}
		}
	}
}

// running calls do with each pod that is on a node that stays. A virtual pod runs where it has room.
func running(snap *model.Snapshot, p *plan.Provision, do func(*model.Node, *model.Pod)) {
	for _, n := range snap.Nodes {
		if plan.Leaving(n.NodeSpec) {
			continue
		}
		for _, pod := range n.Pods {
			do(n, pod)
		}
	}
	for _, placed := range virtualPlan(p).Placed {
		if n := snap.Node(placed.Node); n != nil && n.Stage >= model.Registered {
			for _, pod := range placed.Pods {
				do(n, pod)
			}
		}
	}
}

// observeWaiting records in waiting, and in their owners, that the pods need a node.
func (l *Launches) observeWaiting(snap *model.Snapshot, pods []*model.Pod, waiting map[string]bool) {
	for _, pod := range pods {
		waiting[pod.UID] = true
		switch o := l.counters[ownerOf(pod)]; {
		case o == nil:
		case !o.counts(snap, pod):
			delete(o.pods, pod.UID)
		case o.pause.Active(snap.Now):
			o.pods[pod.UID] = time.Time{}
		}
	}
}

// observePod records in now, and in the pod's owner, that the pod is on the node of the launch, if that is not nil. Pods
// that no launch was for count on nodes that were launched for their owner: those of a workload take the places of its
// virtual pods.
func (l *Launches) observePod(snap *model.Snapshot, m *launch, p *model.Pod, now map[string]bool) {
	scope := ownerOf(p)
	o := l.counters[scope]
	if o == nil || p.Terminating || !o.counts(snap, p) {
		return
	}
	_, known := o.pods[p.UID]
	if !known && m != nil {
		_, known = m.scopes[scope]
	}
	if known {
		if now[p.UID] = true; o.pods[p.UID].IsZero() {
			o.pods[p.UID] = snap.Now
		}
	}
}
