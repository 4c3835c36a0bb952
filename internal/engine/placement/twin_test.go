package placement_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// The reference implementation ("twin") of placement: it checks whether one pool, type and offering suits a pod, with
// strings, and launches nodes first-fit, pod by pod.

// satisfied evaluates a requirement for one value; there reports whether the label is present.
func satisfied(r label.Requirement, text string, there bool) bool {
	switch r.Operator {
	case label.In:
		return there && slices.Contains(r.Values, text)
	case label.NotIn:
		return !there || !slices.Contains(r.Values, text)
	case label.Exists:
		return there
	case label.DoesNotExist:
		return !there
	}
	n, err := strconv.ParseInt(text, 10, 64)
	bound, wrong := strconv.ParseInt(r.Values[0], 10, 64)
	if !there || err != nil || wrong != nil {
		return false
	}
	return r.Operator == label.Gt && n > bound || r.Operator == label.Lt && n < bound ||
		r.Operator == label.Gte && n >= bound || r.Operator == label.Lte && n <= bound
}

// place is a type of a pool with one of its offerings.
type place struct {
	pool     *model.PoolSpec
	kind     *model.InstanceType
	offering *model.Offering
}

// suits reports whether each label can have a value that satisfies all the requirements.
func (p place) suits(lists ...[]label.Requirement) bool {
	all := slices.Concat(append(lists, p.pool.Requirements)...)
	for _, r := range all {
		if !p.hasValue(r.Key, all) {
			return false
		}
	}
	return true
}

func (p place) hasValue(key string, all []label.Requirement) bool {
	good := func(text string, there bool) bool {
		return !slices.ContainsFunc(all, func(r label.Requirement) bool { return r.Key == key && !satisfied(r, text, there) })
	}
	switch key {
	case model.LabelZone:
		return good(p.offering.Zone, true)
	case model.LabelCapacityType:
		return good(p.offering.CapacityType, true)
	case model.LabelHostname:
		return good("new", true)
	case model.LabelRegistered, model.LabelInitialized:
		return good("true", true)
	}
	for _, r := range p.kind.Requirements {
		if r.Key == key {
			return r.Operator == label.DoesNotExist && good("", false) ||
				slices.ContainsFunc(r.Values, func(text string) bool { return good(text, true) })
		}
	}
	mine := slices.ContainsFunc(p.pool.Requirements, func(r label.Requirement) bool { return r.Key == key })
	if !mine && !p.pool.Catalog.WellKnown[key] {
		return good("", false)
	}
	if good("", false) || good("some-word", true) {
		return true
	}
	for _, r := range all {
		for _, text := range r.Values {
			n, err := strconv.Atoi(text)
			if r.Key == key && (good(text, true) || err == nil && (good(strconv.Itoa(n-1), true) || good(strconv.Itoa(n+1), true))) {
				return true
			}
		}
	}
	return false
}

func tolerates(taints []model.Taint, tolerations []model.Toleration) bool {
	_, no := model.Untolerated(taints, tolerations)
	return !no
}

// room returns the capacity of the type after the daemons that nodes of the pool, the type and the offering may run.
func (p place) room(daemons []model.DaemonSpec) map[string]int64 {
	room := map[string]int64{}
	add := func(list []quantity.Amount, sign int64) {
		for _, a := range list {
			room[a.Name] += sign * a.Value
		}
	}
	add(p.kind.Allocatable, 1)
	for _, d := range daemons {
		if tolerates(p.pool.Taints, d.Tolerations) && (len(d.Alternatives) == 0 || slices.ContainsFunc(d.Alternatives, func(reqs []label.Requirement) bool { return p.suits(reqs) })) {
			add(d.Requests, -1)
		}
	}
	return room
}

// anyZone reports whether an alternative suits the type in any zone and capacity type, regardless of availability.
func (p place) anyZone(alternatives [][]label.Requirement) bool {
	for _, zone := range append(zones, "elsewhere") {
		for _, ct := range []string{"on-demand", "spot", "other"} {
			at := place{p.pool, p.kind, &model.Offering{Zone: zone, CapacityType: ct}}
			if len(alternatives) == 0 || slices.ContainsFunc(alternatives, func(reqs []label.Requirement) bool { return at.suits(reqs) }) {
				return true
			}
		}
	}
	return false
}

