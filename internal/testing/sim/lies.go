package sim

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/testing/sim/removals"
)

// Wrong replies of the cloud: lists of machines are incomplete, end early, contain duplicates or foreign machines,
// replies are old, and running machines are not found. In addition, kubelets fall silent, nodes have a condition that
// requires repair, and many machines end at once.

// Witnessed is the first seed of ordinary worlds whose removals pass through the production controllers
// (removing.go), as those of wide worlds do. Worlds with smaller seeds are unaffected.
const Witnessed = uint64(1) << 21

// witnessed reports whether the removals of a world pass through the production controllers.
func witnessed(seed uint64) bool { return seed >= Wide || seed >= Witnessed && seed < Preempting }

// doubtful reports whether the cloud of a world gives wrong replies at times.
func doubtful(seed uint64) bool { return witnessed(seed) && seed%5 == 2 }

// doubtfully holds the disturbances that only doubtful worlds have.
var doubtfully = []string{"lie", "lie", "lie", "mute", "ill", "perish"}

// doubt adds the disturbances of doubtful worlds to a history. They follow each other closely, so that some overlap.
func doubt(h *History, until time.Duration) {
	rng := rand.New(rand.NewPCG(h.Seed, 0x11e5))
	at := time.Duration(rng.Int64N(int64(until)/2 + 1))
	for range 3 + rng.IntN(6) {
		at += time.Duration(rng.IntN(150_000)) * time.Millisecond
		h.Disturbances = append(h.Disturbances, Disturbance{at, doubtfully[rng.IntN(len(doubtfully))], rng.IntN(1000), rng.IntN(1000)})
	}
}

// errCloud is the error of a cloud that cannot reply.
var errCloud = errors.New("the cloud is out of order")

// lastLie is how long the cloud continues to give wrong replies after the last disturbance.
const lastLie = 8 * time.Minute

// lie is a kind of wrong reply of the cloud, for a limited time.
type lie struct {
	what string
	// salt selects the affected machines, share is their percentage; ago is how old replies are.
	salt  uint64
	share int
	ago   time.Duration
	since time.Time
	until time.Time
}

// lieKinds are the kinds of wrong replies.
var lieKinds = []string{
	"misses",   // the list lacks machines that a lookup of the single machine finds
	"halves",   // the list ends early
	"repeats",  // the list contains machines twice, also with their state minutes ago
	"foreign",  // the list contains machines of other owners; a lookup may or may not find them
	"old",      // all replies are minutes old
	"blind",    // running machines are not found, neither in the list nor by lookup, and not terminated
	"blind",    // as above, twice as likely
	"fails",    // the list is an error
	"searches", // a lookup is an error
}

// lies makes the cloud give wrong replies for 1 to 20 minutes.
func (w *world) lies(d Disturbance) {
	l := lie{what: lieKinds[d.Which%len(lieKinds)], salt: uint64(d.Which*1000 + d.Much), since: w.now}
	l.share = []int{10, 30, 60, 100, 100}[d.Much%5]
	l.ago = time.Duration(1+d.Much%9) * time.Minute
	l.until = w.now.Add(time.Minute + time.Duration(d.Much%20)*time.Minute)
	w.cloud.lies = append(w.cloud.lies, l)
	w.say("the cloud %s (%d of 100, %v ago) until %.0f", l.what, l.share, l.ago, l.until.Sub(epoch).Seconds())
}

// about reports whether the lie affects the machine.
func (l lie) about(id string) bool {
	h := fnv.New64a()
	fmt.Fprintln(h, l.salt, id)
	return int(h.Sum64()%100) < l.share
}

// telling returns the current lies of a kind.
func (c *cloud) telling(what string) []lie {
	if c.w.calm {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.lies), func(l lie) bool { return l.what != what || !l.until.After(c.w.now) })
}

// unseen reports whether the cloud does not find the machine although it exists.
func (c *cloud) unseen(id string) bool {
	return slices.ContainsFunc(c.telling("blind"), func(l lie) bool { return l.about(id) })
}

