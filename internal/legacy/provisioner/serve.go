package provisioner

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
)

// Kinds returns the older kinds that the controller processes.
func (r *Reconciler) Kinds() []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{karpv1alpha5.GroupVersion.WithKind(karpv1alpha5.Kind)}
	if !r.Simulated {
		kinds = append(kinds, awsv1alpha1.GroupVersion.WithKind(awsv1alpha1.Kind))
	}
	return kinds
}

// Serve records that the definition of one of Kinds is served, before or after the manager has started.
func (r *Reconciler) Serve(kind schema.GroupVersionKind) error {
	var object client.Object = &karpv1alpha5.Provisioner{}
	if kind.Kind == awsv1alpha1.Kind {
		object = &awsv1alpha1.AWSNodeTemplate{}
	}
	r.served.Store(kind.Kind, true) // before the first event of the kind
	if err := r.watching.Watch(ctrlsource.Kind(r.cache, object, handler.EnqueueRequestsFromMapFunc(r.notice))); err != nil {
		return fmt.Errorf("watching %s: %w", kind.Kind, err)
	}
	return nil
}

// serves reports whether the definition of a kind is served.
func (r *Reconciler) serves(kind string) bool {
	_, served := r.served.Load(kind)
	return served
}

// incomplete reports whether a kind is not served yet.
func (r *Reconciler) incomplete() bool {
	return slices.ContainsFunc(r.Kinds(), func(kind schema.GroupVersionKind) bool { return !r.serves(kind.Kind) })
}
