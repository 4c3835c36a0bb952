package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// These are the field indexes of the manager's cache. Use them with client.MatchingFields.
const (
	// FieldPodNode is the node to which a pod is bound.
	FieldPodNode = "spec.nodeName"
	// FieldNodeProviderID is the machine of a node.
	FieldNodeProviderID = "spec.providerID"
	// FieldClaimProviderID is the machine of a claim.
	FieldClaimProviderID = "status.providerID"
	// FieldClaimClass is the node class of a claim, as ClassKey writes it.
	FieldClaimClass = "spec.nodeClassRef"
	// FieldPool is the pool of a node or of a claim, by its label.
	FieldPool = "metadata.labels." + karpv1.LabelNodePool
	// FieldAttachmentNode is the node that a VolumeAttachment attaches to.
	FieldAttachmentNode = "spec.nodeName"
	// FieldPoolClass is the node class of a pool, as ClassKey writes it.
	FieldPoolClass = "spec.template.spec.nodeClassRef"
)

// ClassKey returns a node class as a value of FieldPoolClass and FieldClaimClass.
func ClassKey(ref karpv1.NodeClassReference) string {
	return ref.Group + "/" + ref.Kind + "/" + ref.Name
}

// Index sets up the field indexes that the controllers need. Call it once per manager, before any controller is set
// up and before the cache starts.
func Index(ctx context.Context, mgr ctrl.Manager) error {
	for _, index := range []struct {
		object client.Object
		field  string
		value  func(client.Object) string
	}{
		{&corev1.Pod{}, FieldPodNode, func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName }},
		{&corev1.Node{}, FieldNodeProviderID, func(o client.Object) string { return o.(*corev1.Node).Spec.ProviderID }},
		{&corev1.Node{}, FieldPool, poolLabel},
		{&karpv1.NodeClaim{}, FieldClaimProviderID, func(o client.Object) string { return o.(*karpv1.NodeClaim).Status.ProviderID }},
		{&karpv1.NodeClaim{}, FieldClaimClass, func(o client.Object) string { return ClassKey(o.(*karpv1.NodeClaim).Spec.NodeClassRef) }},
		{&karpv1.NodeClaim{}, FieldPool, poolLabel},
		{&storagev1.VolumeAttachment{}, FieldAttachmentNode, func(o client.Object) string { return o.(*storagev1.VolumeAttachment).Spec.NodeName }},
		{&karpv1.NodePool{}, FieldPoolClass, func(o client.Object) string {
			return ClassKey(o.(*karpv1.NodePool).Spec.Template.Spec.NodeClassRef)
		}},
	} {
		err := mgr.GetFieldIndexer().IndexField(ctx, index.object, index.field, func(o client.Object) []string {
			if value := index.value(o); value != "" {
				return []string{value}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("indexing %T by %s: %w", index.object, index.field, err)
		}
	}
	return nil
}

func poolLabel(o client.Object) string { return o.GetLabels()[karpv1.LabelNodePool] }

// PodsOn returns the pods of a node for metrics: none if they cannot be read.
func PodsOn(ctx context.Context, c client.Reader, node string) []corev1.Pod {
	var pods corev1.PodList
	if node == "" || c.List(ctx, &pods, client.UnsafeDisableDeepCopy, client.MatchingFields{FieldPodNode: node}) != nil {
		return nil
	}
	return pods.Items
}
