package cluster

import (
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
)

// kind is a kind of object that the store mirrors.
type kind uint8

const (
	pods kind = iota
	nodes
	claims
	pools
	daemons
	pdbs
	// Objects that the conversion of pods depends on.
	namespaces
	volumeClaims
	volumes
	classes
	csiNodes
	// Objects that the pods of DaemonSets depend on.
	limitRanges
	runtimeClasses
	// Objects that default spread depends on, watched only if there is one. ReplicaSets and StatefulSets are also watched
	// for the pods that they are about to create (replicas.go), as Jobs are.
	services
	replicaSets
	statefulSets
	controllers
	jobs
	// NodeOverlays, watched only with their feature gate.
	nodeOverlays
	// CapacityQuotas, watched if the API server serves them.
	capacityQuotas
	kinds // the number of kinds
)

func (k kind) String() string {
	return [...]string{"Pod", "Node", "NodeClaim", "NodePool", "DaemonSet", "PodDisruptionBudget",
		"Namespace", "PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode", "LimitRange", "RuntimeClass",
		"Service", "ReplicaSet", "StatefulSet", "ReplicationController", "Job", "NodeOverlay", "CapacityQuota"}[k]
}

// prototype returns an empty object of the kind.
func (k kind) prototype() client.Object {
	return [...]client.Object{&corev1.Pod{}, &corev1.Node{}, &karpv1.NodeClaim{}, &karpv1.NodePool{}, &appsv1.DaemonSet{},
		&policyv1.PodDisruptionBudget{},
		&corev1.Namespace{}, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, &storagev1.StorageClass{}, &storagev1.CSINode{},
		&corev1.LimitRange{}, &nodev1.RuntimeClass{},
		&corev1.Service{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}, &corev1.ReplicationController{}, &batchv1.Job{},
		&karpv1alpha1.NodeOverlay{}, &autoscalingv1beta1.CapacityQuota{}}[k]
}

// kindOf returns false for objects that the store does not mirror, and for typed nils.
func kindOf(obj client.Object) (kind, bool) {
	if v := reflect.ValueOf(obj); v.Kind() != reflect.Pointer || v.IsNil() {
		return 0, false
	}
	switch obj.(type) {
	case *corev1.Pod:
		return pods, true
	case *corev1.Node:
		return nodes, true
	case *karpv1.NodeClaim:
		return claims, true
	case *karpv1.NodePool:
		return pools, true
	case *appsv1.DaemonSet:
		return daemons, true
	case *policyv1.PodDisruptionBudget:
		return pdbs, true
	case *karpv1alpha1.NodeOverlay:
		return nodeOverlays, true
	case *autoscalingv1beta1.CapacityQuota:
		return capacityQuotas, true
	}
	return dependencyKind(obj)
}

func dependencyKind(obj client.Object) (kind, bool) {
	switch obj.(type) {
	case *corev1.Namespace:
		return namespaces, true
	case *corev1.PersistentVolumeClaim:
		return volumeClaims, true
	case *corev1.PersistentVolume:
		return volumes, true
	case *storagev1.StorageClass:
		return classes, true
	case *storagev1.CSINode:
		return csiNodes, true
	case *corev1.LimitRange:
		return limitRanges, true
	case *nodev1.RuntimeClass:
		return runtimeClasses, true
	case *corev1.Service:
		return services, true
	case *appsv1.ReplicaSet:
		return replicaSets, true
	case *appsv1.StatefulSet:
		return statefulSets, true
	case *corev1.ReplicationController:
		return controllers, true
	case *batchv1.Job:
		return jobs, true
	}
	return 0, false
}

// ref identifies an object of the mirror.
type ref struct {
	kind kind
	key  types.NamespacedName
}

// entry is the state of the object with one name.
type entry struct {
	// seen is the last state that the watch showed, nil for none or after its deletion.
	seen client.Object
	// own is this controller's own write that the watch has not shown yet, nil if there is none.
	own *own
	// converted is the state of a pod in the builder.
	converted converted
}