// may lists the offerings of the pool that suit the pod, regardless of limits, cheapest first. Special types are for
// pods that request them, or where no other type has the labels.
func may(w world, pool *model.PoolSpec, pod model.PodSpec) []place {
	if pool.Blocked != nil || !tolerates(pool.Taints, pod.Tolerations) {
		return nil
	}
	alternatives := pod.Alternatives
	if len(alternatives) == 0 {
		alternatives = [][]label.Requirement{nil}
	}
	var all []place
	for _, reqs := range alternatives {
		plain := false
		var some []place
		for i := range pool.Catalog.Types {
			t := &pool.Catalog.Types[i]
			plain = plain || !t.Special && (place{pool: pool, kind: t}).anyZone([][]label.Requirement{reqs})
			for k := range t.Offerings {
				if p := (place{pool, t, &t.Offerings[k]}); p.offering.Available && p.suits(reqs) && fits(pod.Requests, p.room(w.daemons)) {
					some = append(some, p)
				}
			}
		}
		asks := len(pod.Requests) > 3
		all = append(all, slices.DeleteFunc(some, func(p place) bool { return p.kind.Special && plain && !asks })...)
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.offering.Price, b.offering.Price) })
	return all
}

func fits(requests []quantity.Amount, room map[string]int64) bool {
	return !slices.ContainsFunc(requests, func(a quantity.Amount) bool { return a.Value > room[a.Name] })
}

// left returns the remainder of a pool's limits after the plan, by the audit's arithmetic: nodes of the snapshot, and
// the largest type of each claim.
func left(snap *model.Snapshot, p *plan.Provision, pool *model.PoolSpec) map[string]int64 {
	left := map[string]int64{}
	for _, line := range snap.Ledger.Lines(snap.Ledger.Own(pool.Name)...) {
		left[line.Name] = line.Limit - line.Used
	}
	charge := func(name string, n int64) {
		if _, limited := left[name]; limited {
			left[name] -= n
		}
	}
	frozen := snap.Pool(pool.Name)
	for _, c := range p.Claims {
		if c.Pool != pool.Name {
			continue
		}
		most := map[string]int64{model.ResourceNodes: 1}
		for _, o := range c.Options {
			at, _ := frozen.Types.Lookup(o.Type)
			for _, a := range pool.Catalog.Types[at].Capacity {
				most[a.Name] = max(most[a.Name], a.Value)
			}
		}
		for name, n := range most {
			charge(name, n)
		}
	}
	return left
}

// within reports whether a node of the type may still be launched.
func (p place) within(left map[string]int64) bool {
	if n, limited := left[model.ResourceNodes]; limited && n < 1 {
		return false
	}
	for _, a := range p.kind.Capacity {
		if n, limited := left[a.Name]; limited && a.Value > max(0, n) {
			return false
		}
	}
	return true
}

// TestRefusalsAreTrue: no new node could have been launched for a refused pod, and each pool's verdict is correct: a
// limit where a suitable offering exists, any other reason only where there is none.
func TestRefusalsAreTrue(t *testing.T) {
	refused, limited := 0, 0
	for seed := range uint64(*worlds) {
		w := randomWorld(seed)
		byUID := map[string]model.PodSpec{}
		for _, pod := range w.pods {
			byUID[pod.UID] = pod
		}
		snap := w.snapshot(nil)
		p := placement.Schedule(snap, placement.Options{})
		for _, r := range p.Refused {
			for _, v := range r.Pools {
				refused++
				pod, pool := byUID[r.Pods[0].UID], snap.Pool(v.Pool).PoolSpec
				all, left := may(w, pool, pod), left(snap, p, pool)
				limit := v.Verdict.Code == plan.LimitReached || v.Verdict.Code == plan.NodeLimitReached
				if limit {
					limited++
				}
				if limit != (len(all) > 0) {
					t.Fatalf("seed %d: pool %s refuses %s (%s), although %d offerings are suitable\n%s", seed, v.Pool, pod.UID, explain.Verdict(snap, v.Verdict), len(all),
						explain.Provision(snap, p))
				}
				if at := slices.IndexFunc(all, func(p place) bool { return p.within(left) }); at >= 0 {
					t.Fatalf("seed %d: pool %s refuses %s (%s), although %s is within the remaining limits: %v\n%s", seed, v.Pool, pod.UID,
						explain.Verdict(snap, v.Verdict), all[at].kind.Name, left, explain.Provision(snap, p))
				}
			}
		}
	}
	if refused < *worlds/4 || limited < *worlds/20 {
		t.Errorf("only %d refusals by pools, %d of them for limits: the worlds have too few refusals", refused, limited)
	}
}

