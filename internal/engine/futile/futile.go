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
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

const (
	// tolerated is how many futile launches in a row begin no pause.
	tolerated = 3
	// ranEnough is how long a pod must be on a node for its launches to count as successful.
	ranEnough = time.Minute
	// launchMemory is how long a launch is remembered.
	launchMemory = time.Hour
)

// Launches holds the launches that are not judged yet, and the pauses, by owner. The zero value is ready for use.
//
// The pauses of the snapshot take precedence: a pause that disappears from its pool has ended. One that no snapshot has
// shown (its write failed, or the pool has pause.Most) lasts as long as the process.
type Launches struct {
	owners map[string]*owner
	// machines are the claims launched within an hour that no pod has run on.
	machines []*machine
}

// owner is the state of a controller of pods, or of a pod without one; or of what nodes of a pool have shown.
type owner struct {
	// shows is nil for controllers of pods. first is when the first node was launched that has shown it.
	shows *shown
	first time.Time

	// pods are the pods that launches were for, by UID, with the time since which each has been observed on a node.
	pods map[string]time.Time
	// needs are the requests of the pod for which the last launch was futile: that a smaller pod runs proves nothing.
	needs    []quantity.Amount
	launches []launch
	pause    pause.Pause
	// pool stores the pause, and shown reports that the snapshot has it.
	pool  string
	shown bool
	// over reports that the pause has ended, and that it may still be stored.
	over bool
}

// launch is one claim that was launched for pods of an owner.
type launch struct {
	claim, uid, pool string
	at               time.Time
	pods             []string
	// node is the name of its node. machine and registered report that the machine exists, and that its node joined.
	node                string
	machine, registered bool
	// seen is its node as it last was, joined and not being deleted.
	seen *model.Node
	// room says that its pods are those of a buffer: any pod that runs on the node may have taken their room.
	room bool
	// preempted describes a preemption of one of its pods.
	preempted string
}

// Launched records the claims that were created for a plan on the snapshot.
func (l *Launches) Launched(snap *model.Snapshot, claims []plan.NewClaim) {
	for i := range claims {
		c := &claims[i]
		l.recordMachine(snap, c)
		for _, pods := range byOwner(c.Pods) {
			o := l.of(ownerOf(pods[0]), "launches for "+ownerName(pods[0]))
			made := launch{claim: c.Name, pool: c.Pool, at: snap.Now, room: pods[0].Virtual == model.VirtualBuffer}
			for _, p := range pods {
				made.pods = append(made.pods, p.UID)
				if o.counts(snap, p) {
					o.pods[p.UID] = time.Time{}
				}
			}
			o.launches = append(o.launches, made)
		}
	}
}

// Empty reports whether no launch and no pause is remembered: Judge does nothing then, whenever it is called.
func (l *Launches) Empty() bool { return len(l.owners)+len(l.machines) == 0 }

func (l *Launches) of(uid, name string) *owner {
	if l.owners == nil {
		l.owners = map[string]*owner{}
	}
	o := l.owners[uid]
	if o == nil {
		o = &owner{pods: map[string]time.Time{}, pause: pause.Pause{Key: pause.Key{Scope: uid, Reason: pause.Launch}, Name: name}}
		l.owners[uid] = o
	}
	return o
}

// Judge compares the plan with earlier launches, and evaluates the pods that have left nodes since the last call. It
// returns the writes that begin and end pauses.
func (l *Launches) Judge(snap *model.Snapshot, p *plan.Provision, left []model.Departure) []plan.Action {
	l.adopt(snap)
	if l.Empty() {
		return nil
	}
	served := l.leave(left)
	l.observe(snap, p)
	l.observeMachines(snap)
	used, planned, claims := usedNodes(snap, p), map[string]*model.Pod{}, p.AllClaims()
	for _, c := range claims {
		for _, pod := range c.Pods {
			planned[ownerOf(pod)] = pod
		}
	}
	actions := l.judgeMachines(snap, p, claims)
	for _, uid := range slices.Sorted(maps.Keys(l.owners)) {
		o := l.owners[uid]
		switch pod := planned[uid]; {
		case served[uid] || o.runs(snap.Now) || o.shown && !o.pause.Remembered(snap.Now):
			o.anew()
		case pod != nil:
			actions = append(actions, o.judge(snap, used, pod)...)
		}
		if pool := snap.Pool(o.pool); o.over && o.shown && pool != nil {
			actions = append(actions, plan.EndPause{Pool: pool.Name, UID: pool.UID, Key: o.pause.Key})
		}
		o.launches = slices.DeleteFunc(o.launches, func(m launch) bool { return snap.Now.Sub(m.at) > launchMemory })
		if len(o.launches) == 0 && !o.shown && !o.pause.Remembered(snap.Now) {
			delete(l.owners, uid)
		}
	}
	return actions
}

