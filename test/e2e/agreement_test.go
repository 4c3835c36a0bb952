package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cloud/kwok"
)

// The real kube-scheduler agrees with our plans: with random pods and pools, every
// pod that we plan onto a new node is bound to that node, in one round; a pod that we
// refuse is not bound to any. Pods that are admissible only in turns may change
// places with each other; as many of them run as were planned.
//
// The scheduler looks when all nodes are there. If it looked all the time it could,
// as soon as the first node is ready, give a pod that waits for a later one what was
// left over: no harm, but no agreement to test either.
func TestAgreementWithKubeScheduler(t *testing.T) {
	for seed := range effort(3, 10, 100) {
		name := fmt.Sprintf("agreement-%d", seed)
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			s := onShared(t, name)
			world := randomWorld(name, uint64(seed))
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the world of seed %d:\n%s", seed, world)
				}
			})
			s.playAgreement(world)
		})
	}
}

func (s *stage) playAgreement(world *world) {
	s.t.Helper()
	scheduler := newLateScheduler(s.t, s.cluster, s.name)
	scheduler.start()
	for i := range world.pools {
		s.create(&world.pools[i])
	}
	for i := range world.deployments {
		s.create(&world.deployments[i])
	}
	await(s.t, patience, "all pods to be pending", s.allPending(world.pods))
	scheduler.stop()
	// The pools get ready, all at once, when the class is there: one plan covers all pods.
	s.create(&kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: map[string]string{caseLabel: s.name}}})
	await(s.t, patience, "every pod to be nominated, or to be told why not", s.allDecided)
	await(s.t, patience, "all nodes to be ready", s.allReady)
	claims := s.ledger.count(s.name).claimsEver
	scheduler.start()
	await(s.t, patience, "every nominated pod to run", s.allRunning)
	s.checkAgreement(world)
	if now := s.ledger.count(s.name).claimsEver; now != claims {
		s.t.Errorf("%d claims were created in a second round, after %d in the first", now-claims, claims)
	}
}

// allPending fails until kube-scheduler has found no place for any of the n pods.
func (s *stage) allPending(n int) func(context.Context) error {
	return func(context.Context) error {
		pending := 0
		for _, pod := range s.ledger.podsOf(s.name) {
			if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
			}) {
				pending++
			}
		}
		if pending != n {
			return fmt.Errorf("%d of %d pods are", pending, n)
		}
		return nil
	}
}

// allDecided fails until every pod is nominated, or we said that it has no place.
func (s *stage) allDecided(ctx context.Context) error {
	if s.ledger.count(s.name).claimsEver == 0 {
		return fmt.Errorf("there is no claim yet")
	}
	for _, pod := range s.ledger.podsOf(s.name) {
		if pod.Status.NominatedNodeName != "" {
			continue
		}
		if err := s.says(pod, "FailedScheduling")(ctx); err != nil {
			return fmt.Errorf("pod %s is not nominated, and %w", pod.Name, err)
		}
	}
	return nil
}

// allReady fails until every claim is initialised.
func (s *stage) allReady(context.Context) error {
	for _, claim := range s.ledger.claimsOf(s.name) {
		if !claim.object.StatusConditions().Root().IsTrue() {
			return fmt.Errorf("claim %s is not", claim.object.Name)
		}
	}
	return nil
}

