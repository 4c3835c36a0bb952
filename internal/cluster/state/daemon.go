package state

import (
	"reflect"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// The pods of a DaemonSet depend on more than its template: on the LimitRanges of its namespace, on its RuntimeClass,
// and on the actual requests of its pods. When one of these changes, the affected DaemonSets are converted again.
// DaemonSets are few, so all of them are examined.

func (s *State) applyDaemon(key types.NamespacedName, e *entry) {
	set, _ := e.object.(*appsv1.DaemonSet)
	before, known := s.daemons[key]
	if set == nil || set.DeletionTimestamp != nil {
		if known {
			s.builder.DeleteDaemon(before.UID)
			delete(s.daemons, key)
			s.daemonPods.Forget(types.UID(before.UID))
			s.notify(PoolsChanged)
		}
		return
	}
	spec := convert.Daemon(set, s.vocabulary, &s.dependencies.Around, &s.daemonPods)
	if known && reflect.DeepEqual(before, spec) {
		return
	}
	if known && before.UID != spec.UID {
		s.builder.DeleteDaemon(before.UID)
	}
	s.daemons[key] = spec
	s.builder.UpsertDaemon(spec)
	s.notify(PoolsChanged)
}

// recordDaemons records the DaemonSets that a snapshot does not consider.
func (s *State) recordDaemons(aside []model.AsideDaemon) {
	if slices.Equal(aside, s.daemonsAside) {
		return
	}
	key := func(d model.AsideDaemon) objectKey { return objectKey{Daemons.String(), d.Namespace + "/" + d.Name} }
	for _, d := range s.daemonsAside {
		s.rejected.remove(key(d))
	}
	for _, d := range aside {
		s.rejected.add(RejectedObject{Kind: Daemons.String(), Name: key(d).name, UID: types.UID(d.UID), Why: *d.Why})
	}
	s.daemonsAside = aside
	s.notify(RejectedChanged)
}

// countDaemonPod replaces the old count of a DaemonSet's pod by the new one. A DaemonSet is converted again when one
// of its pods has requests that no other had before, or the last pod with some requests is gone. Pods outlive a
// deleted DaemonSet; their requests are not kept.
func (s *State) countDaemonPod(namespace string, before *convert.DaemonShape, e *entry) *convert.DaemonShape {
	var now *convert.DaemonShape
	if pod, _ := e.object.(*corev1.Pod); pod != nil {
		now = s.daemonPods.Add(pod)
	}
	s.daemonPods.Remove(before)
	if before == now {
		return now
	}
	if before != nil && s.daemons[types.NamespacedName{Namespace: namespace, Name: before.Owner}].UID != string(before.Set) {
		s.daemonPods.Forget(before.Set)
	}
	for _, shape := range []*convert.DaemonShape{before, now} {
		if shape.Alone() {
			s.reconvertDaemon(types.NamespacedName{Namespace: namespace, Name: shape.Owner})
		}
	}
	return now
}

func (s *State) reconvertDaemon(key types.NamespacedName) {
	if e := s.objects[Daemons][key]; e != nil {
		s.applyDaemon(key, e)
	}
}

// expireDaemonPods converts the DaemonSets again whose last pods have been gone for so long that their requests no
// longer count.
func (s *State) expireDaemonPods(now time.Time) {
	for _, uid := range s.daemonPods.Expire(now) {
		for key, d := range s.daemons {
			if d.UID == string(uid) {
				s.reconvertDaemon(key)
			}
		}
	}
}

// applyAdmission updates a LimitRange or a RuntimeClass.
func (s *State) applyAdmission(at Ref) {
	if at.Kind == LimitRanges {
		s.reconvertVirtual(rangesOf(at.Key.Namespace))
	} else {
		s.reconvertVirtual(at)
	}
	for key, e := range s.objects[Daemons] {
		set, _ := e.object.(*appsv1.DaemonSet)
		if set == nil {
			continue
		}
		class := set.Spec.Template.Spec.RuntimeClassName
		if at.Kind == LimitRanges && key.Namespace == at.Key.Namespace || at.Kind == RuntimeClasses && class != nil && *class == at.Key.Name {
			s.daemonPods.Forget(set.UID) // the requests of new pods differ
			s.applyDaemon(key, e)
		}
	}
}

// LimitRanges implements convert.Admission.
func (l lookups) LimitRanges(namespace string) []*corev1.LimitRange {
	var list []*corev1.LimitRange
	for key, e := range l.objects[LimitRanges] {
		if r, ok := e.object.(*corev1.LimitRange); ok && key.Namespace == namespace {
			list = append(list, r)
		}
	}
	return list
}

// RuntimeClass implements convert.Admission.
func (l lookups) RuntimeClass(name string) *nodev1.RuntimeClass {
	class, _ := l.now(Ref{RuntimeClasses, types.NamespacedName{Name: name}}).(*nodev1.RuntimeClass)
	return class
}
