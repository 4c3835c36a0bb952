package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

const (
	labelArch = "kubernetes.io/arch"
	labelTeam = "example.com/team"
	gpu       = "example.com/gpu"
	nic       = "example.com/nic"
	gibi      = int64(1) << 30
)

var (
	wellKnown = map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true, labelArch: true,
		model.LabelPool: true}
	teamTaint = model.Taint{Key: "example.com/dedicated", Value: "team", Effect: model.NoSchedule}
)

// setting is the part of a world that does not change while a history runs, except for offerings, pools and the
// default requests of pods and daemons.
type setting struct {
	types []model.InstanceType
	// known holds the well-known labels.
	known   map[string]bool
	pools   []*model.PoolSpec
	daemons []model.DaemonSpec
	apps    []*app
	// templates of the pools with the windows of their budgets; past holds specs of pools that were replaced.
	templates map[string]*template
	past      []formerPool
	// disruption holds the options that flags would set.
	disruption disruption.Options
	// lag limits how far a watch is behind; binding is the time that kube-scheduler takes from its decision to the
	// binding.
	lag, binding time.Duration
	// preemption is nil if kube-scheduler does not preempt.
	preemption *preemption
	// limits is nil if no LimitRange sets requests.
	limits *limitRange
	// late is nil if nodes and objects are what they were when the controller decided about them.
	late *late
	// commitments and partitions are those of worlds in which capacity is paid in advance.
	commitments []commitment
	partitions  []string
	// foreign returns the taint that an external component sets on a node that joins; nil for never.
	foreign func() (model.Taint, bool)
}

// app is a Deployment.
type app struct {
	name     string
	replicas int
	pod      pod
	made     int
	// pdb is nil for none; protected is how long each pod forbids its disruption, negative for forever.
	pdb       *pdb
	protected time.Duration
	// disks: each replica has a disk. The app is then a StatefulSet, and a pod is recreated when its predecessor is
	// gone.
	disks bool
	// every: the app is a CronJob, whose Job is replaced by another one after that time; 0 for other apps.
	every time.Duration
}

// template holds the properties of a pool's claims that a PoolSpec does not contain.
type template struct {
	generation         int
	expireAfter, grace time.Duration
	// windows by budget of the pool; the zero window is always open.
	windows []window
}

// window opens a budget periodically, for a while.
type window struct{ every, open time.Duration }

// formerPool is a previous spec of a pool, and until when it was valid.
type formerPool struct {
	pool  *model.PoolSpec
	until time.Time
}

func newSetting(seed uint64, rng *rand.Rand) *setting {
	s := &setting{types: someTypes(rng), known: wellKnown, lag: 500 * time.Millisecond, binding: 300 * time.Millisecond}
	if rng.IntN(4) == 0 {
		s.lag = 12 * time.Second
	}
	s.disruption = disruption.Options{Static: true, SpotToSpot: rng.IntN(2) == 0}
	s.templates = map[string]*template{}
	catalog := &model.Catalog{Types: s.types, WellKnown: wellKnown}
	for i := range 1 + rng.IntN(3) {
		p := somePool(rng, i, catalog)
		s.pools = append(s.pools, p)
		s.templates[p.Name] = someTemplate(rng, p)
	}
	if rng.IntN(2) == 0 {
		s.daemons = append(s.daemons, model.DaemonSpec{UID: "daemon", Namespace: "kube-system", Name: "daemon",
			Requests: amounts(200, gibi/4), Tolerations: []model.Toleration{{Exists: true}}})
	}
	for i := range 1 + rng.IntN(5) {
		s.apps = append(s.apps, someApp(rng, i))
	}
	s.relate(seed)
	s.even(seed)
	s.preempts(seed)
	s.limit(seed)
	s.delay(seed)
	s.buy(seed)
	return s
}

func amounts(cpu, memory int64, more ...quantity.Amount) []quantity.Amount {
	return append([]quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "memory", Value: memory}, {Name: "pods", Value: 1}}, more...)
}

