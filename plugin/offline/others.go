package offline

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/karpenter-go/karpenter/internal/cluster/state"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// others are the objects that the state holds and nothing else here needs, or only looks up: those of volumes, namespaces,
// what admission applies to pods, and the objects that select pods.
type others struct {
	list []state.Object
	at   map[identity]int
	// ranges are the LimitRanges by namespace.
	ranges map[string][]*corev1.LimitRange
}

func newOthers() others {
	return others{at: map[identity]int{}, ranges: map[string][]*corev1.LimitRange{}}
}

// identity is the identity of an object among the others.
type identity struct {
	kind            reflect.Type
	namespace, name string
}

// take adds an object, in the place of one of the same identity. It reports whether the state holds such objects.
func (s *others) take(object runtime.Object) bool {
	held, _ := object.(state.Object)
	if _, holds := state.RefOf(held); !holds {
		return false
	}
	switch o := object.(type) {
	case *corev1.LimitRange:
		s.ranges[o.Namespace] = append(s.ranges[o.Namespace], o)
	case *corev1.Namespace:
		labeled := o.DeepCopy()
		labeled.Labels = with(map[string]string{corev1.LabelMetadataName: o.Name}, o.Labels)
		held = labeled
	}
	s.put(held)
	return true
}

func (s *others) put(o state.Object) {
	id := identity{reflect.TypeOf(o), o.GetNamespace(), o.GetName()}
	if at, known := s.at[id]; known {
		s.list[at] = o
		return
	}
	s.at[id] = len(s.list)
	s.list = append(s.list, o)
}

// find returns the object of the type with the name, nil if there is none.
func find[T state.Object](s *others, namespace, name string) (found T) {
	if at, known := s.at[identity{reflect.TypeFor[T](), namespace, name}]; known {
		found = s.list[at].(T)
	}
	return found
}

// all returns the objects of the type.
func all[T state.Object](s *others) []T {
	var list []T
	for _, o := range s.list {
		if object, is := o.(T); is {
			list = append(list, object)
		}
	}
	return list
}

// class returns the StorageClass of the name, the default class for "".
func (s *others) class(name string) *storagev1.StorageClass {
	if name == "" {
		return convert.DefaultClass(all[*storagev1.StorageClass](s))
	}
	return find[*storagev1.StorageClass](s, "", name)
}

// addNamespace adds a namespace that only pods mention, and reports whether it was missing.
func (s *others) addNamespace(name string) bool {
	missing := find[*corev1.Namespace](s, "", name) == nil
	if missing {
		s.take(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return missing
}

// LimitRanges implements convert.Admission.
func (s *others) LimitRanges(namespace string) []*corev1.LimitRange { return s.ranges[namespace] }

// RuntimeClass implements convert.Admission.
func (s *others) RuntimeClass(name string) *nodev1.RuntimeClass {
	return find[*nodev1.RuntimeClass](s, "", name)
}
