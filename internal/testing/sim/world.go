package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// world holds the state of one history.
type world struct {
	agenda
	rng     *rand.Rand
	opts    Options
	setting *setting
	api     *api
	cloud   *cloud
	check   *checks
	// processes holds all processes; the last one leads.
	processes []*process
	// catalogs counts the published catalogs.
	catalogs int

	// flaky is until when some writes fail, starved until when owners do nothing, crash how many more actions the
	// leader performs before it dies (0: no crash), calm says that there are no more disturbances.
	flaky   time.Time
	starved time.Time
	// throttled and quota are until when the API server refuses writes and claims, wrong until when the clock of the
	// controller, off by skew, is unreliable.
	throttled, quota, wrong time.Time
	skew                    time.Duration
	crash                   int
	calm                    bool
	// disturbed is when the last disturbance happened.
	disturbed time.Time
	// related: pods may have constraints on each other.
	related bool
	// ambush waits for its moment; nil if there is none.
	ambush *Disturbance

	// assumed holds the nodes that kube-scheduler has selected for pods and not bound yet, by pod UID.
	assumed map[string]string
	// placing holds the daemon pods for which kube-scheduler preempts others, by node.
	placing   map[string]*pod
	scheduled int
	owned     int
	recounted int
	// zones of the created disks, by name; untainted is when another client removed the disruption taint from a node,
	// by UID.
	zones     map[string]string
	untainted map[string]time.Time

	trace   []string
	failure *Failure
}

func newWorld(seed uint64, opts Options) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0x5eed)), opts: opts, assumed: map[string]string{}, placing: map[string]*pod{}, zones: map[string]string{}, untainted: map[string]time.Time{}, owned: -1, recounted: -1}
	w.now = epoch
	w.setting, w.related = newSetting(seed, w.rng), related(seed)
	w.api = newAPI(func() time.Time { return w.now })
	w.cloud = &cloud{w: w, refused: map[place]time.Time{}}
	w.check = newChecks(w)
	w.say("%d pools, %d types, %d apps, %d daemons, watches lag up to %v", len(w.setting.pools), len(w.setting.types),
		len(w.setting.apps), len(w.setting.daemons), w.setting.lag)
	for _, p := range w.setting.pools {
		w.say("%s weight %d limits %v budgets %v consolidate after %v, %s, template %+v", p.Name, p.Weight, p.Limits, p.Budgets, p.ConsolidateAfter, p.Policy,
			*w.setting.templates[p.Name])
	}
	for _, line := range w.setting.describeBought() {
		w.say("%s", line)
	}
	w.setting.roll(w.now)
	for _, a := range w.setting.apps {
		if a.disks || a.pod.relation != (relation{}) {
			w.say("%s is %s, disks %v", a.name, a.pod.relation, a.disks)
		}
		if a.pdb != nil {
			w.api.create(a.pdb)
			w.say("%s", a.pdb)
		}
	}
	w.start()
	if w.setting.late != nil {
		w.belated()
	}
	w.after(0, w.own)
	w.after(0, w.schedule)
	w.after(0, w.sweep)
	w.after(0, w.recount)
	return w
}

// say adds a line to the trace, with the time in seconds.
func (w *world) say(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%9.3f ", w.now.Sub(epoch).Seconds())+fmt.Sprintf(format, args...))
}

// between returns a random duration.
func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.rng.Int64N(int64(most-least)+1))
}

// start starts a new process, which leads from now on.
func (w *world) start() {
	p := newProcess(w, len(w.processes))
	w.processes = append(w.processes, p)
	w.say("process %d starts", p.id)
	w.after(w.between(0, time.Second), p.wake)
}

// leader returns the leading process, nil while there is none.
func (w *world) leader() *process {
	last := w.processes[len(w.processes)-1]
	if last.dead || last.deposed {
		return nil
	}
	return last
}

