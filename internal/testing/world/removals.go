package world

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
)

// The properties of removals that neither a user nor a plan requested: a healthy fleet survives a cloud that gives wrong replies. They are
// based on the cloud's ledger and on the nodes, and share no rule with the controllers.
const (
	// secondLook: no claim is deleted because of its machine, and no machine without a claim is terminated, unless the
	// cloud was queried for that single machine in the same round. No claim is deleted because the cloud does not find its
	// machine while its node reports.
	secondLook = "second look"
	// onlyTheIll: no claim is repaired unless its node, according to the API server, has been unhealthy for the tolerated
	// time.
	onlyTheIll = "only the ill"
	// fewAtATime: of machines that are alive according to the cloud or to their node, at most three and at most a fifth of
	// the NodePool or of the fleet are removed within ten minutes.
	fewAtATime = "few at a time"
	// replacedSoon: a claim whose machine is gone, according to the cloud and to its node, is deleted within minutes,
	// whatever else is paused.
	replacedSoon = "replaced soon"
	// provisionsOn: while the cloud gives wrong replies, nodes are still launched for pending pods.
	provisionsOn = "provisions on"
	// resumesByItself: when the cloud and the nodes agree, machines that have to be ended are ended, without the operator.
	resumesByItself = "resumes by itself"
)

const (
	// recently is how long a process may act on earlier knowledge: a pass of a loop, with all its writes.
	recently = 30 * time.Second
	// soon is how long a claim may exist after its machine is gone: some rounds of collection, also after crashes.
	soon = 7 * time.Minute
	// waits is how long a pod may be pending although it could have a node and no node is being launched: two passes of
	// the loop, and a crash.
	waits = time.Minute
	// operatorWaits is how long the operator waits before it allows removals: longer than a pause lasts. permission is for
	// how long it allows them.
	operatorWaits = 35 * time.Minute
	permission    = 2 * time.Hour
)

// removals judges the removals of machines that neither a user nor a plan requested.
type removals struct {
	*World

	// round is the current round of garbage collection or of node repair, nil for none.
	round *round
	// gone holds the removals of machines that were alive, sizes the numbers of machines, allowed is until when the
	// operator allows any number.
	gone    []removed
	sizes   []size
	allowed time.Time
	// overdue are the machines that had to be ended when the cloud's replies became correct.
	overdue map[string]bool
	// idle is since when pods are pending although they could have a node and none is being launched, by UID.
	idle map[types.UID]time.Time
}

// round holds what controllers have asked the cloud: true for a machine that exists.
type round struct {
	repairs bool
	replies map[string]bool
}

// removed is the removal of a machine that was alive.
type removed struct {
	at       time.Time
	id, pool string
}

// size is the number of machines at a time.
type size struct {
	at    time.Time
	fleet int
	pools map[string]int
}

// during runs a round.
func (r *removals) during(repairs bool, do func()) {
	r.round = &round{repairs: repairs, replies: map[string]bool{}}
	do()
	r.round = nil
}

// asked records a reply of the cloud about a single machine.
func (r *removals) asked(m *cloud.Machine, id string, err error) {
	if r.round != nil && (err == nil || errors.Is(err, cloud.ErrNotFound)) {
		r.round.replies[id] = err == nil && !m.Terminating
	}
}

// saw checks the deletion of a claim in a round.
func (r *removals) saw(was, is *karpv1.NodeClaim) {
	if r.round == nil || was == nil || !was.DeletionTimestamp.IsZero() || is != nil && is.DeletionTimestamp.IsZero() {
		return
	}
	id := was.Status.ProviderID
	h, m := r.hostOf(id), r.provider.machine(id)
	if r.round.repairs {
		if h == nil || !r.illForLong(h.Node) {
			r.fail(onlyTheIll, "claim %s is repaired, its node is well, ill for a short time, or not there", was.Name)
		}
		r.count(id, was.Labels[karpv1.LabelNodePool])
		return
	}
	if h == nil {
		return // its node was removed from the cluster
	}
	if there, asked := r.round.replies[id]; !asked || there {
		r.fail(secondLook, "claim %s is given up, the cloud was asked about %s: %t, and finds it: %t", was.Name, id, asked, there)
	}
	if m.speaks() && r.Clock.now.Sub(m.heard) > r.config.Lag+recently {
		r.fail(secondLook, "claim %s is given up, its node %s reports", was.Name, h.Name)
	}
}

