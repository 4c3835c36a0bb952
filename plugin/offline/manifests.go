package offline

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/plugin/podusage"
	"github.com/karpenter-go/karpenter/plugin/review"
)

// Manifests are the inputs of a decision: from files, from a live cluster, or both. Objects of files take precedence over
// those of the cluster with the same name. No decision changes them.
type Manifests struct {
	objects
	remarks
	reading
	// sale holds the available offerings if the files do not contain them: from a provider or a capture; nil for
	// neither.
	sale *capture.PriceList
	// ofFile means that sale is what a file of instance types lists, whatever was launched of it.
	ofFile bool
	// These are set by complete. classes are the kinds of node class that count, and defaultSpread is that of the
	// scheduler configuration.
	classes       []schema.GroupKind
	defaultSpread []corev1.TopologySpreadConstraint
	// prices are the rules of the price file.
	prices   []pricerule.Rule
	podRules convert.PodRules
	now      time.Time
	// aside are the DaemonSets that the last decision did not consider.
	aside []model.AsideDaemon
}

// objects are those that were read, by kind, in the order in which they were read.
type objects struct {
	pools     []sourced[*karpv1.NodePool]
	claims    []sourced[*karpv1.NodeClaim]
	nodes     []sourced[*corev1.Node]
	pods      []sourced[*corev1.Pod]
	daemons   []sourced[*appsv1.DaemonSet]
	workloads []*workload
	others    others
	budgets   []sourced[*policyv1.PodDisruptionBudget]
	// overlays are those of files, and those of the cluster that a controller has read.
	overlays []sourced[*karpv1alpha1.NodeOverlay]
	buffers  buffers
	quotas   []sourced[*autoscalingv1beta1.CapacityQuota]
	// templates are what controllers give to new pods, of those that have pods which request less.
	templates map[types.UID]convert.Created
	// volumeClaims are those of files, and those that StatefulSets of files make.
	volumeClaims []*corev1.PersistentVolumeClaim
	// classesOfAWS are the classes by name; memory is the memory of AWS nodes that the controller has observed; ipv6
	// means that pods have IPv6 addresses.
	classesOfAWS map[string]classOfAWS
	memory       map[string]string
	ipv6         bool
	// refused are pools of files that the API server would reject, and why.
	refused []refusedPool
	// usage is what pods use. rightSized is how many pods have requests that fit it in place of their own.
	usage      podusage.Usage
	rightSized int
	// priorities are the values by priority class. ordinary is that of pods without a class, nil for 0: the lowest of
	// the classes with globalDefault.
	priorities map[string]int32
	ordinary   *int32
}

// remarks are what is to be said about the input, beside an answer or in the place of one.
type remarks struct {
	// Problems are errors of objects, which are set aside. told says that the problems of a mirror are among them.
	Problems []error
	told     bool
	// assumed lists the assumptions of the answer, and missing those about objects that are not among the files.
	assumed []string
	missing []Missing
	// reserved lists the assumptions about capacity reservations, which matter if the feature gate is on.
	reserved []string
	// warned are warnings that an API server would give about objects of files.
	warned notices
	// denied are the kinds that the user may not read, and deniedUser is the user's name; "" if it is unknown.
	denied     []capture.Denied
	deniedUser string
	// passed counts the objects that decisions do not use, by kind.
	passed map[string]int
}

// reading is what is known while objects are read.
type reading struct {
	scheme  *runtime.Scheme
	decoder runtime.Decoder
	// home is the namespace of objects without one; empty means default.
	home string
	// mostPods is the maximum number of pods; workloads are not expanded beyond it.
	mostPods int
	// whole means that the objects of a cluster are among those read: then none is missing.
	whole bool
	// newest is the newest timestamp of any object.
	newest time.Time
	// seen are the origins of objects by their identity.
	seen map[string]string
	// documents is the number of objects, Lists and captures, whatever their kind.
	documents int
	// generated are the names that were made of metadata.generateName.
	generated map[string]bool
	// over are the identities that are seen already when other files begin, whose objects are skipped then.
	over map[string]string
	// typesFile and providerLabels are read from the files beside a folder's manifests: instance-types.json and
	// meta.json.
	typesFile      string
	providerLabels []string
	// options are those of a capture that was read, nil for none.
	options *capture.Options
	// selection selects the pools of the controller that has written the capture.
	selection karpv1.Selection
	// keep stores the original objects of files and of the cluster, for a capture.
	keep          bool
	given, seenIn []json.RawMessage
	// taken are the objects by their identity, while two inputs are compared; nil otherwise. changes are the fields that
	// differ from the other input.
	taken   map[string]metav1.Object
	changes []review.Change
	// wantsUsage means that answers have what pods use, and noUsage is why that is not known.
	wantsUsage bool
	noUsage    string
	// undrifted are the nodes of which it is not known whether they drift.
	undrifted []unknownDrift
}

// completion adds to the objects what an API server and controllers would add: pods of workloads, defaults, status, and
// objects that others refer to.
type completion struct{ *Manifests }