// TestHeavierPoolsFirst: no node of a pool is launched for a pod while a heavier pool has a suitable offering within
// its limits.
func TestHeavierPoolsFirst(t *testing.T) {
	lighter := 0
	for seed := range uint64(*worlds) {
		w := randomWorld(seed)
		byUID := map[string]model.PodSpec{}
		for _, pod := range w.pods {
			byUID[pod.UID] = pod
		}
		snap := w.snapshot(nil)
		p := placement.Schedule(snap, placement.Options{})
		for _, c := range p.Claims {
			for _, pool := range snap.Pools {
				if pool.PoolSpec.Weight <= snap.Pool(c.Pool).PoolSpec.Weight {
					break
				}
				if tolerant := byUID[c.Pods[0].UID].Tolerations; avoids(pool.PoolSpec.Taints, tolerant) {
					continue
				}
				lighter++
				all, left := may(w, pool.PoolSpec, byUID[c.Pods[0].UID]), left(snap, p, pool.PoolSpec)
				if at := slices.IndexFunc(all, func(p place) bool { return p.within(left) }); at >= 0 {
					t.Fatalf("seed %d: %s is on claim %s, although pool %s has %s\n%s", seed, c.Pods[0].Key(), c.Name, pool.Name, all[at].kind.Name,
						explain.Provision(snap, p))
				}
			}
		}
	}
	if lighter < *worlds {
		t.Errorf("only %d pools were skipped: the worlds have too few refusals", lighter)
	}
}

// avoids reports whether pods with the tolerations prefer to avoid some taint.
func avoids(taints []model.Taint, tolerations []model.Toleration) bool {
	_, avoided := model.Avoided(taints, tolerations)
	return avoided
}

// twinBin is a node that the twin has launched.
type twinBin struct {
	place
	room map[string]int64
	reqs []label.Requirement
}

// buys is the twin: pod by pod, it uses the first bin that holds the pod, else the cheapest suitable node of the
// heaviest pool that has one. It returns the cost, nano-USD per hour.
func buys(w world, order []model.PodSpec) int64 {
	pools := slices.Clone(w.pools)
	slices.SortFunc(pools, func(a, b model.PoolSpec) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(b.Name, a.Name))
	})
	var bins []*twinBin
	var cost int64
	for _, pod := range order {
		for i := range pools {
			all := may(w, &pools[i], pod)
			if len(all) == 0 {
				continue
			}
			if !joins(bins, &pools[i], all, pod) {
				b := &twinBin{place: all[0], room: all[0].room(w.daemons)}
				bins = append(bins, b)
				cost += b.offering.Price + placement.ProductionNodePrice
				if !joins(bins[len(bins)-1:], &pools[i], all, pod) {
					panic("a node bought for a pod does not hold it")
				}
			}
			break
		}
	}
	return cost
}

func joins(bins []*twinBin, pool *model.PoolSpec, all []place, pod model.PodSpec) bool {
	alternatives := pod.Alternatives
	if len(alternatives) == 0 {
		alternatives = [][]label.Requirement{nil}
	}
	for _, b := range bins {
		if b.pool != pool || !slices.Contains(all, b.place) || !fits(pod.Requests, b.room) {
			continue
		}
		for _, reqs := range alternatives {
			if both := slices.Concat(b.reqs, reqs); b.suits(both) {
				b.reqs = both
				for _, a := range pod.Requests {
					b.room[a.Name] -= a.Value
				}
				return true
			}
		}
	}
	return false
}

// TestNoDearerThanTheTwin compares the cost of plans with the cost of the twin's, without limits and existing nodes.
func TestNoDearerThanTheTwin(t *testing.T) {
	var ours, theirs int64
	worst := 0.0
	for seed := range uint64(*worlds / 4) {
		w := randomWorld(seed)
		w.nodes = nil
		w.pods = slices.DeleteFunc(w.pods, func(p model.PodSpec) bool { return p.State == model.Bound || p.Rejected != nil })
		for i := range w.pools {
			// The twin does not know preferences.
			w.pools[i].Limits = nil
			w.pools[i].Taints = slices.DeleteFunc(slices.Clone(w.pools[i].Taints), func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule })
		}
		order := slices.Clone(w.pods)
		rand.New(rand.NewPCG(seed, 4)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		slices.SortStableFunc(order, func(a, b model.PodSpec) int { return cmp.Compare(b.Requests[0].Value, a.Requests[0].Value) })
		var cost int64
		for _, c := range placement.Schedule(w.snapshot(nil), placement.Options{}).Claims {
			cost += c.Price() + placement.ProductionNodePrice
		}
		twin := buys(w, order)
		ours, theirs = ours+cost, theirs+twin
		if twin == 0 {
			continue
		}
		ratio := float64(cost) / float64(twin)
		worst = max(worst, ratio)
		if ratio > 1.25 {
			t.Errorf("seed %d: costs %s, the twin pays %s", seed, explain.Money(cost), explain.Money(twin))
		}
	}
	t.Logf("all together %.3f of what the twin pays, at worst %.3f", float64(ours)/float64(theirs), worst)
	if ours > theirs {
		t.Errorf("all together costs %s, the twin pays %s", explain.Money(ours), explain.Money(theirs))
	}
}
