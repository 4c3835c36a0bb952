package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Preempting is the first seed of histories in which kube-scheduler preempts: pods of higher priority and daemons
// replace others. In these histories daemon pods request more than their template, as if changed by a LimitRange or a
// webhook; the controller learns that from existing pods. The range ends before Wide; other seeds below Combined are
// unaffected.
const Preempting = uint64(1) << 32

// Combined is the first seed of wide worlds of which a fifth have preemption too, also those with a LimitRange. In these
// the LimitRange alone decides what daemon pods request. Seeds from dates (make nightly) are larger.
const Combined = uint64(1) << 37

// preempting reports whether kube-scheduler preempts in a world.
func preempting(seed uint64) bool {
	return seed >= Preempting && seed < Wide || seed >= Combined && seed%5 == 2
}

// preemption holds the parameters of preemption in a world; nil for none.
type preemption struct {
	// real holds the actual requests of daemon pods, by UID; priority is their priority.
	real     map[string][]quantity.Amount
	priority int32
	// unseen says that the controller never learns the actual requests of daemons. It is then wrong about every node,
	// permanently.
	unseen bool
	// known holds the daemons of which the leader has seen a pod, by UID.
	known map[string]bool
}

// preempts adds preemption to the world. It uses its own random numbers.
func (s *setting) preempts(seed uint64) {
	if !preempting(seed) {
		return
	}
	rng := rand.New(rand.NewPCG(seed, 0x94ee))
	s.preemption = &preemption{real: map[string][]quantity.Amount{}, priority: 1000, known: map[string]bool{}}
	if len(s.daemons) == 0 {
		s.daemons = append(s.daemons, model.DaemonSpec{UID: "daemon", Namespace: "kube-system", Name: "daemon", Tolerations: []model.Toleration{{Exists: true}}})
	}
	for i := range s.daemons {
		if limited(seed) {
			break
		}
		d := &s.daemons[i]
		d.Requests = []quantity.Amount{{Name: "pods", Value: 1}}
		s.preemption.real[d.UID] = amounts(100+rng.Int64N(700), gibi/8+rng.Int64N(gibi/2))
	}
	for _, a := range s.apps {
		a.pod.priority = int32(rng.IntN(3) * 10)
	}
}

// daemonsOn returns the daemons as the controller knows them: by their template, and by the pods that it has seen if
// those request more.
func (s *setting) daemonsOn(pods []*pod) []model.DaemonSpec {
	if s.limits != nil {
		return running(s.daemons, pods)
	}
	if s.preemption == nil || s.preemption.unseen {
		return s.daemons
	}
	daemons := slices.Clone(s.daemons)
	for i := range daemons {
		d := &daemons[i]
		if s.preemption.known[d.UID] || slices.ContainsFunc(pods, func(p *pod) bool { return p.daemon && p.app == d.UID }) {
			d.Requests = s.preemption.real[d.UID]
		}
	}
	return daemons
}

// tellDaemons updates the builder with daemons whose pods have shown their actual requests.
func (st *store) tellDaemons(s *setting, pods []*pod) {
	if s.preemption == nil && s.limits == nil && s.late == nil {
		return
	}
	for _, p := range pods {
		if p.daemon && s.preemption != nil {
			s.preemption.known[p.app] = true
		}
	}
	for _, d := range s.daemonsOn(pods) {
		if !slices.Equal(st.daemons[d.UID], d.Requests) {
			st.daemons[d.UID] = d.Requests
			st.builder.UpsertDaemon(d)
		}
	}
}

// place creates the daemon's pod on its node. In worlds with preemption it preempts other pods if necessary; where
// something is late, it waits for room.
func (w *world) place(p *pod, n *node) {
	switch {
	case w.setting.preemption != nil:
		p.priority = w.setting.preemption.priority
		if real, known := w.setting.preemption.real[p.app]; known {
			p.requests = real
		}
	case w.setting.late != nil:
		p.priority = w.setting.late.priority
	default:
		w.api.create(p)
		return
	}
	if w.api.node(n.name) == nil || w.api.pod(p.name) != nil {
		delete(w.placing, n.name)
		return
	}
	victims, ok := w.victims(p, n)
	delete(w.placing, n.name)
	if ok && len(victims) > 0 {
		w.preempt(p, n, victims)
		w.placing[n.name] = p
	}
	if !ok || len(victims) > 0 {
		w.after(time.Second, func() { w.place(p, n) })
		return
	}
	w.api.create(p)
	w.say("%s is bound to %s", p.name, n.name)
}