// MostPods is the default maximum number of pods of a simulation. A million identical pods take some 4 GB of memory.
const MostPods = 1_000_000

// sourced is an object and its origin. Live objects are used as they are. Other objects are assumed to be set up and, if
// they are pods, to be unschedulable.
type sourced[T any] struct {
	object T
	origin string
	live   bool
}

func newManifests() (*Manifests, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme,
		schedulingv1.AddToScheme, nodev1.AddToScheme, storagev1.AddToScheme, policyv1.AddToScheme, karpv1.AddToScheme, awsv1.AddToScheme,
		karpv1alpha1.AddToScheme, autoscalingv1beta1.AddToScheme, podusage.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	return &Manifests{
		objects: objects{others: newOthers(), buffers: newBuffers(), usage: podusage.Usage{}, classesOfAWS: map[string]classOfAWS{},
			priorities: map[string]int32{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}},
		remarks: remarks{passed: map[string]int{}},
		reading: reading{mostPods: MostPods, seen: map[string]string{}, generated: map[string]bool{}, scheme: scheme,
			decoder: serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()},
	}, nil
}

// problem adds an error about an object or a file, whatever they are called.
func (o *remarks) problem(err error) {
	if shown := visible(err.Error()); shown != err.Error() {
		err = errors.New(shown)
	}
	o.Problems = append(o.Problems, err)
}

// take adds an object by its kind, and reports whether it is used.
func (o *Manifests) take(origin string, object runtime.Object, live bool) bool {
	meta, ok := object.(metav1.Object)
	if !ok || meta.GetName() == "" {
		o.problem(fmt.Errorf("%s: metadata.name is missing, want a name", origin))
		return false
	}
	if name := key(meta); visible(name) != name { // which answers would print
		o.problem(fmt.Errorf("%s: metadata.name: has control characters, which no name has", origin))
		return false
	}
	switch { // as requests for the kind do
	case !namespacedKind(object):
		meta.SetNamespace("")
	case meta.GetNamespace() == "":
		meta.SetNamespace(cmp.Or(o.home, metav1.NamespaceDefault))
	}
	identity := fmt.Sprintf("%T %s", object, key(meta))
	if first := o.seen[identity]; first != "" {
		if _, over := o.over[identity]; !live && !over {
			o.problem(fmt.Errorf("%s: metadata.name: there is another object of the name (%s)", origin, first))
		}
		return false
	}
	if !o.sort(origin, object, live) {
		o.passOver(object.GetObjectKind().GroupVersionKind(), "")
		return false
	}
	o.seen[identity] = origin
	if o.taken != nil {
		o.taken[identity] = meta
	}
	if meta.GetUID() == "" {
		meta.SetUID(types.UID(strings.ToLower(strings.TrimPrefix(identity, "*"))))
	}
	o.notice(meta.GetCreationTimestamp().Time)
	if deleted := meta.GetDeletionTimestamp(); deleted != nil {
		o.notice(deleted.Time)
	}
	return true
}

// namespacedKind reports whether objects of the kind are namespaced.
func namespacedKind(object runtime.Object) bool {
	switch object.(type) {
	case *karpv1.NodePool, *karpv1.NodeClaim, *karpv1alpha1.NodeOverlay, *autoscalingv1beta1.CapacityQuota,
		*corev1.Node, *corev1.Namespace, *corev1.PersistentVolume, *schedulingv1.PriorityClass,
		*storagev1.StorageClass, *storagev1.CSINode, *nodev1.RuntimeClass, *awsv1.EC2NodeClass:
		return false
	}
	return true
}

func (o *Manifests) notice(t time.Time) {
	if t.After(o.newest) {
		o.newest = t
	}
}