// allRunning fails until every pod that was nominated runs.
func (s *stage) allRunning(context.Context) error {
	for _, pod := range s.ledger.podsOf(s.name) {
		if pod.Status.Phase != corev1.PodRunning && len(s.ledger.nominations(pod.UID)) > 0 {
			return fmt.Errorf("pod %s is %s on node %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		}
	}
	return nil
}

func (s *stage) checkAgreement(world *world) {
	s.t.Helper()
	running := 0
	for i := range world.deployments {
		for _, pod := range s.pods(world.deployments[i].Name) {
			if pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if inTurns(&world.deployments[i]) {
			s.checkAsMany(world.deployments[i].Name)
		} else {
			s.checkNominations(world.deployments[i].Name)
		}
	}
	s.checkClaimsUsed()
	claims := s.ledger.count(s.name)
	s.t.Logf("%d of %d pods run on %d nodes of %d pools", running, world.pods, claims.claims, len(world.pools))
	if running*4 < world.pods {
		s.t.Errorf("only %d of %d pods run: the generator makes too few that can", running, world.pods)
	}
}

// inTurns reports whether pods of the deployment are admissible only in turns: the plan has an order, kube-scheduler has
// its own. A pod whose node is not admissible yet goes elsewhere, and another of its kind takes its place.
func inTurns(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.DoNotSchedule && c.TopologyKey != corev1.LabelHostname
	})
}

// checkAsMany complains when more or fewer pods run than were planned.
func (s *stage) checkAsMany(app string) {
	s.t.Helper()
	planned, running := 0, 0
	for _, pod := range s.pods(app) {
		if len(s.ledger.nominations(pod.UID)) > 0 {
			planned++
		}
		if pod.Spec.NodeName != "" {
			running++
		}
	}
	if planned != running {
		s.t.Errorf("%d pods of %s were planned, %d run", planned, app, running)
	}
}

// world is what a seed makes.
type world struct {
	pools       []karpv1.NodePool
	deployments []appsv1.Deployment
	pods        int
}

// String is the world as YAML, to play it again by hand.
func (w *world) String() string {
	text := ""
	for i := range w.pools {
		content, _ := yaml.Marshal(w.pools[i])
		text += "---\n" + string(content)
	}
	for i := range w.deployments {
		content, _ := yaml.Marshal(w.deployments[i])
		text += "---\n" + string(content)
	}
	return text
}

const teamLabel, teamTaint = "e2e.example.org/team", "e2e.example.org/team"

var teams = []string{"red", "green", "blue"}

func randomWorld(name string, seed uint64) *world {
	chance := rand.New(rand.NewPCG(seed, 1))
	w := &world{}
	for i := range 2 + chance.IntN(3) {
		w.pools = append(w.pools, randomPool(chance, name, i))
	}
	for i := range 4 + chance.IntN(6) {
		d := randomDeployment(chance, name, i)
		w.deployments = append(w.deployments, d)
		w.pods += int(*d.Spec.Replicas)
	}
	return w
}

func randomPool(chance *rand.Rand, name string, i int) karpv1.NodePool {
	pool := karpv1.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i), Labels: map[string]string{caseLabel: name}},
	}
	if weight := chance.Int32N(4); weight > 0 {
		pool.Spec.Weight = new(weight * 10)
	}
	template := &pool.Spec.Template
	template.ObjectMeta.Labels = map[string]string{caseLabel: name, teamLabel: teams[i%len(teams)]}
	template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: name}
	template.Spec.Requirements = []karpv1.Requirement{{Key: corev1.LabelOSStable, Operator: karpv1.OperatorIn, Values: []string{"linux"}}}
	require := func(key string, operator karpv1.Operator, values ...string) {
		template.Spec.Requirements = append(template.Spec.Requirements, karpv1.Requirement{Key: key, Operator: operator, Values: values})
	}
	// The first pool takes anything, so that most pods have a place.
	if i == 0 {
		return pool
	}
	if chance.IntN(2) == 0 {
		require(corev1.LabelArchStable, karpv1.OperatorIn, []string{"amd64", "arm64"}[chance.IntN(2)])
	}
	switch chance.IntN(3) {
	case 0:
		require(corev1.LabelTopologyZone, karpv1.OperatorNotIn, zones[chance.IntN(len(zones))])
	case 1:
		require(kwok.LabelCPU, karpv1.OperatorLt, []string{"5", "9", "33"}[chance.IntN(3)])
	}
	if chance.IntN(2) == 0 {
		require(karpv1.LabelCapacityType, karpv1.OperatorIn, karpv1.CapacityTypeOnDemand)
	}
	if chance.IntN(2) == 0 {
		template.Spec.Taints = []corev1.Taint{{Key: teamTaint, Value: template.ObjectMeta.Labels[teamLabel], Effect: corev1.TaintEffectNoSchedule}}
	}
	return pool
}

var zones = []string{"test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"}

func randomDeployment(chance *rand.Rand, name string, i int) appsv1.Deployment {
	app := map[string]string{"app": fmt.Sprintf("app-%d", i)}
	d := appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: app["app"]},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(1 + chance.Int32N(12)), Selector: &metav1.LabelSelector{MatchLabels: app},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}},
		},
	}
	pod := &d.Spec.Template.Spec
	pod.SchedulerName = name
	pod.TerminationGracePeriodSeconds = new(int64)
	pod.NodeSelector = map[string]string{caseLabel: name}
	pod.Containers = []corev1.Container{{Name: "pause", Image: "pause:3.10", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse([]string{"50m", "100m", "330m", "700m", "1", "1500m", "3"}[chance.IntN(7)]),
			corev1.ResourceMemory: resource.MustParse([]string{"64Mi", "200Mi", "1Gi", "3Gi", "7Gi"}[chance.IntN(5)]),
		},
	}}}
	switch chance.IntN(6) {
	case 0:
		pod.NodeSelector[corev1.LabelTopologyZone] = zones[chance.IntN(len(zones))]
	case 1:
		pod.NodeSelector[corev1.LabelArchStable] = []string{"amd64", "arm64"}[chance.IntN(2)]
	case 2:
		pod.NodeSelector[karpv1.LabelCapacityType] = karpv1.CapacityTypeSpot
	case 3:
		pod.NodeSelector[teamLabel] = teams[chance.IntN(len(teams))]
	}
	randomBetween(chance, pod, app)
	if chance.IntN(2) == 0 {
		pod.Tolerations = []corev1.Toleration{randomToleration(chance)}
	}
	if chance.IntN(2) == 0 {
		terms := []corev1.NodeSelectorTerm{randomTerm(chance)}
		if chance.IntN(2) == 0 {
			terms = append(terms, randomTerm(chance))
		}
		affinityOf(pod).NodeAffinity = &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}
	}
	return d
}