// own is this controller's newest write to an object with one UID.
type own struct {
	uid types.UID
	// object is the object after the write, nil if it is gone.
	object client.Object
	// deleted says that this controller requested its deletion, or removed its last finalizer.
	deleted bool
	// checked is the time of the write, or of the last live read.
	checked time.Time
}

// now returns the object's current state, nil if there is none.
func (e *entry) now() client.Object {
	if e.own != nil {
		return e.own.object
	}
	return e.seen
}

func (e *entry) empty() bool { return e.seen == nil && e.own == nil }

// see records a state from the watch.
func (e *entry) see(obj client.Object) {
	e.seen = obj
	if e.own != nil && e.own.settledBy(obj) {
		e.own = nil
	}
}

// lose records a deletion from the watch.
func (e *entry) lose(uid types.UID) {
	e.seen = nil
	if e.own != nil && e.own.uid == uid {
		e.own = nil
	}
}

// settledBy reports whether the watch has caught up with the write.
func (o *own) settledBy(seen client.Object) bool {
	switch {
	case seen.GetUID() != o.uid: // another UID: it counts unless the written object is newer
		return o.deleted || !newer(o.object, seen)
	case o.deleted:
		return o.object != nil && seen.GetDeletionTimestamp() != nil
	}
	return !newer(o.object, seen)
}

// write records an object that the API returned for a write. It reports whether that changed anything.
func (e *entry) write(obj client.Object, at time.Time) bool {
	if e.seen != nil && !newer(obj, e.seen) {
		return false
	}
	if o := e.own; o != nil {
		if o.object != nil && !o.deleted && !newer(obj, o.object) {
			return false
		}
		if o.deleted && o.uid == obj.GetUID() && (o.object == nil || obj.GetDeletionTimestamp() == nil) {
			return false
		}
	}
	e.own = &own{uid: obj.GetUID(), object: obj, checked: at}
	if k, _ := kindOf(obj); k != pods && obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		e.own.object, e.own.deleted = nil, true // the API removes it with its last finalizer
	}
	return true
}

// remove records this controller's deletion of an object. Pods, and objects with finalizers, are kept and marked as
// being deleted; others are gone. It reports whether that changed anything.
func (e *entry) remove(obj client.Object, at time.Time) bool {
	if e.seen != nil && e.seen.GetUID() == obj.GetUID() && e.seen.GetDeletionTimestamp() != nil {
		return false
	}
	if e.seen != nil && e.seen.GetUID() != obj.GetUID() && newer(e.seen, obj) {
		return false
	}
	if e.own != nil && e.own.uid != obj.GetUID() && e.own.object != nil && newer(e.own.object, obj) {
		return false
	}
	e.own = &own{uid: obj.GetUID(), deleted: true, checked: at}
	if k, _ := kindOf(obj); k == pods || len(obj.GetFinalizers()) > 0 {
		marked := obj.DeepCopyObject().(client.Object)
		if marked.GetDeletionTimestamp() == nil {
			marked.SetDeletionTimestamp(timestamp(at))
		}
		e.own.object = marked
	}
	return true
}

// decide records a live read, nil if there is no such object. It returns the UID that is gone according to the read,
// or "".
func (e *entry) decide(live client.Object, at time.Time) types.UID {
	o := e.own
	switch {
	case live == nil && e.seen != nil: // the watch is behind and will show the deletion
		e.own = &own{uid: e.seen.GetUID(), deleted: true, checked: at}
		return ""
	case live == nil:
		e.own = nil
		return o.uid
	case e.seen != nil && !newer(live, e.seen):
		e.own = nil
	default:
		e.own = &own{uid: live.GetUID(), object: live, checked: at}
	}
	return ""
}

// newer reports whether a has a later version than b. Versions that cannot be compared are not newer.
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
