package execute

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// do performs one action.
func (x *Executor) do(ctx context.Context, action plan.Action) error {
	var err error
	switch a := action.(type) {
	case plan.TaintNode:
		err = x.patchNode(ctx, a.Node, a.UID, taint)
	case plan.UntaintNode:
		err = x.patchNode(ctx, a.Node, a.UID, untaint)
	case plan.WriteCommand:
		err = x.annotate(ctx, a.Claim, a.UID, karpv1.AnnotationCommand, a.Command.Encode())
	case plan.ClearCommand:
		err = x.annotate(ctx, a.Claim, a.UID, karpv1.AnnotationCommand, nil)
	case plan.MarkConsolidated:
		err = x.annotate(ctx, a.Claim, a.UID, karpv1.AnnotationConsolidated, a.At.UTC().Format(time.RFC3339))
	case plan.MarkPodsSent:
		err = x.annotate(ctx, a.Claim, a.UID, karpv1.AnnotationExpecting, a.At.UTC().Format(time.RFC3339))
	case plan.SetDisruptionReason:
		err = x.patchClaimStatus(ctx, a.Claim, a.UID, setReason(a.Reason))
	case plan.ClearDisruptionReason:
		err = x.patchClaimStatus(ctx, a.Claim, a.UID, clearReason)
	case plan.CreateClaim:
		err = x.createClaim(ctx, a)
		x.noteRefusal(a, err)
	case plan.DeleteClaim:
		err = x.deleteClaim(ctx, a)
	case plan.NominatePod:
		err = x.nominate(ctx, types.NamespacedName{Namespace: a.Namespace, Name: a.Name}, a.UID, a.Node)
	case plan.ClearNomination:
		err = x.clearNomination(ctx, a)
	default:
		err = fmt.Errorf("no such action: %T", action)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	return nil
}

func taint(node *corev1.Node) bool {
	disrupted := karpv1.DisruptedTaint()
	if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return disrupted.MatchTaint(&t) }) {
		return false
	}
	node.Spec.Taints = append(node.Spec.Taints, disrupted)
	return true
}

func untaint(node *corev1.Node) bool {
	disrupted, before := karpv1.DisruptedTaint(), len(node.Spec.Taints)
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return disrupted.MatchTaint(&t) })
	return len(node.Spec.Taints) != before
}

func setReason(reason plan.Reason) func(*karpv1.NodeClaim) bool {
	return func(claim *karpv1.NodeClaim) bool {
		return claim.StatusConditions().SetTrueWithReason(karpv1.ConditionDisruptionReason, string(reason), string(reason))
	}
}

func clearReason(claim *karpv1.NodeClaim) bool {
	if claim.Condition(karpv1.ConditionDisruptionReason) == nil {
		return false
	}
	return claim.StatusConditions().Clear(karpv1.ConditionDisruptionReason) == nil
}

func (x *Executor) patchNode(ctx context.Context, name, uid string, change func(*corev1.Node) bool) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
	return x.change(ctx, node, func() bool { return change(node) }, func(patch client.Patch) error {
		return x.Client.Patch(ctx, node, patch)
	})
}

func (x *Executor) patchClaimStatus(ctx context.Context, name, uid string, change func(*karpv1.NodeClaim) bool) error {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
	return x.change(ctx, claim, func() bool { return change(claim) }, func(patch client.Patch) error {
		return x.Client.Status().Patch(ctx, claim, patch)
	})
}

// conflicts is the maximum number of retries of a write after conflicts.
const conflicts = 5

// change reads the object, changes it and patches it under an optimistic lock: first from the cache, then, after a
// conflict, live. An object that is gone, or was replaced by another one, is not changed.
func (x *Executor) change(ctx context.Context, object client.Object, change func() bool, patch func(client.Patch) error) error {
	uid, key := object.GetUID(), client.ObjectKeyFromObject(object)
	var reader client.Reader = x.Client
	for attempt := 1; ; attempt++ {
		if err := reader.Get(ctx, key, object); err != nil {
			return client.IgnoreNotFound(err)
		}
		if object.GetUID() != uid {
			return nil
		}
		base := object.DeepCopyObject().(client.Object)
		if !change() {
			return nil
		}
		err := patch(client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			x.Store.Wrote(object)
			return nil
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) || attempt == conflicts {
			return err
		}
		reader = x.Live
	}
}

// annotate sets an annotation of a claim. A nil value removes it. The UID in the patch is a precondition, so no read
// is needed.
func (x *Executor) annotate(ctx context.Context, name, uid, key string, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": uid, "annotations": map[string]any{key: value},
	}})
	if err != nil {
		return err
	}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err = x.Client.Patch(ctx, claim, client.RawPatch(types.MergePatchType, patch))
	return x.wrote(claim, err)
}