// hostOf returns the node of a machine, nil for none.
func (w *World) hostOf(id string) *host {
	for _, h := range w.kube.hosts {
		if h.Spec.ProviderID == id {
			return h
		}
	}
	return nil
}

// illForLong reports whether a condition of the node requires repair and has lasted for the tolerated time.
func (r *removals) illForLong(n *corev1.Node) bool {
	return slices.ContainsFunc(r.provider.RepairPolicies(), func(p cloud.RepairPolicy) bool {
		return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return string(c.Type) == p.ConditionType && string(c.Status) == p.ConditionStatus &&
				r.Clock.now.Sub(c.LastTransitionTime.Time) >= p.Toleration
		})
	})
}

// ends checks the termination of a machine that garbage collection considers to have no claim.
func (r *removals) ends(id string) {
	if r.round == nil {
		return
	}
	if !r.round.replies[id] {
		r.fail(secondLook, "%s is ended, and a direct look did not find it", id)
	}
	for _, c := range r.claims() {
		if c.Status.ProviderID == id || providerID(c) == id && c.Status.ProviderID == "" {
			r.fail(secondLook, "%s is ended as one of no claim, it is that of claim %s", id, c.Name)
		}
	}
	pool := ""
	if h := r.hostOf(id); h != nil && h.Labels[karpv1.LabelRegistered] == "true" {
		pool = h.Labels[karpv1.LabelNodePool]
	}
	r.count(id, pool)
}

// count counts the removal of a machine that is alive: fewAtATime. A machine that is ended again, because a reply was lost
// or is old, counts once, and one that is gone does not count. The size of the fleet is the largest within the window.
func (r *removals) count(id, pool string) {
	m := r.provider.machine(id)
	again := slices.ContainsFunc(r.gone, func(before removed) bool { return before.id == id })
	if again || m != nil && (!m.gone.IsZero() || !m.ending.IsZero()) || r.Clock.now.Before(r.allowed) {
		return
	}
	r.gone = append(r.gone, removed{r.Clock.now, id, pool})
	r.measure()
	window, most, mostOfPool := r.config.Timers.RemovalWindow, 3, 3
	for _, s := range r.sizes {
		if r.Clock.now.Sub(s.at) < window+r.config.Lag+recently {
			most, mostOfPool = max(most, s.fleet/5), max(mostOfPool, s.pools[pool]/5)
		}
	}
	total, ofPool := 0, 0
	for _, before := range r.gone {
		if r.Clock.now.Sub(before.at) < window {
			total++
			ofPool += map[bool]int{true: 1}[before.pool == pool]
		}
	}
	if total > most || pool != "" && ofPool > mostOfPool {
		r.fail(fewAtATime, "%d machines of the fleet and %d of pool %q were removed within %v, %d and %d may", total, ofPool, pool, window,
			most, mostOfPool)
	}
}

// measure records the number of machines.
func (r *removals) measure() {
	s := size{at: r.Clock.now, pools: map[string]int{}}
	for _, c := range r.claims() {
		if c.Status.ProviderID != "" {
			s.fleet++
			s.pools[c.Labels[karpv1.LabelNodePool]]++
		}
	}
	r.sizes = append(r.sizes, s)
}

