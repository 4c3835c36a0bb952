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
	"github.com/karpenter-go/karpenter/cloud"
)

// Features of a world, in the order in which a history lists them.
const (
	// Crashes: processes end between any two writes.
	Crashes = "crashes"
	// Late: watches lag by up to three seconds.
	Late = "late"
	// Lies: the cloud gives wrong replies, kubelets fall silent, nodes have conditions that require repair, and machines end.
	Lies = "lies"
	// Limits of pools, and Quotas over all pools, may leave pods without a node.
	Limits = "limits"
	Quotas = "quotas"
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
	return []string{Crashes, Late, Lies, Limits, Quotas, Rollouts, Spread, Spot, Static}
}

// History is a world, what happens in it, and what must be true in the end. Its text is a seed and a set of features.
type History struct {
	Seed     uint64
	Features []string
}

// NewHistory draws the features of a history.
func NewHistory(seed uint64) History {
	random, h := rand.New(rand.NewPCG(seed, 0xfea7)), History{Seed: seed}
	for _, f := range Features() {
		if random.IntN(2) == 0 {
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
	pools  []*karpv1.NodePool
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
	config := Config{Seed: p.Seed, Now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), Types: types8(), Plant: plant,
		Log: func(line string) { p.trace = append(p.trace, line) }}
	config.Disruption.Static = p.has(Static)
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
		pool.Spec.Disruption.ConsolidateAfter = karpv1.DurationOf(time.Duration(random.IntN(3)) * 30 * time.Second)
		p.pools = append(p.pools, pool)
	}
	if p.has(Static) {
		pool := newPool("static", 0)
		pool.Spec.Replicas = new(int64(random.IntN(4)))
		p.pools = append(p.pools, pool)
	}
	for _, pool := range p.pools {
		config.Objects = append(config.Objects, pool.DeepCopy())
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
	case kind == 1:
		alone := []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: own}}
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: alone}}
	}
	return pod
}

// disturb draws something that happens.
func (p *play) disturb(random *rand.Rand) {
	app, pool, much := p.apps[random.IntN(len(p.apps))], p.pools[random.IntN(len(p.pools))], random.IntN(12)
	switch what := random.IntN(8); {
	case what == 0 && p.has(Crashes):
		p.Crash(1 + random.IntN(25))
	case what == 1 && p.has(Rollouts):
		p.log("-- roll out " + pool.Name)
		edit(p.api, pool, func(o *karpv1.NodePool) {
			o.Spec.Template.ObjectMeta.Labels = map[string]string{"revision": fmt.Sprint(much)}
		})
	case what == 2 && p.has(Spot):
		if names := p.Spot(); len(names) > 0 {
			p.log("-- interrupt " + names[much%len(names)])
			p.Interrupt(names[much%len(names)])
		}
	case what == 3 && p.has(Static) && pool.Spec.Replicas != nil:
		edit(p.api, pool, func(o *karpv1.NodePool) { o.Spec.Replicas = new(int64(much % 5)) })
	case (what == 4 || what == 5) && p.has(Lies):
		p.doubt(random.IntN(6), random.IntN(1000), random.IntN(1000))
	default:
		p.log(fmt.Sprintf("-- scale %s to %d", app.Labels["app"], much))
		p.Scale(app, much)
	}
}
