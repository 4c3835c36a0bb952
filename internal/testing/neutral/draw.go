package neutral

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var (
	someCPU    = []int{100, 250, 500, 750, 1000, 1500, 2000, 3000}
	someMemory = []int{128, 256, 512, 1024, 2048, 4096, 8192}
)

func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

// draw is what a seed says about an input.
type draw struct {
	*rand.Rand

	in *Input
	// plain inputs have one pool and no feature.
	plain bool
	pools []*pool // without taints
	teams int     // number of pools with taints
	apps  []*app
	agent bool
}

func newDraw(name string, seed int) *draw {
	d := &draw{in: &Input{Name: fmt.Sprintf("%s-%d", name, seed)}, plain: seed%4 == 0}
	d.Rand = rand.New(rand.NewPCG(uint64(seed), uint64(len(name))))
	d.in.Types = catalog(d.Rand, families, sizes)
	d.drawPools()
	for i := range 1 + d.IntN(5) {
		d.apps = append(d.apps, &app{name: fmt.Sprintf("app-%d", i), size: amount{pick(d.Rand, someCPU), pick(d.Rand, someMemory), 1}})
	}
	d.agent = d.chance(3)
	return d
}

// chance returns true once in so many inputs that are not plain.
func (d *draw) chance(in int) bool { return d.IntN(in) == 0 && !d.plain }

// drawPools draws the pools of the apps: one, two of equal weight, or two of which one is preferred; and the number of
// pools of other teams.
func (d *draw) drawPools() {
	archs, capacity := []string{"amd64"}, pick(d.Rand, [][]string{{onDemand}, {onDemand}, {spot}, {spot, onDemand}})
	if d.chance(3) {
		archs = []string{"amd64", "arm64"}
	}
	budget := pick(d.Rand, []string{"10%", "100%"})
	var limits corev1.ResourceList
	if d.chance(4) {
		limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}
	}
	general := &pool{name: "general", archs: archs, capacity: capacity, budget: budget, resources: limits}
	second := *general
	d.pools = []*pool{general}
	if d.chance(2) {
		d.pools = append(d.pools, &second)
		second.name = "large"
		general.under, second.over = 9, 8
		switch d.IntN(3) {
		case 0:
			general.under, second.over = 17, 4
		case 1:
			second.name, second.weight = "preferred", 50
			general.under, second.over, second.families = 0, 0, []string{"m1", "m1g"}
		}
	}
	if d.chance(2) {
		d.teams = pick(d.Rand, []int{2, 2, 5, 10})
	}
}

// finish adds what both kinds of input have: pools, pools of other teams, a DaemonSet and PodDisruptionBudgets.
func (d *draw) finish() *Input {
	for _, p := range d.pools {
		d.in.add(p.object())
	}
	for i := range d.teams {
		p := *d.pools[0]
		p.name, p.team = fmt.Sprintf("team-%d", i), fmt.Sprint(i)
		p.weight = int32(pick(d.Rand, []int{0, 0, 10, 90}))
		d.in.add(p.object())
	}
	if d.agent {
		d.in.add(agent("agent", agentSize, nil))
	}
	for _, a := range d.apps {
		if d.chance(4) {
			d.in.add(a.budget(intstr.FromInt32(1)))
		}
	}
	return d.in
}

var agentSize = amount{100, 200, 1}

func (a *app) budget(unavailable intstr.IntOrString) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{TypeMeta: kind("policy/v1", "PodDisruptionBudget"), ObjectMeta: named(a.name)}
	b.Spec.Selector, b.Spec.MaxUnavailable = a.selector(), &unavailable
	return b
}

// zonal returns a spread over zones of the pods that have the label app.
func zonal(skew int, app string, unsatisfiable corev1.UnsatisfiableConstraintAction) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{MaxSkew: int32(skew), TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: unsatisfiable,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{labelApp: app}}}
}
