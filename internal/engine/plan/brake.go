package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// What the brake goes by.
const (
	// futileLaunches is after how many launches within futileWindow that led to nothing the next one waits.
	futileLaunches = 4
	futileWindow   = 15 * time.Minute
	// ranEnough is for how long a pod must have been on a node for its launches to have led to something.
	ranEnough = time.Minute
	// The pauses: 1, 2, 4, 8, 16, 30 minutes.
	leastHold = time.Minute
	mostHold  = 30 * time.Minute
	// launchMemory is for how long a launch is remembered, and a pause that is over.
	launchMemory = time.Hour
	// toldFates is how many nodes the reason of a pause names.
	toldFates = 4
	// fewPods is how many pods of a controller are remembered whatever has become of them.
	fewPods = 64
)

// Brake ends loops in which nodes are launched for pods that never come to run on them: a plan may be wrong about a cluster
// in unforeseen ways, and each round costs a machine. It counts, for each controller of pods, the launches
// that led to nothing; after four within 15 minutes further launches for its pods wait, for 1, 2, 4, 8, 16, then 30 minutes.
// Time in which such a launch was under way is not part of the 15 minutes: a claim whose node never registers is given up
// after 15 minutes, and the next one begins where it ended.
//
// A launch leads to nothing when
//
//   - one of the pods that it was for is preempted before it has been on a node for a minute,
//   - its node goes without any of them having come, while one of them still waits: registered or not,
//   - its expireAfter ends it before any of them has been on its node for a minute, and pods of the controller wait, or
//   - its node has joined, is there without them, and the next launch for the same controller is planned (see Replanned).
//
// It leads to nothing as little as to something, and is not counted, when
//
//   - the cloud refuses it, so that there never was a machine,
//   - its pods are deleted or evicted (a Deployment is scaled down, a node is interrupted or drained), or
//   - it is under way.
//
// The claims of one pass count once: a Deployment that is scaled up to many nodes is no loop. When one of the pods has been
// on a node for a minute, or has ended by itself (a Job may be short), everything is forgotten about its controller.
//
// After a pause, the next one begins with a launch that was made after it and led to nothing. Launches from before its end,
// which fail while it lasts or later, are part of the same loop and make no pause longer.
//
// Pauses stand on the pool of the last launch (model.PoolSpec.Holds), so that a restart keeps them and they can be
// explained. The count before the first pause is memory: a restart begins it anew. So is a pause that could not be written,
// or that a pool has no room for (model.MostHolds): it lasts as long as the process. A release that could not be written takes
// effect in memory, and is written again. The zero value is ready for use.
type Brake struct {
	owners map[string]*launches
	// released are the controllers whose pauses are over and are still on a pool.
	released map[string]bool
}

// launches are those for the pods of one controller.
type launches struct {
	name string
	// pods are those that launches were for, by UID, with the time since when each has been seen on a node.
	pods map[string]time.Time
	list []*launch
	// kept is how many of them were left when they were last pruned.
	kept int
	// failures counts the passes whose launches led to nothing, pauses the pauses, paused the passes that no further pause is
	// due to: those before the end of the last one.
	failures, pauses, paused int
	// resumed: the pause is that of another process, which knew the pods. settled is since when none of the controller's pods
	// waits and one is on a node.
	resumed bool
	settled time.Time
	// hold is the last pause until launchMemory after its end, on the pool holdPool; nil for none. shown: a snapshot had it.
	hold     *model.LaunchHold
	holdPool string
	shown    bool
	// counted is the pass of the last launch that was counted.
	counted time.Time
}

// launch is a claim.
type launch struct {
	claim, uid, pool string
	// at is when the claim was planned, ended when it had led to nothing.
	at, ended time.Time
	node      string
	pods      []string
	// machine, registered and came: the cloud has made it, its node registered, one of its pods came there.
	machine, registered, came bool
	// arrived is when one of them was first seen there.
	arrived time.Time
	// expires is when its expireAfter ends the claim, life how old it is then; zero for never.
	expires time.Time
	life    time.Duration
	// futile: it led to nothing; counted: it is part of failures.
	futile, counted bool
	fate            string
	// lost is the priority of the pod that was preempted there, which the next look explains.
	lost *int32
}

