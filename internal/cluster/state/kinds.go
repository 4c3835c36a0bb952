package state

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cluster/record"
)

// Object is any object of the API.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind is a kind of object that a State holds.
type Kind uint8

// The kinds.
const (
	Pods Kind = iota
	Nodes
	Claims
	Pools
	Daemons
	PDBs
	// Objects that the conversion of pods depends on.
	Namespaces
	VolumeClaims
	Volumes
	Classes
	CSINodes
	// Objects that the pods of DaemonSets depend on.
	LimitRanges
	RuntimeClasses
	// Objects that default spread depends on. ReplicaSets and StatefulSets are also for the pods that they are about to
	// create (replicas.go), as Jobs are.
	Services
	ReplicaSets
	StatefulSets
	Controllers
	Deployments // only in files: in a cluster, ReplicaSets own the pods
	Jobs
	NodeOverlays
	CapacityQuotas
	kinds // the number of kinds
)

// Kinds returns all kinds.
func Kinds() []Kind {
	all := make([]Kind, kinds)
	for k := range kinds {
		all[k] = k
	}
	return all
}

// table holds the name and an empty object of each kind.
var table = [kinds]struct {
	name  string
	empty Object
}{
	Pods: {"Pod", &corev1.Pod{}}, Nodes: {"Node", &corev1.Node{}}, Claims: {"NodeClaim", &karpv1.NodeClaim{}},
	Pools: {"NodePool", &karpv1.NodePool{}}, Daemons: {"DaemonSet", &appsv1.DaemonSet{}},
	PDBs: {"PodDisruptionBudget", &policyv1.PodDisruptionBudget{}}, Namespaces: {"Namespace", &corev1.Namespace{}},
	VolumeClaims: {"PersistentVolumeClaim", &corev1.PersistentVolumeClaim{}},
	Volumes:      {"PersistentVolume", &corev1.PersistentVolume{}}, Classes: {"StorageClass", &storagev1.StorageClass{}},
	CSINodes: {"CSINode", &storagev1.CSINode{}}, LimitRanges: {"LimitRange", &corev1.LimitRange{}},
	RuntimeClasses: {"RuntimeClass", &nodev1.RuntimeClass{}}, Services: {"Service", &corev1.Service{}},
	ReplicaSets: {"ReplicaSet", &appsv1.ReplicaSet{}}, StatefulSets: {"StatefulSet", &appsv1.StatefulSet{}},
	Deployments: {"Deployment", &appsv1.Deployment{}},
	Controllers: {"ReplicationController", &corev1.ReplicationController{}}, Jobs: {"Job", &batchv1.Job{}},
	NodeOverlays:   {"NodeOverlay", &karpv1alpha1.NodeOverlay{}},
	CapacityQuotas: {"CapacityQuota", &autoscalingv1beta1.CapacityQuota{}},
}

var kindOf = func() map[reflect.Type]Kind {
	m := map[reflect.Type]Kind{}
	for k := range kinds {
		m[reflect.TypeOf(table[k].empty)] = k
	}
	m[reflect.TypeOf((*record.Pod)(nil))] = Pods
	return m
}()

func (k Kind) String() string { return table[k].name }

// New returns an empty object of the kind.
func (k Kind) New() Object { return table[k].empty.DeepCopyObject().(Object) }

// Optional reports whether an API server may not serve the kind.
func (k Kind) Optional() bool { return k == NodeOverlays || k == CapacityQuotas }

// Ref identifies an object of a State.
type Ref struct {
	Kind Kind
	Key  types.NamespacedName
}

func named(k Kind, name string) Ref { return Ref{k, types.NamespacedName{Name: name}} }

// RefOf returns false for objects that a State does not hold, and for typed nils.
func RefOf(obj Object) (Ref, bool) {
	if pod, is := obj.(*corev1.Pod); is && pod != nil { // most objects are pods
		return Ref{Pods, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}}, true
	}
	if v := reflect.ValueOf(obj); v.Kind() != reflect.Pointer || v.IsNil() {
		return Ref{}, false
	}
	k, ok := kindOf[reflect.TypeOf(obj)]
	return Ref{k, types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}, ok
}
