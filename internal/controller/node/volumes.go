package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// detach waits until the volumes of drained pods are detached: a machine that is terminated with a volume attached
// blocks its attachment elsewhere for minutes. At the deadline the machine is terminated anyway.
func (r *Reconciler) detach(ctx context.Context, l *termination) (time.Duration, error) {
	attached, err := r.attached(ctx, l)
	if err != nil {
		return 0, err
	}
	over := !l.deadline.IsZero() && !l.now.Before(l.deadline)
	err = r.writeConditions(ctx, l, func(conditions status.ConditionSet) {
		switch {
		case len(attached) == 0:
			conditions.SetTrue(karpv1.ConditionVolumesDetached)
		case over:
			conditions.SetFalse(karpv1.ConditionVolumesDetached, karpv1.ReasonTerminationGracePeriodElapsed,
				karpv1.ReasonTerminationGracePeriodElapsed)
		default:
			conditions.SetUnknownWithReason(karpv1.ConditionVolumesDetached, karpv1.ReasonAwaitingVolumeDetachment,
				awaits(attached, l.deadline))
		}
	})
	if err != nil || len(attached) == 0 || over {
		return 0, err
	}
	var names []string
	for i := range attached {
		names = append(names, attached[i].Name)
	}
	r.Recorder.Emit(telemetry.AwaitingVolumeDetachment(l.node, names))
	if waited, long := r.drained(l.node); long && r.Recorder.Once(drainLogged, "volumes", l.node.Name) {
		ctrl.LoggerFrom(ctx).Info("a drain waits for volumes", "node", l.node.Name, "nodePool", l.node.Labels[karpv1.LabelNodePool],
			"reason", awaits(attached, l.deadline), "waited", waited.Round(time.Second).String())
	}
	return r.Timers.Drain, nil
}

// mostAttachments is the maximum number of VolumeAttachments that a message names.
const mostAttachments = 3

// awaits describes what a node waits for, and what ends it.
func awaits(attached []storagev1.VolumeAttachment, deadline time.Time) string {
	var list []string
	for i := range attached[:min(mostAttachments, len(attached))] {
		a := &attached[i]
		list = append(list, fmt.Sprintf("%s (PersistentVolume %s, driver %s)", a.Name, *a.Spec.Source.PersistentVolumeName, a.Spec.Attacher))
	}
	text := "waits for VolumeAttachment " + strings.Join(list, ", ")
	if more := len(attached) - mostAttachments; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	text += ": until the driver detaches the volume, the VolumeAttachment is deleted, or "
	if deadline.IsZero() {
		return text + "a terminationGracePeriod ends, which the NodeClaim does not have"
	}
	return text + "the drain ends at " + deadline.UTC().Format(time.RFC3339)
}

// attached returns the VolumeAttachments to wait for, by name.
func (r *Reconciler) attached(ctx context.Context, l *termination) ([]storagev1.VolumeAttachment, error) {
	var list storagev1.VolumeAttachmentList
	if err := r.Client.List(ctx, &list, client.MatchingFields{controller.FieldAttachmentNode: l.node.Name}); err != nil {
		return nil, fmt.Errorf("listing the volume attachments of node %s: %w", l.node.Name, err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	inUse := map[string]bool{}
	for _, key := range claimsInUse(l.pods, r.policy(l)) {
		claim := &corev1.PersistentVolumeClaim{}
		if err := r.Client.Get(ctx, key, claim); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("looking for the volume of claim %s on node %s: %w", key, l.node.Name, err)
		}
		inUse[claim.Spec.VolumeName] = true
	}
	return blocking(list.Items, inUse), nil
}

// claimsInUse returns the PersistentVolumeClaims of the pods that are not drained: their volumes stay attached as
// long as the machine exists.
func claimsInUse(pods []corev1.Pod, t drainPolicy) []types.NamespacedName {
	var keys []types.NamespacedName
	for i := range pods {
		pod := &pods[i]
		if karpv1.EndedPod(pod) || drainable(pod, t) {
			continue
		}
		for _, volume := range pod.Spec.Volumes {
			switch {
			case volume.PersistentVolumeClaim != nil:
				keys = append(keys, types.NamespacedName{Namespace: pod.Namespace, Name: volume.PersistentVolumeClaim.ClaimName})
			case volume.Ephemeral != nil:
				keys = append(keys, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name + "-" + volume.Name})
			}
		}
	}
	return keys
}

// blocking returns the attachments to wait for: those of a PersistentVolume that no pod that stays on the node uses.
func blocking(attachments []storagev1.VolumeAttachment, inUse map[string]bool) []storagev1.VolumeAttachment {
	var list []storagev1.VolumeAttachment
	for i := range attachments {
		volume := attachments[i].Spec.Source.PersistentVolumeName
		if volume != nil && *volume != "" && !inUse[*volume] {
			list = append(list, attachments[i])
		}
	}
	slices.SortFunc(list, func(a, b storagev1.VolumeAttachment) int { return strings.Compare(a.Name, b.Name) })
	return list
}
