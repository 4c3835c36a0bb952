package cluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/cluster/state"
)

// entry is an object with an own write.
type entry struct {
	// seen is the last state that the watch showed, nil for none or after its deletion.
	seen client.Object
	// own is this controller's own write that the watch has not shown yet, nil if there is none.
	own *own
}

// own is this controller's newest write to an object with one UID.
type own struct {
	uid types.UID
	// object is the object after the write, nil if it is gone.
	object client.Object
	// deleted says that this controller requested its deletion, or removed its last finalizer.
	deleted bool
	// checked is the time of the write, or of the last live read.
	checked time.Time
}

// now returns the object's current state, nil if there is none.
func (e *entry) now() client.Object {
	if e.own != nil {
		return e.own.object
	}
	return e.seen
}

// see records a state from the watch.
func (e *entry) see(obj client.Object) {
	e.seen = obj
	if e.own != nil && e.own.settledBy(obj) {
		e.own = nil
	}
}

// lose records a deletion from the watch.
func (e *entry) lose(uid types.UID) {
	e.seen = nil
	if e.own != nil && e.own.uid == uid {
		e.own = nil
	}
}

// settledBy reports whether the watch has caught up with the write.
func (o *own) settledBy(seen client.Object) bool {
	switch {
	case seen.GetUID() != o.uid: // another UID: it counts unless the written object is newer
		return o.deleted || !newer(o.object, seen)
	case o.deleted:
		return o.object != nil && seen.GetDeletionTimestamp() != nil
	}
	return !newer(o.object, seen)
}

// write records an object that the API returned for a write. It reports whether that changed anything.
func (e *entry) write(obj client.Object, when time.Time) bool {
	if e.seen != nil && !newer(obj, e.seen) {
		return false
	}
	if o := e.own; o != nil {
		if o.object != nil && !o.deleted && !newer(obj, o.object) {
			return false
		}
		if o.deleted && o.uid == obj.GetUID() && (o.object == nil || obj.GetDeletionTimestamp() == nil) {
			return false
		}
	}
	e.own = &own{uid: obj.GetUID(), object: obj, checked: when}
	if at, _ := state.RefOf(obj); at.Kind != state.Pods && obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		e.own.object, e.own.deleted = nil, true // the API removes it with its last finalizer
	}
	return true
}

// remove records this controller's deletion of an object. Pods, and objects with finalizers, are kept and marked as
// being deleted; others are gone. It reports whether that changed anything.
func (e *entry) remove(obj client.Object, when time.Time) bool {
	if e.seen != nil && e.seen.GetUID() == obj.GetUID() && e.seen.GetDeletionTimestamp() != nil {
		return false
	}
	if e.seen != nil && e.seen.GetUID() != obj.GetUID() && newer(e.seen, obj) {
		return false
	}
	if e.own != nil && e.own.uid != obj.GetUID() && e.own.object != nil && newer(e.own.object, obj) {
		return false
	}
	e.own = &own{uid: obj.GetUID(), deleted: true, checked: when}
	if at, _ := state.RefOf(obj); at.Kind == state.Pods || len(obj.GetFinalizers()) > 0 {
		marked := obj.DeepCopyObject().(client.Object)
		if marked.GetDeletionTimestamp() == nil {
			marked.SetDeletionTimestamp(&metav1.Time{Time: when})
		}
		e.own.object = marked
	}
	return true
}

// decide records a live read, nil if there is no such object. It returns the UID that is gone according to the read,
// or "".
func (e *entry) decide(live client.Object, when time.Time) types.UID {
	o := e.own
	switch {
	case live == nil && e.seen != nil: // the watch is behind and will show the deletion
		e.own = &own{uid: e.seen.GetUID(), deleted: true, checked: when}
		return ""
	case live == nil:
		e.own = nil
		return o.uid
	case e.seen != nil && !newer(live, e.seen):
		e.own = nil
	default:
		e.own = &own{uid: live.GetUID(), object: live, checked: when}
	}
	return ""
}

// newer reports whether a has a later version than b. Versions that cannot be compared are not newer.
func newer(a, b client.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