// age returns how old the cloud's replies are.
func (c *cloud) age() time.Duration {
	age := time.Duration(0)
	for _, l := range c.telling("old") {
		age = max(age, l.ago)
	}
	return age
}

// honest reports whether, for the given time, the cloud would have reported correctly that a machine is gone.
func (c *cloud) honest(lately time.Duration) bool {
	return !slices.ContainsFunc(c.lies, func(l lie) bool {
		ended := l.until.Add(l.ago)
		if c.w.calm && ended.After(c.w.truth) {
			ended = c.w.truth
		}
		return (l.what == "old" || l.what == "fails" || l.what == "searches") && c.w.now.Sub(ended) < lately
	})
}

// described returns the machine as it was some time ago, and false if it did not exist then.
func (c *cloud) described(m *machine, ago time.Duration) (removals.Machine, bool) {
	then := c.w.now.Add(-ago)
	if m.bought.After(then) || !m.gone.IsZero() && !m.gone.After(then) {
		return removals.Machine{}, false
	}
	return removals.Machine{ID: m.id, Claim: m.claim, Created: m.bought, Ending: !m.ending.IsZero() && !m.ending.After(then)}, true
}

// answerMachine returns the cloud's reply for one machine.
func (c *cloud) answerMachine(id string) (removals.Machine, error) {
	if len(c.telling("searches")) > 0 {
		return removals.Machine{}, errCloud
	}
	for _, m := range slices.Concat(c.ledger, c.foreigners()) {
		if m.id != id || c.unseen(id) {
			continue
		}
		if said, there := c.described(m, c.age()); there && !m.hidden {
			return said, nil
		}
	}
	return removals.Machine{}, fmt.Errorf("machine %s: %w", id, removals.ErrNotFound)
}

// answerMachines returns the cloud's list.
func (c *cloud) answerMachines() ([]removals.Machine, error) {
	if len(c.telling("fails")) > 0 {
		return nil, errCloud
	}
	var list []removals.Machine
	for _, m := range slices.Concat(c.ledger, c.foreigners()) {
		said, there := c.described(m, c.age())
		if !there || c.unseen(m.id) || slices.ContainsFunc(c.telling("misses"), func(l lie) bool { return l.about(m.id) }) {
			continue
		}
		list = append(list, said)
		for _, l := range c.telling("repeats") {
			if before, was := c.described(m, l.ago); was && l.about(m.id) {
				list = append(list, said, before)
			}
		}
	}
	for _, l := range c.telling("halves") {
		slices.SortFunc(list, func(a, b removals.Machine) int { return cmp.Compare(a.ID, b.ID) })
		list = list[:len(list)*(100-l.share/2)/100]
	}
	return list, nil
}

// foreigners returns machines of other owners that the cloud lists as machines of this cluster.
func (c *cloud) foreigners() []*machine {
	var all []*machine
	for _, l := range c.telling("foreign") {
		for i := range 1 + l.salt%6 {
			m := &machine{id: fmt.Sprintf("foreign-%d-%d", l.salt, i), claim: fmt.Sprintf("claim-of-others-%d", i), bought: epoch.Add(-time.Hour), hidden: l.salt%2 == 0}
			if m.gone = c.taken[m.id]; m.gone.IsZero() {
				all = append(all, m)
			}
		}
	}
	return all
}

// dismiss terminates a machine if the cloud finds it. It returns false otherwise.
func (c *cloud) dismiss(id string) bool {
	if c.unseen(id) {
		return false
	}
	for _, m := range c.foreigners() {
		if m.id == id {
			c.taken[id] = c.w.now
			return true
		}
	}
	return c.terminate(id)
}

// silenceAfter is how long a kubelet may be silent before its node's condition Ready becomes Unknown
// (node-monitor-grace-period of the node lifecycle controller).
const silenceAfter = 40 * time.Second

// speaks reports whether the machine's kubelet reports.
func (m *machine) speaks() bool { return m.gone.IsZero() && m.muted.IsZero() }