// someTypes returns some sizes of some families, each with its own arch, price and extended resources.
func someTypes(rng *rand.Rand) []model.InstanceType {
	var types []model.InstanceType
	for _, family := range []string{"m", "a", "g", "n"} {
		for _, size := range []int64{1, 2, 4, 8, 16} {
			if len(types) > 0 && rng.IntN(3) == 0 {
				continue
			}
			types = append(types, someType(rng, family, size))
		}
	}
	return types
}

func someType(rng *rand.Rand, family string, size int64) model.InstanceType {
	arch, extra, price := "amd64", []quantity.Amount(nil), 40_000_000*size
	switch family {
	case "a":
		arch, price = "arm64", price*8/10
	case "g":
		extra, price = []quantity.Amount{{Name: gpu, Value: max(1, size/4)}}, price*5
	case "n":
		extra, price = []quantity.Amount{{Name: nic, Value: 1}}, price*3/2
	}
	name := fmt.Sprintf("%s.%d", family, size)
	has := func(cpu, memory int64) []quantity.Amount {
		return append([]quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "memory", Value: memory}, {Name: "pods", Value: 8 + 4*size}}, extra...)
	}
	t := model.InstanceType{Name: name, Special: extra != nil, Capacity: has(1000*size, 4*gibi*size), Allocatable: has(1000*size-100, 4*gibi*size-gibi/2)}
	var zones, capacityTypes []string
	for _, zone := range []string{"a", "b", "c"} {
		for _, ct := range []string{"spot", "on-demand"} {
			if rng.IntN(6) == 0 {
				continue
			}
			o := model.Offering{Zone: zone, CapacityType: ct, Price: price * int64(95+rng.IntN(10)) / 100, Available: true}
			if ct == "spot" {
				o.Price = o.Price * 4 / 10
			}
			t.Offerings = append(t.Offerings, o)
			zones, capacityTypes = append(zones, zone), append(capacityTypes, ct)
		}
	}
	in := func(key string, values ...string) label.Requirement {
		slices.Sort(values)
		return label.Requirement{Key: key, Operator: label.In, Values: slices.Compact(values)}
	}
	t.Requirements = []label.Requirement{in(model.LabelType, name), in(labelArch, arch), in(model.LabelZone, zones...), in(model.LabelCapacityType, capacityTypes...)}
	return t
}

func somePool(rng *rand.Rand, i int, catalog *model.Catalog) *model.PoolSpec {
	name := fmt.Sprintf("pool-%d", i)
	p := &model.PoolSpec{Name: name, UID: "uid-of-" + name, Weight: int32(rng.IntN(3) * 10), Catalog: catalog,
		Policy: "WhenEmptyOrUnderutilized", Requirements: []label.Requirement{{Key: model.LabelPool, Operator: label.In, Values: []string{name}}}}
	p.ConsolidateAfter = []time.Duration{0, 0, 5 * time.Second, 5 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second, -1}[rng.IntN(8)]
	require := func(key string, values ...string) {
		p.Requirements = append(p.Requirements, label.Requirement{Key: key, Operator: label.In, Values: values})
	}
	if rng.IntN(3) == 0 {
		require(model.LabelCapacityType, []string{"spot", "on-demand"}[rng.IntN(2)])
	}
	if rng.IntN(3) == 0 {
		require(model.LabelZone, [][]string{{"a"}, {"a", "b"}, {"b", "c"}}[rng.IntN(3)]...)
	}
	if rng.IntN(3) == 0 {
		require(labelTeam, "x", "y")
	}
	if i > 0 && rng.IntN(3) == 0 {
		p.Taints = []model.Taint{teamTaint}
	}
	switch rng.IntN(4) {
	case 0:
		p.Limits = []quantity.Amount{{Name: "cpu", Value: 8000 + 1000*int64(rng.IntN(30))}}
	case 1:
		p.Limits = []quantity.Amount{{Name: model.ResourceNodes, Value: 1 + int64(rng.IntN(6))}}
	}
	switch rng.IntN(4) {
	case 0:
		p.Budgets = []model.Budget{{Count: int64(rng.IntN(3))}}
	case 1:
		p.Budgets = []model.Budget{{IsPercent: true, Percent: 10 + int64(rng.IntN(60))}, {Count: 2, Reasons: []string{"Empty"}}}
	default:
		p.Budgets = []model.Budget{{IsPercent: true, Percent: 100}}
	}
	someRules(rng, i, p)
	return p
}

