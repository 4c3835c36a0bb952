package audit

import (
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// claims checks the claims to create and the limits of their pools.
func (j *judge) claims(claims []plan.NewClaim) {
	names := map[string]bool{}
	accounts := map[string]*account{}
	for i := range claims {
		c := &claims[i]
		if names[c.Name] || j.snap.Claim(c.Name) != nil || c.Name == "" || len(c.Name) > 63 {
			j.blame("name", c.Name, "is taken, empty or longer than 63 characters")
		}
		names[c.Name] = true
		pool := j.snap.Pool(c.Pool)
		if pool == nil || pool.PoolSpec.UID != c.PoolUID {
			j.blame("pool", c.Name, "pool %s is not in the snapshot", c.Pool)
			continue
		}
		if accounts[c.Pool] == nil {
			accounts[c.Pool] = j.account(pool)
		}
		j.claim(pool.PoolSpec, c)
		j.limits(pool.PoolSpec, c, accounts[c.Pool])
	}
	j.quotas(claims)
	j.reservations(claims)
	j.commitments(claims)
	j.spotShares(claims)
	j.weights(claims, accounts)
}

func (j *judge) claim(pool *model.PoolSpec, c *plan.NewClaim) {
	switch {
	case pool.Blocked != nil:
		j.blame("blocked", c.Name, "pool %s may not buy: %s", pool.Name, pool.Blocked.Reason)
		return
	case pool.Catalog == nil || len(c.Options) == 0 || len(c.Options) > plan.MaxTypes:
		j.blame("options", c.Name, "has %d options, want 1 to %d", len(c.Options), plan.MaxTypes)
		return
	case len(c.Pods) == 0:
		j.blame("empty", c.Name, "is launched for no pod")
	}
	for _, pod := range shapes(c.Pods) {
		if taint, no := untolerated(pool.Taints, pod.Tolerations); no {
			j.blame("taint", c.Name, "pod %s does not tolerate %s=%s:%s", pod.Key(), taint.Key, taint.Value, taint.Effect)
		}
	}
	outcomes := j.outcomesOf(c, pool.Catalog)
	j.options(c, outcomes)
	j.minValues(pool, c, outcomes)
	j.special(pool, c)
	j.everyOutcome(pool, c, outcomes)
}

// outcomesOf returns the outcomes of the claim: the machines that the cloud may launch for it.
func (j *judge) outcomesOf(c *plan.NewClaim, catalog *model.Catalog) []outcome {
	known, ok := j.remembered[c]
	if !ok {
		known = j.promise(c.Requirements, c.Labels, c.Requests, catalog).outcomes()
		j.remembered[c] = known
	}
	return known
}

// options checks that the types that the claim requires are those of its options, that each option is the cheapest
// offering of its type that the claim allows, and that the options are sorted by price.
func (j *judge) options(c *plan.NewClaim, outcomes []outcome) {
	var names []string
	for _, r := range c.Requirements {
		if r.Key == model.LabelType && r.Operator == label.In {
			names = r.Values
		}
	}
	byType := map[string][]outcome{}
	for _, o := range outcomes {
		byType[o.kind.Name] = append(byType[o.kind.Name], o)
	}
	seen := map[string]bool{}
	for i, option := range c.Options {
		switch {
		case i >= len(names) || names[i] != option.Type:
			j.blame("options", c.Name, "option %d is %s, its requirements list %v", i, option.Type, names)
			return
		case seen[option.Type]:
			j.blame("options", c.Name, "type %s is listed twice", option.Type)
		case i > 0 && option.Price < c.Options[i-1].Price:
			j.blame("options", c.Name, "option %d is cheaper than the one before", i)
		}
		seen[option.Type] = true
		j.option(c, option, byType[option.Type])
	}
	if len(names) != len(c.Options) {
		j.blame("options", c.Name, "requires %d types, has %d options", len(names), len(c.Options))
	}
}

func (j *judge) option(c *plan.NewClaim, option plan.Option, outcomes []outcome) {
	found := false
	for _, o := range outcomes {
		if !o.offering.Available || !paysFor(o.offering, c) {
			continue
		}
		found = found || o.offering.Zone == option.Zone && o.offering.CapacityType == option.CapacityType && o.offering.Price == option.Price
		// A reservation may be cheaper, but other claims of the plan may use it up.
		if o.offering.Price < option.Price && o.offering.ReservationID == "" {
			j.blame("price", c.Name, "%s costs %d, its option says %d", o, o.offering.Price, option.Price)
		}
	}
	if !found {
		j.blame("offering", c.Name, "%s in %s as %s for %d is no available offering, or the claim does not allow it",
			option.Type, option.Zone, option.CapacityType, option.Price)
	}
}

// everyOutcome checks that every outcome of the claim is allowed by the pool and has room for all pods of the claim
// and the daemons.
func (j *judge) everyOutcome(pool *model.PoolSpec, c *plan.NewClaim, outcomes []outcome) {
	asked, different := j.requests(c.Pods), shapes(c.Pods)
	attached := volumes(c.Pods)
	for _, o := range outcomes {
		if !everyValue(pool.Requirements, o.values) {
			j.blame("pool", c.Name, "%s is not what pool %s requires: %v", o, pool.Name, pool.Requirements)
			return
		}
		for _, pod := range different {
			if !admits(pod, o.values) {
				j.blame("labels", c.Name, "%s is not what pod %s requires: %v, its volumes %v", o, pod.Key(), pod.Alternatives, pod.VolumeAlternatives)
				return
			}
		}
		need := j.daemonsFor(pool.Taints, o.values, nil)
		need.add(asked)
		need.add(attached)
		if name, short := need.short(amountsOf(o.kind.Allocatable)); short {
			j.blame("resources", c.Name, "%s has %d of %s, pods and daemons need %d", o, amountsOf(o.kind.Allocatable)[name], name, need[name])
			return
		}
	}
	j.sum(pool, c, asked)
}

// sum checks that the claim requests at least what its pods request, and at most that plus the requests of the
// daemons that the pool's taints admit.
func (j *judge) sum(pool *model.PoolSpec, c *plan.NewClaim, asked amounts) {
	daemons := j.daemonsFor(pool.Taints, j.words.everything, nil)
	requests := amountsOf(c.Requests)
	for name, value := range asked {
		// Claims do not request volumes: no provider selects a type by the number of attachments.
		if requests[name] < value && !model.IsVolumeResource(name) {
			j.blame("requests", c.Name, "requests %d of %s, its pods %d", requests[name], name, value)
		}
	}
	for name, value := range requests {
		if value > asked[name]+daemons[name] {
			j.blame("requests", c.Name, "requests %d of %s, its pods %d and daemons at most %d", value, name, asked[name], daemons[name])
		}
	}
}

// special checks that types with devices are launched only if a pod requests an extended resource or can only run on
// such a type.
func (j *judge) special(pool *model.PoolSpec, c *plan.NewClaim) {
	special := map[string]bool{}
	for i := range pool.Catalog.Types {
		special[pool.Catalog.Types[i].Name] = pool.Catalog.Types[i].Special
	}
	at := slices.IndexFunc(c.Options, func(o plan.Option) bool { return special[o.Type] })
	if at < 0 {
		return
	}
	for _, pod := range shapes(c.Pods) {
		if j.asksSpecial(pool, pod) {
			return
		}
	}
	j.blame("special", c.Name, "no pod requests %s", c.Options[at].Type)
}

func (j *judge) asksSpecial(pool *model.PoolSpec, pod *model.Pod) bool {
	for name, value := range j.requests([]*model.Pod{pod}) {
		if value > 0 && strings.Contains(name, "/") {
			return true
		}
	}
	preferred := [][]label.Requirement{nil}
	for _, p := range pod.Preferred {
		preferred = append(preferred, p.Requirements)
	}
	for _, reqs := range orNone(pod.Alternatives) {
		for _, volume := range orNone(pod.VolumeAlternatives) {
			for _, wish := range preferred {
				all := slices.Concat(pool.Requirements, reqs, volume, wish)
				p := j.promise(all, nil, nil, pool.Catalog)
				if !p.allowsPlain() && !excludeEachOther(all) {
					return true
				}
			}
		}
	}
	return false
}

// excludeEachOther reports whether two In requirements of the same label have no value in common. Such requirements
// match no node, with or without devices.
func excludeEachOther(reqs []label.Requirement) bool {
	for i, a := range reqs {
		for _, b := range reqs[i+1:] {
			if a.Operator != label.In || b.Operator != label.In || canonical(a.Key) != canonical(b.Key) {
				continue
			}
			if !slices.ContainsFunc(a.Values, func(v string) bool { return slices.Contains(b.Values, v) }) {
				return true
			}
		}
	}
	return false
}

// allowsPlain reports whether some type without devices has the labels. It ignores offerings.
func (p *promise) allowsPlain() bool {
	for i := range p.catalog.Types {
		t := &p.catalog.Types[i]
		if t.Special || p.named != nil && !p.named[t.Name] {
			continue
		}
		fits := true
		for _, r := range p.other {
			key := canonical(r.Key)
			if says(t.Requirements, key) {
				fits = fits && len(allowed(p.other, key, p.words.stated(t.Requirements, key))) > 0
			}
		}
		if fits {
			return true
		}
	}
	return false
}