// replaced checks replacedSoon.
func (r *removals) replaced() {
	now := r.Clock.now
	for _, c := range r.claims() {
		m, registered := r.provider.ended[c.Status.ProviderID], c.Condition(karpv1.ConditionRegistered)
		if m == nil || !c.DeletionTimestamp.IsZero() || !registered.IsTrue() {
			continue
		}
		if now.Sub(m.gone) > soon && now.Sub(registered.LastTransitionTime.Time) > soon && r.provider.honest(soon) {
			r.fail(replacedSoon, "%s is gone for %v, claim %s is still there", m.ProviderID, now.Sub(m.gone), c.Name)
		}
	}
}

// provisions checks provisionsOn, while the cloud gives wrong replies, in a world in which each pod could have a node of
// its own. It requires that, during the whole time, no node was being launched.
func (r *removals) provisions() {
	idle := map[types.UID]time.Time{}
	lying := slices.ContainsFunc(r.provider.lies, func(l lie) bool { return l.until.After(r.Clock.now) })
	underWay := slices.ContainsFunc(r.claims(), func(c *karpv1.NodeClaim) bool {
		return !c.Condition(karpv1.ConditionInitialized).IsTrue() && c.DeletionTimestamp.IsZero()
	})
	for _, p := range r.kube.waiting {
		if !lying || underWay || !p.DeletionTimestamp.IsZero() {
			continue
		}
		since, known := r.idle[p.UID]
		if !known {
			since = r.Clock.now
		}
		idle[p.UID] = since
		if waited := r.Clock.now.Sub(since); waited > waits {
			r.fail(provisionsOn, "%s waits, nothing is under way for %v, and it could have a node", p.Name, waited)
		}
	}
	r.idle = idle
}

// overdueNow returns the machines that have to be ended: those without a claim, and those whose node was removed from the
// cluster.
func (r *removals) overdueNow() map[string]bool {
	claimed, overdue := map[string]bool{}, map[string]bool{}
	for _, c := range r.claims() {
		id := c.Status.ProviderID
		claimed[id] = !c.Condition(karpv1.ConditionRegistered).IsTrue() || !c.DeletionTimestamp.IsZero() || r.hostOf(id) != nil
	}
	for id := range r.provider.machines {
		if !claimed[id] {
			overdue[id] = true
		}
	}
	return overdue
}

// paused reports whether removals are paused, or were until the last round of garbage collection.
func (r *removals) paused() bool {
	return slices.ContainsFunc(r.nodePools(), func(pool *karpv1.NodePool) bool {
		active := pause.Parse(pool.Annotations[karpv1.AnnotationPauses]).Active(r.Clock.now.Add(-r.config.Timers.Collection - recently))
		return slices.ContainsFunc(active, func(p pause.Pause) bool { return p.Reason == pause.Removal })
	})
}

// operate simulates the operator. It allows removals if machines that have to be ended still run long after the cloud's
// replies became correct: after a pause one is ended at a time.
func (r *removals) operate() {
	now := r.overdueNow()
	if len(now) == 0 {
		return
	}
	r.allowed = r.Clock.now.Add(permission)
	ended := slices.ContainsFunc(slices.Collect(maps.Keys(r.overdue)), func(id string) bool { return !now[id] })
	if len(r.overdue) > 0 && !ended {
		r.fail(resumesByItself, "%d machines have to be ended, and none has been %v after the cloud answers truly", len(r.overdue), operatorWaits)
	}
	r.log("-- the operator allows the removals")
	until := r.allowed.Format(time.RFC3339)
	for _, pool := range r.nodePools() {
		edit(r.api, pool, func(o *karpv1.NodePool) {
			if o.Annotations == nil {
				o.Annotations = map[string]string{}
			}
			o.Annotations[karpv1.AnnotationRemovalsAllowedUntil] = until
		})
	}
}

// fail records the first property that does not hold.
func (w *World) fail(property, format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf(property+": "+format, args...)
		w.log("FAILS: " + w.failure.Error())
	}
}

func (w *World) claims() []*karpv1.NodeClaim { return listOf[*karpv1.NodeClaim](w.api) }

func (w *World) nodePools() []*karpv1.NodePool { return listOf[*karpv1.NodePool](w.api) }
