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

// Locked returns a merge patch from base. The API server refuses the patch with a conflict when the object has
// changed since base was read. A list in a merge patch (taints, conditions, finalizers) replaces the whole list, so
// writes of lists need it.
func Locked(base client.Object) client.Patch {
	return client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
}

// Unchanged returns the preconditions that restrict a deletion to the version of the object that was read.
func Unchanged(o client.Object) client.Preconditions {
	uid, version := o.GetUID(), o.GetResourceVersion()
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}

// Stale reports whether an error only means that the version that was read is outdated: the object has changed, or is
// gone. A patch with the UID of an object that was replaced by another one of the same name is refused as invalid:
// metadata.uid is immutable.
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

// Settle ends a reconcile. A stale read is not a failure: the pending event that updates the cache starts the next
// reconcile. again is the requeue interval in case that event has already passed.
func Settle(result ctrl.Result, err error, again time.Duration) (ctrl.Result, error) {
	if err == nil {
		return result, nil
	}
	if Stale(err) {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	return ctrl.Result{}, err
}

// InstancePause returns the pause before the next query whether a machine is gone, for queries that have lasted for
// waited. It equals waited, within InstancePoll and InstancePollMax.
func (t Timers) InstancePause(waited time.Duration) time.Duration {
	return min(max(waited, t.InstancePoll), t.InstancePollMax)
}