// anew forgets what has failed.
func (o *owner) anew() {
	o.launches, o.needs, o.over, o.pods = nil, nil, o.shown, map[string]time.Time{}
	o.pause, o.first = pause.Pause{Key: o.pause.Key, Name: o.pause.Name}, time.Time{}
}

// adopt takes over the pauses of the snapshot's pools, and drops the owners whose pause was removed from there.
func (l *Launches) adopt(snap *model.Snapshot) {
	there := map[string]bool{}
	for _, pool := range snap.Pools {
		for _, stored := range pool.Pauses {
			if stored.Reason != pause.Launch {
				continue
			}
			there[stored.Scope] = true
			o := l.of(stored.Scope, stored.Name)
			if o.pool, o.shown = pool.Name, true; !o.over && !stored.At.Before(o.pause.At) {
				o.pause, o.shows = stored, shownOf(pool.Name, stored)
			}
		}
	}
	for uid, o := range l.owners {
		switch {
		case there[uid] || !o.shown:
		case o.over:
			o.shown, o.over = false, false
		default:
			delete(l.owners, uid)
		}
	}
}

// leave evaluates pods that have left their nodes. It returns the owners of those that ended or had run long enough.
func (l *Launches) leave(left []model.Departure) map[string]bool {
	served := map[string]bool{}
	for _, d := range left {
		uid := cmp.Or(d.Controller.UID, d.UID)
		o := l.owners[uid]
		if o == nil {
			continue
		}
		if _, known := o.pods[d.UID]; !known {
			continue
		}
		if !d.Preempted || d.Ran >= ranEnough {
			served[uid] = true
			continue
		}
		for i := range o.launches {
			if m := &o.launches[i]; slices.Contains(m.pods, d.UID) || d.Node != "" && m.node == d.Node {
				m.preempted = fmt.Sprintf("pod %s was preempted on node %s after %s", d.Name, d.Node, d.Ran.Round(time.Second))
			}
		}
	}
	return served
}

