package nodeclaim

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// terminateOrphans terminates the machines that were launched for claims of the given name that are gone and never
// showed the machine. present is the UID of the claim that has the name now, or empty if there is none. A claim that is
// created and deleted at once can disappear although its finalizer was written: the API server decides about a deletion
// from the object as it read it, and does not check again before it removes the object.
//
// Such a deletion is voluntary and does not pass the limit on removals (package removal). The witness is the API
// server, which no longer has the claim, and the machine was launched for it by this process. After a restart, the
// machine is a leak like others.
func (r *Reconciler) terminateOrphans(ctx context.Context, name string, present types.UID) (time.Duration, error) {
	var pause time.Duration
	var errs []error
	for uid, machine := range r.launches.machinesOf(name) {
		if uid == present {
			continue
		}
		again, err := r.terminateOrphan(ctx, types.NamespacedName{Name: name}, uid, machine)
		pause = max(pause, again)
		errs = append(errs, err)
	}
	return pause, errors.Join(errs...)
}

func (r *Reconciler) terminateOrphan(ctx context.Context, name types.NamespacedName, uid types.UID, machine string) (time.Duration, error) {
	claim := &karpv1.NodeClaim{}
	err := r.Live.Get(ctx, name, claim)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("looking for claim %s: %w", name.Name, err)
	}
	if !apierrors.IsNotFound(err) && claim.UID == uid {
		return r.Timers.InstancePollMax, nil // the cache does not show it
	}
	err = r.Provider.Terminate(ctx, machine)
	if errors.Is(err, cloud.ErrNotFound) {
		r.launches.forget(uid)
		ctrl.LoggerFrom(ctx).Info("terminated the machine of a nodeclaim that was deleted during its launch", "providerID", machine)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("terminating machine %s of claim %s, which is gone: %v", machine, name.Name, err) // not wrapped, see launch
	}
	return r.Timers.InstancePollMax, nil
}
