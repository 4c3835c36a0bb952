package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/futile"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// lateWorld returns a world with types of 1 to 16 cpu of one price per cpu, one pool that consolidates at once with a
// budget of that percentage, and one app.
func lateWorld(seed uint64, percent int64, a *app, l *late) *world {
	opts := Production()
	opts.Skip = []string{Settles}
	w := newWorld(seed, opts)
	clear(w.api.objects[pdbKind])
	s := w.setting
	s.types, s.daemons, s.apps, s.lag, s.late = nil, nil, []*app{a}, 500*time.Millisecond, l
	for cpu := int64(1); cpu <= 16; cpu *= 2 {
		s.types = append(s.types, plainType(cpu))
	}
	pool := *s.pools[0]
	pool.Requirements, pool.Taints, pool.Limits, pool.Static, pool.Blocked = pool.Requirements[:1], nil, nil, false, nil
	pool.Policy, pool.ConsolidateAfter, pool.Payback, pool.MovePrice, pool.MinSaving = "WhenEmptyOrUnderutilized", 0, 0, 0, 0
	pool.Budgets = []model.Budget{{IsPercent: true, Percent: percent}}
	pool.Catalog = &model.Catalog{Types: s.types, WellKnown: wellKnown}
	s.pools = []*model.PoolSpec{&pool}
	s.templates[pool.Name] = &template{windows: make([]window, 1)}
	a.pod.app = a.name
	w.processes[0].store = newStore(s) // without the daemons that the seed drew
	w.say("the world is another one: %s of %d pods", a.name, a.replicas)
	w.calm = true
	w.belated()
	return w
}

// plainType returns a type that is sold on demand in one zone.
func plainType(cpu int64) model.InstanceType {
	t := model.InstanceType{Name: fmt.Sprintf("c-%dx", cpu), Capacity: amounts(1000*cpu, 2*gibi*cpu),
		Allocatable: amounts(1000*cpu-100, 2*gibi*cpu-gibi/4),
		Offerings:   []model.Offering{{Zone: "a", CapacityType: "on-demand", Price: 40_000_000 * cpu, Available: true}}}
	t.Capacity[2].Value, t.Allocatable[2].Value = 110, 110
	t.Requirements = exactly(map[string]string{model.LabelType: t.Name, labelArch: "amd64", model.LabelZone: "a",
		model.LabelCapacityType: "on-demand"})
	return t
}

// discovered is a DaemonSet for nodes with a label that no pool and no type has.
func discovered(cpu int64) model.DaemonSpec {
	return model.DaemonSpec{UID: "discovered", Namespace: "kube-system", Name: "discovered", Requests: amounts(cpu, gibi/8),
		Alternatives: [][]label.Requirement{exactly(map[string]string{labelFound: "yes"})}, Tolerations: []model.Toleration{{Exists: true}}}
}

// labelFound is the label of discovered, by which node-feature-discovery stands for all such daemons.
const labelFound = "feature.node.kubernetes.io/found"

func found(after time.Duration) mark { return mark{label: labelFound, value: "yes", after: after} }

// inVain are worlds in which plans are wrong in a way that repeats. In each of them the controller must stop trying.
func inVain() map[string]func(seed uint64) *world {
	surprise := mark{taint: foreignTaint}
	late14 := func(after time.Duration, percent int64, priority int32) func(uint64) *world {
		return func(seed uint64) *world {
			w := lateWorld(seed, percent, &app{name: "web", replicas: 14, pod: pod{requests: amounts(900, gibi/4)}},
				&late{marks: []mark{found(after)}, priority: priority})
			w.setting.daemons = []model.DaemonSpec{discovered(700)}
			return w
		}
	}
	flips := func(percent int64) func(uint64) *world {
		return func(seed uint64) *world {
			l := &late{}
			w := lateWorld(seed, percent, &app{name: "web", replicas: 40, pod: pod{requests: amounts(900, gibi/4)}}, l)
			w.after(10*time.Minute, func() {
				l.flips = []flip{{pool: w.setting.pools[0].Name, every: 7 * time.Second}}
				w.flip(&l.flips[0])
			})
			return w
		}
	}
	return map[string]func(seed uint64) *world{
		"A13: a DaemonSet of 700m for a label at creation, 14 pods of 900m, budget 100%": late14(0, 100, 0),
		"A13: the same, budget 10%":                                               late14(0, 10, 0),
		"A13: the same, the label comes after 20 seconds":                         late14(20*time.Second, 100, 0),
		"A13: the same, the label comes after 20 seconds, the DaemonSet preempts": late14(20*time.Second, 100, 1000),
		"A14: a taint at creation that stays, a CronJob each minute": func(seed uint64) *world {
			return lateWorld(seed, 100, &app{name: "job", replicas: 1, every: time.Minute, pod: pod{requests: amounts(500, gibi/4)}},
				&late{marks: []mark{surprise}})
		},
		"A14: a taint at creation that stays, 30 bare pods, each as large as a node": func(seed uint64) *world {
			return lateWorld(seed, 100, &app{name: "step", replicas: 30, pod: pod{bare: true, requests: amounts(15_500, gibi/4)}},
				&late{marks: []mark{surprise}})
		},
		"A14: the same, each is replaced every three minutes": func(seed uint64) *world {
			a := &app{name: "step", replicas: 30, every: 3 * time.Minute, pod: pod{bare: true, requests: amounts(900, gibi/4)}}
			return lateWorld(seed, 100, a, &late{marks: []mark{surprise}})
		},
		"A15: a template that flips every seven seconds, budget 100%": flips(100),
		"A15: the same, budget 10%":                                   flips(10),
		"A16: a pod that never runs beside the DaemonSet": func(seed uint64) *world {
			w := lateWorld(seed, 10, &app{name: "web", replicas: 1, pod: pod{requests: amounts(900, gibi/4)}}, &late{marks: []mark{found(0)}})
			w.setting.daemons = []model.DaemonSpec{discovered(700)}
			return w
		},
		"A1: a buffer of two, a taint at creation that stays": func(seed uint64) *world {
			return lateWorld(seed, 100, &app{name: "none"}, &late{marks: []mark{surprise}, buffers: []buffer{{"spare", 2, amounts(2000, gibi)}}})
		},
		"A1: a buffer of two, nodes that are smaller than their type": func(seed uint64) *world {
			return lateWorld(seed, 100, &app{name: "none"},
				&late{short: map[string]int64{"c-4x": 20, "c-8x": 20}, buffers: []buffer{{"spare", 2, amounts(2000, gibi)}}})
		},
	}
}

