package sim

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// disturbRules executes a disturbance that changes what may be disrupted, or why a node should be. It returns false
// for other disturbances.
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
	case "shrink": // deletes half of every app's pods: nodes become underutilized
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

// rewrite changes the app's PodDisruptionBudget, or creates one. Its status follows with a delay; until then it
// belongs to the old spec, and allows nothing.
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

// protect changes the do-not-disrupt protection of the existing and future pods of an app.
func (w *world) protect(a *app, how time.Duration) {
	a.protected = how
	for _, p := range w.api.pods() {
		if p.app == a.name && !p.daemon {
			w.api.update(p.key(), p.uid, 0, func(o object) { o.(*pod).protected, o.(*pod).forbade = a.protection(w.now), w.now })
		}
	}
}

// protection returns until when a pod of the app that starts now forbids its disruption.
func (a *app) protection(now time.Time) time.Time {
	switch {
	case a.protected < 0:
		return model.Forever
	case a.protected > 0:
		return now.Add(a.protected)
	}
	return time.Time{}
}

// sicken sets the condition Ready of a node to False for a while, as its kubelet would.
func (w *world) sicken(d Disturbance) {
	nodes := slices.DeleteFunc(w.api.nodes(), func(n *node) bool { return !n.ready })
	if len(nodes) == 0 {
		return
	}
	n := nodes[d.Which%len(nodes)]
	turn := func(ready bool) {
		w.api.update(n.key(), n.uid, 0, func(o object) { o.(*node).turn(ready, false) })
		for _, p := range w.api.pods() {
			if p.node == n.name {
				w.api.update(p.key(), p.uid, 0, func(o object) { o.(*pod).ready = ready })
			}
		}
	}
	turn(false)
	w.after(time.Duration(5+d.Much%100)*time.Second, func() {
		if w.cloud.machine(n.provider).gone.IsZero() {
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

// lastForEver ends what would keep a world changing: nodes no longer expire, and the result of a consolidation is
// kept for the default time. (kube-scheduler places pods differently than planned; without a minimum stay
// consolidations are reverted again and again.)
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
