package placement

import (
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/placement/tally"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Whether the rules between pods admit one more pod of a group in a domain or on a host, by the live counts.

// admission evaluates the rules. It knows no pools and no prices.
type admission struct {
	space    *label.Space
	counters *counters
	// scan: every pod examines all domains, without the heap and the cached least counts. It is for tests.
	scan bool
}

// choices are the domains that a group may be assigned to, once known.
type choices struct {
	domains []*domain
	// exhausted are the domains, as tuples over rules.pins, that proved to have no capacity.
	exhausted map[string]bool
}

// exhaust records that the domain proved to have no capacity.
func (c *choices) exhaust(d *domain, is bool) {
	if c.exhausted == nil {
		c.exhausted = map[string]bool{}
	}
	c.exhausted[d.id] = c.exhausted[d.id] || is
}

// admits evaluates every rule by domain for one more pod of a group. The choices are nil when every pod is placed.
func (ad *admission) admits(rs *rules, c *choices, d *domain) plan.Verdict {
	for i := range rs.spreads {
		s := &rs.spreads[i]
		if !ad.spreadAdmits(rs, c, s, rs.atom(d, s.counter.key)) {
			return plan.Verdict{Code: plan.SpreadExceeded, Key: s.counter.key}
		}
	}
	for _, other := range rs.apart {
		if ad.keptApart(rs, d, other) {
			return plan.Verdict{Code: plan.AntiAffinityBlocked, Key: other.key}
		}
	}
	return ad.affinityAdmits(rs, d)
}

// keptApart reports whether anti-affinity excludes the domain: it has a pod that the counter counts.
func (ad *admission) keptApart(rs *rules, d *domain, c *counter) bool {
	atom := rs.atom(d, c.key)
	return atom != ad.space.Absent(c.key) && c.counts[atom] > 0
}

// spreadAdmits evaluates topology spread: with the pod, the domain's count exceeds the least count of all domains by at
// most maxSkew.
func (ad *admission) spreadAdmits(rs *rules, c *choices, s *spreadRule, atom int) bool {
	if atom == ad.space.Absent(s.counter.key) {
		return false
	}
	self := 0
	if s.self {
		self = 1
	}
	return s.counter.counts[atom]+self-ad.least(rs, c, s) <= s.maxSkew
}

// affinityAdmits evaluates affinity. Required terms: the domain has a selected pod for every key; or no selected pod
// exists anywhere and the pod selects itself, which makes it the first of its kind. Each preferred term, and each
// volume that keeps pods together, is evaluated on its own.
func (ad *admission) affinityAdmits(rs *rules, d *domain) plan.Verdict {
	near := true
	var key label.Key
	for i := range rs.affinities {
		a := &rs.affinities[i]
		atom := rs.atom(d, a.counter.key)
		if atom == ad.space.Absent(a.counter.key) {
			return plan.Verdict{Code: plan.AffinityUnmet, Key: a.counter.key}
		}
		switch {
		case a.counter.sure[atom] > 0 || a.separate && a.first():
		case a.separate:
			return plan.Verdict{Code: plan.AffinityUnmet, Key: a.counter.key}
		default:
			near, key = false, a.counter.key
		}
	}
	if near || ad.firstOfItsKind(rs) {
		return plan.Verdict{}
	}
	return plan.Verdict{Code: plan.AffinityUnmet, Key: key}
}

// firstOfItsKind reports whether no pod anywhere satisfies the group's required affinity terms, and the group's own
// pods would.
func (ad *admission) firstOfItsKind(rs *rules) bool {
	for i := range rs.affinities {
		if a := &rs.affinities[i]; !a.separate && !a.first() {
			return false
		}
	}
	return ad.firstOnAnyHost(rs)
}

// firstOnAnyHost is like firstOfItsKind, once the group's pods are assigned to domains and counted there: all terms
// select the same pods, and none of those is on a host.
func (ad *admission) firstOnAnyHost(rs *rules) bool {
	for _, a := range rs.hostAffinities {
		if !a.separate && !a.first(ad.counters.totals) {
			return false
		}
	}
	return true
}

// onHost returns how many more pods of the group the rules by hostname permit on a place with the tally. first permits
// the first pods of a self-affine group to make the place their domain.
func (ad *admission) onHost(rs *rules, have *tally.Tally, first bool) (int, plan.Verdict) {
	limit, v := rs.limitOnHost(have)
	if limit == 0 {
		return 0, v
	}
	for _, a := range rs.hostAffinities {
		mayBeFirst := first && a.first(ad.counters.totals) && (a.separate || ad.firstOnAnyHost(rs))
		if have.At(a.slot) == 0 && !mayBeFirst {
			return 0, plan.Verdict{Code: plan.AffinityUnmet, Key: rs.host}
		}
	}
	return limit, plan.Verdict{}
}

// against returns all rules that exclude the group from the domain, whereas admits stops at the first.
func (ad *admission) against(rs *rules, c *choices, d *domain) []plan.Verdict {
	var all []plan.Verdict
	add := func(code plan.Code, key label.Key) {
		if v := (plan.Verdict{Code: code, Key: key}); !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	for i := range rs.spreads {
		if s := &rs.spreads[i]; !ad.spreadAdmits(rs, c, s, rs.atom(d, s.counter.key)) {
			add(plan.SpreadExceeded, s.counter.key)
		}
	}
	for _, other := range rs.apart {
		if ad.keptApart(rs, d, other) {
			add(plan.AntiAffinityBlocked, other.key)
		}
	}
	if v := ad.affinityAdmits(rs, d); !v.OK() {
		add(v.Code, v.Key)
	}
	return all
}

// floor caches the least count of a spread constraint's domains.
type floor struct {
	// of is the state that the cached value is for: while it is unchanged, counts have only grown.
	of    floorKey
	known bool
	least int
	// witness is a domain with that count: counts and sure are its own. It is -1 when there is none.
	witness, counts, sure int
	// closed reports that the pods cannot open another domain.
	closed bool
	// held: no count changes, so the value is valid whatever the rules are; see holdFloors.
	held bool
}

// holdFloors computes the least count of each spread constraint once, for the examination of all domains, in which no
// count changes. Otherwise rules that permit a domain by other counts would need it again for each domain. The returned
// function ends this.
func (ad *admission) holdFloors(rs *rules, c *choices) (release func()) {
	if ad.scan || len(c.domains) <= fewDomains {
		return func() {}
	}
	for i := range rs.spreads {
		ad.least(rs, c, &rs.spreads[i])
		rs.spreads[i].floor.held = true
	}
	return func() {
		for i := range rs.spreads {
			rs.spreads[i].floor.held = false
		}
	}
}

// leastOutOfReach returns the domain that has the fewest pods by a spread constraint on the key, if it is none of the
// choices: then no pod can be added where one is missing. It returns "" otherwise.
func (ad *admission) leastOutOfReach(rs *rules, c *choices, key label.Key) string {
	for i := range rs.spreads {
		s := &rs.spreads[i]
		if s.counter.key != key {
			continue
		}
		_, atom := ad.findLeast(rs, c, s, 0, 0)
		reached := func(d *domain) bool { return rs.atom(d, key) == atom }
		if atom >= 0 && ad.space.IsValue(key, atom) && !slices.ContainsFunc(c.domains, reached) {
			return ad.space.Value(key, atom)
		}
	}
	return ""
}

// tooFew returns the domains of a spread constraint on the key that has fewer than its minDomains, and that number; 0
// if there is no such constraint.
func (ad *admission) tooFew(rs *rules, c *choices, key label.Key) (domains []string, wanted int) {
	for i := range rs.spreads {
		s := &rs.spreads[i]
		if s.counter.key != key || s.minDomains <= 1 {
			continue
		}
		domains = nil
		for atom := range s.counter.counts {
			known := s.counter.counts[atom] > 0 || s.counter.domains.Has(atom)
			if reached := func(d *domain) bool { return rs.atom(d, key) == atom }; ad.space.IsValue(key, atom) &&
				(known || slices.ContainsFunc(c.domains, reached)) {
				domains = append(domains, ad.space.Value(key, atom))
			}
		}
		if slices.Sort(domains); len(domains) < s.minDomains {
			return domains, s.minDomains
		}
	}
	return nil, 0
}

type floorKey struct {
	epoch     int
	binding   bool
	domains   *domain
	exhausted int
}

// least returns the least count of all domains, or 0 when there are fewer than minDomains. Domains are those with a
// node and, until every pod is placed, those where this pod may get one.
func (ad *admission) least(rs *rules, c *choices, s *spreadRule) int {
	if s.floor.held {
		return s.floor.least
	}
	key := floorKey{epoch: s.counter.epoch, binding: c == nil}
	if c != nil {
		key.exhausted = len(c.exhausted)
		if len(c.domains) > 0 {
			key.domains = c.domains[0]
		}
	}
	f := &s.floor
	// which domains are admissible changes with other counts
	if ad.scan || len(rs.affinities)+len(rs.apart) > 0 {
		*f = floor{}
	}
	if f.known && f.of == key && f.witness >= 0 && s.counter.counts[f.witness] == f.counts && s.counter.sure[f.witness] == f.sure {
		return f.least
	}
	from, atLeast := 0, 0
	if f.known && f.of == key && f.witness >= 0 {
		from, atLeast = f.witness, f.least
	}
	if !f.known || f.of != key {
		f.closed = false
	}
	f.known, f.of = true, key
	f.least, f.witness = ad.findLeast(rs, c, s, from, atLeast)
	if f.witness >= 0 {
		f.counts, f.sure = s.counter.counts[f.witness], s.counter.sure[f.witness]
	}
	return f.least
}

// findLeast examines the domains, beginning with from, and stops at one with the least possible count. The witness is
// -1 when the count is not that of a domain.
func (ad *admission) findLeast(rs *rules, c *choices, s *spreadRule, from, atLeast int) (least, witness int) {
	least, witness = math.MaxInt, -1
	domains, wanted := 0, max(1, s.minDomains)
	for i := range s.counter.counts {
		atom := (from + i) % len(s.counter.counts)
		if s.counter.counts[atom] == 0 && !s.counter.domains.Has(atom) {
			continue
		}
		if s.counter.certain.Has(atom) || s.counter.sure[atom] > 0 {
			domains++
		}
		if s.counter.sure[atom] < least {
			least, witness = s.counter.sure[atom], atom
		}
		if least == 0 || s.floor.closed && least <= atLeast && domains >= wanted {
			return least, witness
		}
	}
	if domains < wanted {
		return 0, -1
	}
	if empty := ad.unopened(rs, c, s); empty >= 0 {
		return 0, empty
	}
	s.floor.closed = true
	return least, witness
}

// unopened returns a domain without nodes and pods where the pod may get a node, or -1 if there is none.
func (ad *admission) unopened(rs *rules, c *choices, s *spreadRule) int {
	if c == nil {
		return -1
	}
	for _, d := range c.domains {
		atom := rs.atom(d, s.counter.key)
		if (d.launchable || d.joinable) && s.counter.counts[atom] == 0 && !s.counter.domains.Has(atom) && !c.exhausted[d.id] &&
			atom != ad.space.Absent(s.counter.key) && ad.neighborsAdmit(rs, d) {
			return atom
		}
	}
	return -1
}

// neighborsAdmit reports whether the pod's affinity and the anti-affinity of other pods permit the domain. A domain in
// which the pod could never open a node does not count for the skew.
func (ad *admission) neighborsAdmit(rs *rules, d *domain) bool {
	return ad.affinityAdmits(rs, d).OK() && !slices.ContainsFunc(rs.apart, func(c *counter) bool { return ad.keptApart(rs, d, c) })
}

// onAnyHost reports whether no rule by hostname restricts the pods.
func (rs *rules) onAnyHost() bool {
	return len(rs.hostSpreads)+len(rs.hostApart)+len(rs.hostAffinities) == 0
}

// limitOnHost returns how many more pods spread and anti-affinity by hostname permit on a place with the tally.
func (rs *rules) limitOnHost(t *tally.Tally) (int, plan.Verdict) {
	limit := math.MaxInt32
	if t.Nameless {
		return rs.limitNameless()
	}
	for _, s := range rs.hostSpreads {
		have := t.At(s.slot)
		switch {
		case s.self:
			limit = min(limit, max(0, s.maxSkew-have))
		case have > s.maxSkew:
			limit = 0
		}
		if limit == 0 {
			return 0, plan.Verdict{Code: plan.SpreadExceeded, Key: rs.host}
		}
	}
	for _, slot := range rs.hostApart {
		if t.At(slot) > 0 {
			return 0, plan.Verdict{Code: plan.AntiAffinityBlocked, Key: rs.host}
		}
	}
	if rs.hostApartSelf {
		limit = 1
	}
	return limit, plan.Verdict{}
}

// limitNameless is limitOnHost for a node without the hostname label: pods with spread or affinity by hostname are not
// admissible there, and anti-affinity has no effect.
func (rs *rules) limitNameless() (int, plan.Verdict) {
	switch {
	case len(rs.hostSpreads) > 0:
		return 0, plan.Verdict{Code: plan.SpreadExceeded, Key: rs.host}
	case len(rs.hostAffinities) > 0:
		return 0, plan.Verdict{Code: plan.AffinityUnmet, Key: rs.host}
	}
	return math.MaxInt32, plan.Verdict{}
}
