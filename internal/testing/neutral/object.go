package neutral

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

const (
	labelApp = "app"
	onDemand = "on-demand"
	spot     = "spot"
	inhabit  = "default" // the namespace
	created  = "2026-01-01T00:00:00Z"
)

var classRef = karpv1.NodeClassReference{Group: "types.example.org", Kind: "ExampleNodeClass", Name: "default"}

// pool holds what nodes of a pool may be.
type pool struct {
	name      string
	archs     []string
	capacity  []string // types of capacity
	families  []string // none: all
	under     int      // processors; 0: no limit
	over      int
	weight    int32
	team      string // the value of its taint; "" for none
	budget    string
	resources corev1.ResourceList // limits
}

func required(key string, operator karpv1.Operator, values ...string) karpv1.Requirement {
	return karpv1.Requirement{Key: key, Operator: operator, Values: values}
}

func (p *pool) object() *karpv1.NodePool {
	o := &karpv1.NodePool{TypeMeta: kind("karpenter.sh/v1", "NodePool"), ObjectMeta: metav1.ObjectMeta{Name: p.name}}
	spec := &o.Spec.Template.Spec
	spec.NodeClassRef = classRef
	spec.Requirements = []karpv1.Requirement{required(corev1.LabelOSStable, "In", "linux"), required(corev1.LabelArchStable,
		"In", p.archs...),
		required(karpv1.LabelCapacityType, "In", p.capacity...)}
	if p.families != nil {
		spec.Requirements = append(spec.Requirements, required(labelFamily, "In", p.families...))
	}
	if p.under > 0 {
		spec.Requirements = append(spec.Requirements, required(labelCPU, "Lt", strconv.Itoa(p.under)))
	}
	if p.over > 0 {
		spec.Requirements = append(spec.Requirements, required(labelCPU, "Gt", strconv.Itoa(p.over)))
	}
	if p.team != "" {
		spec.Taints = []corev1.Taint{{Key: "team", Value: p.team, Effect: corev1.TaintEffectNoSchedule}}
	}
	if p.weight > 0 {
		o.Spec.Weight = &p.weight
	}
	o.Spec.Limits = p.resources
	o.Spec.Disruption = karpv1.Disruption{ConsolidateAfter: karpv1.DurationOf(0),
		ConsolidationPolicy: karpv1.ConsolidateWhenEmptyOrUnderutilized, Budgets: []karpv1.Budget{{Nodes: p.budget}}}
	return o
}

// sells reports whether nodes of the pool may be of an offering of a type.
func (p *pool) sells(t *InstanceType, o Offering) bool {
	cpus := t.cpus()
	among := func(values []string, value string) bool { return values == nil || slices.Contains(values, value) }
	return among(p.archs, t.Arch) && among(p.capacity, o.CapacityType) && among(p.families, t.Labels[labelFamily]) &&
		(p.under == 0 || cpus < p.under) && cpus > p.over
}

// app is a Deployment and its pods.
type app struct {
	name string
	size amount
	spec corev1.PodSpec // without containers
}

func kind(version, name string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: name}
}

// named returns the metadata of an object with a namespace.
func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: inhabit, UID: types.UID("uid-" + name)}
}

func amounts(size amount) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64(size.cpu), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(size.memory)<<20, resource.BinarySI),
	}
}

func (a *app) podSpec() corev1.PodSpec {
	spec := *a.spec.DeepCopy()
	spec.Containers = []corev1.Container{{Name: "main", Image: "example.org/" + a.name}}
	spec.Containers[0].Resources.Requests = amounts(a.size)
	return spec
}

func (a *app) labels() map[string]string { return map[string]string{labelApp: a.name} }

func (a *app) selector() *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: a.labels()} }

func (a *app) deployment(replicas int32) *appsv1.Deployment {
	d := &appsv1.Deployment{TypeMeta: kind("apps/v1", "Deployment"), ObjectMeta: named(a.name)}
	d.Spec.Replicas, d.Spec.Selector = &replicas, a.selector()
	d.Spec.Template.Labels, d.Spec.Template.Spec = a.labels(), a.podSpec()
	return d
}

// pod returns a pod that runs on a node.
func (a *app) pod(number int, node string) *corev1.Pod {
	p := &corev1.Pod{TypeMeta: kind("v1", "Pod"), ObjectMeta: named(fmt.Sprintf("%s-%03d", a.name, number))}
	p.Labels, p.CreationTimestamp, p.OwnerReferences = a.labels(), start(), owner("ReplicaSet", a.name)
	p.Spec = a.podSpec()
	p.Spec.NodeName = node
	p.Status = running()
	return p
}

func owner(kind, name string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: &yes}}
}

func start() metav1.Time {
	at, err := time.Parse(time.RFC3339, created)
	if err != nil {
		panic(err) // it is a constant
	}
	return metav1.NewTime(at)
}

func running() corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
}

// tolerant pods tolerate all taints.
var tolerant = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}

// agent returns a DaemonSet whose pods run on all nodes that the selector selects.
func agent(name string, size amount, selector map[string]string) *appsv1.DaemonSet {
	a := app{name: name, size: size, spec: corev1.PodSpec{NodeSelector: selector, Tolerations: tolerant}}
	d := &appsv1.DaemonSet{TypeMeta: kind("apps/v1", "DaemonSet"), ObjectMeta: named(name)}
	labels := map[string]string{"agent": name}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels, d.Spec.Template.Spec = labels, a.podSpec()
	return d
}

// node returns a node of a pool.
func node(name string, p *pool, t *InstanceType, o Offering) *corev1.Node {
	n := &corev1.Node{TypeMeta: kind("v1", "Node"), ObjectMeta: named(name)}
	n.Namespace, n.CreationTimestamp = "", start()
	n.Labels = map[string]string{
		karpv1.LabelNodePool: p.name, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
		karpv1.LabelCapacityType: o.CapacityType,
		corev1.LabelArchStable:   t.Arch, corev1.LabelOSStable: "linux", corev1.LabelHostname: name,
		corev1.LabelInstanceTypeStable: t.Name, corev1.LabelTopologyZone: o.Zone,
	}
	for key, value := range t.Labels {
		n.Labels[key] = value
	}
	n.Spec.ProviderID = "example:///" + o.Zone + "/" + name
	free := t.allocatable()
	n.Status.Allocatable, n.Status.Capacity = amounts(free), corev1.ResourceList{}
	for key, value := range t.Capacity {
		n.Status.Capacity[corev1.ResourceName(key)] = resource.MustParse(value)
	}
	for _, same := range []corev1.ResourceName{corev1.ResourcePods, corev1.ResourceEphemeralStorage} {
		n.Status.Allocatable[same] = n.Status.Capacity[same]
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}