// TestNothingInVain observes each of these worlds for two hours.
func TestNothingInVain(t *testing.T) {
	worlds := inVain()
	for _, name := range slices.Sorted(maps.Keys(worlds)) {
		t.Run(name, func(t *testing.T) {
			w := worlds[name](1)
			for w.failure == nil && w.next(epoch.Add(2*time.Hour)) {
			}
			gone := 0
			for _, m := range w.cloud.ledger {
				if !m.gone.IsZero() {
					gone++
				}
			}
			figures := fmt.Sprintf("%d purchases, %d removals, %d evictions in %v: %v", len(w.cloud.ledger), gone,
				w.check.evictions, w.now.Sub(epoch), w.failure)
			if t.Log(figures); w.failure != nil {
				t.Errorf("%s\n%s", figures, strings.Join(w.trace[max(0, len(w.trace)-80):], "\n"))
			}
		})
	}
}

// unpaused makes the engine forget all pauses.
func unpaused(o *Options) {
	schedule, propose, advance := o.Schedule, o.Propose, o.Advance
	o.Schedule = func(s *model.Snapshot, last *plan.Provision) *plan.Provision { return schedule(withoutPauses(s), last) }
	o.Restrain = func(_ *futile.Launches, _ *model.Snapshot, p *plan.Provision) *plan.Provision { return p }
	o.Propose = func(s *model.Snapshot, opts disruption.Options) disruption.Proposal {
		return propose(withoutPauses(s), opts)
	}
	o.Advance = func(s *model.Snapshot, opts disruption.Options, commands []plan.Command) []Stepped {
		return advance(withoutPauses(s), opts, commands)
	}
}

func withoutPauses(s *model.Snapshot) *model.Snapshot {
	free := *s
	free.Pools = slices.Clone(s.Pools)
	for i, p := range free.Pools {
		pool, spec := *p, *p.PoolSpec
		spec.Pauses = nil
		pool.PoolSpec = &spec
		free.Pools[i] = &pool
	}
	return &free
}

// TestPlantedInVain checks that the property finds an engine without pauses, in the worlds where only pauses help.
func TestPlantedInVain(t *testing.T) {
	worlds := inVain()
	for _, name := range slices.Sorted(maps.Keys(worlds)) {
		if kind, _, _ := strings.Cut(name, ":"); kind == "A13" || kind == "A16" {
			continue // what the first node shows is enough
		}
		t.Run(name, func(t *testing.T) {
			w := worlds[name](2)
			unpaused(&w.opts)
			for w.failure == nil && w.next(epoch.Add(2*time.Hour)) {
			}
			if w.failure == nil || w.failure.Property != NothingInVain {
				t.Errorf("got %v, want %q to fail", w.failure, NothingInVain)
			}
		})
	}
}

// TestPurchasesInVain checks what the property counts. The times are those of purchases in vain, in seconds; each shows
// ten seconds later.
func TestPurchasesInVain(t *testing.T) {
	for name, test := range map[string]struct {
		at    []int
		pods  int
		fails bool
	}{
		"four":                                {[]int{0, 11, 22, 33}, 1, false},
		"five at once, before one has shown":  {[]int{0, 1, 2, 3, 4}, 1, false},
		"a fifth when four have shown":        {[]int{0, 11, 22, 33, 55}, 1, true},
		"a fifth after a minute":              {[]int{0, 11, 22, 33, 103}, 1, false},
		"a sixth within two minutes of that":  {[]int{0, 11, 22, 33, 103, 170}, 1, true},
		"a sixth after two minutes":           {[]int{0, 11, 22, 33, 103, 230}, 1, false},
		"two for two pods after a minute":     {[]int{0, 11, 22, 33, 103, 104}, 2, false},
		"two for one pod after a minute":      {[]int{0, 11, 22, 33, 103, 104}, 1, true},
		"after the pauses of two hours":       {[]int{0, 11, 22, 33, 110, 240, 490, 980, 1950, 3760, 5570, 7380}, 1, false},
		"one more than the pauses of an hour": {[]int{0, 11, 22, 33, 110, 240, 490, 980, 1950, 3000}, 1, true},
	} {
		w := quietWorld()
		var list []*attempt
		for _, second := range test.at {
			at := epoch.Add(time.Duration(second) * time.Second)
			list = append(list, &attempt{at: at, shown: at.Add(10 * time.Second), pods: test.pods, launched: true})
		}
		w.check.purchases("web", list)
		if got := w.failure != nil; got != test.fails {
			t.Errorf("%s: fails: %t (%v), want %t", name, got, w.failure, test.fails)
		}
	}
}