// Launched takes the claims that were created at that time. Claims for pods that still run elsewhere do not count.
func (b *Brake) Launched(at time.Time, claims []NewClaim) {
	for i := range claims {
		c := &claims[i]
		for _, pods := range byOwner(Waiting(c.Pods)) {
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

// Look takes what the snapshot shows of the launches, and the pods that have left nodes since the last look. It returns the
// writes that begin and end pauses.
func (b *Brake) Look(snap *model.Snapshot, left []model.Departure) []Action {
	b.resume(snap)
	if len(b.owners) == 0 && len(b.released) == 0 {
		return nil
	}
	var actions []Action
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

// release forgets everything about a controller whose pods run.
func (b *Brake) release(owner string) {
	delete(b.owners, owner)
	if b.released == nil {
		b.released = map[string]bool{}
	}
	b.released[owner] = true
}

// releases takes pauses that are over off their pools, until no pool has them.
func (b *Brake) releases(snap *model.Snapshot) []Action {
	var actions []Action
	for _, owner := range slices.Sorted(maps.Keys(b.released)) {
		off := releaseElsewhere(snap, owner, "")
		if len(off) == 0 {
			delete(b.released, owner)
		}
		actions = append(actions, off...)
	}
	return actions
}

// resume takes over the pauses of a process before this one, and notes which pauses are on their pools.
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
				if o.pauses < 1 { // of a version that did not write it
					o.pauses = max(1, o.failures-futileLaunches+1)
				}
				o.paused = o.failures
				o.hold, o.holdPool, o.shown, o.resumed = &h, pool.Name, true, true
			case o.hold == nil || o.holdPool != pool.Name:
			case o.hold.Until.Equal(h.Until):
				o.shown = true
			case o.shown: // changed by hand
				o.hold = &h
			}
		}
	}
}

// leave takes pods that have left their nodes, and returns the owners of those that ended by themselves or had run.
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
		for _, l := range slices.Backward(o.list) {
			if !slices.Contains(l.pods, d.UID) {
				continue
			}
			if !l.futile {
				l.fail(now)
				l.lost, l.node = &d.Priority, d.Node
				l.fate = fmt.Sprintf("pod %s was preempted on node %s after %s", d.Name, d.Node, d.Ran.Round(time.Second))
			}
			break
		}
	}
	return served
}

// look follows the claims of the launches.
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
			l.see(n, owner, w.snap.Now)
		}
		l.lives(w.snap, n)
		if there && !n.Deleting {
			return w.snap.Now.Sub(l.at) > launchMemory
		}
		if l.outlived(w, owner) {
			o.count(l)
			return false
		}
		if !there && l.uid == "" { // not seen yet, or never: the create may have failed after all
			return w.snap.Now.Sub(l.at) > futileWindow
		}
		if !l.machine || l.came || !slices.ContainsFunc(l.pods, w.waits) {
			return true
		}
		l.fail(w.snap.Now)
		l.fate = "its node never registered"
		if l.registered {
			l.fate = "its node was removed, and none of the pods had come to it"
		}
		o.count(l)
		return false
	})
}

// fail notes that the launch led to nothing.
func (l *launch) fail(now time.Time) { l.futile, l.ended = true, now }

// see notes how far a claim has come.
func (l *launch) see(n *model.Node, owner string, now time.Time) {
	l.uid, l.node = n.ClaimUID, n.Name
	l.machine = l.machine || n.Stage >= model.Launched
	l.registered = l.registered || n.Stage >= model.Registered
	if !l.came && slices.ContainsFunc(n.Pods, func(p *model.Pod) bool { return ownerOf(p) == owner && slices.Contains(l.pods, p.UID) }) {
		l.came, l.arrived = true, now
	}
}

// explain names what a pod was preempted for: the newest pod of a higher priority on the node.
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

// count counts a launch that led to nothing, once for its pass.
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

// prune forgets pods that neither wait nor are on a node, and that no launch in memory was for. It waits until they are many.
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

// runs reports whether one of the pods has been on a node long enough. Which pods the launches before a restart were for is
// unknown. Then, all of the controller's pods have to be on nodes for as long: others may have run all the time.
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

// forget reports whether nothing is left to remember.
func (o *launches) forget(now time.Time) bool {
	if o.hold != nil && now.Sub(o.hold.Until) > launchMemory {
		o.hold, o.shown = nil, false
	}
	return o.hold == nil && len(o.list) == 0 && now.Sub(o.counted) > launchMemory
}

// lifted reports whether the pause was taken off its pool, or the pool is gone: launches are tried again at once. A pause for
// which the pool has no room any more is kept in memory, until it has.
func (o *launches) lifted(snap *model.Snapshot, owner string) bool {
	pool := snap.Pool(o.holdPool)
	if !o.shown || pool != nil && notes(pool, owner) || snap.Now.Sub(o.hold.Until) > launchMemory {
		return false
	}
	o.shown = false
	return pool == nil || hasRoom(pool, o.hold)
}

// brake begins the next pause when there is reason to, and writes a pause again that could not be written. Pods that wait
// meanwhile are known afterwards: when they run, on whichever node, the loop is over.
func (o *launches) brake(snap *model.Snapshot, owner string) []Action {
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
	return append(releaseElsewhere(snap, owner, pool.Name), HoldLaunches{Pool: pool.Name, UID: pool.UID, Hold: *o.hold})
}

// recent counts the passes whose launches led to nothing, back to where futileWindow has gone by without any of them under way.
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

// last is the newest launch that led to nothing.
func (o *launches) last() *launch {
	for _, l := range slices.Backward(o.list) {
		if l.futile {
			return l
		}
	}
	return &launch{}
}

// why says what became of the last nodes, the newest first.
func (o *launches) why() string {
	var newest []*launch
	for _, l := range slices.Backward(o.list) {
		if l.futile && len(newest) < toldFates {
			newest = append(newest, l)
		}
	}
	return strings.Join(fates(newest), "; ")
}
