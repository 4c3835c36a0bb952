package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud/kwok"
)

// world is a random workload, determined by a seed.
type world struct {
	pools []karpv1.NodePool
	waves [][]*workload
}

// workload is a set of equal pods.
type workload struct {
	name     string
	replicas int
	priority int // 0 is low
	template corev1.Pod
	// objects are created before the pods: claims and volumes.
	objects []client.Object
	// ownClaim means that every pod has a claim named after it, among the objects.
	ownClaim bool
	// madeOnce means that the pods share a claim whose volume is provisioned for the first of them. Until it exists,
	// kube-scheduler binds the others only to the node of the first (VolumeBinding, annotation
	// volume.kubernetes.io/selected-node).
	madeOnce bool
	// foreign means that required rules select another workload.
	foreign bool
}

// pods returns the pods of the workload, not created yet.
func (w *workload) pods() []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range w.replicas {
		pod := w.template.DeepCopy()
		pod.Name = fmt.Sprintf("%s-%d", w.name, i)
		if w.ownClaim {
			pod.Spec.Volumes = append(pod.Spec.Volumes, claimVolume("own", pod.Name))
		}
		pods = append(pods, pod)
	}
	return pods
}

// inTurns reports whether pods of the workload are admissible only in turns.
func (w *workload) inTurns() bool {
	if w.madeOnce || slices.ContainsFunc(w.template.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.DoNotSchedule
	}) {
		return true
	}
	a := w.template.Spec.Affinity
	if a == nil {
		return false
	}
	if a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		return true
	}
	return a.PodAntiAffinity != nil && slices.ContainsFunc(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		func(t corev1.PodAffinityTerm) bool { return t.TopologyKey != corev1.LabelHostname })
}

// String returns the workload in short, as YAML. Its seed reproduces it.
func (w *world) String() string {
	text := ""
	add := func(object any) {
		content, _ := yaml.Marshal(object)
		text += "---\n" + string(content)
	}
	for i := range w.pools {
		add(map[string]any{"pool": w.pools[i].Name, "spec": w.pools[i].Spec})
	}
	for i, wave := range w.waves {
		for _, l := range wave {
			text += fmt.Sprintf("# wave %d: %d pods\n", i, l.replicas)
			for _, object := range l.objects {
				text += fmt.Sprintf("# with %T %s\n", object, object.GetName())
			}
			add(map[string]any{"pod": l.pods()[0].Name, "spec": l.pods()[0].Spec})
		}
	}
	return text
}

const teamLabel, teamTaint = "e2e.example.org/team", "e2e.example.org/team"

var teams = []string{"red", "green", "blue"}

// dice makes the random choices of one workload.
type dice struct {
	*rand.Rand
	name string // of the world
	made []*workload
}

func (d *dice) one(of ...string) string { return of[d.IntN(len(of))] }

// chance returns true with a probability of n percent.
func (d *dice) chance(n int) bool { return d.IntN(100) < n }

func randomWorld(name string, seed uint64) *world {
	d := &dice{Rand: rand.New(rand.NewPCG(seed, 2)), name: name}
	w := &world{}
	for i := range 2 + d.IntN(2) {
		w.pools = append(w.pools, d.pool(i))
	}
	for range 1 + d.IntN(2) {
		var wave []*workload
		for range 3 + d.IntN(5) {
			l := d.workload(len(d.made))
			d.made = append(d.made, l)
			wave = append(wave, l)
		}
		w.waves = append(w.waves, wave)
	}
	return w
}

func (d *dice) pool(i int) karpv1.NodePool {
	pool := karpv1.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", d.name, i), Labels: map[string]string{caseLabel: d.name}},
	}
	if weight := d.Int32N(4); weight > 0 {
		pool.Spec.Weight = new(weight * 10)
	}
	template := &pool.Spec.Template
	template.ObjectMeta.Labels = map[string]string{caseLabel: d.name, teamLabel: teams[i%len(teams)]}
	template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: d.name}
	template.Spec.StartupTaints = []corev1.Taint{{Key: csiTaint, Effect: corev1.TaintEffectNoSchedule}}
	template.Spec.Requirements = []karpv1.Requirement{{Key: corev1.LabelOSStable, Operator: karpv1.OperatorIn, Values: []string{"linux"}}}
	require := func(key string, operator karpv1.Operator, values ...string) {
		template.Spec.Requirements = append(template.Spec.Requirements, karpv1.Requirement{Key: key, Operator: operator, Values: values})
	}
	// The first pool accepts any pod, so that most pods can be placed.
	if i == 0 {
		return pool
	}
	if d.chance(50) {
		require(corev1.LabelArchStable, karpv1.OperatorIn, d.one("amd64", "arm64"))
	}
	switch d.IntN(3) {
	case 0:
		require(corev1.LabelTopologyZone, karpv1.OperatorNotIn, d.one(zones...))
	case 1:
		require(kwok.LabelCPU, karpv1.OperatorLt, d.one("5", "9"))
	}
	if d.chance(50) {
		require(karpv1.LabelCapacityType, karpv1.OperatorIn, karpv1.CapacityTypeOnDemand)
	}
	if d.chance(50) {
		template.Spec.Taints = []corev1.Taint{{Key: teamTaint, Value: template.ObjectMeta.Labels[teamLabel], Effect: corev1.TaintEffectNoSchedule}}
	}
	return pool
}