func someApp(rng *rand.Rand, i int) *app {
	a := &app{name: fmt.Sprintf("app-%d", i), replicas: rng.IntN(12)}
	p := pod{app: a.name, cost: []int64{1000, 1000, 1000, 0, 5000, -1000}[rng.IntN(6)], requests: amounts([]int64{100, 250, 500, 900, 1800, 3500}[rng.IntN(6)], gibi/8*int64(1+rng.IntN(24)))}
	p.alternatives = someAlternatives(rng)
	if rng.IntN(4) == 0 {
		p.tolerations = []model.Toleration{{Key: teamTaint.Key, Exists: true}}
	}
	switch rng.IntN(10) {
	case 0:
		p.requests = append(p.requests, quantity.Amount{Name: gpu, Value: 1})
	case 1:
		p.requests = append(p.requests, quantity.Amount{Name: nic, Value: 1})
	case 2:
		p.priority = 1000
	}
	a.pod = p
	a.pdb = somePDB(rng, a)
	switch rng.IntN(12) {
	case 0:
		a.protected = -1
	case 1:
		a.protected = time.Duration(1+rng.IntN(10)) * time.Minute
	}
	return a
}

// someAlternatives returns the requirements of an app on its nodes' labels: none, some values, or one of two terms.
func someAlternatives(rng *rand.Rand) [][]label.Requirement {
	var selected []label.Requirement
	require := func(key string, values ...string) {
		selected = append(selected, label.Requirement{Key: key, Operator: label.In, Values: values})
	}
	if rng.IntN(4) == 0 {
		require(model.LabelZone, [][]string{{"a"}, {"b"}, {"a", "c"}}[rng.IntN(3)]...)
	}
	if rng.IntN(5) == 0 {
		require(model.LabelCapacityType, []string{"spot", "on-demand"}[rng.IntN(2)])
	}
	if rng.IntN(5) == 0 {
		require(labelArch, []string{"amd64", "arm64"}[rng.IntN(2)])
	}
	if rng.IntN(6) == 0 {
		require(labelTeam, []string{"x", "y"}[rng.IntN(2)])
	}
	switch {
	case selected != nil:
		return [][]label.Requirement{selected}
	case rng.IntN(6) == 0:
		return [][]label.Requirement{
			{{Key: model.LabelZone, Operator: label.In, Values: []string{"c"}}, {Key: labelArch, Operator: label.In, Values: []string{"arm64"}}},
			{{Key: model.LabelZone, Operator: label.NotIn, Values: []string{"c"}}},
		}
	}
	return nil
}

// pool returns the pool with the name.
func (s *setting) pool(name string) *model.PoolSpec {
	for _, p := range s.pools {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// amountOf returns the amount of one resource.
func amountOf(list []quantity.Amount, name string) int64 {
	for _, a := range list {
		if a.Name == name {
			return a.Value
		}
	}
	return 0
}

// allows reports whether a label with the value, or a missing label, satisfies the requirement: the rule of
// Kubernetes, without the engine's rows.
func allows(r label.Requirement, value string, there bool) bool {
	switch r.Operator {
	case label.In:
		return there && slices.Contains(r.Values, value)
	case label.NotIn:
		return !there || !slices.Contains(r.Values, value)
	case label.Exists:
		return there
	case label.DoesNotExist:
		return !there
	}
	panic("the simulator has no labels that are numbers")
}

// accepts reports whether labels satisfy one of the alternatives.
func accepts(alternatives [][]label.Requirement, labels map[string]string) bool {
	return len(alternatives) == 0 || slices.ContainsFunc(alternatives, func(all []label.Requirement) bool { return satisfies(all, labels) })
}

func satisfies(all []label.Requirement, labels map[string]string) bool {
	return !slices.ContainsFunc(all, func(r label.Requirement) bool {
		value, there := labels[r.Key]
		return !allows(r, value, there)
	})
}
