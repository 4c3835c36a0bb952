package legacy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/legacy"
)

// source is an older object and what it has become.
type source struct {
	client.Object
	kind   string
	result legacy.Result
}

// name is the source as annotations have it.
func (s *source) name() string { return s.kind + "/" + s.GetName() }

// leaving says whether the source is being deleted: nothing is made from it any more.
func (s *source) leaving() bool { return !s.GetDeletionTimestamp().IsZero() }

// gather reads the older objects that are ours to keep, AWSNodeTemplates first, ordered by name, and what is there of what
// they become.
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
		return kept != "" && kept != r.class()
	})
	return v, nil
}

// existing reads what is there of what older objects become. Simulated machines have a class for each Provisioner, which
// nobody else can need.
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

// class is the kind of node class that the controller makes.
func (r *Reconciler) class() string {
	if r.Simulated {
		return kwokv1alpha1.Kind
	}
	return awsv1.Kind
}

// translate finds out what each of them means.
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
	for i, result := range legacy.Translate(objects, settings) {
		v.sources[i].result = result
	}
	return nil
}

// untyped is the object as it is in the API.
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