func (d *dice) workload(i int) *workload {
	w := &workload{name: fmt.Sprintf("app-%d", i), replicas: 1 + d.IntN(9)}
	w.template = corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: d.name, Labels: map[string]string{"app": w.name}},
	}
	pod := &w.template.Spec
	pod.SchedulerName = d.name
	pod.TerminationGracePeriodSeconds = new(int64)
	pod.NodeSelector = map[string]string{caseLabel: d.name}
	w.priority = []int{0, 1, 1, 1, 2}[d.IntN(5)]
	pod.PriorityClassName = "agreement-" + []string{"low", "middle", "high"}[w.priority]
	pod.Containers = []corev1.Container{{Name: "pause", Image: "pause:3.10", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse(d.one("50m", "100m", "330m", "700m", "1", "1500m", "3", "3")),
			corev1.ResourceMemory: resource.MustParse(d.one("64Mi", "200Mi", "1Gi", "3Gi", "7Gi", "20Gi")),
		},
	}}}
	d.whichNodes(pod)
	if d.chance(50) {
		d.between(w)
	}
	if d.chance(30) {
		d.foreignTerm(w)
	}
	if d.chance(35) {
		d.volumes(w)
	}
	if d.chance(12) {
		pod.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080 + d.Int32N(2), Protocol: []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP}[d.IntN(2)]}}
	}
	return w
}

// whichNodes adds selectors, tolerations and node affinity.
func (d *dice) whichNodes(pod *corev1.PodSpec) {
	switch d.IntN(8) {
	case 0:
		pod.NodeSelector[corev1.LabelTopologyZone] = d.one(append(zones, "test-zone-nowhere")...)
	case 1:
		pod.NodeSelector[corev1.LabelArchStable] = d.one("amd64", "arm64")
	case 2:
		pod.NodeSelector[karpv1.LabelCapacityType] = karpv1.CapacityTypeSpot
	case 3:
		pod.NodeSelector[teamLabel] = d.one(teams...)
	}
	if d.chance(50) {
		pod.Tolerations = []corev1.Toleration{d.toleration()}
	}
	if d.chance(40) {
		terms := []corev1.NodeSelectorTerm{d.nodeTerm()}
		if d.chance(50) {
			terms = append(terms, d.nodeTerm())
		}
		affinityOf(pod).NodeAffinity = &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}
	}
}

func affinityOf(pod *corev1.PodSpec) *corev1.Affinity {
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	return pod.Affinity
}

var topologyKeys = []string{corev1.LabelTopologyZone, corev1.LabelTopologyZone, corev1.LabelHostname, karpv1.LabelCapacityType, corev1.LabelArchStable, teamLabel}

// between adds rules between the pods of the workload.
func (d *dice) between(w *workload) {
	pod, own := &w.template.Spec, &metav1.LabelSelector{MatchLabels: w.template.Labels}
	if d.chance(60) {
		c := corev1.TopologySpreadConstraint{TopologyKey: d.one(topologyKeys...), MaxSkew: 1 + d.Int32N(2), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: own}
		switch d.IntN(5) {
		case 0:
			c.WhenUnsatisfiable = corev1.ScheduleAnyway
		case 1:
			c.MinDomains = new(1 + d.Int32N(5))
		case 2: // no nodeAffinityPolicy: with Ignore the nodes of other cases would count
			c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor)
		}
		pod.TopologySpreadConstraints = append(pod.TopologySpreadConstraints, c)
	}
	term := corev1.PodAffinityTerm{TopologyKey: d.one(topologyKeys...), LabelSelector: own}
	wish := []corev1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: term}}
	switch d.IntN(7) {
	case 0, 1:
		affinityOf(pod).PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
	case 2, 3:
		affinityOf(pod).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
		if term.TopologyKey != corev1.LabelHostname {
			// Of spread pods no more are nominated at a time than the skew allows. If another one is first in
			// kube-scheduler's queue, it selects the domain that all others must follow.
			pod.TopologySpreadConstraints = nil
		}
	case 4:
		affinityOf(pod).PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: wish}
	case 5:
		affinityOf(pod).PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: wish}
	}
}

