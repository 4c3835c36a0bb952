package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/cloud/kwok"
)

// Features of a world, in the order in which a history lists them.
const (
	// Buffers: a CapacityBuffer, whose number of pods changes.
	Buffers = "buffers"
	// Clocks: the clock of the controller's machine is wrong by up to ten minutes, for two minutes.
	Clocks = "clocks"
	// Commitments: on-demand capacity costs less up to a limit.
	Commitments = "commitments"
	// Crashes: processes end between any two writes.
	Crashes = "crashes"
	// Expiry: nodes expire after some minutes.
	Expiry = "expiry"
	// Flaky: the API server refuses writes for a while, or executes them and its answer is lost.
	Flaky = "flaky"
	// Late: watches lag by up to three seconds.
	Late = "late"
	// Lies: the cloud gives wrong replies, kubelets fall silent, nodes have conditions that require repair, and machines end.
	Lies = "lies"
	// Limits of pools, and Quotas over all pools, may leave pods without a node.
	Limits = "limits"
	Quotas = "quotas"
	// Overlays change the price of spot capacity.
	Overlays = "overlays"
	// Partitions: machines are in partitions of a placement group, over which some apps spread.
	Partitions = "partitions"
	// PDBs: PodDisruptionBudgets of some apps.
	PDBs = "pdbs"
	// Protected: pods forbid their disruption at times.
	Protected = "protected"
	// Replicas: nodes are launched for pods that ReplicaSets ask for, before they exist.
	Replicas = "replicas"
	// Reservations: some nodes are paid already, as many as the reservation has.
	Reservations = "reservations"
	// Rollouts: the templates of pools change.
	Rollouts = "rollouts"
	// Spread: some apps spread over zones or have anti-affinity to themselves.
	Spread = "spread"
	// Spot: nodes of spot capacity are interrupted.
	Spot = "spot"
	// Static: a pool has a fixed number of nodes, which changes.
	Static = "static"
)

// Features returns all features.
func Features() []string {
	return append(drawnFirst(), Commitments, Partitions)
}

// drawnFirst returns the features of the first random stream.
func drawnFirst() []string {
	return []string{Buffers, Clocks, Crashes, Expiry, Flaky, Late, Lies, Limits, Quotas, Overlays, PDBs, Protected, Replicas, Reservations, Rollouts, Spread, Spot, Static}
}

// History is a world, what happens in it, and what must be true in the end. Its text is a seed and a set of features.
type History struct {
	Seed     uint64
	Features []string
}

// NewHistory draws the features of a history.
func NewHistory(seed uint64) History {
	random, h := rand.New(rand.NewPCG(seed, 0xfea7)), History{Seed: seed}
	for _, f := range drawnFirst() {
		if random.IntN(2) == 0 {
			h.Features = append(h.Features, f)
		}
	}
	bought := rand.New(rand.NewPCG(seed, 0xb06e))
	for _, f := range []string{Commitments, Partitions} {
		if bought.IntN(3) == 0 {
			h.Features = append(h.Features, f)
		}
	}
	return h
}

// String returns the text of the history.
func (h History) String() string {
	return fmt.Sprintf("seed: %d\nfeatures: %s\n", h.Seed, strings.Join(h.Features, " "))
}

// Parse reads the text of a history.
func Parse(text string) (h History, err error) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch key {
		case "seed":
			if _, err := fmt.Sscan(value, &h.Seed); err != nil {
				return h, fmt.Errorf("seed %q: %w", value, err)
			}
		case "features":
			h.Features = strings.Fields(value)
			for _, f := range h.Features {
				if !slices.Contains(Features(), f) {
					return h, fmt.Errorf("no feature %q; features are %s", f, strings.Join(Features(), " "))
				}
			}
		case "":
		default:
			return h, fmt.Errorf("want seed or features, got %q", key)
		}
	}
	return h, nil
}

func (h History) has(feature string) bool { return slices.Contains(h.Features, feature) }

// play is a history in progress.
type play struct {
	History
	*World

	random *rand.Rand
	apps   []*corev1.Pod
	// trace is what happened.
	trace []string
}

// Run plays the history, and returns what happened and the first property that does not hold. plant may be nil.
func (h History) Run(plant func(*Parts)) (trace []string, failure error) {
	p := &play{History: h, random: rand.New(rand.NewPCG(h.Seed, 0x5e7))}
	var err error
	if p.World, err = New(p.draw(plant)); err != nil {
		return p.trace, err
	}
	defer p.Close()
	for step := range 25 {
		p.disturb(p.random)
		if err := p.elapse(time.Duration(5+p.random.IntN(150)) * time.Second); err != nil {
			return p.trace, fmt.Errorf("after %d disturbances: %w", step+1, err)
		}
	}
	return p.trace, p.calm()
}

