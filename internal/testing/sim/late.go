package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// late holds what nodes and objects turn out to be after decisions about them: no plan can know it beforehand. It is
// nil in worlds without. A test sets it before the world runs, and calls world.belated.
type late struct {
	marks []mark
	// daemons are created while the history runs; priority is that of their pods, 0 if they wait for room.
	daemons  []lateDaemon
	priority int32
	flips    []flip
	// short holds, by type, the percentage of its capacity that its nodes have.
	short   map[string]int64
	buffers []buffer
}

// mark is a label or a taint that a daemon or an admission policy sets on the nodes of a pool.
type mark struct {
	// pool is the name of the pool, empty for all.
	pool string
	// label and value are of a label, or taint is a taint.
	label, value string
	taint        model.Taint
	// after is the time from the creation of the node, 0 for an admission policy. A taint is removed when it has lasted,
	// never if lasts is 0.
	after, lasts time.Duration
}

// lateDaemon is a DaemonSet, and when it is created.
type lateDaemon struct {
	at     time.Duration
	daemon model.DaemonSpec
}

// flip changes the template of a pool between two values, each of which is valid for a while.
type flip struct {
	pool  string
	every time.Duration
	// ahead says that the second value is valid.
	ahead bool
}

// buffer is a CapacityBuffer: room for a number of pods that do not exist.
type buffer struct {
	name     string
	count    int
	requests []quantity.Amount
}

// belated begins what happens late in the world.
func (w *world) belated() {
	l := w.setting.late
	for _, d := range l.daemons {
		w.after(d.at, func() {
			w.say("DaemonSet %s is created", d.daemon.Name)
			w.setting.daemons = append(slices.Clone(w.setting.daemons), d.daemon)
			for _, n := range w.api.nodes() {
				w.daemon(n)
			}
		})
	}
	for i := range l.flips {
		w.after(l.flips[i].every, func() { w.flip(&l.flips[i]) })
	}
	for _, a := range w.setting.apps {
		if a.every > 0 {
			w.after(a.every, func() { w.nextJob(a) })
		}
	}
}

// punctual ends what happens late: an administrator has removed its causes.
func (w *world) punctual() {
	l := w.setting.late
	if l == nil {
		return
	}
	w.say("nothing is late any more")
	for _, m := range l.marks {
		for _, n := range w.api.nodes() {
			if m.label == "" && n.tainted(m.taint) {
				w.api.update(n.key(), n.uid, 0, func(o object) { o.(*node).untaint(m.taint) })
			}
		}
	}
	l.marks = slices.DeleteFunc(l.marks, func(m mark) bool { return m.label == "" })
	l.flips, l.short = nil, nil
	for _, a := range w.setting.apps {
		a.every = 0
	}
}

// marked sets the marks on a node that is about to join, and begins the others. It reports whether a label is set now.
func (w *world) marked(n *node, pool string) bool {
	if w.setting.late == nil {
		return false
	}
	labeled := false
	for _, m := range w.setting.late.marks {
		switch {
		case m.pool != "" && m.pool != pool:
			continue
		case m.after == 0:
			m.set(n)
			labeled = labeled || m.label != ""
		default:
			w.after(m.after, func() { w.markLate(n, m) })
		}
		if m.lasts > 0 {
			w.after(m.after+m.lasts, func() {
				w.api.update(n.key(), n.uid, 0, func(o object) { o.(*node).untaint(m.taint) })
			})
		}
	}
	return labeled
}

// markLate sets a mark on a node that has joined, unless the mark is no longer set.
func (w *world) markLate(n *node, m mark) {
	if !slices.Contains(w.setting.late.marks, m) {
		return
	}
	if w.api.update(n.key(), n.uid, 0, func(o object) { m.set(o.(*node)) }); m.label != "" {
		if live := w.api.node(n.name); live != nil && live.uid == n.uid {
			w.daemon(live)
		}
	}
}

func (m mark) set(n *node) {
	if m.label == "" {
		n.taint(m.taint)
		return
	}
	n.labels = maps.Clone(n.labels)
	n.labels[m.label] = m.value
}

// promised returns what a node of the machine has: less than its type has if the type is short.
func (s *setting) promised(m *machine, of []quantity.Amount) []quantity.Amount {
	if s.late == nil || s.late.short[m.kind.Name] == 0 {
		return of
	}
	of = slices.Clone(of)
	for i := range of {
		if of[i].Name == "cpu" || of[i].Name == "memory" {
			of[i].Value = of[i].Value * s.late.short[m.kind.Name] / 100
		}
	}
	return of
}

// flip changes the template to its other value. Claims of that value then match it again.
func (w *world) flip(f *flip) {
	if w.setting.late.flips == nil {
		return
	}
	t := w.setting.templates[f.pool]
	w.say("the template of %s flips", f.pool)
	if f.ahead = !f.ahead; f.ahead {
		t.generation++
	} else {
		t.generation--
	}
	w.after(f.every, func() { w.flip(f) })
}

// nextJob replaces the Job of a CronJob by the next one, as the policy Replace does.
func (w *world) nextJob(a *app) {
	if a.every == 0 {
		return
	}
	a.pod.revision++
	w.recreate(a)
	w.after(a.every, func() { w.nextJob(a) })
}

// virtual returns the virtual pods of the buffers.
func (s *setting) virtual() []model.PodSpec {
	if s.late == nil {
		return nil
	}
	var specs []model.PodSpec
	for _, b := range s.late.buffers {
		for i := range b.count {
			name := fmt.Sprintf("virtual-%s-%d", b.name, i)
			specs = append(specs, model.PodSpec{UID: name, Namespace: "default", Name: name, Created: epoch, Virtual: model.VirtualBuffer,
				Requests: b.requests, Controller: model.Owner{Kind: "CapacityBuffer", Name: b.name, UID: b.name}})
		}
	}
	return specs
}
