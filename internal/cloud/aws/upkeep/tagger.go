package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// TaggerName is the controller's name in logs and metrics.
const TaggerName = "nodeclaim.tagging"

const (
	// taggers is the number of instances that are tagged concurrently. The launcher respects EC2's rate limits.
	taggers  = 10
	retag    = time.Second
	retagMax = 5 * time.Minute
)

// Tagger adds tags to instances that are unknown at launch: the name of their node, and of their claim if several
// instances were launched together. An existing tag, such as a Name from the class, is kept.
type Tagger struct {
	// Client reads from a cache.
	Client client.Client
	// Cluster is the name of the cluster.
	Cluster string
	// Tag adds those tags that the instance does not have (launch.Launcher.Tag). It returns cloud.ErrNotFound if there
	// is no such instance.
	Tag func(ctx context.Context, providerID string, tags map[string]string) error
}

// SetupWithManager registers the controller with the manager.
func (t *Tagger) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named(TaggerName).
		For(&karpv1.NodeClaim{}).
		WithEventFilter(predicate.NewPredicateFuncs(func(o client.Object) bool {
			claim, is := o.(*karpv1.NodeClaim)
			return is && wantsTags(claim)
		})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: taggers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retag, retagMax),
		}).
		Complete(t)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", TaggerName, err)
	}
	return nil
}

// wantsTags says whether the claim has an instance and a node, and has not been done with.
func wantsTags(claim *karpv1.NodeClaim) bool {
	ref := claim.Spec.NodeClassRef
	return ref.Group == awsv1.Group && ref.Kind == awsv1.Kind && claim.DeletionTimestamp.IsZero() &&
		claim.Status.ProviderID != "" && claim.Status.NodeName != "" &&
		!(claim.Annotations[awsv1.AnnotationTagged] == "true" && claim.Annotations[awsv1.AnnotationClusterNameTagged] == "true")
}

// Reconcile tags the instance of a claim, and records that on the claim.
func (t *Tagger) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	claim := &karpv1.NodeClaim{}
	if err := t.Client.Get(ctx, request.NamespacedName, claim); err != nil || !wantsTags(claim) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := t.Tag(ctx, claim.Status.ProviderID, map[string]string{
		awsv1.TagName: claim.Status.NodeName, awsv1.TagNodeClaim: claim.Name, awsv1.TagCluster: t.Cluster})
	if errors.Is(err, cloud.ErrNotFound) {
		return ctrl.Result{}, nil // its claim is about to be deleted
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("tagging the instance of NodeClaim %q: %w", claim.Name, err)
	}
	base := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, awsv1.AnnotationTagged, "true")
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, awsv1.AnnotationClusterNameTagged, "true")
	if err := t.Client.Patch(ctx, claim, client.MergeFrom(base)); err != nil {
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("recording the tags on NodeClaim %q: %w", claim.Name, err)
	}
	return ctrl.Result{}, nil
}