func affinityOf(pod *corev1.PodSpec) *corev1.Affinity {
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	return pod.Affinity
}

var topologyKeys = []string{corev1.LabelTopologyZone, corev1.LabelHostname, karpv1.LabelCapacityType, corev1.LabelArchStable, teamLabel}

// randomBetween adds rules between pods: topology spread, anti-affinity, preferred affinity, and host ports.
func randomBetween(chance *rand.Rand, pod *corev1.PodSpec, app map[string]string) {
	one := func(keys []string) string { return keys[chance.IntN(len(keys))] }
	if chance.IntN(3) == 0 {
		c := corev1.TopologySpreadConstraint{TopologyKey: one(topologyKeys), MaxSkew: 1 + chance.Int32N(2), WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: app}}
		switch chance.IntN(5) {
		case 0:
			c.WhenUnsatisfiable = corev1.ScheduleAnyway
		case 1:
			c.MinDomains = new(1 + chance.Int32N(4))
		case 2: // nodeAffinityPolicy stays: with Ignore the nodes of other tests would count
			c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor)
		}
		pod.TopologySpreadConstraints = append(pod.TopologySpreadConstraints, c)
	}
	// Required terms are by hostname: of more pods than there are zones, kube-scheduler may take others first than we do.
	term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: app}}
	switch chance.IntN(6) {
	case 0:
		affinityOf(pod).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	case 1:
		term.TopologyKey = one(topologyKeys)
		affinityOf(pod).PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: term}}}
	case 2:
		term.TopologyKey = one(topologyKeys)
		affinityOf(pod).PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: term}}}
	}
	if chance.IntN(10) == 0 {
		pod.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
	}
}

func randomToleration(chance *rand.Rand) corev1.Toleration {
	// Not everything: pods that tolerate all taints are bound before a node is ours.
	switch chance.IntN(2) {
	case 0:
		return corev1.Toleration{Key: teamTaint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	default:
		return corev1.Toleration{Key: teamTaint, Operator: corev1.TolerationOpEqual, Value: teams[chance.IntN(len(teams))]}
	}
}

func randomTerm(chance *rand.Rand) corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	for range 1 + chance.IntN(2) {
		term.MatchExpressions = append(term.MatchExpressions, randomExpression(chance))
	}
	return term
}

func randomExpression(chance *rand.Rand) corev1.NodeSelectorRequirement {
	switch chance.IntN(8) {
	case 0:
		return corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zones[chance.IntN(2)], zones[2+chance.IntN(2)]}}
	case 1:
		return corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{zones[chance.IntN(4)]}}
	case 2:
		return corev1.NodeSelectorRequirement{Key: kwok.LabelCPU, Operator: corev1.NodeSelectorOpGt, Values: []string{[]string{"1", "3", "7"}[chance.IntN(3)]}}
	case 3:
		return corev1.NodeSelectorRequirement{Key: kwok.LabelCPU, Operator: corev1.NodeSelectorOpLt, Values: []string{[]string{"9", "33", "100"}[chance.IntN(3)]}}
	case 4:
		return corev1.NodeSelectorRequirement{Key: kwok.LabelFamily, Operator: corev1.NodeSelectorOpIn, Values: []string{[]string{"c", "s", "m"}[chance.IntN(3)]}}
	case 5:
		return corev1.NodeSelectorRequirement{Key: teamLabel, Operator: corev1.NodeSelectorOpExists}
	case 6:
		return corev1.NodeSelectorRequirement{Key: "e2e.example.org/nobody-has-this", Operator: corev1.NodeSelectorOpDoesNotExist}
	default:
		return corev1.NodeSelectorRequirement{Key: karpv1.LabelCapacityType, Operator: corev1.NodeSelectorOpIn, Values: []string{karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot}}
	}
}