// draw draws the world.
func (p *play) draw(plant func(*Parts)) Config {
	config := Config{Judge: true, Seed: p.Seed, Now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), Types: types8(), Plant: plant,
		Log: func(line string) { p.trace = append(p.trace, line) }}
	config.Disruption.Static, config.Overlays, config.Replicas = p.has(Static), p.has(Overlays), p.has(Replicas)
	if p.has(Reservations) {
		config.Types = reserved(config.Types)
	}
	p.buy(&config)
	if p.has(Late) {
		config.Lag = 3 * time.Second
	}
	config.MachineTime = time.Duration(20+p.random.IntN(70)) * time.Second
	config.PodStop = time.Duration(p.random.IntN(5)) * time.Second
	p.settings(p.random, &config)
	return config
}

// types8 returns types of four sizes and two families.
func types8() []cloud.InstanceType {
	var all []cloud.InstanceType
	for _, family := range []string{"c", "m"} {
		for cpus := int64(2); cpus <= 16; cpus *= 2 {
			memory := cpus << map[string]int{"c": 31, "m": 32}[family]
			name := fmt.Sprintf("%s%d", family, cpus)
			t := cloud.InstanceType{Name: name, Capacity: map[string]int64{"cpu": cpus * 1000, "memory": memory, "pods": 30},
				Overhead:     map[string]int64{"cpu": 80, "memory": memory / 20},
				Requirements: []cloud.Requirement{{Key: corev1.LabelInstanceTypeStable, Operator: "In", Values: []string{name}}}}
			price := float64(cpus)*0.04 + float64(memory>>30)*0.004
			for _, zone := range []string{"a", "b"} {
				t.Offerings = append(t.Offerings, cloud.Offering{Zone: zone, CapacityType: karpv1.CapacityTypeOnDemand, Price: price, Available: true},
					cloud.Offering{Zone: zone, CapacityType: karpv1.CapacityTypeSpot, Price: price * 0.4, Available: true})
			}
			all = append(all, t)
		}
	}
	return all
}

// settings draws the objects of the start.
func (p *play) settings(random *rand.Rand, config *Config) {
	for i := range 1 + random.IntN(2) {
		pool := newPool(fmt.Sprintf("pool-%d", i), int32(random.IntN(2)*10))
		if p.has(Limits) {
			pool.Spec.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(fmt.Sprint(8 * (1 + random.IntN(6))))}
		}
		pool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: []string{"10%", "50%", "100%", "1"}[random.IntN(4)]}}
		if p.has(Expiry) && random.IntN(2) == 0 {
			pool.Spec.Template.Spec.ExpireAfter = karpv1.DurationOf(time.Duration(5+random.IntN(25)) * time.Minute)
		}
		pool.Spec.Disruption.ConsolidateAfter = karpv1.DurationOf(time.Duration(random.IntN(3)) * 30 * time.Second)
		config.Objects = append(config.Objects, pool)
	}
	if p.has(Static) {
		pool := newPool("static", 0)
		pool.Spec.Replicas = new(int64(random.IntN(4)))
		config.Objects = append(config.Objects, pool)
	}
	if p.has(Quotas) {
		quota := &autoscalingv1beta1.CapacityQuota{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
		most := resource.NewQuantity(int64(2+random.IntN(8)), resource.DecimalSI)
		quota.Spec.Limits.Resources = map[corev1.ResourceName]resource.Quantity{"nodes": *most}
		config.Objects = append(config.Objects, quota)
	}
	for i := range 2 + random.IntN(4) {
		p.apps = append(p.apps, p.app(random, fmt.Sprintf("app-%d", i)))
	}
	for _, app := range p.apps {
		if p.has(PDBs) && random.IntN(2) == 0 {
			config.Objects = append(config.Objects, pdbOf(random, app))
		}
		if p.has(Replicas) {
			config.Objects = append(config.Objects, replicaSetOf(app))
		}
	}
	if p.has(Buffers) {
		config.Objects = append(config.Objects, bufferOf("spare", int64(100+random.IntN(30)*100), int32(random.IntN(5)))...)
	}
	if p.has(Overlays) {
		config.Objects = append(config.Objects, spotOverlay())
	}
}

// spotOverlay makes spot capacity dearer.
func spotOverlay() *karpv1alpha1.NodeOverlay {
	o := &karpv1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: "spot"}}
	o.Spec.PriceAdjustment = new("+10%")
	o.Spec.Requirements = []karpv1alpha1.Requirement{{Key: karpv1.LabelCapacityType, Operator: "In", Values: []string{karpv1.CapacityTypeSpot}}}
	return o
}

