package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Disturbance is an external event.
type Disturbance struct {
	// At is the time since the history began.
	At time.Duration
	// What is one of the names in disturb. Which and Much select the target and the amount, modulo what exists.
	What        string
	Which, Much int
}

// String returns a line that Parse reads.
func (d Disturbance) String() string {
	return fmt.Sprintf("%v %s %d %d", d.At, d.What, d.Which, d.Much)
}

// History is a world and its disturbances. A run depends on nothing else.
type History struct {
	Seed         uint64
	Disturbances []Disturbance
}

// String returns a text that Parse reads.
func (h History) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\n", h.Seed)
	for _, d := range h.Disturbances {
		fmt.Fprintln(&b, d)
	}
	return b.String()
}

// Parse parses the text of a history: a line "seed N", then a line "AT WHAT WHICH MUCH" per disturbance. It skips
// empty lines and lines that begin with #.
func Parse(text string) (History, error) {
	var h History
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if _, err := fmt.Sscanf(line, "seed %d", &h.Seed); err == nil {
			continue
		}
		var at string
		var d Disturbance
		if _, err := fmt.Sscanf(line, "%s %s %d %d", &at, &d.What, &d.Which, &d.Much); err != nil {
			return History{}, fmt.Errorf("line %d: %q is neither a seed nor a disturbance such as \"1m30s crash 0 3\"", i+1, line)
		}
		var err error
		if d.At, err = time.ParseDuration(at); err != nil {
			return History{}, fmt.Errorf("line %d: time of %s: %w", i+1, d.What, err)
		}
		if !slices.Contains(mischief, d.What) && !slices.Contains(rarely, d.What) && !slices.Contains(widely, d.What) && d.What != "limits" {
			all := slices.Concat(mischief, rarely, widely, []string{"limits"})
			return History{}, fmt.Errorf("line %d: %q is no disturbance, want one of %s", i+1, d.What, strings.Join(all, ", "))
		}
		h.Disturbances = append(h.Disturbances, d)
	}
	return h, nil
}

// mischief holds the disturbances; a repeated name is more likely.
var mischief = []string{"scale", "scale", "scale", "scale", "empty", "kill", "crash", "crash", "crash", "depose", "drought", "rain", "flaky",
	"strange", "vanish", "untaint", "revoke", "disown", "surge", "expose", "tighten", "tighten", "open", "protect", "drift", "drift", "sicken", "budget", "budget",
	"shrink", "shrink", "replicas", "reprice", "ambush", "ambush", "ambush", "ambush",
	"ambush", "ambush"}

// rarely holds disturbances that only some histories have: in those the controllers of pods are starved at times.
var rarely = []string{"starve"}

// NewHistory returns a random history: half of the disturbances follow each other closely. Every fourth history is of
// a busy cluster.
func NewHistory(seed uint64) History {
	rng := rand.New(rand.NewPCG(seed, 0xd157))
	h := History{Seed: seed}
	at := time.Duration(0)
	for range 4 + rng.IntN(24) {
		if rng.IntN(2) == 0 {
			at += time.Duration(rng.IntN(15_000)) * time.Millisecond
		} else {
			at += time.Duration(rng.IntN(100_000)) * time.Millisecond
		}
		h.Disturbances = append(h.Disturbances, Disturbance{at, mischief[rng.IntN(len(mischief))], rng.IntN(1000), rng.IntN(1000)})
	}
	if seed%4 == 3 {
		rng := rand.New(rand.NewPCG(seed, 0x57a2))
		for range 3 {
			h.Disturbances = append(h.Disturbances, Disturbance{time.Duration(rng.Int64N(int64(at) + 1)), "starve", 0, rng.IntN(1000)})
		}
	}
	if seed >= Wide {
		widen(&h, at)
	}
	if limited(seed) {
		limitAgain(&h, at)
	}
	return h
}

// disturb executes a disturbance.
func (w *world) disturb(d Disturbance) {
	w.say("-- %s %d %d", d.What, d.Which, d.Much)
	w.disturbed = w.now
	w.check.vain.forget()
	switch d.What {
	case "scale":
		w.scale(w.setting.apps[d.Which%len(w.setting.apps)], d.Much%16)
	case "empty":
		w.scale(w.setting.apps[d.Which%len(w.setting.apps)], 0)
	case "kill":
		if pods := w.api.pods(); len(pods) > 0 {
			w.deletePod(pods[d.Which%len(pods)])
		}
	case "crash":
		w.crash = 1 + d.Much%12
	case "depose":
		w.depose()
	case "flaky":
		w.flaky = w.now.Add(time.Duration(1+d.Much%30) * time.Second)
	case "disown":
		w.disown()
	case "starve":
		w.starved = w.now.Add(time.Duration(20+d.Much%70) * time.Second)
	case "limits":
		w.changeLimits(d)
	case "untaint":
		w.untaint(d.Which)
	case "surge":
		w.surge(d.Much % 12)
	case "expose":
		w.untaint(d.Which)
		w.surge(d.Much % 12)
	case "ambush":
		w.ambush = &d
	case "revoke":
		if claims := w.api.claims(); len(claims) > 0 {
			c := claims[d.Which%len(claims)]
			w.api.markDeleted(c.key(), c.uid)
		}
	default:
		if slices.Contains(widely, d.What) {
			w.disturbWidely(d)
		} else if !w.disturbRules(d) {
			w.disturbCloud(d)
		}
	}
}

// disturbCloud executes a disturbance of the cloud.
func (w *world) disturbCloud(d Disturbance) {
	switch d.What {
	case "drought":
		w.cloud.drought(20 + d.Much%81)
	case "rain":
		w.cloud.drought(0)
	case "strange":
		w.cloud.strange = 1 + d.Much%3
	case "reprice":
		w.cloud.reprice(d)
	case "vanish":
		if alive := w.cloud.alive(); len(alive) > 0 {
			w.cloud.end(alive[d.Which%len(alive)])
		}
	}
}

