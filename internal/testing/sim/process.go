package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/futile"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// process is one run of the controller. All of its state is in memory, and is lost when it dies.
//
//	queue   writes of the loops, decided under their lock; one at a time
//	chores  writes of the claim and node controllers, concurrent with them
type process struct {
	w     *world
	id    int
	view  *view
	store *store

	queue []write
	then  func()
	// busy is until when the loops only compute.
	busy time.Time
	// failed is the number of failed writes of the queue since it was filled.
	failed int
	chores []write

	// dead processes do nothing any more. deposed processes no longer lead and may still perform the next write.
	dead, deposed bool

	provision provisionLoop
	disrupt   disruptLoop
	static    staticLoop
	// nominated holds the nodes that pods are nominated to, and until when that prevents their disruption.
	nominated map[string]time.Time
	// calls to the cloud by the claim's UID; again is when an object may be examined next.
	calls map[string]*call
	again map[string]time.Time
	// launches are what the provision loop remembers of them, left the departures not reported to it yet.
	launches futile.Launches
	left     []model.Departure
	collect  time.Time
}

// write is one API write, or one call to the cloud.
type write struct {
	text string
	// do reports success.
	do func() bool
}

// call is a launch request to the cloud.
type call struct {
	answered bool
	// lost replies never arrive; the launch is requested again.
	lost    bool
	machine *machine
}

func newProcess(w *world, id int) *process {
	if w.setting.preemption != nil {
		clear(w.setting.preemption.known)
	}
	return &process{w: w, id: id, view: newView(w.api), store: newStore(w.setting), nominated: map[string]time.Time{},
		calls: map[string]*call{}, again: map[string]time.Time{}, collect: w.now.Add(timers.Collection)}
}

// wake runs one turn of the process.
func (p *process) wake() {
	if p.dead {
		return
	}
	p.watch()
	if p.deposed {
		p.work(&p.queue)
		p.die("is deposed")
		return
	}
	switch {
	case len(p.queue) > 0:
		p.work(&p.queue)
	case p.w.now.Before(p.busy):
	case p.then != nil:
		then := p.then
		p.then = nil
		then()
	default:
		p.loops()
	}
	if !p.dead && len(p.chores) == 0 {
		p.reconcile()
	}
	if !p.dead {
		p.work(&p.chores)
	}
	pause := p.w.between(300*time.Millisecond, 900*time.Millisecond)
	if len(p.queue) > 0 || p.then != nil || len(p.chores) > 0 {
		pause = p.w.between(2*time.Millisecond, 120*time.Millisecond)
	}
	p.w.after(pause, p.wake)
}

// work performs the first write of a queue, unless the process dies before it.
func (p *process) work(queue *[]write) {
	if len(*queue) == 0 {
		return
	}
	if p.w.crash > 0 && !p.deposed {
		if p.w.crash--; p.w.crash == 0 {
			p.die("crashes before it can " + (*queue)[0].text)
			p.w.after(p.w.between(time.Second, 20*time.Second), p.w.start)
			return
		}
	}
	first := (*queue)[0]
	*queue = (*queue)[1:]
	done := first.do()
	if !done {
		p.failed++
	}
	p.w.say("process %d: %s%s", p.id, first.text, map[bool]string{true: "", false: " (error)"}[done])
}

func (p *process) die(why string) {
	p.dead = true
	p.w.say("process %d %s", p.id, why)
}

// depose makes another process the leader. The current one may still perform its next write.
func (w *world) depose() {
	p := w.leader()
	if p == nil {
		return
	}
	p.deposed = true
	w.say("process %d loses the lease", p.id)
	w.start()
}

// watch delivers the events of the watches, each with its own lag.
func (p *process) watch() {
	for k := range kinds {
		oldest, behind := p.view.oldest(k)
		if !behind {
			continue
		}
		lag := p.w.between(0, p.w.setting.lag)
		if p.w.now.Sub(oldest) > p.w.setting.lag*9/10 {
			lag = 0
		}
		p.view.deliver(k, p.w.now.Add(-lag), p.w.rng.IntN(5) == 0)
	}
	p.view.settle()
}

// snapshot returns the newest snapshot that the process knows.
func (p *process) snapshot() *model.Snapshot {
	p.w.setting.roll(p.w.now)
	for name, until := range p.nominated {
		if !until.After(p.clock()) {
			delete(p.nominated, name)
		}
	}
	return p.store.snapshot(p.w.setting, p.clock(), p.view, p.nominated)
}

// facts returns the same as specs.
func (p *process) facts() facts {
	return factsOf(p.w.setting, p.clock(), p.view.sorted, p.nominated)
}

// carryOut queues actions; then is called when they are done, successfully or not.
func (p *process) carryOut(actions []plan.Action, then func()) {
	p.failed = 0
	for _, a := range actions {
		p.queue = append(p.queue, write{a.String(), func() bool { return p.perform(a) }})
	}
	p.then = then
}