// reserved adds a reservation of the first type in zone a.
func reserved(types []cloud.InstanceType) []cloud.InstanceType {
	types = slices.Clone(types)
	t := &types[1]
	t.Offerings = append(slices.Clone(t.Offerings), cloud.Offering{Zone: "a", CapacityType: karpv1.CapacityTypeReserved, Price: 0.0001,
		Available: true, ReservationID: "res-1", ReservationCount: 3,
		Requirements: []cloud.Requirement{{Key: kwok.LabelReservation, Operator: "In", Values: []string{"res-1"}}}})
	return types
}

func newPool(name string, weight int32) *karpv1.NodePool {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pool.Spec.Template.Spec.NodeClassRef = Class
	pool.Spec.Template.Spec.Requirements = []karpv1.Requirement{{Key: karpv1.LabelCapacityType, Operator: "Exists"}}
	pool.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateWhenEmptyOrUnderutilized
	if weight > 0 {
		pool.Spec.Weight = &weight
	}
	return pool
}

// app draws the template of an app's pods.
func (p *play) app(random *rand.Rand, name string) *corev1.Pod {
	requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(100+random.IntN(20)*100), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(1+random.IntN(8))<<28, resource.BinarySI)}
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: types.UID("uid-" + name), Controller: new(true)}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: map[string]string{"app": name},
			OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	own := &metav1.LabelSelector{MatchLabels: pod.Labels}
	switch kind := random.IntN(4); {
	case !p.has(Spread):
	case kind == 0:
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: corev1.LabelTopologyZone, MaxSkew: 1,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own}}
	case kind == 2 && p.has(Partitions):
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: labelPartition, MaxSkew: 1,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own}}
	case kind == 1:
		alone := []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: own}}
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: alone}}
	}
	return pod
}

// disturb draws something that happens.
func (p *play) disturb(random *rand.Rand) {
	app, what, much := p.apps[random.IntN(len(p.apps))], random.IntN(12), random.IntN(12)
	if p.change(what, much, random) {
		return
	}
	switch {
	case what == 0 && p.has(Crashes):
		p.Crash(1 + random.IntN(25))
	case what == 1 && p.has(Spot):
		if names := p.Spot(); len(names) > 0 {
			p.log("-- interrupt " + names[much%len(names)])
			p.Interrupt(names[much%len(names)])
		}
	case what <= 3 && p.has(Lies):
		p.doubt(random.IntN(6), random.IntN(1000), random.IntN(1000))
	case what == 4 && p.has(Clocks):
		p.read.ahead = time.Duration(2*much-11) * 50 * time.Second
		p.log(fmt.Sprintf("-- the clock of the controller is wrong by %v", p.read.ahead))
		p.Clock.in(2*time.Minute, func() { p.read.ahead = 0 })
	case what == 5 && p.has(Flaky):
		p.log("-- the API server is flaky")
		p.flaky = p.Clock.now.Add(time.Duration(10+much*10) * time.Second)
		fallthrough
	default:
		p.log(fmt.Sprintf("-- scale %s to %d", app.Labels["app"], much))
		p.Scale(app, much)
	}
}

// change changes an object other than pods. It returns false if the world has none of the kind.
func (p *play) change(what, much int, random *rand.Rand) bool {
	pools := p.nodePools()
	app, pool := p.apps[random.IntN(len(p.apps))], pools[random.IntN(len(pools))]
	switch {
	case what == 6 && p.has(Rollouts):
		p.log("-- roll out " + pool.Name)
		edit(p.api, pool, func(o *karpv1.NodePool) {
			o.Spec.Template.ObjectMeta.Labels = map[string]string{"revision": fmt.Sprint(much)}
		})
	case what == 7 && p.has(Static) && pool.Spec.Replicas != nil:
		p.log(fmt.Sprintf("-- %s wants %d nodes", pool.Name, much%5))
		edit(p.api, pool, func(o *karpv1.NodePool) { o.Spec.Replicas = new(int64(much % 5)) })
	case what == 8 && p.has(Buffers):
		p.log(fmt.Sprintf("-- the buffer wants %d", much%6))
		for _, b := range listOf[*autoscalingv1beta1.CapacityBuffer](p.api) {
			edit(p.api, b, func(o *autoscalingv1beta1.CapacityBuffer) { o.Spec.Replicas = new(int32(much % 6)) })
		}
	case what == 9 && p.has(Overlays):
		p.log(fmt.Sprintf("-- spot costs %d0%% more", much))
		for _, overlay := range listOf[*karpv1alpha1.NodeOverlay](p.api) {
			edit(p.api, overlay, func(o *karpv1alpha1.NodeOverlay) { o.Spec.PriceAdjustment = new(fmt.Sprintf("+%d0%%", much)) })
		}
	case what == 10 && p.has(Protected):
		p.log(fmt.Sprintf("-- %s forbids disruption: %t", app.Labels["app"], much%2 == 0))
		p.protect(app, much%2 == 0)
	default:
		return false
	}
	return true
}