// observe updates the launches from their claims, and since when pods are on nodes. During a pause, each pending pod of
// the owner counts like those that launches were for.
func (l *Launches) observe(snap *model.Snapshot, p *plan.Provision) {
	for _, o := range l.owners {
		o.observeLaunches(snap)
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
	running(snap, p, func(n *model.Node, pod *model.Pod) { l.observePod(snap, n, pod, now) })
	for _, o := range l.owners {
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
	for _, placed := range roomOf(p).Placed {
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
		switch o := l.owners[ownerOf(pod)]; {
		case o == nil:
		case !o.counts(snap, pod):
			delete(o.pods, pod.UID)
		case o.pause.Active(snap.Now):
			o.pods[pod.UID] = time.Time{}
		}
	}
}

// observePod records in now, and in the pod's owner, that the pod is on the node. Pods that no launch was for count on
// nodes that were launched for their owner: those of a workload take the places of its virtual pods.
func (l *Launches) observePod(snap *model.Snapshot, n *model.Node, p *model.Pod, now map[string]bool) {
	o := l.owners[ownerOf(p)]
	if o == nil || p.Terminating || !o.counts(snap, p) {
		return
	}
	_, known := o.pods[p.UID]
	if known || slices.ContainsFunc(o.launches, func(m launch) bool { return m.claim == n.Claim }) {
		o.runsOn(snap.Now, p, now)
	}
}

// counts reports whether the pod is as large as that for which the last launch was futile.
func (o *owner) counts(snap *model.Snapshot, p *model.Pod) bool {
	return !slices.ContainsFunc(o.needs, func(a quantity.Amount) bool {
		r := slices.Index(snap.Resources, a.Name)
		return r >= 0 && p.Requests.At(quantity.Resource(r)) < a.Value
	})
}

// runsOn records that the pod is on a node.
func (o *owner) runsOn(at time.Time, p *model.Pod, now map[string]bool) {
	if now[p.UID] = true; o.pods[p.UID].IsZero() {
		o.pods[p.UID] = at
	}
}

// observeLaunches updates the owner's launches from their claims. It forgets those for the room of a buffer that a pod
// has taken: that is what the room is for.
func (o *owner) observeLaunches(snap *model.Snapshot) {
	o.launches = slices.DeleteFunc(o.launches, func(m launch) bool {
		n := snap.Claim(m.claim)
		return m.room && n != nil && runsPods(n)
	})
	for i := range o.launches {
		m := &o.launches[i]
		if n := snap.Claim(m.claim); n != nil && (m.uid == "" || n.ClaimUID == m.uid) {
			m.uid, m.node = n.ClaimUID, n.Name
			m.machine, m.registered = m.machine || n.Stage >= model.Launched, m.registered || n.Stage >= model.Registered
			if n.Stage >= model.Registered && !n.Deleting {
				m.seen = n
			}
		}
	}
}

// toleratedFor returns how many futile launches in a row for pods like this one begin no pause. Nothing waits for the room
// of a buffer.
func toleratedFor(p *model.Pod) int {
	if p.Virtual == model.VirtualBuffer {
		return 0
	}
	return tolerated
}

// runs reports whether one of the pods has been on a node long enough.
func (o *owner) runs(now time.Time) bool {
	for _, since := range o.pods {
		if !since.IsZero() && now.Sub(since) >= ranEnough {
			return true
		}
	}
	return false
}

// judge counts the launches that were futile, now that another one is planned for the pod. Those of one round count once.
func (o *owner) judge(snap *model.Snapshot, used map[string]bool, pod *model.Pod) []plan.Action {
	before, pool := o.pause, snap.Pool(o.pool)
	o.launches = slices.DeleteFunc(o.launches, func(m launch) bool {
		why, over := m.outcome(snap, used, pod)
		if over && why != "" {
			o.pause = o.pause.Fail(m.at, snap.Now, toleratedFor(pod), "claim "+m.claim+": "+why)
			if o.needs = amountsOf(snap, pod.Requests); pool == nil {
				pool = snap.Pool(m.pool)
			}
		}
		return over
	})
	if o.pause == before || pool == nil {
		return nil
	}
	o.over, o.pool = false, pool.Name
	return []plan.Action{plan.SetPause{Pool: pool.Name, UID: pool.UID, Pause: o.pause}}
}

// outcome reports whether the launch is over, and why it was futile.
func (m *launch) outcome(snap *model.Snapshot, used map[string]bool, pod *model.Pod) (why string, over bool) {
	n := snap.Claim(m.claim)
	there := n != nil && (m.uid == "" || n.ClaimUID == m.uid)
	switch {
	case m.preempted != "":
		return m.preempted, true
	case there && (used[n.Claim] || !n.Deleting && n.Stage < model.Registered):
		return "", false
	case m.room && m.seen != nil && mismatch(m.seen, pod) != "": // also while a command removes it as empty
		return mismatch(m.seen, pod), true
	case there && !n.Deleting && (n.Disrupted || n.Command != ""):
		return "", false
	case there && !n.Deleting:
		return unfit(snap, n, pod), true
	case m.expired(snap):
		return "its expireAfter ended it before any of the pods had run for a minute", true
	case !m.machine:
		return "", !there
	case m.seen != nil && mismatch(m.seen, pod) != "":
		return mismatch(m.seen, pod), true
	case m.registered:
		return "its node was removed before any of the pods had run on it for a minute", true
	}
	return "its node never registered", true
}

// expired reports whether the claim has reached the expireAfter of its pool.
func (m *launch) expired(snap *model.Snapshot) bool {
	pool := snap.Pool(m.pool)
	return pool != nil && pool.ExpireAfter != nil && snap.Now.Sub(m.at) >= *pool.ExpireAfter
}
