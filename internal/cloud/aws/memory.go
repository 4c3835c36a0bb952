package aws

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// MemoryConfigMap is the name of the ConfigMap that stores the memory seen on nodes beyond the life of the process.
const MemoryConfigMap = "karpenter-instance-memory"

// memoryName is the controller's name in logs and metrics.
const memoryName = "providers.instancetype.capacity"

// observer records the memory that registered nodes report. It replaces the estimate for the node's type and image.
type observer struct{ *Provider }

// setup registers the controller. It handles one node at a time, because all observations are stored in one ConfigMap.
func (o observer) setup(mgr ctrl.Manager) error {
	registered := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetLabels()[karpv1.LabelRegistered] == "true" })
	err := ctrl.NewControllerManagedBy(mgr).
		Named(memoryName).
		For(&corev1.Node{}, builder.WithPredicates(registered)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}).
		Complete(o)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", memoryName, err)
	}
	return nil
}

// Reconcile processes one node.
func (o observer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	if err := o.opts.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	id, ours := instanceOf(node.Spec.ProviderID)
	bytes := node.Status.Capacity.Memory().Value()
	t, known := o.catalogs.typeOf(node.Labels[corev1.LabelInstanceTypeStable])
	if !ours || bytes == 0 || !known {
		return ctrl.Result{}, nil
	}
	var claims karpv1.NodeClaimList
	if err := o.opts.Client.List(ctx, &claims, client.MatchingFields{FieldInstance: id}); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the claims of instance %s: %w", id, err)
	}
	news := false
	for i := range claims.Items {
		news = o.memory.Observe(t, claims.Items[i].Status.ImageID, bytes) || news
	}
	if news {
		o.opts.Changed()
		ctrl.LoggerFrom(ctx).V(1).Info("recorded the memory of an instance type", "instanceType", t.Name, "bytes", bytes)
	}
	// Versions are compared, because an observation that could not be stored is not new the second time.
	if o.memory.Version() == o.stored.Load() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, o.storeMemory(ctx, func(string) bool { return true })
}

// storeMemory writes the observations, merged with those that other processes (earlier leaders) stored. It drops those
// of images for which keep returns false.
func (p *Provider) storeMemory(ctx context.Context, keep func(imageID string) bool) error {
	found := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.opts.Namespace, Name: MemoryConfigMap}}
	err := p.opts.Live.Get(ctx, client.ObjectKeyFromObject(found), found)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading the memory seen on nodes of ConfigMap %s/%s: %w", found.Namespace, found.Name, err)
	}
	before := p.memory.Version()
	if unreadable := p.memory.Restore(found.Data); unreadable != nil {
		ctrl.LoggerFrom(ctx).Error(unreadable, "entries that cannot be read are omitted")
	}
	p.memory.Retain(keep)
	version, changed := p.memory.Version(), found.DeepCopy()
	if changed.Data = p.memory.Data(); version != before {
		p.opts.Changed()
	}
	switch {
	case maps.Equal(found.Data, changed.Data):
		err = nil
	case err != nil:
		err = p.opts.Client.Create(ctx, changed)
	default:
		err = p.opts.Client.Patch(ctx, changed, client.MergeFromWithOptions(found, client.MergeFromWithOptimisticLock{}))
	}
	if err != nil {
		return fmt.Errorf("storing the memory seen on nodes in ConfigMap %s/%s: %w", found.Namespace, found.Name, err)
	}
	p.stored.Store(version)
	return nil
}

// forgetMemory is an upkeep round that drops observations of images that no class selects and no claim runs.
func (p *Provider) forgetMemory(ctx context.Context) error {
	var classes awsv1.EC2NodeClassList
	if err := p.opts.Live.List(ctx, &classes); err != nil {
		return fmt.Errorf("listing EC2NodeClasses for the images in use: %w", err)
	}
	var claims karpv1.NodeClaimList
	if err := p.opts.Live.List(ctx, &claims); err != nil {
		return fmt.Errorf("listing NodeClaims for the images in use: %w", err)
	}
	inUse := map[string]bool{}
	for i := range classes.Items {
		for _, image := range classes.Items[i].Status.AMIs {
			inUse[image.ID] = true
		}
	}
	for i := range claims.Items {
		inUse[claims.Items[i].Status.ImageID] = true
	}
	return p.storeMemory(ctx, func(image string) bool { return inUse[image] })
}

// restoreMemory reads the observations that an earlier process stored.
func (p *Provider) restoreMemory(ctx context.Context) error {
	stored := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: p.opts.Namespace, Name: MemoryConfigMap}
	err := p.opts.Live.Get(ctx, key, stored)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the memory seen on nodes of ConfigMap %s/%s: %w", key.Namespace, key.Name, err)
	}
	return p.memory.Restore(stored.Data)
}
