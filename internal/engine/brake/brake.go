package brake

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Limits of the brake.
const (
	// futileLaunches is how many futile launches within futileWindow begin a pause.
	futileLaunches = 4
	futileWindow   = 15 * time.Minute
	// ranEnough is how long a pod must be on a node for its launches to count as successful.
	ranEnough = time.Minute
	// leastHold and mostHold bound the pauses: 1, 2, 4, 8, 16, 30 minutes.
	leastHold = time.Minute
	mostHold  = 30 * time.Minute
	// launchMemory is how long a launch is remembered, and a pause after its end.
	launchMemory = time.Hour
	// toldFates is how many nodes the reason of a pause names.
	toldFates = 4
	// fewPods is how many pods of a controller are remembered regardless of their state.
	fewPods = 64
)

// Brake ends loops in which nodes are launched for pods that never run on them. A plan may be wrong about a cluster in
// unforeseen ways, and each round costs a machine. The brake counts, for each controller of pods, the futile launches.
// After four within 15 minutes, further launches for the controller's pods wait for 1, 2, 4, 8, 16, then 30 minutes.
// Time in which a futile launch was in progress is not part of the 15 minutes: a claim whose node never registers fails
// after 15 minutes, and the next one begins when it ends.
//
// A launch is futile when
//
//   - one of the pods it was for is preempted before it has been on a node for a minute,
//   - its node is removed, registered or not, before any pod of the controller is bound to it, while one of its pods is
//     pending, or all of them are gone and other pods of the controller are pending (see missed),
//   - its expireAfter ends it before any of the pods has been on its node for a minute, and pods of the controller are
//     pending, or
//   - its node has joined and exists without the pods, and the next launch for the same controller is planned (see
//     Replanned).
//
// A launch is neither futile nor successful, and is not counted, when
//
//   - the cloud refuses it, so that no machine ever existed,
//   - its pods are deleted, and no pod of the controller is pending when the node is removed (a Deployment is scaled
//     down),
//   - its pods are evicted (a node is interrupted or drained), or
//   - it is in progress.
//
// The claims of one pass count once: a Deployment that is scaled up to many nodes is not a loop. When one of the pods
// has been on a node for a minute, or has finished (a Job may be short), the state of its controller is discarded.
//
// After a pause, the next one begins with a futile launch that was made after the pause. Launches from before its end,
// which fail during the pause or later, are part of the same loop and do not extend any pause.
//
// Pauses are stored on the pool of the last launch (model.PoolSpec.Holds), so that they survive a restart and can be
// explained. The count before the first pause is in memory only and is lost in a restart. The same holds for a pause
// that could not be written, or that exceeds the pool's capacity for pauses (model.MostHolds): it lasts as long as the
// process. A release that could not be written takes effect in memory, and the write is repeated. The zero value is
// ready for use.
type Brake struct {
	owners map[string]*launches
	// released are the controllers whose pauses have ended and are still stored on a pool.
	released map[string]bool
}

// launches are the launches for the pods of one controller.
type launches struct {
	name string
	// pods are the pods that launches were for, by UID, with the time since which each has been observed on a node.
	pods map[string]time.Time
	list []*launch
	// kept is how many pods remained when pods was last pruned.
	kept int
	// failures counts the passes with futile launches. pauses counts the pauses. paused counts the passes that cannot
	// begin another pause: those before the end of the last one.
	failures, pauses, paused int
	// resumed reports that the pause was begun by another process, whose list of pods is lost. settled is the time
	// since which none of the controller's pods is pending and one is on a node.
	resumed bool
	settled time.Time
	// hold is the last pause, until launchMemory after its end, on the pool holdPool. It is nil for none. shown reports
	// that a snapshot contained it.
	hold     *model.LaunchHold
	holdPool string
	shown    bool
	// counted is the pass of the newest launch that was counted.
	counted time.Time
}

// launch is one claim that was launched for pods of a controller.
type launch struct {
	claim, uid, pool string
	// at is when the claim was planned. ended is when it became futile.
	at, ended time.Time
	node      string
	pods      []string
	// machine, registered and came report that the machine exists, that its node registered, and that a pod of the
	// controller was bound to it: one of the pods, or a successor of one.
	machine, registered, came bool
	// arrived is when such a pod was first observed on the node.
	arrived time.Time
	// expires is when expireAfter ends the claim, and life is the age of the claim then. Both are zero for never.
	expires time.Time
	life    time.Duration
	// futile reports that the launch led to nothing, counted that it is included in failures.
	futile, counted bool
	fate            string
	// lost is the priority of a pod that was preempted on the node, until explain has found the reason.
	lost *int32
}