// own simulates the controllers of apps: each app has its number of pods.
func (w *world) own() {
	w.after(w.between(500*time.Millisecond, 1500*time.Millisecond), w.own)
	if w.owned != w.api.version && !w.starved.After(w.now) {
		w.fill()
	}
}

// fill creates missing pods and deletes surplus pods.
func (w *world) fill() {
	byApp, used := map[string][]*pod{}, map[string]bool{}
	for _, p := range w.api.pods() {
		used[p.disk] = p.disk != ""
		if p.deleting.IsZero() && !p.daemon {
			byApp[p.app] = append(byApp[p.app], p)
		}
	}
	for _, a := range w.setting.apps {
		there := byApp[a.name]
		for range a.replicas - len(there) {
			if !w.makePod(a, used) {
				break // until the pods being deleted are gone
			}
		}
		if w.roll(a, there, used) {
			continue
		}
		for _, p := range there[min(len(there), a.replicas):] {
			w.deletePod(p)
		}
	}
	w.owned = w.api.version
}

// makePod creates a pod of the app. It returns false if the pod must wait for a disk.
func (w *world) makePod(a *app, used map[string]bool) bool {
	p := a.pod
	if a.disks {
		if p.disk = a.freeDisk(used); p.disk == "" {
			return false
		}
		used[p.disk], p.zone = true, w.zones[p.disk]
	}
	a.made++
	p.meta = meta{name: fmt.Sprintf("%s-%d", a.name, a.made)}
	p.protected = a.protection(w.now)
	w.setting.admit(&p)
	w.api.create(&p)
	return true
}

// scale sets the number of replicas of an app; the newest pods are deleted first, or random ones.
func (w *world) scale(a *app, replicas int) {
	w.say("%s scales from %d to %d", a.name, a.replicas, replicas)
	a.replicas = replicas
	w.owned = -1
}

// deletePod deletes a pod: at once if it is not bound, else after a while.
func (w *world) deletePod(p *pod) {
	if p.node == "" {
		w.api.remove(p.key(), p.uid)
		return
	}
	if w.api.markDeleted(p.key(), p.uid) != nil {
		w.after(w.between(500*time.Millisecond, 5*time.Second), func() { w.api.remove(p.key(), p.uid) })
	}
}

// schedule simulates kube-scheduler.
func (w *world) schedule() {
	w.after(w.between(200*time.Millisecond, 600*time.Millisecond), w.schedule)
	if w.scheduled == w.api.version {
		return
	}
	w.scheduled = w.api.version
	pods := w.api.pods()
	waiting := slices.DeleteFunc(slices.Clone(pods), func(p *pod) bool {
		_, assumed := w.assumed[p.uid]
		return p.node != "" || assumed || !p.deleting.IsZero()
	})
	slices.SortStableFunc(waiting, func(a, b *pod) int { return int(b.priority - a.priority) })
	if len(waiting) == 0 {
		return
	}
	nodes := w.api.nodes()
	for _, p := range waiting {
		var fit []*node
		var hosts map[string]*host
		if w.related {
			hosts = w.hosts(nodes, pods)
		}
		for _, n := range nodes {
			if w.fits(p, n, pods) && (hosts == nil || w.admits(p, n, pods, hosts)) {
				fit = append(fit, n)
			}
		}
		switch {
		case len(fit) > 0:
			w.choose(p, fit)
		case !p.unschedulable:
			w.api.update(p.key(), p.uid, 0, func(o object) { o.(*pod).unschedulable = true })
		default:
			w.preemptFor(p, nodes)
		}
	}
}

