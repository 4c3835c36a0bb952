package cluster

import (
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
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
	// What pods depend on.
	namespaces
	volumeClaims
	volumes
	classes
	csiNodes
	// What pods of DaemonSets will be depends on.
	limitRanges
	runtimeClasses
	// What default spread depends on, watched only where there is one.
	services
	replicaSets
	statefulSets
	controllers
	kinds // their number
)

func (k kind) String() string {
	return [...]string{"Pod", "Node", "NodeClaim", "NodePool", "DaemonSet", "PodDisruptionBudget",
		"Namespace", "PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode", "LimitRange", "RuntimeClass",
		"Service", "ReplicaSet", "StatefulSet", "ReplicationController"}[k]
}

// prototype is an empty object of the kind.
func (k kind) prototype() client.Object {
	return [...]client.Object{&corev1.Pod{}, &corev1.Node{}, &karpv1.NodeClaim{}, &karpv1.NodePool{}, &appsv1.DaemonSet{}, &policyv1.PodDisruptionBudget{},
		&corev1.Namespace{}, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, &storagev1.StorageClass{}, &storagev1.CSINode{},
		&corev1.LimitRange{}, &nodev1.RuntimeClass{},
		&corev1.Service{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}, &corev1.ReplicationController{}}[k]
}

// kindOf is false for objects that the store does not mirror, and for typed nils.
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
	}
	return kindAround(obj)
}

func kindAround(obj client.Object) (kind, bool) {
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
	}
	return 0, false
}

// ref names an object of the mirror.
type ref struct {
	kind kind
	key  types.NamespacedName
}

// entry is what is known of the object of one name.
type entry struct {
	// seen is what the watch showed last, nil if nothing or its deletion.
	seen client.Object
	// own is what we did and the watch has not shown yet, nil if there is nothing of the kind.
	own *own
	// told is what the builder knows of a pod.
	told told
}

// own is our newest write to one incarnation of an object.
type own struct {
	uid types.UID
	// object is as we left it, nil when it is gone.
	object client.Object
	// deleted: we asked for its deletion, or removed its last finaliser.
	deleted bool
	// checked is when we wrote it, or last read it live.
	checked time.Time
}

// now is the object's present state, nil when there is none.
func (e *entry) now() client.Object {
	if e.own != nil {
		return e.own.object
	}
	return e.seen
}

func (e *entry) empty() bool { return e.seen == nil && e.own == nil }

// see takes what the watch shows.
func (e *entry) see(obj client.Object) {
	e.seen = obj
	if e.own != nil && e.own.settledBy(obj) {
		e.own = nil
	}
}

// lose takes the watch's word that the object is gone.
func (e *entry) lose(uid types.UID) {
	e.seen = nil
	if e.own != nil && e.own.uid == uid {
		e.own = nil
	}
}

// settledBy reports whether the watch has caught up with the write.
func (o *own) settledBy(seen client.Object) bool {
	switch {
	case seen.GetUID() != o.uid: // another incarnation: it counts unless ours is the younger one
		return o.deleted || !newer(o.object, seen)
	case o.deleted:
		return o.object != nil && seen.GetDeletionTimestamp() != nil
	}
	return !newer(o.object, seen)
}

// write takes an object as the API returned it to us. It reports whether that is news.
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
		e.own.object, e.own.deleted = nil, true // the API removes it with its last finaliser
	}
	return true
}

// remove takes our deletion of an object. Pods, and objects with finalisers, stay for a while, marked; others are
// gone. It reports whether that is news.
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

// decide takes a live read, nil when there is no such object. It returns the UID that is known to be gone by it, empty
// if none.
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

// newer reports whether a is of a later version than b. Versions that cannot be compared are not newer.
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