// Launched records the claims created at that time. Pods that still run on another node are ignored.
func (b *Brake) Launched(at time.Time, claims []plan.NewClaim) {
	for i := range claims {
		c := &claims[i]
		for _, pods := range byOwner(plan.Waiting(c.Pods)) {
			l := &launch{claim: c.Name, pool: c.Pool, at: at}
			o := b.of(ownerOf(pods[0]), ownerName(pods[0]))
			for _, p := range pods {
				l.pods = append(l.pods, p.UID)
				o.pods[p.UID] = time.Time{}
			}
			o.list = append(o.list, l)
		}
	}
}

func (b *Brake) of(owner, name string) *launches {
	if b.owners == nil {
		b.owners = map[string]*launches{}
	}
	o := b.owners[owner]
	if o == nil {
		o = &launches{name: name, pods: map[string]time.Time{}}
		b.owners[owner] = o
	}
	return o
}

// Look updates the launches from the snapshot and from the pods that have left nodes since the last call. It returns
// the writes that begin and end pauses.
func (b *Brake) Look(snap *model.Snapshot, left []model.Departure) []plan.Action {
	b.resume(snap)
	if len(b.owners) == 0 && len(b.released) == 0 {
		return nil
	}
	var actions []plan.Action
	served := b.leave(snap.Now, left)
	w := &brakeView{snap: snap}
	for _, owner := range slices.Sorted(maps.Keys(b.owners)) {
		o := b.owners[owner]
		o.look(w, owner)
		o.prune(w)
		switch {
		case served[owner] || o.failures > 0 && o.runs(w, owner):
			b.release(owner)
		case o.lifted(snap, owner) || o.forget(snap.Now):
			delete(b.owners, owner)
		default:
			actions = append(actions, o.brake(snap, owner)...)
			if o.hold != nil {
				delete(b.released, owner)
			}
		}
	}
	return append(append(actions, b.releases(snap)...), expired(snap)...)
}

// release discards the state of a controller whose pods run.
func (b *Brake) release(owner string) {
	delete(b.owners, owner)
	if b.released == nil {
		b.released = map[string]bool{}
	}
	b.released[owner] = true
}

// releases returns the writes that remove pauses which have ended from their pools. It repeats them until no pool has
// them.
func (b *Brake) releases(snap *model.Snapshot) []plan.Action {
	var actions []plan.Action
	for _, owner := range slices.Sorted(maps.Keys(b.released)) {
		off := releaseElsewhere(snap, owner, "")
		if len(off) == 0 {
			delete(b.released, owner)
		}
		actions = append(actions, off...)
	}
	return actions
}

// resume adopts the pauses of an earlier process, and records which pauses are stored on their pools.
func (b *Brake) resume(snap *model.Snapshot) {
	for _, pool := range snap.Pools {
		for _, h := range pool.Holds {
			if b.released[h.Owner] {
				continue
			}
			o := b.of(h.Owner, h.Name)
			switch {
			case o.failures == 0:
				o.failures, o.pauses = max(h.Failures, 1), h.Pauses
				if o.pauses < 1 { // written by a version without this field
					o.pauses = max(1, o.failures-futileLaunches+1)
				}
				o.paused = o.failures
				o.hold, o.holdPool, o.shown, o.resumed = &h, pool.Name, true, true
			case o.hold == nil || o.holdPool != pool.Name:
			case o.hold.Until.Equal(h.Until):
				o.shown = true
			case o.shown: // changed by a user
				o.hold = &h
			}
		}
	}
}

// leave processes pods that have left their nodes. It returns the owners of those that finished or had run long enough.
func (b *Brake) leave(now time.Time, left []model.Departure) map[string]bool {
	served := map[string]bool{}
	for _, d := range left {
		owner := cmp.Or(d.Controller.UID, d.UID)
		o := b.owners[owner]
		if o == nil {
			continue
		}
		if _, known := o.pods[d.UID]; !known {
			continue
		}
		if !d.Preempted || d.Ran >= ranEnough {
			served[owner] = true
			continue
		}
		if l := o.launchOf(d); l != nil && !l.futile {
			l.fail(now)
			l.lost, l.node = &d.Priority, d.Node
			l.fate = fmt.Sprintf("pod %s was preempted on node %s after %s", d.Name, d.Node, d.Ran.Round(time.Second))
		}
	}
	return served
}