// fits implements kube-scheduler's filters. Pods that are nominated to the node reserve their room against pods of no
// higher priority.
func (w *world) fits(p *pod, n *node, pods []*pod) bool {
	if !n.deleting.IsZero() || !p.wants(n.labels) || !tolerates(p, n.taints) {
		return false
	}
	used := map[string]int64{}
	for _, other := range pods {
		a, assumed := w.assumed[other.uid]
		promised := other.uid != p.uid && other.node == "" && (other.nominated == n.name || other.making == n.name) && other.priority >= p.priority
		if other.node == n.name || assumed && a == n.name || promised && !assumed {
			add(used, other.requests)
		}
	}
	if daemon := w.placing[n.name]; daemon != nil && daemon.priority >= p.priority {
		add(used, daemon.requests) // nominated to the node
	}
	add(used, p.requests)
	for name, amount := range used {
		if amount > amountOf(n.allocatable, name) {
			return false
		}
	}
	return true
}

// admits evaluates the rules between pods twice, as kube-scheduler does: with the pods that are nominated to the
// node, and without.
func (w *world) admits(p *pod, n *node, pods []*pod, hosts map[string]*host) bool {
	on := hosts[n.name]
	if !admits(p, on, hosts) {
		return false
	}
	before := on.pods
	for _, other := range pods {
		if _, assumed := w.assumed[other.uid]; !assumed && other.uid != p.uid && other.node == "" && other.nominated == n.name && other.priority >= p.priority {
			on.pods = append(slices.Clip(on.pods), other)
		}
	}
	ok := len(on.pods) == len(before) || admits(p, on, hosts)
	on.pods = before
	return ok
}

func add(to map[string]int64, amounts []quantity.Amount) {
	for _, a := range amounts {
		to[a.Name] += a.Value
	}
}

// choose selects a node and binds the pod a little later, whatever happens in between.
func (w *world) choose(p *pod, fit []*node) {
	n := fit[w.rng.IntN(len(fit))]
	for _, candidate := range fit {
		if candidate.name == p.nominated {
			n = candidate
		}
	}
	w.assumed[p.uid] = n.name
	w.after(w.between(0, w.setting.binding), func() {
		delete(w.assumed, p.uid)
		w.scheduled = -1
		live := w.api.pod(p.name)
		if live == nil || live.uid != p.uid || live.node != "" || !live.deleting.IsZero() || w.api.node(n.name) == nil {
			return
		}
		w.api.update(p.key(), p.uid, 0, func(o object) {
			bound := o.(*pod)
			bound.node, bound.nominated, bound.unschedulable = n.name, "", false
			bound.making, bound.bound = "", w.now
			if bound.disk != "" && bound.zone == "" {
				bound.zone = n.labels[model.LabelZone]
				w.zones[bound.disk] = bound.zone
			}
		})
		w.say("%s is bound to %s", p.name, n.name)
		w.after(w.between(500*time.Millisecond, 5*time.Second), func() {
			w.api.update(p.key(), p.uid, 0, func(o object) { o.(*pod).ready = true })
		})
	})
}

// lostAfter is how long the pods of an unreachable node are kept, according to their default toleration.
const lostAfter = 5 * time.Minute

// sweep simulates the node lifecycle and garbage collectors of Kubernetes: nodes without a machine become unreachable
// and, unless they have a finalizer, are deleted; so are pods without a node, and finally the pods of a node without a
// machine.
func (w *world) sweep() {
	w.after(5*time.Second, w.sweep)
	for _, n := range w.api.nodes() {
		m := w.cloud.machine(n.provider)
		switch {
		case m.gone.IsZero():
		case !n.registered:
			w.api.remove(n.key(), n.uid)
		case n.ready:
			w.api.update(n.key(), n.uid, 0, func(o object) { o.(*node).turn(false, true) })
		}
	}
	for _, p := range w.api.pods() {
		if p.node == "" {
			continue
		}
		n := w.api.node(p.node)
		if n == nil {
			w.api.remove(p.key(), p.uid)
			continue
		}
		if m := w.cloud.machine(n.provider); !m.gone.IsZero() && w.now.Sub(m.gone) > lostAfter && !p.daemon {
			w.api.remove(p.key(), p.uid)
		}
	}
	w.check.inVain()
}
