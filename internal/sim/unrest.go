package sim

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// disturbRules makes somebody change what may be disrupted, or why something should be; false for another disturbance.
func (w *world) disturbRules(d Disturbance) bool {
	a := w.setting.apps[d.Which%len(w.setting.apps)]
	pool := d.Which % len(w.setting.pools)
	switch d.What {
	case "tighten":
		w.rewrite(a, func(b *pdb) { b.byMost, b.most, b.least = d.Much%2 == 0, d.Much%3, d.Much%5 })
	case "open":
		w.rewrite(a, func(b *pdb) { b.byMost, b.most = true, 1+a.replicas/2 })
	case "protect":
		w.protect(a, []time.Duration{0, -1, time.Minute, 5 * time.Minute}[d.Much%4])
	case "drift":
		w.setting.templates[w.setting.pools[pool].Name].generation++
	case "sicken":
		w.sicken(d)
	case "budget":
		w.rebudget(pool, d.Much)
	case "shrink": // half of every app goes: nodes become underused
		for _, a := range w.setting.apps {
			w.scale(a, a.replicas/2)
		}
	case "replicas":
		fresh := *w.setting.pools[pool]
		if fresh.Static {
			fresh.Replicas = int64(d.Much % 4)
			w.setting.replace(pool, &fresh, w.now)
		}
	default:
		return false
	}
	return true
}

// rewrite changes the app's PodDisruptionBudget, or makes one. Its status follows a little later; until then it is of the
// old specification, and allows nothing.
func (w *world) rewrite(a *app, edit func(*pdb)) {
	b, _ := w.api.read(key{pdbKind, "pdb-of-" + a.name}).(*pdb)
	if b == nil {
		b = &pdb{meta: meta{name: "pdb-of-" + a.name}, app: a.name}
		edit(b)
		w.api.create(b)
	} else {
		w.api.update(b.key(), b.uid, 0, func(o object) { edit(o.(*pdb)); o.(*pdb).status.allowed = 0 })
	}
	w.recounted = -1
}

// protect gives the pods of an app, those there and those to come, another do-not-disrupt.
func (w *world) protect(a *app, how time.Duration) {
	a.protected = how
	for _, p := range w.api.pods() {
		if p.app == a.name && !p.daemon {
			w.api.update(p.key(), p.uid, 0, func(o object) { o.(*pod).protected, o.(*pod).forbade = a.protection(w.now), w.now })
		}
	}
}

// protection is until when a pod of the app that starts now forbids its disruption.
func (a *app) protection(now time.Time) time.Time {
	switch {
	case a.protected < 0:
		return model.Forever
	case a.protected > 0:
		return now.Add(a.protected)
	}
	return time.Time{}
}

// sicken makes a node not ready for a while.
func (w *world) sicken(d Disturbance) {
	nodes := slices.DeleteFunc(w.api.nodes(), func(n *node) bool { return !n.ready })
	if len(nodes) == 0 {
		return
	}
	n := nodes[d.Which%len(nodes)]
	turn := func(ready bool) {
		w.api.update(n.key(), n.uid, 0, func(o object) { o.(*node).ready = ready })
		for _, p := range w.api.pods() {
			if p.node == n.name {
				w.api.update(p.key(), p.uid, 0, func(o object) { o.(*pod).ready = ready })
			}
		}
	}
	turn(false)
	w.after(time.Duration(5+d.Much%100)*time.Second, func() {
		if w.cloud.machine(n.provider).speaks() {
			turn(true)
		}
	})
}

// rebudget changes the first budget of a pool.
func (w *world) rebudget(i, much int) {
	fresh := *w.setting.pools[i]
	fresh.Budgets = slices.Clone(fresh.Budgets)
	fresh.Budgets[0] = model.Budget{Count: int64(much % 4)}
	if much%4 == 3 {
		fresh.Budgets[0] = model.Budget{IsPercent: true, Percent: 100}
	}
	w.setting.replace(i, &fresh, w.now)
}

// lastForEver ends what would make a world go on changing by itself: nodes expire no more, and what a
// consolidation did stands for the usual time. (kube-scheduler puts pods elsewhere than planned; without a minimum stay that is
// undone again and again.)
func (w *world) lastForEver() {
	for i, p := range w.setting.pools {
		fresh := *p
		fresh.Payback = 0
		w.setting.replace(i, &fresh, w.now)
	}
	for _, t := range w.setting.templates {
		t.expireAfter = 0
	}
	for _, c := range w.api.claims() {
		if c.expireAfter > 0 {
			w.api.update(c.key(), c.uid, 0, func(o object) { o.(*claim).expireAfter = 0 })
		}
	}
}
