package sim

import (
	"errors"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/testing/sim/removals"
)

// In witnessed worlds the production controllers decide about involuntary removals: the garbage collector, node
// repair and the limiter. This file implements their view of the world and their writes.

// firstRounds is how many rounds of garbage collection follow each other closely, as in controller/nodeclaim.
const firstRounds = 20

// doing is the current activity of the controllers of a process.
type doing struct {
	repair bool
	// asked holds the cloud's replies about single machines in this round: true for an existing machine.
	asked map[string]bool
}

// repaired is the state of a node when repair examined it.
type repaired struct {
	silent bool
	ill    time.Time
	again  time.Time
}

// collectWitnessed runs a round of garbage collection.
func (p *process) collectWitnessed() {
	p.doing = doing{asked: map[string]bool{}}
	if err := p.removals.Collect(); err != nil {
		p.w.say("process %d: collecting garbage: %v", p.id, err)
	} else {
		p.rounds++
	}
	if p.rounds < firstRounds {
		p.collect = p.w.now.Add(timers.CollectionFirst)
	}
}

// repairNodes examines nodes that are unhealthy or silent, nodes whose claim a repair has marked, and examined nodes
// that have changed.
func (p *process) repairNodes() {
	marked := map[string]bool{}
	for _, c := range list[*claim](p.view.watched(claimKind)) {
		marked[c.provider] = c.repair != "" && c.deleting.IsZero()
	}
	for _, n := range list[*node](p.view.watched(nodeKind)) {
		before := p.repairs[n.uid]
		news := before.silent != n.silent || !before.ill.Equal(n.ill)
		calls := n.silent || !n.ill.IsZero() || marked[n.provider]
		if p.dead || !calls && !news || !news && before.again.After(p.w.now) {
			continue
		}
		p.doing = doing{repair: true, asked: map[string]bool{}}
		again, err := p.removals.Repair(n.name)
		if err != nil {
			p.w.say("process %d: repairing %s: %v", p.id, n.name, err)
		}
		if again <= 0 {
			again = 5 * time.Second
		}
		p.repairs[n.uid] = repaired{n.silent, n.ill, p.w.now.Add(again)}
	}
}

// witness is the view of the world for the controllers of a process.
type witness struct{ p *process }

var _ removals.World = witness{}

// Clock implements removals.World.
func (w witness) Clock() time.Time { return w.p.clock() }

// Ahead implements removals.World.
func (w witness) Ahead() time.Duration { return w.p.w.skew }

// Log implements removals.World.
func (w witness) Log(line string) { w.p.w.say("process %d logs %s", w.p.id, line) }

// Pools implements removals.World.
func (w witness) Pools() []removals.Pool {
	var pools []removals.Pool
	for _, p := range w.p.w.setting.pools {
		pools = append(pools, removals.Pool{Name: p.Name, UID: p.UID, Annotations: w.p.w.notesOf(p.Name)})
	}
	return pools
}

// Claims implements removals.World.
func (w witness) Claims(live bool) []removals.Claim {
	objects := w.p.view.watched(claimKind)
	if live {
		objects = w.p.w.api.sorted(claimKind)
	}
	var claims []removals.Claim
	for _, c := range list[*claim](objects) {
		said := removals.Claim{Name: c.name, UID: c.uid, Pool: c.pool, Version: c.version, Created: c.created, Deleting: c.deleting,
			Provider: c.provider, Node: c.node, Registered: !c.registered.IsZero(), Annotations: map[string]string{}}
		if c.repair != "" {
			said.Annotations[karpv1.AnnotationRepair] = c.repair
			said.Annotations[karpv1.AnnotationTerminationTimestamp] = c.ends.Format(time.RFC3339)
		}
		claims = append(claims, said)
	}
	return claims
}

// Nodes implements removals.World.
func (w witness) Nodes(live bool) []removals.Node {
	objects := w.p.view.watched(nodeKind)
	if live {
		objects = w.p.w.api.sorted(nodeKind)
	}
	var nodes []removals.Node
	for _, n := range list[*node](objects) {
		said := removals.Node{Name: n.name, UID: n.uid, Provider: n.provider, Version: n.version, Deleting: n.deleting, Since: n.turned, Ill: n.ill}
		if n.registered {
			said.Pool = n.labels[model.LabelPool]
		}
		switch {
		case n.ready:
			said.Ready = "True"
		case n.silent:
			said.Ready = "Unknown"
		default:
			said.Ready = "False"
		}
		nodes = append(nodes, said)
	}
	return nodes
}

// Renewed implements removals.World. Kubelets renew every 10 seconds.
func (w witness) Renewed(name string) time.Time {
	n := w.p.w.api.node(name)
	if n == nil {
		return time.Time{}
	}
	m := w.p.w.cloud.machine(n.provider)
	if m.speaks() {
		return w.p.w.now.Add(-5 * time.Second)
	}
	return m.silentSince()
}

// Machine implements removals.World.
func (w witness) Machine(id string) (removals.Machine, error) {
	m, err := w.p.w.cloud.answerMachine(id)
	if err == nil || errors.Is(err, removals.ErrNotFound) {
		w.p.doing.asked[id] = err == nil && !m.Ending
	}
	return m, err
}

// Machines implements removals.World.
func (w witness) Machines() ([]removals.Machine, error) { return w.p.w.cloud.answerMachines() }

