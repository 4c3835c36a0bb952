package placement

import (
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// An inquiry evaluates the rules of one pool for one group.
//
// Representation: a list of rules in the order in which a user would check them, each with the set of the pool's types
// that pass it. The verdict is the first rule after which no type is left. The nearest changes are the rules without
// which some type would be left. Both are intersections of the same sets, so they cannot contradict each other. Cost:
// the square of the number of rules (the labels and resources that the pod requests, and a few more) times the words of
// a set of types.

// inquiry is a group, in one of its alternatives, evaluated for a pool.
type inquiry struct {
	of    *refusals
	pool  *poolState
	group *model.Group
	row   label.Row
	both  label.Row
	rooms model.PossibleRooms
	rules []ruleResult
}

// ruleResult is the refusal of a rule and the types that pass it.
type ruleResult struct {
	verdict plan.Verdict
	passes  bitset.Set
	// without is what is available when the rule is relaxed. It is nil if that does not depend on the rule: only label
	// rules have it.
	without bitset.Set
}

// inquire evaluates all rules that concern the pool alone. The verdict is OK when none of them refuses.
func (r *refusals) inquire(ps *poolState, g *model.Group, row label.Row) plan.PoolVerdict {
	q := &inquiry{of: r, pool: ps, group: g, row: row, both: make(label.Row, r.snap.Space.Words())}
	if r.snap.Space.And(q.both, ps.spec.Start, row) {
		q.rooms = ps.possibleRooms(q.both)
	} else {
		q.rooms = ps.possibleRooms(ps.spec.Start)
	}
	q.askTaints()
	q.askLabels()
	q.askSpecial()
	firstResource := len(q.rules)
	q.askResources()
	q.askPorts()
	q.askOfferings()
	q.askSpotShare()
	q.askLimits()
	q.askQuotas()
	q.askPauses()
	v := q.walk(firstResource)
	switch v.Verdict.Code {
	case plan.OK:
	case plan.MinValuesUnmet:
		v.Nearest = append(q.nearest(), plan.Change{Rule: v.Verdict, Types: v.Verdict.Types})
	default:
		v.Nearest = q.nearest()
	}
	return v
}

func (q *inquiry) add(v plan.Verdict, passes bitset.Set) {
	q.rules = append(q.rules, ruleResult{verdict: v, passes: passes})
}

func (q *inquiry) none() bitset.Set { return bitset.New(q.pool.spec.Types.Len()) }

func (q *inquiry) askTaints() {
	if taint, no := model.Untolerated(q.pool.spec.Taints, q.group.Tolerations); no {
		q.add(plan.Verdict{Code: plan.TaintNotTolerated, Taint: taint}, q.none())
	}
}

// askPauses comes last: without the pause the pool would do.
func (q *inquiry) askPauses() {
	if t, no := q.pool.repels(q.group.Tolerations); no {
		v := plan.PausedVerdict(t.Pause)
		v.Pool = q.pool.spec.Name
		q.add(v, q.none())
	}
}

// askLabels evaluates every label that the pod requests: first those on which pod and pool have no common value, then
// those that exclude types.
func (q *inquiry) askLabels() {
	space, all := q.of.snap.Space, q.of.snap.Space.All()
	var agreed []label.Key
	for k := label.Key(0); int(k) < space.Len(); k++ {
		from, to := space.Span(k)
		switch {
		case space.EqualKey(q.row, all, k):
		case bitset.Set(q.both[from:to]).Empty():
			code := plan.LabelExcluded
			if q.of.undefined(q.pool, k) && !q.pool.spec.Catalog.WellKnown[space.Name(k)] {
				code = plan.LabelUndefined
			}
			q.add(plan.Verdict{Code: code, Key: k}, q.none())
			q.rules[len(q.rules)-1].without = q.availableWithout(k)
		default:
			agreed = append(agreed, k)
		}
	}
	for _, k := range agreed {
		passes := q.pool.spec.Eligible.Clone()
		q.pool.spec.Types.Narrow(passes, q.both, k)
		q.add(plan.Verdict{Code: plan.TypesExcluded, Key: k}, passes)
		q.rules[len(q.rules)-1].without = q.availableWithout(k)
	}
}

// availableWithout returns what is available if the pod does not request the label.
func (q *inquiry) availableWithout(k label.Key) bitset.Set {
	set, _ := q.pool.offered(q.rowWithout(k))
	return set
}

// rowWithout returns the row of a pod that does not request the label.
func (q *inquiry) rowWithout(k label.Key) label.Row {
	row := slices.Clone(q.both)
	from, to := q.of.snap.Space.Span(k)
	copy(row[from:to], q.pool.spec.Start[from:to])
	return row
}

// askSpecial withholds the types with devices.
func (q *inquiry) askSpecial() {
	if !q.pool.special.Empty() && !requestsSpecial(q.of.snap, q.group) {
		q.add(plan.Verdict{Code: plan.TypesSpared}, q.withoutSpecial(-1))
	}
}

// withoutSpecial returns the types without devices, or all when the labels leave no type without devices. The label of
// the rule with the number except is ignored.
func (q *inquiry) withoutSpecial(except int) bitset.Set {
	plain := bitset.Full(q.pool.spec.Types.Len())
	plain.AndNotWith(q.pool.special)
	left := q.pool.spec.Eligible.Clone()
	for i := range q.rules {
		if q.rules[i].without != nil && i != except {
			left.AndWith(q.rules[i].passes)
		}
	}
	if !left.Intersects(plain) {
		return bitset.Full(q.pool.spec.Types.Len())
	}
	return plain
}

// left returns the eligible types after the first n rules.
func (q *inquiry) left(n int) bitset.Set {
	set := q.pool.spec.Eligible.Clone()
	for i := range n {
		set.AndWith(q.rules[i].passes)
	}
	return set
}

// needs returns the requests of one pod, including the shared volumes that it would be the first to attach to a node.
func (q *inquiry) needs() quantity.Vector {
	needs := q.group.Requests.Clone()
	for _, v := range q.group.Shared {
		r := slices.Index(q.of.snap.Resources, model.VolumeResource(v.Driver))
		if v.Driver == "" || r < 0 {
			continue
		}
		for len(needs) <= r {
			needs = append(needs, 0)
		}
		needs[r]++
	}
	return needs
}

func (q *inquiry) askResources() {
	needs := q.needs()
	for i := range q.of.snap.Resources {
		resource := quantity.Resource(i)
		need := max(0, needs.At(resource))
		if need == 0 && !q.daemonsExceed(resource) {
			continue
		}
		passes := q.none()
		for t := range q.pool.spec.Eligible.All() {
			if q.rooms.Most(t, resource) >= need {
				passes.Add(t)
			}
		}
		q.add(plan.Verdict{Code: plan.ResourceTooLarge, Resource: resource, Need: need}, passes)
	}
}

// daemonsExceed reports whether the DaemonSets of some type take more of the resource than it has.
func (q *inquiry) daemonsExceed(resource quantity.Resource) bool {
	for t := range q.pool.spec.Eligible.All() {
		if q.rooms.Most(t, resource) < 0 {
			return true
		}
	}
	return false
}

// askPorts determines the types on which no daemon uses a host port of the pod.
func (q *inquiry) askPorts() {
	for _, port := range q.group.HostPorts {
		passes := q.none()
		for t := range q.pool.spec.Eligible.All() {
			if q.rooms.SomePortsFree(t, []model.HostPort{port}) {
				passes.Add(t)
			}
		}
		v := plan.Verdict{Code: plan.HostPortTaken, Have: int64(port.Port)}
		for _, d := range q.of.snap.Daemons {
			if slices.ContainsFunc(d.HostPorts, port.Conflicts) && d.Admits(q.of.snap.Space, q.pool.spec.Start, q.pool.spec.Taints) {
				v.Holder = &plan.Holder{Pod: d.Namespace + "/" + d.Name}
			}
		}
		q.add(v, passes)
	}
}

// askOfferings determines what is available, and whether only used-up reservations prevent a launch.
func (q *inquiry) askOfferings() {
	onSale, _ := q.pool.offered(q.both)
	code := plan.NoOffering
	if offered, _ := q.pool.spec.Types.Offered(q.both); !offered.Equal(onSale) {
		left := q.left(len(q.rules))
		if left.Intersects(offered) && !left.Intersects(onSale) {
			code = plan.ReservationTaken
		}
	}
	q.add(plan.Verdict{Code: code}, onSale)
}

// askSpotShare determines which of the available types may still be launched within the spot share.
func (q *inquiry) askSpotShare() {
	if q.pool.spotShare != nil {
		_, classes := q.pool.offered(q.both)
		q.add(plan.Verdict{Code: plan.SpotShareReached, Have: q.pool.spotShare.Percent()}, q.pool.spotShare.Open(classes))
	}
}

func (q *inquiry) askLimits() {
	if v := plan.LimitVerdict(q.pool.ledger, model.Use{Accounts: q.pool.own, Nodes: 1}); !v.OK() {
		q.add(v, q.none())
	}
	if !q.pool.limited() {
		return
	}
	passes := q.none()
	for t := range q.pool.spec.Eligible.All() {
		if q.pool.ledger.Admit(q.cheapestUse(t)) {
			passes.Add(t)
		}
	}
	q.add(plan.Verdict{Code: plan.LimitReached}, passes)
}

// cheapestUse returns what the limits of the pool, other than that on nodes, count for a node of the type at its lowest
// price.
func (q *inquiry) cheapestUse(t int) model.Use {
	price := int64(0)
	for p := range q.pool.cheapestFirst(q.pool.only(t), q.both) {
		price = q.pool.listPrice(p)
		break
	}
	return model.Use{Accounts: q.pool.own, Total: q.pool.spec.Types.Total[t], Price: price}
}

// askQuotas determines which types have an offering that all quotas admit.
func (q *inquiry) askQuotas() {
	if len(q.pool.counting) == 0 {
		return
	}
	passes := q.none()
	for t := range q.pool.spec.Eligible.All() {
		if v, _ := q.quotaFor(t); v.OK() {
			passes.Add(t)
		}
	}
	q.add(plan.Verdict{Code: plan.QuotaReached}, passes)
}

// quotaFor returns the verdict of the quotas about the type: the one that excludes its cheapest offering, and the price of
// that, if they exclude all of them. Needs do not compare: they are amounts of different resources.
func (q *inquiry) quotaFor(t int) (cheapest plan.Verdict, price int64) {
	price = math.MaxInt64
	_, classes := q.pool.offered(q.both)
	for _, class := range classes {
		if !q.pool.spec.Types.Classes[class].Types.Has(t) {
			continue
		}
		p := typeOffering{t, class, q.pool.spec.Types.Classes[class].Price[t]}
		accounts := q.pool.accountsOf(q.pool.pinned(q.both, class), q.pool.only(t))
		v := plan.LimitVerdict(q.pool.ledger, q.pool.use(accounts[len(q.pool.own):], p))
		if v.OK() {
			return v, p.price
		}
		if p.price < price {
			cheapest, price = v, p.price
		}
	}
	return cheapest, price
}
