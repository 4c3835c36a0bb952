package state

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// RejectedObject is an object that a State ignores, and the reason.
type RejectedObject struct {
	Kind string
	// Name is namespace/name, or only the name.
	Name string
	UID  types.UID
	Why  model.Rejection
}

// objectKey identifies an object.
type objectKey struct{ kind, name string }

func (o RejectedObject) key() objectKey { return objectKey{o.Kind, o.Name} }

// rejected holds the ignored objects.
type rejected struct {
	objects map[objectKey]RejectedObject
	// counts are the objects of each kind, changed those of the kinds that have changed since the news were drained.
	counts, changed map[string]int
}

func newRejected() rejected {
	return rejected{objects: map[objectKey]RejectedObject{}, counts: map[string]int{}}
}

// add adds an object or updates its reason, and reports whether that changed anything.
func (r *rejected) add(object RejectedObject) bool {
	before, known := r.objects[object.key()]
	r.objects[object.key()] = object
	if !known {
		r.count(object.Kind, 1)
	}
	return !known || before != object
}

// remove removes an object, and reports whether it was in the set.
func (r *rejected) remove(object objectKey) bool {
	_, known := r.objects[object]
	if known {
		delete(r.objects, object)
		r.count(object.kind, -1)
	}
	return known
}

func (r *rejected) count(kind string, change int) {
	r.counts[kind] += change
	if r.changed == nil {
		r.changed = map[string]int{}
	}
	r.changed[kind] = r.counts[kind]
}