// victims returns the pods of lower priority that must be removed from the node so that the pod fits, the least
// important first, and false if that does not suffice. Pods that are about to be bound count as bound.
func (w *world) victims(p *pod, n *node) ([]*pod, bool) {
	used := map[string]int64{}
	var lower []*pod
	for _, other := range w.api.pods() {
		if other.node != n.name && w.assumed[other.uid] != n.name {
			continue
		}
		add(used, other.requests)
		if other.node == n.name && other.priority < p.priority {
			lower = append(lower, other)
		}
	}
	slices.SortStableFunc(lower, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), strings.Compare(a.name, b.name))
	})
	add(used, p.requests)
	fits := func() bool {
		for name, amount := range used { // a resource that the node lacks has the amount zero
			if amount > amountOf(n.allocatable, name) {
				return false
			}
		}
		return true
	}
	var victims []*pod
	for _, v := range lower {
		if fits() {
			break
		}
		for _, a := range v.requests {
			used[a.Name] -= a.Value
		}
		victims = append(victims, v)
	}
	return victims, fits()
}

// preempt deletes the victims, and reports them to every process.
func (w *world) preempt(p *pod, n *node, victims []*pod) {
	w.disturbed = w.now // by kube-scheduler: other pods are there, and on other nodes
	for _, v := range victims {
		if !v.deleting.IsZero() {
			continue
		}
		w.say("%s preempts %s on %s", p.name, v.name, n.name)
		d := model.Departure{UID: v.uid, Namespace: "default", Name: v.name, Controller: v.replicaSet(),
			Node: n.name, Ran: w.now.Sub(v.bound), Priority: v.priority, Preempted: true}
		for _, process := range w.processes {
			process.left = append(process.left, d)
		}
		w.deletePod(v)
	}
}

// preemptFor looks for a node on which the pod can preempt pods of lower priority; the pod then waits for that node.
func (w *world) preemptFor(p *pod, nodes []*node) {
	if w.setting.preemption == nil || p.priority == 0 || p.relation != (relation{}) || p.nominated != "" || p.making != "" {
		return
	}
	for _, n := range nodes {
		if !n.deleting.IsZero() || !p.wants(n.labels) || !tolerates(p, n.taints) {
			continue
		}
		victims, ok := w.victims(p, n)
		if !ok || len(victims) == 0 || slices.ContainsFunc(victims, func(v *pod) bool { return !v.deleting.IsZero() }) {
			continue
		}
		w.api.update(p.key(), p.uid, 0, func(o object) { o.(*pod).making = n.name })
		w.after(time.Minute, func() { // the node may be gone, or the room taken
			if live := w.api.pod(p.name); live != nil && live.uid == p.uid && live.making != "" {
				w.api.update(p.key(), p.uid, 0, func(o object) { o.(*pod).making = "" })
			}
		})
		w.preempt(p, n, victims)
		return
	}
}

// heldBack reports whether launches for the pod are on hold.
func (w *world) heldBack(p *pod) bool {
	return slices.ContainsFunc(w.setting.pools, func(pool *model.PoolSpec) bool {
		return pool.Pauses.Of(pause.Key{Scope: cmp.Or(p.replicaSet().UID, p.uid), Reason: pause.Launch}).Active(w.now)
	})
}

// restrain withholds claims like the provision loop (controller/provision).
func (p *process) restrain(snap *model.Snapshot, decided *plan.Provision) *plan.Provision {
	if p.w.setting.preemption == nil && p.w.setting.late == nil {
		return decided
	}
	for _, a := range p.launches.Judge(snap, decided, p.left) {
		p.w.say("process %d: %s", p.id, a)
		switch a := a.(type) {
		case plan.SetPause:
			p.changePauses(a.Pool, a.UID, func(l pause.List) pause.List { return l.With(a.Pause) })
		case plan.EndPause:
			p.changePauses(a.Pool, a.UID, func(l pause.List) pause.List { return l.Without(a.Key) })
		}
	}
	p.left = nil
	return p.w.opts.Restrain(&p.launches, p.snapshot(), decided)
}

// changePauses changes the pauses of a pool. Pools are part of the setting: the write is visible at once.
func (p *process) changePauses(name, uid string, change func(pause.List) pause.List) bool {
	i := slices.IndexFunc(p.w.setting.pools, func(pool *model.PoolSpec) bool { return pool.Name == name && pool.UID == uid })
	if i >= 0 {
		pool := *p.w.setting.pools[i]
		pool.Pauses = change(pool.Pauses)
		p.w.setting.pools[i] = &pool
	}
	return true
}
