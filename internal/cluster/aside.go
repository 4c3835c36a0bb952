package cluster

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// SetAside is an object that the store ignores, and the reason.
type SetAside struct {
	Kind string
	// Name is namespace/name, or only the name.
	Name string
	UID  types.UID
	Why  model.Rejection
}

// asideKey identifies an object.
type asideKey struct{ kind, name string }

func (o SetAside) key() asideKey { return asideKey{o.Kind, o.Name} }

// aside holds the ignored objects.
type aside struct {
	objects map[asideKey]SetAside
	counts  map[string]int
	tell    func(kind string, count int)
}

func newAside(tell func(string, int)) aside {
	return aside{objects: map[asideKey]SetAside{}, counts: map[string]int{}, tell: tell}
}

// put adds an object or updates its reason, and reports whether that changed anything.
func (a *aside) put(object SetAside) bool {
	before, known := a.objects[object.key()]
	a.objects[object.key()] = object
	if !known {
		a.count(object.Kind, 1)
	}
	return !known || before != object
}

// take removes an object, and reports whether it was in the set.
func (a *aside) take(object asideKey) bool {
	_, known := a.objects[object]
	if known {
		delete(a.objects, object)
		a.count(object.kind, -1)
	}
	return known
}

func (a *aside) count(kind string, change int) {
	a.counts[kind] += change
	if a.tell != nil {
		a.tell(kind, a.counts[kind])
	}
}

// Aside lists the ignored objects, by kind and name. The change AsideChanged signals when the list has changed.
func (s *Store) Aside() []SetAside {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	list := make([]SetAside, 0, len(s.aside.objects))
	for _, object := range s.aside.objects {
		list = append(list, object)
	}
	slices.SortFunc(list, func(a, b SetAside) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return list
}
