package nodeclaim

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// describeMetadata adds the machine's annotations, and its labels where the claim has none of its own.
func describeMetadata(claim *karpv1.NodeClaim, machine *cloud.Machine) {
	labels := maps.Clone(machine.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[classLabel(claim)] = claim.Spec.NodeClassRef.Name // manually created claims may lack it
	maps.Copy(labels, claim.Labels)
	claim.Labels = labels
	if len(machine.Annotations) > 0 {
		annotations := maps.Clone(claim.Annotations)
		if annotations == nil {
			annotations = map[string]string{}
		}
		maps.Copy(annotations, machine.Annotations)
		claim.Annotations = annotations
	}
}

// classLabel returns the label by which a claim and its node are recognized as managed by this controller.
func classLabel(claim *karpv1.NodeClaim) string {
	return karpv1.NodeClassLabel(claim.Spec.NodeClassRef.Group, claim.Spec.NodeClassRef.Kind)
}

// describeStatus copies the provider's description of the machine.
func describeStatus(claim *karpv1.NodeClaim, machine *cloud.Machine) {
	claim.Status.ProviderID = machine.ProviderID
	claim.Status.ImageID = machine.ImageID
	claim.Status.Capacity = cloud.ResourceList(machine.Capacity)
	claim.Status.Allocatable = cloud.ResourceList(machine.Allocatable)
}

// registered returns the node as it should be once it belongs to the claim and accepts pods: with the finalizer, the
// owner, the claim's labels, annotations and taints, and without the unregistered taint.
func registered(claim *karpv1.NodeClaim, node *corev1.Node) *corev1.Node {
	node = node.DeepCopy()
	controllerutil.AddFinalizer(node, karpv1.FinalizerTermination)
	ownNode(claim, node)
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[classLabel(claim)] = claim.Spec.NodeClassRef.Name
	syncTaints := node.Labels[karpv1.LabelDoNotSyncTaints] != "true"
	maps.Copy(node.Labels, claim.Labels)
	node.Labels[karpv1.LabelRegistered] = "true"
	for key, value := range claim.Annotations {
		if strings.HasPrefix(key, karpv1.OwnAnnotationPrefix) {
			continue // the controller's notes on a claim do not apply to its node
		}
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, key, value)
	}
	if syncTaints {
		node.Spec.Taints = mergeTaints(node.Spec.Taints, claim.Spec.Taints, claim.Spec.StartupTaints)
	}
	unregistered := karpv1.UnregisteredTaint()
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&unregistered) })
	return node
}

func ownNode(claim *karpv1.NodeClaim, node *corev1.Node) {
	for _, owner := range node.OwnerReferences {
		if owner.UID == claim.UID {
			return
		}
	}
	node.OwnerReferences = append(node.OwnerReferences, metav1.OwnerReference{
		APIVersion:         karpv1.GroupVersion.String(),
		Kind:               "NodeClaim",
		Name:               claim.Name,
		UID:                claim.UID,
		BlockOwnerDeletion: new(true),
	})
}

// mergeTaints returns have with the taints of lists appended whose key and effect are not present yet.
func mergeTaints(have []corev1.Taint, lists ...[]corev1.Taint) []corev1.Taint {
	merged := slices.Clone(have)
	for _, taint := range slices.Concat(lists...) {
		if !hasTaint(merged, taint) {
			merged = append(merged, taint)
		}
	}
	return merged
}

// hasTaint reports whether a taint with the same key and effect is present.
func hasTaint(taints []corev1.Taint, taint corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
}