// launchOf returns the newest launch for the pod or, for a successor of one that launches were for, the newest launch
// of its node.
func (o *launches) launchOf(d model.Departure) *launch {
	for _, l := range slices.Backward(o.list) {
		if slices.Contains(l.pods, d.UID) {
			return l
		}
	}
	for _, l := range slices.Backward(o.list) {
		if d.Node != "" && l.node == d.Node {
			return l
		}
	}
	return nil
}

// look updates the launches from the claims in the snapshot, and counts futile ones.
func (o *launches) look(w *brakeView, owner string) {
	o.list = slices.DeleteFunc(o.list, func(l *launch) bool {
		if l.futile {
			o.count(l)
			l.explain(w.snap)
			return w.snap.Now.Sub(l.ended) > launchMemory
		}
		n := w.snap.Claim(l.claim)
		there := n != nil && (l.uid == "" || n.ClaimUID == l.uid)
		if there {
			o.see(l, n, owner, w.snap.Now)
		}
		l.lives(w.snap, n)
		if there && !n.Deleting {
			return w.snap.Now.Sub(l.at) > launchMemory
		}
		if l.outlived(w, owner) {
			o.count(l)
			return false
		}
		if !there && l.uid == "" { // not observed yet, or never: the create may have failed
			return w.snap.Now.Sub(l.at) > futileWindow
		}
		if !l.machine || l.came || !l.missed(w, owner) {
			return true
		}
		l.fail(w.snap.Now)
		l.fate = "its node never registered"
		if l.registered {
			l.fate = "its node was removed before any of the pods was bound to it"
		}
		o.count(l)
		return false
	})
}

// fail marks the launch as futile.
func (l *launch) fail(now time.Time) { l.futile, l.ended = true, now }

// see updates the progress of a claim. A pod of the controller that is on the node and that no launch was for is the
// successor of one: it counts like the pods that launches were for.
func (o *launches) see(l *launch, n *model.Node, owner string, now time.Time) {
	l.uid, l.node = n.ClaimUID, n.Name
	l.machine = l.machine || n.Stage >= model.Launched
	l.registered = l.registered || n.Stage >= model.Registered
	for _, p := range n.Pods {
		if ownerOf(p) != owner {
			continue
		}
		if _, known := o.pods[p.UID]; !known {
			o.pods[p.UID] = time.Time{}
		}
		if !l.came {
			l.came, l.arrived = true, now
		}
	}
}

// missed reports whether the node was removed while pods of the controller lacked it: one of its pods is pending, or
// none of them exists and other pods of the controller are pending. A user, or a controller such as that of a Job,
// replaces pods that are pending for long, and the successors take the reservation of their predecessors.
func (l *launch) missed(w *brakeView, owner string) bool {
	if slices.ContainsFunc(l.pods, w.waits) {
		return true
	}
	return w.lacks(owner) && !slices.ContainsFunc(l.pods, func(uid string) bool { return w.onNodes()[uid] })
}

// explain adds the newest pod of a higher priority on the node to the fate of a launch with a preempted pod.
func (l *launch) explain(snap *model.Snapshot) {
	if l.lost == nil {
		return
	}
	n := snap.Node(l.node)
	if n == nil {
		return
	}
	var by *model.Pod
	for _, p := range n.Pods {
		if p.Priority > *l.lost && (by == nil || p.Created.After(by.Created) || p.Created.Equal(by.Created) && p.UID < by.UID) {
			by = p
		}
	}
	if by != nil {
		l.fate += "; there now: " + ownerName(by)
		l.lost = nil
	}
}

// count counts a futile launch, once per pass.
func (o *launches) count(l *launch) {
	if l.counted {
		return
	}
	l.counted = true
	if slices.ContainsFunc(o.list, func(other *launch) bool { return other != l && other.counted && other.at.Equal(l.at) }) {
		return
	}
	if l.at.After(o.counted) {
		o.counted = l.at
	}
	o.failures++
	if o.hold != nil && l.at.Before(o.hold.Until) {
		o.paused++
	}
}

// prune removes pods that are neither pending nor on a node, and that no remembered launch was for. It runs only when
// there are many.
func (o *launches) prune(w *brakeView) {
	if len(o.pods) <= 2*o.kept+fewPods {
		return
	}
	of := map[string]bool{}
	for _, l := range o.list {
		for _, uid := range l.pods {
			of[uid] = true
		}
	}
	bound := w.onNodes()
	maps.DeleteFunc(o.pods, func(uid string, _ time.Time) bool { return !of[uid] && !bound[uid] && !w.waits(uid) })
	o.kept = len(o.pods)
}

