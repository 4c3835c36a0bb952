package kwok

import (
	"context"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
)

// The kwok provider of upstream Karpenter (https://github.com/kubernetes-sigs/karpenter/tree/main/kwok) keeps no
// records: its machine is the Node. When this provider starts, it creates a record for each such Node, which is a
// regular machine from then on. Upstream's provider still recognizes the Node if the cluster is migrated back.

// fromUpstream reports whether upstream's provider created the Node: it has the name, the provider ID and the node class of
// such a Node, and no annotation that refers to a record.
func fromUpstream(node *corev1.Node) bool {
	name, ours := machineOf(node.Spec.ProviderID)
	_, recorded := node.Annotations[AnnotationRecord]
	return ours && name == node.Name && !recorded && node.DeletionTimestamp.IsZero() &&
		node.Labels[karpv1.NodeClassLabel(kwokv1alpha1.Group, kwokv1alpha1.Kind)] != ""
}

// unadopted returns the machine of a foreign Node that has no record yet. A missing record does not mean that the
// machine has terminated.
func (p *Provider) unadopted(ctx context.Context, name string) (*cloud.Machine, error) {
	node := &corev1.Node{}
	err := p.call(ctx, "reading node "+name, func(ctx context.Context) error {
		return p.opts.Reader.Get(ctx, types.NamespacedName{Name: name}, node)
	})
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil || !fromUpstream(node) {
		return nil, notFound(providerScheme + name)
	}
	return recordOf(node).machine(), nil
}

// adopt creates the record of a foreign Node and then annotates the Node with it. If the process crashes in between,
// the next start completes the adoption.
func (p *Provider) adopt(ctx context.Context, node *corev1.Node) error {
	object, err := p.configMap(recordOf(node))
	if err != nil {
		return err
	}
	err = p.call(ctx, "recording node "+node.Name, func(ctx context.Context) error { return p.opts.Client.Create(ctx, object.DeepCopy()) })
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	base := node.DeepCopy()
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, AnnotationRecord, p.opts.Namespace+"/"+recordName(node.Name))
	_, uid := claimOf(node)
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, AnnotationClaimUID, string(uid))
	err = p.call(ctx, "adopting node "+node.Name, func(ctx context.Context) error {
		return p.opts.Client.Patch(ctx, node, client.MergeFrom(base))
	})
	if err == nil {
		log.FromContext(ctx).Info("adopted a simulated node that has no record", "Node", node.Name)
	}
	return client.IgnoreNotFound(err)
}

// recordOf returns the record that the Node would have if this provider had created it. Its machine has no delays.
func recordOf(node *corev1.Node) *record {
	claim, uid := claimOf(node)
	labels := maps.Clone(node.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return key == corev1.LabelHostname || key == karpv1.LabelRegistered || key == karpv1.LabelInitialized || strings.HasPrefix(key, "kwok")
	})
	return &record{
		Name: node.Name, Claim: claim, ClaimUID: uid, Launched: node.CreationTimestamp.UTC(), RegisterAt: node.CreationTimestamp.UTC(),
		Registered: true, Labels: labels, NodeLabels: map[string]string{fakeNode: "fake"},
		Capacity: cloud.Amounts(node.Status.Capacity), Allocatable: cloud.Amounts(node.Status.Allocatable),
	}
}

// claimOf returns the claim of a Node: its owner if the Node is registered, otherwise the claim that its hostname
// refers to.
func claimOf(node *corev1.Node) (name string, uid types.UID) {
	for _, owner := range node.OwnerReferences {
		if owner.Kind == "NodeClaim" {
			return owner.Name, owner.UID
		}
	}
	return node.Labels[corev1.LabelHostname], ""
}