// perform performs an action like the executor: idempotent, by UID.
func (p *process) perform(action plan.Action) bool {
	switch a := action.(type) {
	case plan.TaintNode:
		return p.patchNode(a.Node, a.UID, func(n *node) bool {
			if n.tainted(disruptedTaint) {
				return false
			}
			n.taint(disruptedTaint)
			return true
		})
	case plan.UntaintNode:
		return p.patchNode(a.Node, a.UID, func(n *node) bool {
			if !n.tainted(disruptedTaint) {
				return false
			}
			n.untaint(disruptedTaint)
			return true
		})
	case plan.WriteCommand:
		p.w.check.commanded(a)
		p.w.spring(atCommand)
		return p.patch(key{claimKind, a.Claim}, a.UID, func(o object) { o.(*claim).command = a.Command.Encode() })
	case plan.ClearCommand:
		return p.patch(key{claimKind, a.Claim}, a.UID, func(o object) { o.(*claim).command = "" })
	case plan.SetDisruptionReason:
		return p.patch(key{claimKind, a.Claim}, a.UID, func(o object) { o.(*claim).reason = string(a.Reason) })
	case plan.ClearDisruptionReason:
		return p.patch(key{claimKind, a.Claim}, a.UID, func(o object) { o.(*claim).reason = "" })
	case plan.MarkConsolidated:
		return p.patch(key{claimKind, a.Claim}, a.UID, func(o object) { o.(*claim).consolidated = a.At })
	case plan.MarkPodsSent:
		return p.patch(key{claimKind, a.Claim}, a.UID, func(o object) { o.(*claim).expecting = a.At.Truncate(time.Second) })
	case plan.SetPause:
		return p.changePauses(a.Pool, a.UID, func(l pause.List) pause.List { return l.With(a.Pause) })
	case plan.EndPause:
		return p.changePauses(a.Pool, a.UID, func(l pause.List) pause.List { return l.Without(a.Key) })
	case plan.NominatePod:
		return p.patch(key{podKind, a.Name}, a.UID, func(o object) { o.(*pod).nominated = a.Node })
	case plan.ClearNomination:
		return p.patch(key{podKind, a.Name}, a.UID, func(o object) {
			if o.(*pod).nominated == a.From {
				o.(*pod).nominated = ""
			}
		})
	case plan.CreateClaim:
		return p.createClaim(a)
	case plan.DeleteClaim:
		return p.deleteClaim(a)
	}
	panic(fmt.Sprintf("no such action: %T", action))
}

// send performs a write that may be refused, or whose reply may be lost, while the API is flaky. It records the
// returned object.
func (p *process) send(do func() object) bool {
	fault := 0
	if !p.w.calm && p.w.flaky.After(p.w.now) {
		fault = p.w.rng.IntN(5)
	}
	if fault == 1 || p.w.throttles() {
		return false
	}
	written := do()
	if fault == 2 {
		return false
	}
	if written != nil && p.w.opts.remember(written) {
		p.view.wrote(written)
	}
	return true
}

func (p *process) patch(k key, uid string, edit func(object)) bool {
	return p.send(func() object {
		written, _ := p.w.api.update(k, uid, 0, edit)
		return written
	})
}

// patchNode reads the cache first and, after a conflict, the API.
func (p *process) patchNode(name, uid string, change func(*node) bool) bool {
	k := key{nodeKind, name}
	read := p.view.cached(k)
	for range 5 {
		if read == nil || read.header().uid != uid || !change(read.copied().(*node)) {
			return true
		}
		conflict := false
		done := p.send(func() object {
			var written object
			written, conflict = p.w.api.update(k, uid, read.header().version, func(o object) { change(o.(*node)) })
			return written
		})
		if !conflict {
			return done
		}
		read = p.w.api.read(k)
	}
	return false
}

func (p *process) createClaim(a plan.CreateClaim) bool {
	pool := p.w.setting.pool(a.NewClaim.Pool)
	if pool == nil || pool.UID != a.NewClaim.PoolUID || p.w.forbids() {
		return false
	}
	fresh := claimOf(p.w.setting, &a.NewClaim)
	fresh.replacement, fresh.renewal = a.Reason == "underutilized", a.Reason == "drifted"
	created, leaving := false, false
	done := p.send(func() object {
		if created = p.w.api.create(fresh); created {
			p.w.check.bought(fresh)
			p.w.check.created(p, fresh, a)
			return fresh
		}
		there := p.w.api.claim(fresh.name)
		leaving = !there.deleting.IsZero()
		return there
	})
	if created && !done {
		p.w.check.unanswered(fresh.uid)
	}
	return done && !leaving
}

func (p *process) deleteClaim(a plan.DeleteClaim) bool {
	c, _ := p.view.cached(key{claimKind, a.Claim}).(*claim)
	if c == nil || c.uid != a.UID || !c.deleting.IsZero() {
		return true
	}
	return p.send(func() object {
		if live := p.w.api.claim(a.Claim); live != nil && live.uid == a.UID && live.deleting.IsZero() {
			p.w.check.deleting(p, live, a.Reason)
		}
		p.w.api.markDeleted(c.key(), c.uid)
		if live := p.w.api.claim(a.Claim); live != nil && live.uid == a.UID {
			return live
		}
		return nil
	})
}

// pending returns the number of unschedulable pods that the process sees.
func (p *process) pending() int {
	count := 0
	for _, o := range p.view.sorted(podKind) {
		if q := o.(*pod); q.node == "" && q.unschedulable && q.deleting.IsZero() {
			count++
		}
	}
	return count
}

// leaving reports whether pods run on nodes that are being removed.
func (p *process) leaving() bool {
	going := map[string]bool{}
	for _, c := range list[*claim](p.view.sorted(claimKind)) {
		if c.node == "" || c.deleting.IsZero() && c.terminating.IsZero() && c.command == "" {
			continue
		}
		if spec := nodeSpec(c, nil); plan.Leaving(&spec) {
			going[c.node] = true
		}
	}
	return len(going) > 0 && slices.ContainsFunc(list[*pod](p.view.sorted(podKind)), func(q *pod) bool {
		return going[q.node] && !q.daemon && q.deleting.IsZero()
	})
}

func tolerates(p *pod, taints []model.Taint) bool {
	return !slices.ContainsFunc(taints, func(t model.Taint) bool {
		return t.Effect != model.PreferNoSchedule &&
			!slices.ContainsFunc(p.tolerations, func(toleration model.Toleration) bool { return toleration.Tolerates(t) })
	})
}
