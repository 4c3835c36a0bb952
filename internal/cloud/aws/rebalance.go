package aws

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
)

// A rebalance recommendation makes a claim drift for recommendedFor, and its offering is avoided for avoidedFor. EC2
// repeats recommendations, and the condition ends by itself: nothing has to be undone.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html
const (
	recommendedFor = time.Hour
	avoidedFor     = 10 * time.Minute
)

// rebalance records a recommendation for the spot instance of a claim whose pool asks for that. The claim drifts then
// (rebalanceDrift), so that budgets apply and its replacement is launched first. There is one recommendation for a claim
// in an hour.
func (p *Provider) rebalance(ctx context.Context, claim *karpv1.NodeClaim) error {
	pool := &karpv1.NodePool{}
	err := p.opts.Client.Get(ctx, types.NamespacedName{Name: claim.Labels[karpv1.LabelNodePool]}, pool)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the pool of claim %q: %w", claim.Name, err)
	}
	spot := claim.Labels[karpv1.LabelCapacityType] == karpv1.CapacityTypeSpot
	if err != nil || !replacesRebalanced(pool) || !spot || claim.DeletionTimestamp != nil || p.recommended(claim) {
		return nil
	}
	// The offering is marked first: the replacement must not be launched there.
	p.unavailable.MarkFor(instance.Offer{CapacityType: karpv1.CapacityTypeSpot, Type: claim.Labels[corev1.LabelInstanceTypeStable],
		Zone: claim.Labels[corev1.LabelTopologyZone], Class: claim.Spec.NodeClassRef.Name}, avoidedFor)
	p.refused()
	base := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, awsv1.AnnotationRebalanceRecommended, p.opts.Clock.Now().UTC().Format(time.RFC3339))
	base.UID = "" // so that the patch names it: see act
	if err := p.opts.Client.Patch(ctx, claim, client.MergeFrom(base)); err != nil {
		return fmt.Errorf("recording a rebalance recommendation on claim %q: %w", claim.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("a claim is to be replaced because of a rebalance recommendation", "nodeClaim", claim.Name)
	return nil
}

func replacesRebalanced(pool *karpv1.NodePool) bool {
	return pool.Annotations[karpv1.AnnotationRebalance] == karpv1.RebalanceReplace
}

// recommended reports whether a recommendation for the claim counts.
func (p *Provider) recommended(claim *karpv1.NodeClaim) bool {
	at, err := time.Parse(time.RFC3339, claim.Annotations[awsv1.AnnotationRebalanceRecommended])
	return err == nil && p.opts.Clock.Since(at) < recommendedFor
}

// rebalanceDrift reports whether the claim is to be replaced because of a rebalance recommendation.
func (p *Provider) rebalanceDrift(claim *karpv1.NodeClaim, pool *karpv1.NodePool) bool {
	return replacesRebalanced(pool) && p.recommended(claim)
}
