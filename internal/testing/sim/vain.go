package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// NothingInVain is the rule: without a disturbance, the controller tries the same in vain four times, and then once after each of the
// pauses 1, 2, 4, 8, 16, 30, 30, ... minutes. So these are at most nine times within the first hour, and two in each
// further one.
//
// What is tried is a purchase or a move for a need. The need is the owner of the pods that a claim was launched for. It is
// the pool for pods that have no lasting owner (of a CronJob, without a controller, of a buffer), and for claims that
// replace a node.
//
// A purchase is in vain if its claim had a machine and is deleted before a pod has stayed on its node, or if no pod is bound to the node
// within a minute of its being ready. It shows when the node is ready and has no pods, or when the claim is deleted. Those
// purchases count that are made when four others have shown, longer ago than a watch is behind and the controller takes:
// as many rounds of them may be as pauses can have ended since the fourth has shown. A round is 20 seconds, with a
// purchase for each pod that waits. A purchase on whose node a pod has stayed ends the series of those before it.
//
// A move is in vain if the pod is evicted before it has stayed on its node. Each pod of an owner may be moved once without
// counting. Then four rounds may be, and as many as pauses can have ended since the first.
//
// A pod has stayed when it has been bound to one node for five minutes, or for half of its owner's or its node's life if
// that is shorter; a virtual pod has stayed on a node where kube-scheduler could have bound it for as long.
//
// The property reads only the objects of the API and their times.
const NothingInVain = "nothing in vain"

const (
	mostInVain = 4
	// stays is how long a pod must be on a node, idles how long a ready node may have none, reacts how long the
	// controller takes, and round the time in which attempts count together.
	stays  = 5 * time.Minute
	idles  = time.Minute
	reacts = 5 * time.Second
	round  = 20 * time.Second
)

// attempt is a purchase for a need, of which that many pods wait, or a move of one of that many pods.
type attempt struct {
	at   time.Time
	pods int
	// claim is the UID of the claim of a purchase, replaces says that it replaces a node.
	claim, name string
	replaces    bool
	// launched says that it had a machine.
	launched bool
	// idle is since when its node is ready and has no pods, room since when a virtual pod could be bound to it.
	idle, room time.Time
	// shown is since when it has been in vain, zero if it is not so far.
	shown time.Time
}

// vain holds purchases and early moves, by need.
type vain struct{ purchases, moves map[string][]*attempt }

func (v *vain) forget() { *v = vain{} }

// note adds an attempt.
func note(to *map[string][]*attempt, need string, a *attempt) {
	if *to == nil {
		*to = map[string][]*attempt{}
	}
	(*to)[need] = append((*to)[need], a)
}

// bought records a claim for its needs.
func (c *checks) bought(of *claim) {
	pods, all, pending := map[string]*pod{}, len(c.w.setting.virtual()), map[string]int{"": len(c.w.setting.virtual())}
	for _, q := range c.w.api.pods() {
		if q.daemon {
			continue
		}
		pods[q.uid] = q
		if all++; q.node == "" {
			pending[c.lasting(q)]++
		}
	}
	needs, replaces := map[string]int{}, false
	for _, ref := range of.launchedFor {
		q := pods[ref.UID]
		replaces = replaces || q != nil && q.node != ""
		if a := c.lasting(q); a != "" {
			needs[a] = pending[a]
		}
	}
	switch {
	case replaces:
		needs = map[string]int{"pool " + of.pool: all}
	case len(needs) == 0:
		needs = map[string]int{"pool " + of.pool: pending[""]}
	}
	for need, n := range needs {
		note(&c.vain.purchases, need, &attempt{at: c.w.now, pods: max(1, n), claim: of.uid, name: of.name, replaces: replaces})
	}
}

// lasting returns the lasting owner of a pod, empty if there is none.
func (c *checks) lasting(q *pod) string {
	if q == nil || q.bare || c.w.setting.app(q.app).every > 0 {
		return ""
	}
	return q.app
}

// movedEarly records the eviction of a pod that has not stayed.
func (c *checks) movedEarly(q *pod) {
	pods := 0
	for _, other := range c.w.api.pods() {
		if other.app == q.app && !other.daemon {
			pods++
		}
	}
	c.evictions++
	var from *claim
	if n := c.w.api.node(q.node); n != nil {
		from = c.fleet().of(n)
	}
	if c.w.now.Sub(q.bound) < c.staying(q, from) {
		note(&c.vain.moves, q.app, &attempt{at: c.w.now, pods: pods, name: q.name, shown: c.w.now})
	}
}

// staying returns how long the pod must be on the claim's node to have stayed.
func (c *checks) staying(q *pod, of *claim) time.Duration {
	least := stays
	if a := c.w.setting.app(q.app); a != nil && a.every > 0 {
		least = min(least, a.every/2)
	}
	if of != nil && of.expireAfter > 0 {
		least = min(least, of.expireAfter/2)
	}
	return least
}

