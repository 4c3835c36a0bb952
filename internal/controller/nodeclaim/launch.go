package nodeclaim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// launching is the result of launch.
type launching struct {
	// refused means that the claim has been deleted and nothing is left to do.
	refused bool
	// before is the claim's status in the API.
	before *karpv1.NodeClaimStatus
	// again is the pause before the next attempt after a recent failure, and zero if there is none.
	again time.Duration
}

// launch launches the claim's machine unless that has been done. After an error the launch is retried. The condition
// reports the reason.
func (r *Reconciler) launch(ctx context.Context, claim *karpv1.NodeClaim) (launching, error) {
	before := claim.Status.DeepCopy()
	if !claim.Condition(karpv1.ConditionLaunched).IsUnknown() {
		return launching{before: before}, nil
	}
	if left, failure := r.launches.backoff(claim.UID, r.Clock.Now()); failure != nil {
		reason, message := launchFailure(failure) // its write may have been lost
		claim.StatusConditions().SetUnknownWithReason(karpv1.ConditionLaunched, reason, message)
		return launching{before: before, again: left}, nil
	}
	said, err := r.ask(ctx, claim)
	if err != nil {
		r.launches.failed(claim.UID, err, r.Clock.Now(), r.Timers.Retry, r.Timers.RetryMax)
		reason, message := launchFailure(err)
		r.failed(claim, reason+": "+message)
		claim.StatusConditions().SetUnknownWithReason(karpv1.ConditionLaunched, reason, message)
		// Not wrapped: an error of the cloud must not be mistaken for one of the Kubernetes API.
		return launching{before: before}, fmt.Errorf("launching claim %s: %v", claim.Name, err)
	}
	if said.refusal != "" {
		return launching{refused: true}, r.refuse(ctx, claim, said)
	}
	if err := r.writeMetadata(ctx, claim, said.machine); err != nil {
		return launching{before: before}, err
	}
	before = claim.Status.DeepCopy()
	describeStatus(claim, said.machine)
	claim.StatusConditions().SetTrue(karpv1.ConditionLaunched)
	r.failed(claim, "")
	return launching{before: before}, nil
}

// ask returns the provider's final response, from memory if it is known.
func (r *Reconciler) ask(ctx context.Context, claim *karpv1.NodeClaim) (*launchResult, error) {
	if said := r.launches.result(claim.UID); said != nil {
		return said, nil
	}
	bounded, cancel := context.WithTimeout(ctx, r.Timers.Launch)
	defer cancel()
	machine, err := r.Provider.Launch(bounded, claim.DeepCopy())
	said := &launchResult{machine: machine}
	if err != nil {
		if said.refusal = refusal(err); said.refusal == "" {
			return nil, err
		}
		said.err = err
		if said.refusal == telemetry.DisruptedInsufficientCapacity && r.SoldOut != nil {
			waiting, cancel := context.WithTimeout(ctx, r.Timers.CatalogRead)
			defer cancel()
			r.SoldOut(waiting, claim)
		}
	}
	r.launches.record(claim.UID, claim.Name, said, r.Clock.Now())
	return said, nil
}

// refuse deletes a claim for which no machine can be launched, so that its pods are planned again.
func (r *Reconciler) refuse(ctx context.Context, claim *karpv1.NodeClaim, said *launchResult) error {
	r.failed(claim, telemetry.Truncate(said.err.Error()))
	if err := deleteUnchanged(ctx, r.Client, claim); err != nil {
		return err
	}
	logOf(ctx, claim).Info("deleted a claim that cannot be launched", "reason", said.refusal, "cause", said.err.Error())
	if said.refusal == telemetry.DisruptedInsufficientCapacity {
		r.Recorder.Emit(telemetry.InsufficientCapacity(claim, said.err))
	} else {
		r.Recorder.Emit(telemetry.NodeClassNotReady(claim, said.err))
	}
	r.Metrics.Disrupted(claim, said.refusal, "")
	return nil
}

// writeMetadata writes the machine's labels and annotations to the claim. No other writer changes those keys on a
// claim that is not launched yet (drift hashes are updated on launched claims only). So the patch needs no lock, and
// its response is as good as a fresh read. It names the UID: another claim of the same name must not get the machine.
func (r *Reconciler) writeMetadata(ctx context.Context, claim *karpv1.NodeClaim, machine *cloud.Machine) error {
	base := claim.DeepCopy()
	describeMetadata(claim, machine)
	if equality.Semantic.DeepEqual(base.ObjectMeta, claim.ObjectMeta) {
		return nil
	}
	base.UID = "" // so that the patch contains it
	if err := r.Client.Patch(ctx, claim, client.MergeFrom(base)); err != nil {
		return fmt.Errorf("writing the labels of claim %s: %w", claim.Name, err)
	}
	return nil
}

// refusal returns the metric's reason for an error after which the claim is deleted. It returns an empty string if
// the launch is retried: a CreateError is, whatever its cause, such as a class that has just been edited and must be
// evaluated again.
func refusal(err error) string {
	var again *cloud.CreateError
	var capacity *cloud.InsufficientCapacityError
	var class *cloud.NodeClassNotReadyError
	switch {
	case errors.As(err, &again):
		return ""
	case errors.As(err, &capacity):
		return telemetry.DisruptedInsufficientCapacity
	case errors.As(err, &class):
		return telemetry.DisruptedNodeClassNotReady
	}
	return ""
}

// launchFailure returns the reason and message of the condition Launched after an error that is retried.
func launchFailure(err error) (reason, message string) {
	var create *cloud.CreateError
	if errors.As(err, &create) {
		return create.Reason, telemetry.Truncate(create.Message)
	}
	return karpv1.ReasonLaunchFailed, telemetry.Truncate(err.Error())
}