// Terminate implements removals.World: the collector terminates a machine without a claim.
func (w witness) Terminate(id string) error {
	return w.p.write("end leaked "+id, func() error {
		w.p.w.check.ended(w.p, id)
		if !w.p.w.cloud.dismiss(id) {
			return removals.ErrNotFound
		}
		return nil
	})
}

// AnnotatePool implements removals.World.
func (w witness) AnnotatePool(name string, annotations map[string]*string) error {
	return w.p.write("annotate pool "+name, func() error {
		w.p.w.annotate(name, annotations)
		return nil
	})
}

// AnnotateClaim implements removals.World.
func (w witness) AnnotateClaim(c removals.Claim, annotations map[string]*string) error {
	return w.p.write("annotate claim "+c.Name, func() error {
		return w.change(c, func(o object) {
			of := o.(*claim)
			for name, value := range annotations {
				switch {
				case name == karpv1.AnnotationRepair && value != nil:
					of.repair = *value
				case name == karpv1.AnnotationRepair:
					of.repair = ""
				case name == karpv1.AnnotationTerminationTimestamp && value != nil:
					of.ends, _ = time.Parse(time.RFC3339, *value)
				case name == karpv1.AnnotationTerminationTimestamp:
					of.ends = time.Time{}
				}
			}
		})
	})
}

// DeleteClaim implements removals.World.
func (w witness) DeleteClaim(c removals.Claim) error {
	return w.p.write("delete claim "+c.Name+", its machine is gone", func() error {
		live := w.p.w.api.claim(c.Name)
		if live != nil && live.uid == c.UID && live.version == c.Version && live.deleting.IsZero() {
			w.p.w.check.givenUp(w.p, live)
		}
		return w.change(c, func(o object) {
			if o.header().deleting.IsZero() {
				o.header().deleting = w.p.w.now
			}
		})
	})
}

// change applies edit to the claim if it has the version that was read.
func (w witness) change(c removals.Claim, edit func(object)) error {
	written, conflict := w.p.w.api.update(key{claimKind, c.Name}, c.UID, c.Version, edit)
	switch {
	case conflict:
		return removals.ErrConflict
	case written == nil:
		return removals.ErrGone
	}
	return nil
}

// Errors of writes.
var (
	errEnded   = errors.New("the process has ended")
	errRefused = errors.New("the API server refuses the write")
	errLost    = errors.New("the answer is lost")
)

// write performs a write of a controller: the process may die before it, and while the API is flaky the write may be
// refused, or its reply lost.
func (p *process) write(text string, do func() error) error {
	if p.dead {
		return errEnded
	}
	if p.w.crash > 0 {
		if p.w.crash--; p.w.crash == 0 {
			p.die("crashes before it can " + text)
			p.w.after(p.w.between(time.Second, 20*time.Second), p.w.start)
			return errEnded
		}
	}
	fault := 0
	if !p.w.calm && p.w.flaky.After(p.w.now) {
		fault = p.w.rng.IntN(5)
	}
	if fault == 1 || p.w.throttles() {
		p.w.say("process %d: %s (refused)", p.id, text)
		return errRefused
	}
	err := do()
	p.w.say("process %d: %s%s", p.id, text, map[bool]string{true: "", false: " (error)"}[err == nil])
	if err == nil && fault == 2 {
		return errLost
	}
	return err
}

// notesOf returns the annotations of a pool.
func (w *world) notesOf(pool string) map[string]string {
	notes := map[string]string{}
	for name, value := range w.notes[pool] {
		notes[name] = value
	}
	return notes
}

// annotate changes annotations of a pool; nil removes one.
func (w *world) annotate(pool string, annotations map[string]*string) {
	notes := w.notesOf(pool)
	for name, value := range annotations {
		if value == nil {
			delete(notes, name)
		} else {
			notes[name] = *value
		}
	}
	w.notes[pool] = notes
	w.api.changed = w.now
}

// paused reports whether involuntary removals are paused, or were until the last round of garbage collection.
func (w *world) paused() bool {
	for _, notes := range w.notes {
		for _, p := range pause.Parse(notes[karpv1.AnnotationPauses]).Active(w.now.Add(-timers.Collection - recently)) {
			if p.Reason == pause.Removal {
				return true
			}
		}
	}
	return false
}

// overdue returns the machines that involuntary removals have to end: those without a claim, and those whose node was
// removed from the cluster.
func (w *world) overdue() map[string]bool {
	claimed, joined, overdue := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, n := range w.api.nodes() {
		joined[n.provider] = true
	}
	for _, of := range w.api.claims() {
		claimed[of.provider] = of.registered.IsZero() || !of.deleting.IsZero() || joined[of.provider]
	}
	for _, m := range w.cloud.alive() {
		if !claimed[m.id] {
			overdue[m.id] = true
		}
	}
	return overdue
}

// patienceOfOperator is how long the operator waits before it allows removals: longer than a pause lasts.
const patienceOfOperator = 35 * time.Minute

// permission is for how long the operator allows removals.
const permission = 2 * time.Hour

// operate simulates the operator. It allows removals if machines that have to be ended still run long after the cloud's
// replies became correct: after a pause one is ended at a time.
func (w *world) operate() {
	if len(w.overdue()) == 0 {
		return
	}
	w.check.resumed()
	w.say("the operator allows the removals")
	until := w.now.Add(permission).Format(time.RFC3339)
	for _, p := range w.setting.pools {
		w.annotate(p.Name, map[string]*string{karpv1.AnnotationRemovalsAllowedUntil: &until})
	}
}
