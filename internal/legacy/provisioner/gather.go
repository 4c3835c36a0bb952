package provisioner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
)

// source is an older object and its translation.
type source struct {
	client.Object
	kind   string
	result v1alpha5.Result
}

// name returns the source in the format of annotations.
func (s *source) name() string { return s.kind + "/" + s.GetName() }

// leaving reports whether the source is being deleted. Nothing is created from it any more.
func (s *source) leaving() bool { return !s.GetDeletionTimestamp().IsZero() }

// gather returns a view with the older objects that this controller manages, AWSNodeTemplates first, ordered by name,
// and with the existing objects of the result kinds.
func (r *Reconciler) gather(ctx context.Context) (*view, error) {
	v := &view{}
	if r.serves(awsv1alpha1.Kind) {
		var templates awsv1alpha1.AWSNodeTemplateList
		if err := r.Client.List(ctx, &templates); err != nil {
			return nil, fmt.Errorf("listing AWSNodeTemplates: %w", err)
		}
		for i := range templates.Items {
			v.sources = append(v.sources, &source{Object: &templates.Items[i], kind: awsv1alpha1.Kind})
		}
	}
	if r.serves(karpv1alpha5.Kind) {
		var provisioners karpv1alpha5.ProvisionerList
		if err := r.Client.List(ctx, &provisioners); err != nil {
			return nil, fmt.Errorf("listing Provisioners: %w", err)
		}
		for i := range provisioners.Items {
			v.sources = append(v.sources, &source{Object: &provisioners.Items[i], kind: karpv1alpha5.Kind})
		}
	}
	if len(v.sources) == 0 {
		return v, nil
	}
	slices.SortFunc(v.sources, func(a, b *source) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.GetName(), b.GetName()))
	})
	if err := r.existing(ctx, v); err != nil {
		return nil, err
	}
	v.sources = slices.DeleteFunc(v.sources, func(s *source) bool {
		kept := v.keeper(s)
		others := kept != "" && kept != r.class()
		if others {
			if _, reported := r.others.LoadOrStore(s.GetUID(), true); !reported {
				ctrl.LoggerFrom(ctx).Info("an older object is handled by the controller of another provider", "object", s.name(),
					"nodeClass", kept)
			}
		}
		return others
	})
	return v, nil
}

// existing reads the existing objects of the result kinds. With simulated machines there is one class per
// Provisioner, which no other object uses.
func (r *Reconciler) existing(ctx context.Context, v *view) error {
	var pools karpv1.NodePoolList
	if err := r.Client.List(ctx, &pools); err != nil {
		return fmt.Errorf("listing NodePools: %w", err)
	}
	v.pools = pools.Items
	if r.Simulated {
		return nil
	}
	var classes awsv1.EC2NodeClassList
	if err := r.Client.List(ctx, &classes); err != nil {
		return fmt.Errorf("listing EC2NodeClasses: %w", err)
	}
	v.classes = classes.Items
	return nil
}

// class returns the kind of node class that the controller creates.
func (r *Reconciler) class() string {
	if r.Simulated {
		return kwokv1alpha1.Kind
	}
	return awsv1.Kind
}

// translate computes the result of each source.
func (r *Reconciler) translate(ctx context.Context, v *view) error {
	objects := make([]*unstructured.Unstructured, 0, len(v.sources))
	for _, s := range v.sources {
		object, err := untyped(s)
		if err != nil {
			return fmt.Errorf("reading %s: %w", s.name(), err)
		}
		objects = append(objects, object)
	}
	settings := r.Settings(ctx)
	if !r.Simulated {
		settings.Separate, settings.Using = v.separate(), v.using()
	}
	for i, result := range v1alpha5.Translate(objects, settings) {
		v.sources[i].result = result
	}
	return nil
}

// untyped returns the object as it is in the API.
func untyped(s *source) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.Object)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: fields}
	version := karpv1alpha5.GroupVersion
	if s.kind == awsv1alpha1.Kind {
		version = awsv1alpha1.GroupVersion
	}
	object.SetGroupVersionKind(version.WithKind(s.kind))
	return object, nil
}
