package state

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/record"
)

// View is what others may read of a State: its objects, those that it rejects, and the meaning of labels. The objects
// belong to the state: callers must copy an object before changing it.
type View struct {
	// mutex guards the whole state.
	mutex      sync.Mutex
	objects    [kinds]map[types.NamespacedName]*entry
	rejected   rejected
	vocabulary *convert.Vocabulary
}

// entry is the object with one name.
type entry struct {
	// object is nil if there is none, and may be the record of a pod.
	object Object
	// converted is the state of a pod in the builder.
	converted converted
}

// pod returns the pod as a whole, nil if the object is none.
func (e *entry) pod() *corev1.Pod { return record.Whole(e.object) }

func newView(vocabulary *convert.Vocabulary) *View {
	v := &View{rejected: newRejected(), vocabulary: vocabulary}
	for k := range v.objects {
		v.objects[k] = map[types.NamespacedName]*entry{}
	}
	return v
}

// Vocabulary returns the meaning of labels: the core's and the provider's.
func (v *View) Vocabulary() *convert.Vocabulary { return v.vocabulary }

// Object returns an object, nil if there is none. A pod may be a record of one.
func (v *View) Object(at Ref) Object { return read[Object](v, at) }

// Objects returns all objects, by kind, namespace and name.
func (v *View) Objects() []Object {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	var all []Object
	for k := range v.objects {
		begin := len(all)
		for _, e := range v.objects[k] {
			if pod := e.pod(); pod != nil {
				all = append(all, pod)
			} else if e.object != nil {
				all = append(all, e.object)
			}
		}
		slices.SortFunc(all[begin:], func(a, b Object) int {
			return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
		})
	}
	return all
}

// Pod returns a pod, nil if there is none.
func (v *View) Pod(key types.NamespacedName) *corev1.Pod {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.pod(key)
}

// EachPod yields all pods, in any order. A pod is valid until the next one.
func (v *View) EachPod(yield func(*corev1.Pod) bool) {
	v.mutex.Lock()
	all := make([]Object, 0, len(v.objects[Pods]))
	for _, e := range v.objects[Pods] {
		all = append(all, e.object)
	}
	v.mutex.Unlock()
	var place record.Place
	for _, object := range all {
		if pod := place.Whole(object); pod != nil && !yield(pod) {
			return
		}
	}
}

// Node returns a node, nil if there is none.
func (v *View) Node(name string) *corev1.Node { return read[*corev1.Node](v, named(Nodes, name)) }

// Claim returns a claim, of any provider, nil if there is none.
func (v *View) Claim(name string) *karpv1.NodeClaim {
	return read[*karpv1.NodeClaim](v, named(Claims, name))
}

// Pool returns a pool, of any provider, nil if there is none.
func (v *View) Pool(name string) *karpv1.NodePool {
	return read[*karpv1.NodePool](v, named(Pools, name))
}

// Overlay returns a NodeOverlay, nil if there is none.
func (v *View) Overlay(name string) *karpv1alpha1.NodeOverlay {
	return read[*karpv1alpha1.NodeOverlay](v, named(NodeOverlays, name))
}

// Pools returns all pools, of any provider, by name.
func (v *View) Pools() []*karpv1.NodePool { return list[*karpv1.NodePool](v, Pools) }

// Overlays returns all NodeOverlays, by name.
func (v *View) Overlays() []*karpv1alpha1.NodeOverlay {
	return list[*karpv1alpha1.NodeOverlay](v, NodeOverlays)
}

// Quotas returns all CapacityQuotas, by name.
func (v *View) Quotas() []*autoscalingv1beta1.CapacityQuota {
	return list[*autoscalingv1beta1.CapacityQuota](v, CapacityQuotas)
}

// Rejected lists the ignored objects, by kind and name. The change RejectedChanged signals when the list has changed.
func (v *View) Rejected() []RejectedObject {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	list := make([]RejectedObject, 0, len(v.rejected.objects))
	for _, object := range v.rejected.objects {
		list = append(list, object)
	}
	slices.SortFunc(list, func(a, b RejectedObject) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return list
}

func read[O Object](v *View, at Ref) O {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	object, _ := v.now(at).(O)
	return object
}

func list[O Object](v *View, k Kind) []O {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	var list []O
	for _, e := range v.objects[k] {
		if object, ok := e.object.(O); ok {
			list = append(list, object)
		}
	}
	slices.SortFunc(list, func(a, b O) int { return strings.Compare(a.GetName(), b.GetName()) })
	return list
}

func (v *View) entry(at Ref) *entry {
	e := v.objects[at.Kind][at.Key]
	if e == nil {
		e = &entry{}
		v.objects[at.Kind][at.Key] = e
	}
	return e
}

// now returns an object, nil if there is none. The methods from here on need the lock.
func (v *View) now(at Ref) Object {
	if e := v.objects[at.Kind][at.Key]; e != nil {
		return e.object
	}
	return nil
}

func (v *View) pod(key types.NamespacedName) *corev1.Pod { return record.Whole(v.now(Ref{Pods, key})) }

func (v *View) node(name string) *corev1.Node {
	node, _ := v.now(named(Nodes, name)).(*corev1.Node)
	return node
}

func (v *View) csiNode(name string) *storagev1.CSINode {
	node, _ := v.now(named(CSINodes, name)).(*storagev1.CSINode)
	return node
}

func (v *View) claim(name string) *karpv1.NodeClaim {
	claim, _ := v.now(named(Claims, name)).(*karpv1.NodeClaim)
	return claim
}
