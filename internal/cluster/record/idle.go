package record

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Idle is a workload that asks for no pods. A Deployment leaves ten old ReplicaSets by default
// (https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#clean-up-policy), and Jobs stay when they have
// ended. It has 48 bytes and those of its name and version, so that informers can hold it: a trimmed ReplicaSet has 1,144
// bytes and those of its names.
type Idle struct {
	*metav1.ObjectMeta
	namespace unique.Handle[string]
	name      string
	version   string
}

// nothing is what an Idle has in all other fields. It is never changed, like all objects of a cache.
var nothing = &metav1.ObjectMeta{}

// IdleOf returns the record of a workload.
func IdleOf(o metav1.Object) *Idle {
	return &Idle{nothing, unique.Make(o.GetNamespace()), o.GetName(), o.GetResourceVersion()}
}

// GetNamespace implements metav1.Object.
func (i *Idle) GetNamespace() string { return i.namespace.Value() }

// GetName implements metav1.Object.
func (i *Idle) GetName() string { return i.name }

// GetResourceVersion implements metav1.Object.
func (i *Idle) GetResourceVersion() string { return i.version }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (i *Idle) GetObjectMeta() metav1.Object { return i }

// GetObjectKind implements runtime.Object.
func (i *Idle) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (i *Idle) DeepCopyObject() runtime.Object {
	c := *i
	return &c
}