// foreignTerm adds a required rule about the pods of an earlier workload. Pods that are admissible only in turns have
// no rules of anti-affinity with other workloads: their final domains depend on the turns.
func (d *dice) foreignTerm(w *workload) {
	if len(d.made) == 0 {
		return
	}
	other := d.made[d.IntN(len(d.made))]
	pod := &w.template.Spec
	term := corev1.PodAffinityTerm{TopologyKey: d.one(topologyKeys...), LabelSelector: &metav1.LabelSelector{MatchLabels: other.template.Labels}}
	switch {
	case d.chance(50):
		if a := affinityOf(pod); a.PodAffinity == nil {
			a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
			w.foreign = true
		}
	case !other.inTurns() && !other.foreign && !w.inTurns():
		if a := affinityOf(pod); a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}
			w.foreign = true
		}
	}
}

// volumes gives the pods volumes: created with the pod, one claim for each, one shared claim that is provisioned for
// the first of them, or one shared claim that exists.
func (d *dice) volumes(w *workload) {
	pod, class := &w.template.Spec, "agreement-"+d.one("anywhere", "two-zones")
	switch d.IntN(4) {
	case 0:
		for i := range 1 + d.IntN(2) {
			name := fmt.Sprintf("scratch-%d", i)
			pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimSpec(class)}}}})
		}
	case 1:
		w.ownClaim = true
		for _, p := range w.pods() {
			w.objects = append(w.objects, claimNamed(d.name, p.Name, class))
		}
	case 2:
		w.madeOnce = true
		w.objects = append(w.objects, claimNamed(d.name, w.name, class))
		pod.Volumes = append(pod.Volumes, claimVolume("made-once", w.name))
	default:
		claim := claimNamed(d.name, w.name, class)
		claim.Spec.VolumeName = d.name + "-" + w.name
		w.objects = append(w.objects, volumeThere(claim, d.one(zones...)), claim)
		pod.Volumes = append(pod.Volumes, claimVolume("there", w.name))
	}
}

func claimSpec(class string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}
}

func claimNamed(namespace, name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: claimSpec(class)}
}

func claimVolume(name, claim string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
}

// volumeThere returns a volume in the zone that is reserved for the claim.
func volumeThere(claim *corev1.PersistentVolumeClaim, zone string) *corev1.PersistentVolume {
	volume := volumeFor(claim, zone)
	volume.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}
	volume.Name = claim.Spec.VolumeName
	volume.Spec.CSI.VolumeHandle = volume.Name
	volume.Spec.ClaimRef.UID = ""
	return volume
}

func (d *dice) toleration() corev1.Toleration {
	// Not all taints: pods that tolerate all of them are bound before a node is registered.
	if d.chance(50) {
		return corev1.Toleration{Key: teamTaint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	}
	return corev1.Toleration{Key: teamTaint, Operator: corev1.TolerationOpEqual, Value: d.one(teams...)}
}

func (d *dice) nodeTerm() corev1.NodeSelectorTerm {
	var term corev1.NodeSelectorTerm
	for range 1 + d.IntN(2) {
		term.MatchExpressions = append(term.MatchExpressions, d.nodeExpression())
	}
	return term
}

func (d *dice) nodeExpression() corev1.NodeSelectorRequirement {
	asks := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	switch d.IntN(8) {
	case 0:
		return asks(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, d.one(zones[:2]...), d.one(zones[2:]...))
	case 1:
		return asks(corev1.LabelTopologyZone, corev1.NodeSelectorOpNotIn, d.one(zones...))
	case 2:
		return asks(kwok.LabelCPU, corev1.NodeSelectorOpGt, d.one("1", "3", "7"))
	case 3:
		return asks(kwok.LabelCPU, corev1.NodeSelectorOpLt, d.one("9", "33", "100"))
	case 4:
		return asks(kwok.LabelFamily, corev1.NodeSelectorOpIn, d.one("c", "s", "m"))
	case 5:
		return asks(teamLabel, corev1.NodeSelectorOpExists)
	case 6:
		return asks("e2e.example.org/absent-label", corev1.NodeSelectorOpDoesNotExist)
	}
	return asks(karpv1.LabelCapacityType, corev1.NodeSelectorOpIn, karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot)
}
