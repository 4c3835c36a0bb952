package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// A LimitRange sets the requests of the pods of some apps, and of the daemons, when the pods are created. It changes
// at times: existing pods keep their requests, later pods have others. The controller knows the LimitRange, and the
// requests of existing daemon pods.

// limited reports whether a world has a LimitRange.
func limited(seed uint64) bool { return seed >= Wide && seed%3 == 1 }

// limitRange holds the current default requests.
type limitRange struct {
	defaults []quantity.Amount
	// apps are those whose pods have no requests, daemons says whether the daemons have none.
	apps    map[string]bool
	daemons bool
}

// limit adds a LimitRange to the world. It uses its own random numbers.
func (s *setting) limit(seed uint64) {
	if !limited(seed) {
		return
	}
	rng := rand.New(rand.NewPCG(seed, 0x11317))
	s.limits = &limitRange{apps: map[string]bool{}, daemons: rng.IntN(4) > 0}
	for _, a := range s.apps {
		s.limits.apps[a.name] = rng.IntN(2) == 0 && !asks(&a.pod)
	}
	s.setLimits(rng.IntN(1000))
}

// setLimits changes the default requests.
func (s *setting) setLimits(much int) {
	s.limits.defaults = amounts([]int64{50, 100, 300, 600, 1200, 2400}[much%6], gibi/8*int64(1+much%7))
	if !s.limits.daemons {
		return
	}
	s.daemons = slices.Clone(s.daemons)
	for i := range s.daemons {
		s.daemons[i].Requests = s.limits.defaults
	}
}

// admit sets the default requests of a new pod.
func (s *setting) admit(p *pod) {
	if s.limits != nil && s.limits.apps[p.app] {
		p.requests = s.limits.defaults
	}
}

// limitAgain adds changes of the LimitRange to a history.
func limitAgain(h *History, until time.Duration) {
	rng := rand.New(rand.NewPCG(h.Seed, 0x11318))
	for range 1 + rng.IntN(3) {
		at := time.Duration(rng.Int64N(int64(until) + 1)).Truncate(time.Millisecond)
		h.Disturbances = append(h.Disturbances, Disturbance{at, "limits", 0, rng.IntN(1000)})
	}
}

// changeLimits executes the disturbance.
func (w *world) changeLimits(d Disturbance) {
	if w.setting.limits == nil {
		return
	}
	w.setting.setLimits(d.Much)
	w.say("the LimitRange gives %v", w.setting.limits.defaults)
}

// running returns the daemons with, for each resource, the maximum of the requests of the template and of their pods.
func running(daemons []model.DaemonSpec, pods []*pod) []model.DaemonSpec {
	daemons = slices.Clone(daemons)
	for i := range daemons {
		d := &daemons[i]
		most := map[string]int64{}
		add(most, d.Requests)
		for _, p := range pods {
			if p.daemon && p.app == d.UID {
				for _, a := range p.requests {
					most[a.Name] = max(most[a.Name], a.Value)
				}
			}
		}
		d.Requests = nil
		for name, amount := range most {
			d.Requests = append(d.Requests, quantity.Amount{Name: name, Value: amount})
		}
		slices.SortFunc(d.Requests, func(a, b quantity.Amount) int { return cmp.Compare(a.Name, b.Name) })
	}
	return daemons
}
