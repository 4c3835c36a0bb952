package cluster

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// RejectedObject is an object that the store ignores, and the reason.
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
	counts  map[string]int
	publish func(kind string, count int)
}

func newRejected(publish func(string, int)) rejected {
	return rejected{objects: map[objectKey]RejectedObject{}, counts: map[string]int{}, publish: publish}
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
	if r.publish != nil {
		r.publish(kind, r.counts[kind])
	}
}

// Rejected lists the ignored objects, by kind and name. The change RejectedChanged signals when the list has changed.
func (s *Store) Rejected() []RejectedObject {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	list := make([]RejectedObject, 0, len(s.rejected.objects))
	for _, object := range s.rejected.objects {
		list = append(list, object)
	}
	slices.SortFunc(list, func(a, b RejectedObject) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return list
}
