package cluster

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// SetAside is an object that takes no part, and why.
type SetAside struct {
	Kind string
	// Name is namespace/name, or the name alone.
	Name string
	Why  model.Rejection
}

// name is the object without the reason.
func (o SetAside) name() SetAside { return SetAside{Kind: o.Kind, Name: o.Name} }

// aside holds what is set aside.
type aside struct {
	why    map[SetAside]model.Rejection // keys without Why
	counts map[string]int
	tell   func(kind string, count int)
}

func newAside(tell func(string, int)) aside {
	return aside{why: map[SetAside]model.Rejection{}, counts: map[string]int{}, tell: tell}
}

// set puts an object aside, or takes it back when why is nil.
func (a *aside) set(object SetAside, why *model.Rejection) {
	_, known := a.why[object]
	switch {
	case why == nil && !known:
		return
	case why == nil:
		delete(a.why, object)
		a.counts[object.Kind]--
	case known:
		a.why[object] = *why
		return
	default:
		a.why[object] = *why
		a.counts[object.Kind]++
	}
	if a.tell != nil {
		a.tell(object.Kind, a.counts[object.Kind])
	}
}

// Aside lists the objects that are set aside, by kind and name.
func (s *Store) Aside() []SetAside {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	list := make([]SetAside, 0, len(s.aside.why))
	for object, why := range s.aside.why {
		object.Why = why
		list = append(list, object)
	}
	slices.SortFunc(list, func(a, b SetAside) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	return list
}