// nominate sets the controller's nomination of a pod.
func (x *Executor) nominate(ctx context.Context, key types.NamespacedName, uid, node string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid}, "status": map[string]any{"nominatedNodeName": node},
	})
	if err != nil {
		return err
	}
	return x.patchNomination(ctx, key, client.RawPatch(types.MergePatchType, patch))
}

// clearNomination removes a nomination if it is still the expected one. A preemption by kube-scheduler may have
// replaced it. A JSON patch tests before it writes. Its failed tests are reported as an invalid request.
func (x *Executor) clearNomination(ctx context.Context, a plan.ClearNomination) error {
	const path = "/status/nominatedNodeName"
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": a.UID},
		{"op": "test", "path": path, "value": a.From},
		{"op": "remove", "path": path},
	})
	if err != nil {
		return err
	}
	err = x.patchNomination(ctx, types.NamespacedName{Namespace: a.Namespace, Name: a.Name}, client.RawPatch(types.JSONPatchType, patch))
	if apierrors.IsInvalid(err) {
		return nil
	}
	return err
}

func (x *Executor) patchNomination(ctx context.Context, key types.NamespacedName, patch client.Patch) error {
	writer := x.Nominations
	if writer == nil {
		writer = x.Client
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err := writer.Status().Patch(ctx, pod, patch, client.FieldOwner(convert.NominationManager))
	if refusedField(err, "status.nominatedNodeName") {
		return nil // the pod was bound in the meantime; the watch event is pending
	}
	return x.wrote(pod, err)
}

// wrote passes the object to the store. A patch with a UID that differs from the object's means that the object is
// gone, as does a response of "not found". The API server reports it as a conflict or an invalid field.
func (x *Executor) wrote(object client.Object, err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || refusedField(err, "metadata.uid") {
		return nil
	}
	if err != nil {
		return err
	}
	x.Store.Wrote(object)
	return nil
}

// refusedField reports whether the API server rejected the field as invalid.
func refusedField(err error, field string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == field })
}

// deleteClaim deletes a claim.
func (x *Executor) deleteClaim(ctx context.Context, a plan.DeleteClaim) error {
	claim := &karpv1.NodeClaim{}
	if err := x.Client.Get(ctx, types.NamespacedName{Name: a.Claim}, claim); err != nil {
		return client.IgnoreNotFound(err)
	}
	if string(claim.UID) != a.UID || !claim.DeletionTimestamp.IsZero() {
		return nil
	}
	err := x.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return err
	}
	x.deleted(ctx, claim, a.Reason)
	return nil
}

// policy returns the consolidation policy behind the reason, or an empty string if there is none.
func (x *Executor) policy(ctx context.Context, claim *karpv1.NodeClaim, reason plan.Reason) karpv1.ConsolidationPolicy {
	if reason != plan.Empty && reason != plan.Underutilized {
		return ""
	}
	pool := &karpv1.NodePool{}
	if x.Client.Get(ctx, types.NamespacedName{Name: claim.Labels[karpv1.LabelNodePool]}, pool) != nil {
		return ""
	}
	return cmp.Or(pool.Spec.Disruption.ConsolidationPolicy, karpv1.ConsolidateWhenEmptyOrUnderutilized)
}

// deleted reports the deletion to the store, in metrics and as an event.
func (x *Executor) deleted(ctx context.Context, claim *karpv1.NodeClaim, reason plan.Reason) {
	x.Store.Deleted(claim)
	as, policy := strings.ToLower(string(reason)), x.policy(ctx, claim, reason)
	x.Metrics.Disrupted(claim, as, policy)
	x.Metrics.Moving(claim, as, policy, x.podsOn(ctx, claim.Status.NodeName))
	x.Recorder.Emit(telemetry.DisruptionTerminating(claim, karpv1.DisruptionReason(reason)))
	node := &corev1.Node{}
	if x.Client.Get(ctx, types.NamespacedName{Name: claim.Status.NodeName}, node) == nil {
		x.Recorder.Emit(telemetry.DisruptionTerminating(node, karpv1.DisruptionReason(reason)))
	}
}

// podNode is controller.FieldPodNode, which this package does not import.
const podNode = "spec.nodeName"

// podsOn returns the pods of a node, none if they cannot be read.
func (x *Executor) podsOn(ctx context.Context, node string) []corev1.Pod {
	var pods corev1.PodList
	if node == "" || x.Client.List(ctx, &pods, client.UnsafeDisableDeepCopy, client.MatchingFields{podNode: node}) != nil {
		return nil
	}
	return pods.Items
}
