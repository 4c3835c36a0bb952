package audit

import (
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// weights checks that a node of a pool with lower weight holds at least one pod that no pool with higher weight can
// hold, alone, within the limits that remain after the plan. Pods with preferences count as such pods, and so do pods
// that require others on the same node: the heavier pool may be wrong for them. A pod that is counted in topology
// domains must be tested in a domain of the claim: rules may have excluded other domains.
func (j *judge) weights(claims []plan.NewClaim, accounts map[string]*account) {
	for i := range claims {
		c := &claims[i]
		pool := j.snap.Pool(c.Pool)
		if pool == nil || pool.PoolSpec.Catalog == nil {
			continue
		}
		for _, heavier := range j.snap.Pools {
			if heavier.PoolSpec.Weight <= pool.PoolSpec.Weight {
				break
			}
			if accounts[heavier.Name] == nil {
				accounts[heavier.Name] = j.account(heavier)
			}
		}
		if len(c.Pods) > 0 && j.needless(pool.PoolSpec, c, accounts) {
			j.blame("weight", c.Name, "is of pool %s, though heavier pools could take each of its pods", pool.Name)
		}
	}
}

// needless reports whether heavier pools can hold every pod of the claim.
func (j *judge) needless(pool *model.PoolSpec, c *plan.NewClaim, accounts map[string]*account) bool {
	pins := j.pins(pool, c)
	for _, pod := range shapes(c.Pods) {
		if hasPreferences(pod) || j.besideDaemons(pod) {
			return false
		}
		taken := false
		for _, heavier := range j.snap.Pools {
			if heavier.PoolSpec.Weight <= pool.Weight || taken {
				break
			}
			taken = j.takes(heavier.PoolSpec, pod, pins, accounts[heavier.Name])
		}
		if !taken {
			return false
		}
	}
	return true
}

// hasPreferences reports whether the pod has a preference or requires other pods on its node.
func hasPreferences(pod *model.Pod) bool {
	for i := range pod.Spread {
		if pod.Spread[i].Soft {
			return true
		}
	}
	for i := range pod.Terms {
		if t := &pod.Terms[i]; t.Weight > 0 || !t.Anti && canonical(t.Key) == model.LabelHostname {
			return true
		}
	}
	return len(pod.Preferred) > 0
}

// pins returns the domains of the claim as requirements, for the topology keys of all rules between pods.
func (j *judge) pins(pool *model.PoolSpec, c *plan.NewClaim) []label.Requirement {
	var pins []label.Requirement
	seen := map[string]bool{}
	pin := func(key string) {
		if seen[key] || key == model.LabelHostname {
			return
		}
		seen[key] = true
		var values []string
		for _, o := range j.outcomesOf(c, pool.Catalog) {
			for _, v := range o.values(key) {
				if v.present {
					values = append(values, v.text)
				}
			}
		}
		pins = append(pins, label.Requirement{Key: key, Operator: label.In, Values: values})
	}
	for _, key := range j.topologyKeys() {
		pin(key)
	}
	return pins
}

// topologyKeys returns the keys of all required rules between pods.
func (j *judge) topologyKeys() []string {
	if j.topology != nil {
		return j.topology
	}
	j.topology = []string{}
	add := func(pod *model.Pod) {
		for i := range pod.Spread {
			j.topology = append(j.topology, canonical(pod.Spread[i].Key))
		}
		for i := range pod.Terms {
			j.topology = append(j.topology, canonical(pod.Terms[i].Key))
		}
	}
	for _, g := range j.snap.Groups {
		add(g.Pods[0])
	}
	for _, n := range j.snap.Nodes {
		for _, pod := range n.Pods {
			add(pod)
		}
	}
	return j.topology
}

// takes reports whether a new node of the pool can hold the pod alone. It ignores pools with minValues, reserved
// offerings, and spot capacity under a share limit: their availability depends on the rest of the plan.
func (j *judge) takes(pool *model.PoolSpec, pod *model.Pod, pins []label.Requirement, a *account) bool {
	if pool.Blocked != nil || pool.Catalog == nil || a.full(pool) {
		return false
	}
	for _, r := range pool.Requirements {
		if r.MinValues > 0 {
			return false
		}
	}
	id := canonicalText(pool.Name, signatureOf(pod), pins)
	known, asked := j.fits[id]
	if !asked {
		known = j.takesNow(pool, pod, pins, a)
		j.fits[id] = known
	}
	return known
}

func (j *judge) takesNow(pool *model.PoolSpec, pod *model.Pod, pins []label.Requirement, a *account) bool {
	for _, taint := range pool.Taints {
		taint.Effect = model.NoSchedule
		if _, no := untolerated([]model.Taint{taint}, anyEffect(pod.Tolerations)); no {
			return false
		}
	}
	special := j.asksSpecial(pool, pod)
	for _, affinity := range orNone(pod.Alternatives) {
		for _, volume := range orNone(pod.VolumeAlternatives) {
			reqs := append(append(append([]label.Requirement{}, pool.Requirements...), affinity...), volume...)
			p := j.promise(append(reqs, pins...), nil, nil, pool.Catalog)
			p.defined = map[string]bool{}
			for _, r := range pool.Requirements {
				p.defined[canonical(r.Key)] = true
			}
			for _, o := range p.outcomes() {
				if pool.MaxSpotShare > 0 && o.offering.CapacityType == "spot" {
					continue
				}
				if o.offering.Available && o.offering.ReservationID == "" && (special || !o.kind.Special) && j.alone(pool, pod, o, a) {
					return true
				}
			}
		}
	}
	return false
}

// alone reports whether the outcome holds the pod and the daemons and is within the limits.
func (j *judge) alone(pool *model.PoolSpec, pod *model.Pod, o outcome, a *account) bool {
	need := j.daemonsFor(pool.Taints, o.values, nil)
	need.add(j.requests([]*model.Pod{pod}))
	need.add(volumes([]*model.Pod{pod}))
	if _, short := need.short(amountsOf(o.kind.Allocatable)); short {
		return false
	}
	capacity := amountsOf(o.kind.Capacity)
	capacity[model.ResourceUSD] = o.offering.Price
	for _, limit := range pool.Limits {
		if limit.Name != model.ResourceNodes && capacity[limit.Name] > 0 && a.used[limit.Name]+capacity[limit.Name] > limit.Value {
			return false
		}
	}
	return !j.refusedByQuota(o)
}

// full reports whether the pool has reached its limit of nodes.
func (a *account) full(pool *model.PoolSpec) bool {
	for _, limit := range pool.Limits {
		if limit.Name == model.ResourceNodes && a.nodes >= limit.Value {
			return true
		}
	}
	return false
}

// anyEffect returns the tolerations that apply to a PreferNoSchedule taint as if its effect were NoSchedule: a
// toleration for another effect does not help. This is the cautious reading.
func anyEffect(tolerations []model.Toleration) []model.Toleration {
	var list []model.Toleration
	for _, t := range tolerations {
		if t.Effect == model.AnyEffect || t.Effect == model.NoSchedule {
			list = append(list, t)
		}
	}
	return list
}

func orNone(alternatives [][]label.Requirement) [][]label.Requirement {
	if len(alternatives) == 0 {
		return [][]label.Requirement{nil}
	}
	return alternatives
}
