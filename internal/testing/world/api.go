package world

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/awslabs/operatorpkg/status"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
)

// api is the API server. Its objects are immutable: a change is a new object.
type api struct {
	clock   *Clock
	version int64
	uids    int
	shelves shelves
	// views are those of the processes, each with the changes that its watches have not shown yet. hear is called with
	// each change, the nodes and controllers of Kubernetes among them; before or after is nil for a new or gone object.
	views []*view
	hear  func(before, after client.Object)
}

// kind is the Go type of the objects of a kind, without the pointer.
type kind = reflect.Type

func kindOf(o client.Object) kind { return reflect.TypeOf(o).Elem() }

// shelves hold objects by kind and key, with the indexes of their fields.
type shelves struct {
	fields map[kind]map[string]func(client.Object) []string
	kinds  map[kind]*shelf
}

type shelf struct {
	objects map[types.NamespacedName]client.Object
	// fields holds the keys of objects by field and value.
	fields map[string]map[string]map[types.NamespacedName]bool
}

func (s *shelves) of(k kind) *shelf {
	if s.kinds[k] == nil {
		s.kinds[k] = &shelf{objects: map[types.NamespacedName]client.Object{}, fields: map[string]map[string]map[types.NamespacedName]bool{}}
		for field := range s.fields[k] {
			s.kinds[k].fields[field] = map[string]map[types.NamespacedName]bool{}
		}
	}
	return s.kinds[k]
}

// put replaces the object with the key; nil removes it.
func (s *shelves) put(k kind, key types.NamespacedName, o client.Object) {
	at := s.of(k)
	before := at.objects[key]
	for field, values := range s.fields[k] {
		if before != nil {
			for _, value := range values(before) {
				delete(at.fields[field][value], key)
			}
		}
		if o != nil {
			for _, value := range values(o) {
				if at.fields[field][value] == nil {
					at.fields[field][value] = map[types.NamespacedName]bool{}
				}
				at.fields[field][value][key] = true
			}
		}
	}
	if o == nil {
		delete(at.objects, key)
		return
	}
	at.objects[key] = o
}

// list returns the objects with the value of a field, all without a field, in the order of their keys.
func (s *shelves) list(k kind, field, value string) []client.Object {
	at := s.of(k)
	var keys []types.NamespacedName
	switch {
	case field == "":
		for key := range at.objects {
			keys = append(keys, key)
		}
	case at.fields[field] == nil:
		panic(fmt.Sprintf("%v have no index of %s", k, field))
	default:
		for key := range at.fields[field][value] {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	objects := make([]client.Object, len(keys))
	for i, key := range keys {
		objects[i] = at.objects[key]
	}
	return objects
}

// listOf returns the objects of a kind.
func listOf[T client.Object](a *api) []T {
	var all []T
	for _, o := range a.shelves.list(reflect.TypeFor[T]().Elem(), "", "") {
		all = append(all, o.(T))
	}
	return all
}

// seconds returns the time as the API stores it.
func (a *api) seconds() metav1.Time { return metav1.Time{Time: a.clock.now.Truncate(time.Second)} }

// create adds an object, which belongs to the API from now on. It returns false if the name is taken.
func (a *api) create(o client.Object) bool {
	if a.get(o) != nil {
		return false
	}
	a.uids++
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("uid-%d", a.uids)))
	}
	if created := o.GetCreationTimestamp(); created.IsZero() {
		o.SetCreationTimestamp(a.seconds())
	}
	o.SetGeneration(1)
	a.write(nil, o)
	return true
}

// get returns the current object with the kind and the key of o, nil if there is none.
func (a *api) get(o client.Object) client.Object {
	return a.shelves.of(kindOf(o)).objects[client.ObjectKeyFromObject(o)]
}

// write replaces an object by its next version, or removes it with its last finalizer.
func (a *api) write(before, after client.Object) {
	if before != nil && !equality.Semantic.DeepEqual(specOf(before), specOf(after)) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
	a.stamp(before, after)
	a.version++
	after.SetResourceVersion(strconv.FormatInt(a.version, 10))
	_, pod := after.(*corev1.Pod)
	if !pod && !after.GetDeletionTimestamp().IsZero() && len(after.GetFinalizers()) == 0 {
		a.remove(before)
		return
	}
	a.tell(before, after)
}

func (a *api) tell(before, after client.Object) {
	o := after
	if o == nil {
		o = before
	}
	k, key := kindOf(o), client.ObjectKeyFromObject(o)
	a.shelves.put(k, key, after)
	for _, v := range a.views {
		v.add(change{before: before, after: after}, a.clock.now)
	}
	a.hear(before, after)
}

// remove removes an object.
func (a *api) remove(o client.Object) {
	if live := a.get(o); live != nil && live.GetUID() == o.GetUID() {
		a.version++
		a.tell(live, nil)
	}
}

// delete removes an object, or marks it as being deleted: pods end by their kubelet, others with their last finalizer.
func (a *api) delete(o client.Object, grace *int64) {
	pod, isPod := o.(*corev1.Pod)
	switch {
	case isPod && (pod.Spec.NodeName == "" || grace != nil && *grace == 0) || !isPod && len(o.GetFinalizers()) == 0:
		a.remove(o)
		return
	case !o.GetDeletionTimestamp().IsZero() && grace == nil:
		return
	}
	after := o.DeepCopyObject().(client.Object)
	at := a.seconds()
	if isPod {
		seconds := cmp.Or(grace, pod.Spec.TerminationGracePeriodSeconds, new(int64(corev1.DefaultTerminationGracePeriodSeconds)))
		at = metav1.Time{Time: at.Add(time.Duration(*seconds) * time.Second)}
		after.SetDeletionGracePeriodSeconds(seconds)
	}
	after.SetDeletionTimestamp(&at)
	a.write(o, after)
}

// edit writes an edited copy of the object; nothing happens if there is none of its UID.
func edit[T client.Object](a *api, o T, change func(T)) {
	live, ok := a.get(o).(T)
	if !ok || live.GetUID() != o.GetUID() {
		return
	}
	after := live.DeepCopyObject().(T)
	change(after)
	a.write(live, after)
}

// stamp sets the times of conditions that have changed. Their library takes them from the real clock.
func (a *api) stamp(before, after client.Object) {
	if before == nil {
		return
	}
	now := conditionsOf(after)
	for i := range now {
		now[i].LastTransitionTime = a.changed(conditionsOf(before), now[i])
	}
}

func (a *api) changed(before []status.Condition, c status.Condition) metav1.Time {
	for _, b := range before {
		if b.Type == c.Type && b.LastTransitionTime.Unix() == c.LastTransitionTime.Unix() {
			return b.LastTransitionTime
		}
	}
	return a.seconds()
}

func conditionsOf(o client.Object) []status.Condition {
	switch o := o.(type) {
	case *karpv1.NodeClaim:
		return o.Status.Conditions
	case *karpv1.NodePool:
		return o.Status.Conditions
	}
	return nil
}

// specOf returns what the generation of an object counts.
func specOf(o client.Object) any {
	switch o := o.(type) {
	case *karpv1.NodeClaim:
		return o.Spec
	case *karpv1.NodePool:
		return o.Spec
	case *autoscalingv1beta1.CapacityBuffer:
		return o.Spec
	case *karpv1alpha1.NodeOverlay:
		return o.Spec
	case *appsv1.ReplicaSet:
		return o.Spec
	case *policyv1.PodDisruptionBudget:
		return o.Spec
	}
	return nil
}