// runs reports whether one of the pods has been on a node long enough. After a restart, the pods of earlier launches
// are unknown. Then all of the controller's pods must be on nodes for that long, because some of them may have run all
// the time.
func (o *launches) runs(w *brakeView, owner string) bool {
	switch {
	case !o.resumed:
	case !w.settled(owner):
		o.settled = time.Time{}
	case o.settled.IsZero():
		o.settled = w.snap.Now
	case w.snap.Now.Sub(o.settled) >= ranEnough:
		return true
	}
	bound := w.onNodes()
	for uid, since := range o.pods {
		switch {
		case !bound[uid]:
			o.pods[uid] = time.Time{}
		case since.IsZero():
			o.pods[uid] = w.snap.Now
		case w.snap.Now.Sub(since) >= ranEnough:
			return true
		}
	}
	return false
}

// forget reports whether the state of the controller can be discarded.
func (o *launches) forget(now time.Time) bool {
	if o.hold != nil && now.Sub(o.hold.Until) > launchMemory {
		o.hold, o.shown = nil, false
	}
	return o.hold == nil && len(o.list) == 0 && now.Sub(o.counted) > launchMemory
}

// lifted reports whether the pause was removed from its pool, or the pool is gone: then launches are retried at once. A
// pause that exceeds the pool's capacity for pauses is kept in memory until the pool can store it.
func (o *launches) lifted(snap *model.Snapshot, owner string) bool {
	pool := snap.Pool(o.holdPool)
	if !o.shown || pool != nil && notes(pool, owner) || snap.Now.Sub(o.hold.Until) > launchMemory {
		return false
	}
	o.shown = false
	return pool == nil || hasRoom(pool, o.hold)
}

// brake begins the next pause when one is due, and repeats the write of a pause that could not be written. It records
// pods that become pending during the pause: when they run, on any node, the loop is over.
func (o *launches) brake(snap *model.Snapshot, owner string) []plan.Action {
	if o.hold != nil {
		for _, g := range snap.Groups {
			for _, p := range g.Pods {
				if _, known := o.pods[p.UID]; !known && ownerOf(p) == owner {
					o.pods[p.UID] = time.Time{}
				}
			}
		}
	}
	next := o.failures > o.paused && (o.hold != nil || o.recent(snap.Now) >= futileLaunches)
	if next {
		if pool := o.last().pool; snap.Pool(pool) != nil {
			o.pauses, o.resumed = o.pauses+1, false
			o.paused, o.holdPool, o.shown = o.failures, pool, false
			o.hold = &model.LaunchHold{Owner: owner, Name: o.name, Failures: o.failures, Pauses: o.pauses,
				Until: snap.Now.Add(holdPause(o.pauses - 1)).Truncate(time.Second), Why: o.why()}
		}
	}
	if o.hold == nil || o.shown || !o.hold.Until.After(snap.Now) {
		return nil
	}
	pool := snap.Pool(o.holdPool)
	if pool == nil || !hasRoom(pool, o.hold) {
		return nil
	}
	return append(releaseElsewhere(snap, owner, pool.Name), plan.HoldLaunches{Pool: pool.Name, UID: pool.UID, Hold: *o.hold})
}

// recent counts the passes with futile launches, back to the point where futileWindow passed without any of them in
// progress.
func (o *launches) recent(now time.Time) int {
	var futile []*launch
	for _, l := range o.list {
		if l.futile {
			futile = append(futile, l)
		}
	}
	slices.SortStableFunc(futile, func(a, b *launch) int { return b.ended.Compare(a.ended) })
	passes, since := map[time.Time]bool{}, now
	var between time.Duration
	for _, l := range futile {
		if between += max(0, since.Sub(l.ended)); between > futileWindow {
			break
		}
		passes[l.at] = true
		if l.at.Before(since) {
			since = l.at
		}
	}
	return len(passes)
}

// last returns the newest futile launch.
func (o *launches) last() *launch {
	for _, l := range slices.Backward(o.list) {
		if l.futile {
			return l
		}
	}
	return &launch{}
}

// why describes the outcome of the last launches, the newest first.
func (o *launches) why() string {
	var newest []*launch
	for _, l := range slices.Backward(o.list) {
		if l.futile && len(newest) < toldFates {
			newest = append(newest, l)
		}
	}
	return strings.Join(fates(newest), "; ")
}