// silentSince returns when it last reported.
func (m *machine) silentSince() time.Time {
	if m.muted.IsZero() || !m.gone.IsZero() && m.gone.Before(m.muted) {
		return m.gone
	}
	return m.muted
}

// silence sets a node's condition Ready to Unknown if its kubelet has been silent for long enough.
func (w *world) silence(n *node, m *machine) {
	if n.silent || w.now.Sub(m.silentSince()) < silenceAfter {
		return
	}
	w.api.update(n.key(), n.uid, 0, func(o object) {
		o.(*node).turn(false, true)
		o.(*node).turned = w.now
	})
	for _, p := range w.api.pods() {
		if p.node == n.name && p.ready {
			w.api.update(p.key(), p.uid, 0, func(o object) { o.(*pod).ready = false })
		}
	}
}

// mute makes kubelets silent for a while, like a network partition; their machines run.
func (w *world) mute(d Disturbance) {
	for _, n := range w.some(d) {
		m := w.cloud.machine(n.provider)
		if !m.speaks() {
			continue
		}
		w.say("%s falls silent", n.name)
		m.muted = w.now
		w.after(time.Duration(10+d.Much%900)*time.Second, func() { w.unmute(m, n) })
	}
}

// unmute makes a kubelet report again.
func (w *world) unmute(m *machine, n *node) {
	if m.muted.IsZero() {
		return
	}
	m.muted, m.heard = time.Time{}, w.now
	if !m.gone.IsZero() {
		return
	}
	w.say("%s reports again", n.name)
	w.api.update(n.key(), n.uid, 0, func(o object) { o.(*node).turn(true, false) })
	for _, p := range w.api.pods() {
		if p.node == n.name {
			w.api.update(p.key(), p.uid, 0, func(o object) { o.(*pod).ready = true })
		}
	}
}

// sickenMany gives nodes a condition that requires repair, for a while.
func (w *world) sickenMany(d Disturbance) {
	for _, n := range w.some(d) {
		w.say("%s has a condition that calls for repair", n.name)
		w.api.update(n.key(), n.uid, 0, func(o object) { o.(*node).ill = w.now })
		w.after(time.Duration(30+d.Much%1200)*time.Second, func() { w.cure(n) })
	}
}

func (w *world) cure(n *node) {
	if live := w.api.node(n.name); live != nil && live.uid == n.uid && !live.ill.IsZero() {
		w.say("%s is well again", n.name)
		w.api.update(n.key(), n.uid, 0, func(o object) { o.(*node).ill = time.Time{} })
	}
}

// perish ends many machines.
func (w *world) perish(d Disturbance) {
	for _, n := range w.some(d) {
		w.cloud.end(w.cloud.machine(n.provider))
	}
}

// some returns registered nodes: a few, half or all of them.
func (w *world) some(d Disturbance) []*node {
	nodes := slices.DeleteFunc(w.api.nodes(), func(n *node) bool { return !n.registered || !n.deleting.IsZero() })
	chosen := lie{salt: uint64(d.Which), share: []int{20, 50, 100}[d.Which%3]}
	return slices.DeleteFunc(nodes, func(n *node) bool { return !chosen.about(n.name) })
}

// disturbDoubtfully executes a disturbance of a doubtful world.
func (w *world) disturbDoubtfully(d Disturbance) {
	switch d.What {
	case "lie":
		w.lies(d)
	case "mute":
		w.mute(d)
	case "ill":
		w.sickenMany(d)
	case "perish":
		w.perish(d)
	}
}

// tellTruth ends all wrong replies, silences and conditions.
func (w *world) tellTruth() {
	w.truth, w.check.overdue = w.now, w.overdue()
	if len(w.cloud.lies) > 0 {
		w.api.changed = w.now // the consequences take time
	}
	for _, n := range w.api.nodes() {
		w.unmute(w.cloud.machine(n.provider), n)
		w.cure(n)
	}
	for _, m := range w.cloud.ledger {
		if !m.muted.IsZero() {
			m.muted, m.heard = time.Time{}, w.now
		}
	}
}