func (o *Manifests) sort(origin string, object runtime.Object, live bool) bool {
	o.buffers.refer(object, live)
	switch object := object.(type) {
	case *karpv1.NodePool:
		if !live {
			setUp(object)
		}
		o.pools = append(o.pools, sourced[*karpv1.NodePool]{object, origin, live})
	case *karpv1.NodeClaim:
		o.noticeClaim(object)
		o.claims = append(o.claims, sourced[*karpv1.NodeClaim]{object, origin, live})
	case *corev1.Node:
		o.nodes = append(o.nodes, sourced[*corev1.Node]{object, origin, live})
	case *corev1.Pod:
		o.noticePod(object)
		o.pods = append(o.pods, sourced[*corev1.Pod]{object, origin, live})
	case *appsv1.DaemonSet:
		if live || object.DeletionTimestamp == nil { // one that is being deleted creates no pods
			o.daemons = append(o.daemons, sourced[*appsv1.DaemonSet]{object, origin, live})
		}
	case *schedulingv1.PriorityClass:
		o.priorities[object.Name] = object.Value
		if object.GlobalDefault && (o.ordinary == nil || *o.ordinary > object.Value) {
			o.ordinary = &object.Value
		}
	case *karpv1alpha1.NodeOverlay:
		if live && len(object.Status.Conditions) == 0 { // the feature gate is off
			return true
		}
		o.overlays = append(o.overlays, sourced[*karpv1alpha1.NodeOverlay]{object, origin, live})
	case *autoscalingv1beta1.CapacityBuffer:
		if live && object.Status.ReadyReplicas == nil { // the feature gate is off, or another autoscaler processes it
			return true
		}
		o.buffers.objects = append(o.buffers.objects, sourced[*autoscalingv1beta1.CapacityBuffer]{object, origin, live})
	case *autoscalingv1beta1.CapacityQuota:
		o.quotas = append(o.quotas, sourced[*autoscalingv1beta1.CapacityQuota]{object, origin, live})
	case *podusage.PodMetrics:
		o.usage.Add(object)
	case *corev1.PodTemplate: // kept by refer
	case *corev1.ResourceQuota:
		o.buffers.quotas[object.Namespace] = append(o.buffers.quotas[object.Namespace], *object)
	case *awsv1.EC2NodeClass:
		o.takeClass(origin, object, live)
	case *corev1.Service:
		if object.Namespace == metav1.NamespaceSystem && object.Name == "kube-dns" {
			o.ipv6 = strings.Contains(object.Spec.ClusterIP, ":")
		}
		return o.others.take(object)
	case *corev1.PersistentVolumeClaim:
		if !live {
			o.volumeClaims = append(o.volumeClaims, object)
		}
		return o.others.take(object)
	case *policyv1.PodDisruptionBudget:
		o.budgets = append(o.budgets, sourced[*policyv1.PodDisruptionBudget]{object, origin, live})
	default:
		creates := o.takeWorkload(origin, object, live)
		return o.others.take(object) || creates
	}
	return true
}

// noticePod records the timestamps of a pod.
func (o *Manifests) noticePod(pod *corev1.Pod) {
	if pod.Status.StartTime != nil {
		o.notice(pod.Status.StartTime.Time)
	}
	for i := range pod.Status.Conditions {
		o.notice(pod.Status.Conditions[i].LastTransitionTime.Time)
	}
}

func (o *Manifests) noticeClaim(claim *karpv1.NodeClaim) {
	o.notice(claim.Status.LastPodEventTime.Time)
	for i := range claim.Status.Conditions {
		o.notice(claim.Status.Conditions[i].LastTransitionTime.Time)
	}
}

// finish completes the objects that were read: it adds missing pods of workloads, what admission would have set, and
// claims of nodes without one. It is called once.
func (o *completion) finish() {
	owned := map[*workload][]*corev1.Pod{}
	if slices.ContainsFunc(o.workloads, func(w *workload) bool { return !w.live }) {
		owned = o.ownedPods()
	}
	for _, w := range o.workloads {
		o.expand(w, owned[w])
	}
	o.completeDaemons()
	o.bindClaims()
	o.assumeMissing()
	for _, p := range o.pods {
		if !p.live {
			o.admit(p.object)
			assumeUnschedulable(p.object)
		}
	}
	o.assumeHealthy()
	for _, p := range o.pods {
		o.others.addNamespace(p.object.Namespace)
	}
	o.noteTemplates()
	o.seen = nil // not used anymore, and large with many pods
	o.claimNodes()
}

// admit applies the API server's admission to a pod of a file. A pod that an API server has stored is not changed:
// LimitRanges and RuntimeClasses may be newer than the pod.
func (o *completion) admit(pod *corev1.Pod) {
	var by convert.Admission = &o.others
	if pod.ResourceVersion != "" {
		by = nil
	}
	convert.Admit(pod, by)
	spec := &pod.Spec
	if spec.Priority != nil {
		return
	}
	var priority int32
	if o.ordinary != nil {
		priority = *o.ordinary
	}
	if spec.PriorityClassName != "" {
		priority = o.priorities[spec.PriorityClassName]
	}
	if priority != 0 {
		spec.Priority = &priority
	}
}

// assumeUnschedulable sets the condition of an unschedulable pod on a pod that needs a node, and removes the
// nominations of other pods.
func assumeUnschedulable(pod *corev1.Pod) {
	if !waiting(pod) || len(pod.Spec.SchedulingGates) > 0 {
		return
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	if !convert.NominatedByUs(pod) {
		pod.Status.NominatedNodeName = ""
	}
}

// waiting reports whether the pod is neither on a node nor finished.
func waiting(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// setUp gives a pool from a file the state that the controller sets once the pool is ready.
func setUp(pool *karpv1.NodePool) {
	pool.Status.Conditions = nil
	pool.StatusConditions().SetTrue(karpv1.ConditionValidationSucceeded)
	pool.StatusConditions().SetTrue(karpv1.ConditionNodeClassReady)
}

// passOver counts an object of a kind that decisions do not use, with what is to be said about it.
func (o *remarks) passOver(kind schema.GroupVersionKind, note string) {
	name := kind.Kind
	if kind.Group != "" {
		name += " of " + kind.GroupVersion().String()
	}
	o.passed[visible(name)+note]++
}

// ignored describes how many objects of which kinds were ignored.
func (o *remarks) ignored() []string {
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(o.passed)) {
		lines = append(lines, plural(o.passed[kind], "object")+" of kind "+kind)
	}
	return lines
}

func key(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }
