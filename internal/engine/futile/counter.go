package futile

import (
	"maps"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

const (
	// tolerated is how many futile launches in a row begin no pause of an owner.
	tolerated = 3
	// toleratedNodes is how many nodes in a row that have shown a cause begin no pause.
	toleratedNodes = 2
	// ranEnough is how long a pod must be on a node for its launches to count as successful.
	ranEnough = time.Minute
)

// counter counts the futile launches in a row of one scope: of an owner of pods (a controller, or a pod without one), or of
// a cause that nodes of a pool have shown.
type counter struct {
	pause pause.Pause
	// pool stores the pause, and stored reports that the snapshot has it.
	pool   string
	stored bool
	// over reports that the pause has ended, and that it may still be stored.
	over bool

	// cause is nil for owners. first is when the first node was launched that has shown it.
	cause *cause
	first time.Time

	// pods are the pods of an owner that launches were for, by UID, with the time since which each has been observed on a
	// node. needs are the requests of the pod for which the last launch was futile: that a smaller pod runs proves nothing.
	pods  map[string]time.Time
	needs []quantity.Amount
}

// counter returns the counter of the scope. name is what is paused.
func (l *Launches) counter(scope, name string) *counter {
	if l.counters == nil {
		l.counters = map[string]*counter{}
	}
	o := l.counters[scope]
	if o == nil {
		o = &counter{pods: map[string]time.Time{}, pause: pause.Pause{Key: pause.Key{Scope: scope, Reason: pause.Launch}, Name: name}}
		l.counters[scope] = o
	}
	return o
}

func (l *Launches) scopes() []string { return slices.Sorted(maps.Keys(l.counters)) }

// causes returns the counters of causes, by scope.
func (l *Launches) causes() []*counter {
	var list []*counter
	for _, scope := range l.scopes() {
		if o := l.counters[scope]; o.cause != nil {
			list = append(list, o)
		}
	}
	return list
}

// reset forgets what has failed.
func (l *Launches) reset(o *counter) {
	for _, m := range l.launches {
		delete(m.scopes, o.pause.Scope)
	}
	o.needs, o.over, o.pods = nil, o.stored, map[string]time.Time{}
	o.pause, o.first = pause.Pause{Key: o.pause.Key, Name: o.pause.Name}, time.Time{}
}

// adopt takes over the pauses of the snapshot's pools, and drops the counters whose pause was removed from there.
func (l *Launches) adopt(snap *model.Snapshot) {
	there := map[string]bool{}
	for _, pool := range snap.Pools {
		for _, stored := range pool.Pauses {
			if stored.Reason != pause.Launch {
				continue
			}
			there[stored.Scope] = true
			o := l.counter(stored.Scope, stored.Name)
			if o.pool, o.stored = pool.Name, true; !o.over && !stored.At.Before(o.pause.At) {
				o.pause, o.cause = stored, causeOf(pool.Name, stored)
			}
		}
	}
	for scope, o := range l.counters {
		switch {
		case there[scope] || !o.stored:
		case o.over:
			o.stored, o.over = false, false
		default:
			l.reset(o)
			delete(l.counters, scope)
		}
	}
}

// counts reports whether the pod is as large as that for which the last launch was futile.
func (o *counter) counts(snap *model.Snapshot, p *model.Pod) bool {
	return !slices.ContainsFunc(o.needs, func(a quantity.Amount) bool {
		r := slices.Index(snap.Resources, a.Name)
		return r >= 0 && p.Requests.At(quantity.Resource(r)) < a.Value
	})
}

// runs reports whether one of the pods has been on a node long enough.
func (o *counter) runs(now time.Time) bool {
	for _, since := range o.pods {
		if !since.IsZero() && now.Sub(since) >= ranEnough {
			return true
		}
	}
	return false
}

// failed counts a launch that was futile for the owner of the pod, unless why is empty. Those of one round count once.
// Nothing waits for the room of a buffer: its launches pause after the first failure.
func (o *counter) failed(snap *model.Snapshot, m *launch, pod *model.Pod, why string) {
	if why == "" {
		return
	}
	before, most := o.pause, tolerated
	if pod.Virtual == model.VirtualBuffer {
		most = 0
	}
	o.needs = amountsOf(snap, pod.Requests)
	if o.pause = o.pause.Fail(m.at, snap.Now, most, "claim "+m.claim+": "+why); o.pause != before {
		o.over = false
	}
	if snap.Pool(o.pool) == nil {
		o.pool = m.pool
	}
}

// failedBy counts a node that has shown the cause. Each node counts that was launched after the last pause. What nodes lack
// does not count further while larger types are left.
func (o *counter) failedBy(snap *model.Snapshot, s *cause, m *launch, at plannedPod) {
	if m.at.Before(o.pause.Until) {
		return
	}
	if o.pause.Failures == 0 || !o.pause.Remembered(snap.Now) {
		o.first, o.cause = m.at, nil
	}
	if s.missing != nil && o.cause != nil {
		s.missing = raise(o.cause.missing, s.missing)
	}
	again := o.cause != nil && s.missing != nil && !s.stopsAll(snap, at.claim)
	o.cause, o.pool, o.over = s, s.pool, false
	if !again {
		o.pause = o.pause.Fail(snap.Now, snap.Now, toleratedNodes, "claim "+m.claim+": "+unfit(snap, m.seen, at.pod))
	}
	if text := textOf(s.missing); text != o.pause.Shown {
		o.pause.Shown, o.pause.At = text, snap.Now // newer than what is stored
	}
}

// refutes reports whether the node has not shown the cause: it is newer than the first that has, and a pod runs there that
// could not. A single pod, however briefly, is enough: kube-scheduler has bound it.
func (o *counter) refutes(snap *model.Snapshot, n *model.Node, p *model.Pod) bool {
	first := o.first
	if first.IsZero() {
		first = o.pause.At
	}
	if virtual := p.Virtual != ""; o.pause.Failures == 0 || virtual && n.Stage < model.Initialized {
		return false // a virtual pod is not bound: the node may lack what its NodePool has
	}
	return n.Pool == o.cause.pool && n.Stage >= model.Registered && !p.Daemon && !n.Created.Before(first.Truncate(time.Second)) &&
		o.cause.stops(snap, p, []string{n.Labels[model.LabelType]})
}

// plannedPod is a pod of a claim of the plan.
type plannedPod struct {
	claim *plan.NewClaim
	pod   *model.Pod
}

// plannedPods returns the pods that are planned onto new nodes, by pool: of consecutive ones that are alike, the first.
func plannedPods(claims []plan.NewClaim) map[string][]plannedPod {
	planned := map[string][]plannedPod{}
	for i := range claims {
		c := &claims[i]
		var last *model.Pod
		for _, p := range c.Pods {
			if last == nil || last.Shape != p.Shape || !slices.Equal(last.Tolerations, p.Tolerations) {
				planned[c.Pool] = append(planned[c.Pool], plannedPod{c, p})
			}
			last = p
		}
	}
	return planned
}