// inVain checks NothingInVain.
func (c *checks) inVain() {
	if c.wrongClock() {
		c.vain.forget() // lifetimes end early
	}
	if len(c.vain.purchases) == 0 && len(c.vain.moves) == 0 {
		return
	}
	f := c.fleet()
	for _, need := range slices.Sorted(maps.Keys(c.vain.purchases)) {
		list, useful := c.vain.purchases[need], time.Time{}
		list = slices.DeleteFunc(list, func(a *attempt) bool {
			stayed := f.judge(a)
			if stayed && a.at.After(useful) {
				useful = a.at
			}
			return stayed || f.claims[a.claim] == nil && !a.launched // the cloud had no capacity: nothing was bought
		})
		list = slices.DeleteFunc(list, func(a *attempt) bool { return !a.at.After(useful) })
		c.vain.purchases[need] = list
		c.purchases(need, list)
	}
	for _, need := range slices.Sorted(maps.Keys(c.vain.moves)) {
		list := c.vain.moves[need]
		list = list[min(len(list), list[0].pods):]
		if len(list) == 0 {
			continue
		}
		if n, most := rounds(list), mostInVain+pausesWithin(c.w.now.Sub(list[0].at)); n > most {
			c.fail(NothingInVain, "%d rounds of moves for %s were in vain since %.0f, at most %d may be",
				n, need, list[0].at.Sub(epoch).Seconds(), most)
		}
	}
}

// purchases fails if there are more rounds of purchases in vain than pauses can have ended since the fourth has shown.
func (c *checks) purchases(need string, list []*attempt) {
	list = slices.DeleteFunc(slices.Clone(list), func(a *attempt) bool { return a.shown.IsZero() || !a.launched })
	if len(list) <= mostInVain {
		return
	}
	byShown := slices.SortedStableFunc(slices.Values(list), func(a, b *attempt) int { return a.shown.Compare(b.shown) })
	from := byShown[mostInVain-1].shown
	counted := slices.DeleteFunc(slices.Clone(list), func(a *attempt) bool { return a.at.Sub(from) < reacts+c.w.setting.lag })
	if len(counted) == 0 {
		return
	}
	last := counted[len(counted)-1]
	if n, most := rounds(counted), pausesWithin(last.at.Sub(from)+2*reacts); n > most {
		c.fail(NothingInVain, "%d purchases for %s were in vain, the fourth has shown it at %.0f; %d rounds of them came later, "+
			"the last is %s at %.0f; at most %d may be", len(list), need, from.Sub(epoch).Seconds(), n, last.name,
			last.at.Sub(epoch).Seconds(), most)
	}
}

// rounds counts attempts: those within the time of a round count as one for each pod that waited.
func rounds(list []*attempt) int {
	total := 0
	for len(list) > 0 {
		n, pods := 0, 1
		for n < len(list) && list[n].at.Sub(list[0].at) < round {
			pods = max(pods, list[n].pods)
			n++
		}
		total += (n + pods - 1) / pods
		list = list[n:]
	}
	return total
}

// pausesWithin returns how many pauses can have ended within the time, of those that grow.
func pausesWithin(d time.Duration) int {
	n := 0
	for pause := time.Minute; d >= pause; pause = min(2*pause, 30*time.Minute) {
		d -= pause
		n++
	}
	return n
}

// fleet holds the objects of the API by which purchases are judged.
type fleet struct {
	*checks
	claims map[string]*claim
	nodes  map[string]*node
	pods   map[string][]*pod
}

func (c *checks) fleet() fleet {
	f := fleet{c, map[string]*claim{}, map[string]*node{}, map[string][]*pod{}}
	for _, of := range c.w.api.claims() {
		f.claims[of.uid] = of
	}
	for _, n := range c.w.api.nodes() {
		f.nodes[n.provider] = n
	}
	for _, q := range c.w.api.pods() {
		if q.node != "" && !q.daemon {
			f.pods[q.node] = append(f.pods[q.node], q)
		}
	}
	return f
}

// of returns the claim of a node, nil for none.
func (f fleet) of(n *node) *claim {
	for _, of := range f.claims {
		if of.provider == n.provider {
			return of
		}
	}
	return nil
}

// judge decides whether the purchase is in vain so far. It reports whether a pod has stayed on its node.
func (f fleet) judge(a *attempt) (stayed bool) {
	of := f.claims[a.claim]
	a.launched = a.launched || of != nil && of.provider != ""
	if of == nil || !of.deleting.IsZero() {
		a.isShown(f.w.now)
		return false
	}
	n := f.nodes[of.provider]
	if n == nil || of.provider == "" || !n.ready || !n.registered {
		return false
	}
	fits := f.fitsVirtual(n)
	switch {
	case !fits:
		a.room = time.Time{}
	case a.room.IsZero():
		a.room = f.w.now
	}
	if fits && f.w.now.Sub(a.room) >= stays || f.w.setting.pool(of.pool).Static && f.w.now.Sub(n.created) >= stays {
		return true
	}
	switch {
	case fits || len(f.pods[n.name]) > 0:
		a.idle, a.shown = time.Time{}, time.Time{}
	case a.idle.IsZero():
		a.idle = f.w.now
	case !a.replaces && f.w.now.Sub(a.idle) >= idles:
		a.isShown(f.w.now)
	}
	return slices.ContainsFunc(f.pods[n.name], func(q *pod) bool { return f.w.now.Sub(q.bound) >= f.staying(q, of) })
}

// isShown records that the purchase is in vain: since its node has been without pods, or now.
func (a *attempt) isShown(now time.Time) {
	switch {
	case !a.shown.IsZero():
	case a.idle.IsZero():
		a.shown = now
	default:
		a.shown = a.idle
	}
}

// fitsVirtual reports whether kube-scheduler could bind a virtual pod to the node now.
func (f fleet) fitsVirtual(n *node) bool {
	return slices.ContainsFunc(f.w.setting.virtual(), func(v model.PodSpec) bool {
		return f.w.fits(&pod{requests: v.Requests}, n, f.w.api.pods())
	})
}
