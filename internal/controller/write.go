package controller

import (
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Locked is a merge patch from base that the API refuses with a conflict when the object has changed since base was
// read. Lists in a merge patch (taints, conditions, finalizers) replace the whole list, so writing them needs this.
func Locked(base client.Object) client.Patch {
	return client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
}

// Unchanged are the preconditions under which a deletion of the object as we read it is right.
func Unchanged(o client.Object) client.Preconditions {
	uid, version := o.GetUID(), o.GetResourceVersion()
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}

// Stale says whether an error only means that what we read was out of date: the object has changed, or is gone. A patch with the
// UID of an object that was replaced under its name is refused as invalid: metadata.uid is immutable.
func Stale(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || otherUID(err)
}

func otherUID(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// Settle is the end of a reconcile. A stale read is no failure: the event that brings the cache up to date is on its
// way and starts the next reconcile; again is the pause after which to look anyway, should it have passed already.
func Settle(result ctrl.Result, err error, again time.Duration) (ctrl.Result, error) {
	if err == nil {
		return result, nil
	}
	if Stale(err) {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	return ctrl.Result{}, err
}

// InstancePause is how long to wait before asking again whether a machine is gone that has been asked about for waited:
// as long again, within InstancePoll and InstancePollMax.
func (t Timers) InstancePause(waited time.Duration) time.Duration {
	return min(max(waited, t.InstancePoll), t.InstancePollMax)
}
