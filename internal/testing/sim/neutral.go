package sim

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Neutral is the property that what does not matter leaves the cost of a plan as it is: a limit that is not reached, a pool
// that no pod tolerates, a rule that selects no pod.
const Neutral = "neutral"

// neutralChange is a change to facts that leaves the best plan as it is.
type neutralChange struct {
	name string
	edit func(*facts)
	// faults are numbers of histories in which the change makes a plan dearer today; nil for none. Histories try the changes
	// without faults.
	faults []uint64
}

// farLimits are those that no plan reaches.
var farLimits = []quantity.Amount{
	{Name: "cpu", Value: 100_000_000}, {Name: model.ResourceNodes, Value: 10_000}, {Name: "example.com/none", Value: 1},
}

var neutralChanges = []neutralChange{
	{name: "far limits", edit: func(f *facts) {
		f.eachPool(func(p *model.PoolSpec) {
			for _, far := range farLimits {
				if !slices.ContainsFunc(p.Limits, func(l quantity.Amount) bool { return l.Name == far.Name }) {
					p.Limits = append(slices.Clip(p.Limits), far)
				}
			}
		})
	}},
	{name: "idle pools", edit: func(f *facts) {
		i := slices.IndexFunc(f.pools, func(p *model.PoolSpec) bool { return !p.Static })
		if i < 0 {
			return
		}
		for _, name := range []string{"idle-0", "idle-1", "z-idle-2", "z-idle-3"} {
			p := copied(f.pools[i], name)
			p.Taints = []model.Taint{{Key: "example.com/idle", Value: name, Effect: model.NoSchedule}}
			f.pools = append(slices.Clip(f.pools), p)
		}
	}},
	{name: "twin pools", edit: func(f *facts) {
		for _, p := range f.pools {
			if !p.Static && p.Limits == nil && p.Pauses == nil { // what nodes of the pool have shown is not known of the twin
				f.pools = append(slices.Clip(f.pools), copied(p, p.Name+"-twin"))
			}
		}
	}},
	{name: "zone spread of no pod", edit: func(f *facts) { f.spread(model.LabelZone, 1, "none") }},
	{name: "wide zone spread", edit: func(f *facts) { f.spread(model.LabelZone, 1000, "") }},
	{name: "wide hostname spread", edit: func(f *facts) { f.spread(model.LabelHostname, 1000, "") }},
	{name: "hostname anti-affinity to no pod", edit: func(f *facts) {
		f.eachPod(func(p *model.PodSpec) {
			p.Terms = append(slices.Clip(p.Terms), model.Term{Key: model.LabelHostname, Anti: true, Selector: ofApp("none")})
		})
	}},
	{name: "toleration of nothing", edit: func(f *facts) {
		f.eachPod(func(p *model.PodSpec) {
			p.Tolerations = append(slices.Clip(p.Tolerations), model.Toleration{Key: "example.com/" + p.UID, Exists: true})
		})
	}},
}

// copied returns a pool that differs in its name.
func copied(p *model.PoolSpec, name string) *model.PoolSpec {
	c := *p
	c.Name, c.UID = name, "uid-of-"+name
	c.Requirements = slices.Clone(p.Requirements)
	for i, r := range c.Requirements {
		if r.Key == model.LabelPool {
			c.Requirements[i] = label.Requirement{Key: r.Key, Operator: r.Operator, Values: []string{name}}
		}
	}
	return &c
}

func (f *facts) eachPool(edit func(*model.PoolSpec)) {
	f.pools = slices.Clone(f.pools)
	for i := range f.pools {
		p := *f.pools[i]
		edit(&p)
		f.pools[i] = &p
	}
}

// eachPod edits the pods of apps.
func (f *facts) eachPod(edit func(*model.PodSpec)) {
	f.pods = slices.Clone(f.pods)
	for i := range f.pods {
		if !f.pods[i].Daemon {
			edit(&f.pods[i])
		}
	}
}

// spread spreads the pods of an app, "" for those of the same app, unless there is a spread by the key.
func (f *facts) spread(key string, skew int, app string) {
	f.eachPod(func(p *model.PodSpec) {
		if slices.ContainsFunc(p.Spread, func(s model.Spread) bool { return s.Key == key }) {
			return
		}
		of := app
		if of == "" {
			of = p.Labels[labelApp]
		}
		p.Spread = append(slices.Clip(p.Spread), model.Spread{Key: key, MaxSkew: skew, Selector: ofApp(of)})
	})
}

// costOf returns what the claims of a plan cost, in nano-USD per hour, and how many pods have no place.
func costOf(known facts, p *plan.Provision) (cost int64, refused int) {
	for i := range p.Claims {
		n := &p.Claims[i]
		node := int64(placement.ProductionNodePrice)
		for _, pool := range known.pools {
			if pool.Name == n.Pool && pool.NodePrice != 0 {
				node = max(0, pool.NodePrice)
			}
		}
		if len(n.Options) > 0 {
			cost += n.Options[0].Price + node
		}
	}
	for _, r := range p.Refused {
		refused += len(r.Pods)
	}
	return cost, refused
}

// neutralEvery is how many plans are made for one that is repeated with a change.
const neutralEvery = 3

// neutral plans again with a change: Neutral.
func (c *checks) neutral(known facts, j judged) {
	change := c.neutralChange()
	if change == nil {
		return
	}
	changed := known
	change.edit(&changed)
	without, stay := costOf(known, j.decided)
	again := c.w.opts.Schedule(changed.fresh(nil), j.last)
	with, stayWith := costOf(changed, again)
	if stayWith > stay || stayWith == stay && with*1000 > without*1005 {
		c.fail(Neutral, "with %s the plan costs %d and %d pods have no place, without it %d and %d:\n%s\nnot\n%s",
			change.name, with, stayWith, without, stay, text(again), text(j.decided))
	}
}

// neutralChange returns the change to try, nil for none now: the one of the options, or all without a fault in turn.
func (c *checks) neutralChange() *neutralChange {
	var list []*neutralChange
	for i := range neutralChanges {
		change := &neutralChanges[i]
		if change.name == c.w.opts.Neutral {
			return change
		}
		if change.faults == nil {
			list = append(list, change)
		}
	}
	c.plansJudged++
	if c.plansJudged%neutralEvery > 0 || len(list) == 0 {
		return nil
	}
	return list[c.plansJudged/neutralEvery%len(list)]
}