// moment is a point at which an ambush takes place: the most critical events occur between a decision and its end,
// which random times would rarely hit.
type moment int

const (
	atPlan moment = iota
	atProposal
	atCommand
	atLaunch
	moments // the number of moments
)

// sprung holds the disturbances that fit a moment.
var sprung = [moments][]string{
	atPlan:     {"crash", "depose", "flaky", "empty", "surge"},
	atProposal: {"crash", "surge", "surge"},
	atCommand:  {"crash", "depose", "flaky", "surge", "expose", "untaint"},
	atLaunch:   {"crash", "disown", "disown", "empty", "revoke"},
}

// spring executes the ambush that waits for the moment, at once or a little later. It reports whether there was one.
func (w *world) spring(m moment) bool {
	d := w.ambush
	if d == nil || w.calm || moment(d.Which)%moments != m {
		return false
	}
	w.ambush = nil
	what := sprung[m]
	mischief := Disturbance{What: what[d.Much%len(what)], Which: d.Which / int(moments), Much: d.Much / len(what)}
	delay := time.Duration(0)
	if mischief.Much%2 == 1 {
		delay = w.between(0, 1500*time.Millisecond)
	}
	w.after(delay, func() { w.disturb(mischief) })
	return true
}

// surge adds pods to every app at once.
func (w *world) surge(more int) {
	for _, a := range w.setting.apps {
		w.scale(a, a.replicas+more)
	}
	w.fill()
}

// disown changes the leader and deletes the claims that are not launched, while the cloud may still be launching
// them.
func (w *world) disown() {
	w.depose()
	for _, c := range w.api.claims() {
		if c.launched.IsZero() {
			w.api.markDeleted(c.key(), c.uid)
		}
	}
}

// untaint removes the disruption taint from one of the nodes that carry it, as a user might.
func (w *world) untaint(which int) {
	nodes := slices.DeleteFunc(w.api.nodes(), func(n *node) bool { return !n.tainted(disruptedTaint) })
	if len(nodes) > 0 {
		n := nodes[which%len(nodes)]
		w.untainted[n.uid] = w.now
		w.api.update(n.key(), n.uid, 0, func(o object) { o.(*node).untaint(disruptedTaint) })
	}
}

// Result is the outcome of a history.
type Result struct {
	// Trace contains every event, one line each. It ends where the history failed.
	Trace []string
	// Failure is nil if all properties held.
	Failure *Failure
	// Sold is the number of machines that the cloud launched.
	Sold int
}

// Hash identifies the trace.
func (r *Result) Hash() uint64 {
	h := fnv.New64a()
	for _, line := range r.Trace {
		fmt.Fprintln(h, line)
	}
	return h.Sum64()
}

// Run runs a history: the disturbances, then a calm until the world is at rest.
func Run(h History, opts Options) *Result {
	w := newWorld(h.Seed, opts)
	end := time.Duration(0)
	for _, d := range h.Disturbances {
		w.after(d.At, func() { w.disturb(d) })
		end = max(end, d.At)
	}
	calm := epoch.Add(end + time.Minute)
	if w.setting.late != nil {
		calm = calm.Add(lastLate)
	}
	for w.failure == nil && w.next(calm) {
	}
	if w.failure == nil {
		w.settle(calm.Add(patience))
	}
	return &Result{Trace: w.trace, Failure: w.failure, Sold: len(w.cloud.ledger)}
}

// settle ends all disturbances, waits until the world is at rest, and checks it.
func (w *world) settle(until time.Time) {
	w.say("-- calm")
	w.disturbed = w.now
	w.calm, w.crash, w.cloud.strange, w.ambush, w.starved, w.skew = true, 0, 0, nil, time.Time{}, 0
	w.cloud.drought(0)
	w.punctual()
	w.lastForEver()
	w.check.most = mostLate(w)
	end := newDeadline(w, until)
	for w.failure == nil {
		if !w.rest(end) {
			w.check.fail(ComesToRest, "things still happen %v after the last disturbance, or the last node that was replaced for its template", patience)
			break
		}
		// The process may still act on what became possible a moment ago.
		if len(w.check.possible()) == 0 {
			break
		}
		for moment := w.now.Add(recently); w.failure == nil && w.next(moment); {
		}
		if w.atRest() {
			break
		}
	}
	if w.failure == nil {
		w.check.settled()
	}
	if w.failure == nil {
		w.age(end)
	}
}

// rest runs events until the world is at rest. It returns false if the deadline passes first.
func (w *world) rest(end *deadline) bool {
	for w.failure == nil && !w.atRest() {
		if !w.next(end.look(w)) {
			return false
		}
	}
	return true
}

// Shrink returns a shorter history that fails in the same property: it leaves out parts of the disturbances, in ever
// smaller pieces, while the failure persists. It runs at most the given number of histories.
func Shrink(h History, opts Options, runs int) History {
	failed := Run(h, opts).Failure
	if failed == nil {
		return h
	}
	fails := func(shorter History) bool {
		if runs--; runs < 0 {
			return false
		}
		f := Run(shorter, opts).Failure
		return f != nil && f.Property == failed.Property
	}
	for size := (len(h.Disturbances) + 1) / 2; size > 0; size /= 2 {
		for from := 0; from < len(h.Disturbances); {
			to := min(from+size, len(h.Disturbances))
			shorter := History{h.Seed, slices.Concat(h.Disturbances[:from], h.Disturbances[to:])}
			if fails(shorter) {
				h = shorter
			} else {
				from = to
			}
		}
	}
	return h
}
