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

// daemonSets holds the DaemonSets.
type daemonSets struct {
	*dependencies
	specs map[types.NamespacedName]model.DaemonSpec
	// aside are the DaemonSets that the last snapshot does not consider.
	aside []model.AsideDaemon
	// pods holds the requests of their pods.
	pods convert.DaemonPods
}

func (d *daemonSets) apply(key types.NamespacedName, e *entry) {
	set, _ := e.object.(*appsv1.DaemonSet)
	before, known := d.specs[key]
	if set == nil || set.DeletionTimestamp != nil {
		if known {
			d.builder.DeleteDaemon(before.UID)
			delete(d.specs, key)
			d.pods.Forget(types.UID(before.UID))
			d.notify(PoolsChanged)
		}
		return
	}
	spec := convert.Daemon(set, d.vocabulary, &d.around, &d.pods)
	if known && reflect.DeepEqual(before, spec) {
		return
	}
	if known && before.UID != spec.UID {
		d.builder.DeleteDaemon(before.UID)
	}
	d.specs[key] = spec
	d.builder.UpsertDaemon(spec)
	d.notify(PoolsChanged)
}

// setAside records the DaemonSets that a snapshot does not consider.
func (d *daemonSets) setAside(aside []model.AsideDaemon) {
	if slices.Equal(aside, d.aside) {
		return
	}
	key := func(a model.AsideDaemon) objectKey { return objectKey{Daemons.String(), a.Namespace + "/" + a.Name} }
	for _, a := range d.aside {
		d.rejected.remove(key(a))
	}
	for _, a := range aside {
		d.rejected.add(RejectedObject{Kind: Daemons.String(), Name: key(a).name, UID: types.UID(a.UID), Why: *a.Why})
	}
	d.aside = aside
	d.notify(RejectedChanged)
}

// countPod replaces the old count of a DaemonSet's pod by the new one. A DaemonSet is converted again when one
// of its pods has requests that no other had before, or the last pod with some requests is gone. Pods outlive a
// deleted DaemonSet; their requests are not kept.
func (d *daemonSets) countPod(namespace string, before *convert.DaemonShape, pod *corev1.Pod) *convert.DaemonShape {
	var now *convert.DaemonShape
	if pod != nil {
		now = d.pods.Add(pod)
	}
	d.pods.Remove(before)
	if before == now {
		return now
	}
	if before != nil && d.specs[types.NamespacedName{Namespace: namespace, Name: before.Owner}].UID != string(before.Set) {
		d.pods.Forget(before.Set)
	}
	for _, shape := range []*convert.DaemonShape{before, now} {
		if shape.Alone() {
			d.convertAgain(types.NamespacedName{Namespace: namespace, Name: shape.Owner})
		}
	}
	return now
}

func (d *daemonSets) convertAgain(key types.NamespacedName) {
	if e := d.objects[Daemons][key]; e != nil {
		d.apply(key, e)
	}
}

// expire converts the DaemonSets again whose last pods have been gone for so long that their requests no
// longer count.
func (d *daemonSets) expire(now time.Time) {
	for _, uid := range d.pods.Expire(now) {
		for key, spec := range d.specs {
			if spec.UID == string(uid) {
				d.convertAgain(key)
			}
		}
	}
}

// admit updates the DaemonSets whose pods a LimitRange or a RuntimeClass changes.
func (d *daemonSets) admit(at Ref) {
	for key, e := range d.objects[Daemons] {
		set, _ := e.object.(*appsv1.DaemonSet)
		if set == nil {
			continue
		}
		class := set.Spec.Template.Spec.RuntimeClassName
		if at.Kind == LimitRanges && key.Namespace == at.Key.Namespace || at.Kind == RuntimeClasses && class != nil && *class == at.Key.Name {
			d.pods.Forget(set.UID) // the requests of new pods differ
			d.apply(key, e)
		}
	}
}

// LimitRanges implements convert.Admission.
func (d *dependencies) LimitRanges(namespace string) []*corev1.LimitRange {
	var list []*corev1.LimitRange
	for key, e := range d.objects[LimitRanges] {
		if r, ok := e.object.(*corev1.LimitRange); ok && key.Namespace == namespace {
			list = append(list, r)
		}
	}
	return list
}

// RuntimeClass implements convert.Admission.
func (d *dependencies) RuntimeClass(name string) *nodev1.RuntimeClass {
	class, _ := d.now(Ref{RuntimeClasses, types.NamespacedName{Name: name}}).(*nodev1.RuntimeClass)
	return class
}
