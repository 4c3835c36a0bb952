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

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// MemoryConfigMap is the name of the ConfigMap in which the memory seen on nodes outlives the process.
const MemoryConfigMap = "karpenter-instance-memory"

// memoryName is the controller's name in logs and metrics.
const memoryName = "providers.instancetype.capacity"

// observer takes in what registered nodes say of their memory, which replaces the estimate for their type and image.
type observer struct{ *Provider }

// setup registers the controller. One node at a time: what is seen is one ConfigMap.
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

// Reconcile looks at one node.
func (o observer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	if err := o.opts.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	id, ours := instanceOf(node.Spec.ProviderID)
	bytes := node.Status.Capacity.Memory().Value()
	t, known := o.shelf.typeOf(node.Labels[corev1.LabelInstanceTypeStable])
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
	if !news {
		return ctrl.Result{}, nil
	}
	o.opts.Changed()
	ctrl.LoggerFrom(ctx).V(1).Info("learnt the memory of an instance type", "instance-type", t.Name, "bytes", bytes)
	return ctrl.Result{}, o.storeMemory(ctx)
}

// storeMemory writes what is known, over what others wrote: it is the leader's.
func (p *Provider) storeMemory(ctx context.Context) error {
	stored := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: p.opts.Namespace, Name: MemoryConfigMap}
	err := p.opts.Live.Get(ctx, key, stored)
	switch {
	case apierrors.IsNotFound(err):
		stored = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: p.memory.Data()}
		err = p.opts.Client.Create(ctx, stored)
	case err == nil:
		base := stored.DeepCopy()
		stored.Data = p.memory.Data()
		if !maps.Equal(base.Data, stored.Data) {
			err = p.opts.Client.Patch(ctx, stored, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
		}
	}
	if err != nil {
		return fmt.Errorf("storing the memory seen on nodes in ConfigMap %s/%s: %w", key.Namespace, key.Name, err)
	}
	return nil
}

// restoreMemory reads what an earlier process stored.
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
