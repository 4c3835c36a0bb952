package offline

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
)

// namedKinds are the kinds whose names a command line completes.
var namedKinds = map[string]schema.GroupVersion{
	"Namespace": corev1.SchemeGroupVersion, "Node": corev1.SchemeGroupVersion, "Pod": corev1.SchemeGroupVersion,
	"NodePool": karpv1.GroupVersion, "NodeClaim": karpv1.GroupVersion,
	karpv1alpha1.Kind: karpv1alpha1.GroupVersion, autoscalingv1beta1.Kind: autoscalingv1beta1.GroupVersion,
	autoscalingv1beta1.KindQuota: autoscalingv1beta1.GroupVersion,
	"Deployment":                 appsv1.SchemeGroupVersion, "StatefulSet": appsv1.SchemeGroupVersion, "ReplicaSet": appsv1.SchemeGroupVersion,
	"Job": batchv1.SchemeGroupVersion, "CronJob": batchv1.SchemeGroupVersion,
}

// Names returns the names of all objects of a kind, in a namespace if the kind has one. If the context ends before all
// are read, it returns those that were read, and the error.
func (c *Connection) Names(ctx context.Context, kind, namespace string) ([]string, error) {
	version, known := namedKinds[kind]
	if !known {
		return nil, fmt.Errorf("names of kind %s are not listed", kind)
	}
	l := Cluster{Connection: *c}
	reader, err := l.connect()
	if err != nil {
		return nil, err
	}
	made, err := reader.Scheme().New(version.WithKind(kind + "List"))
	if err != nil {
		return nil, fmt.Errorf("listing objects of kind %s: %w", kind, err)
	}
	list := made.(client.ObjectList)
	options := []client.ListOption{client.Limit(PageSize)}
	if mapping, err := reader.RESTMapper().RESTMapping(version.WithKind(kind).GroupKind(), version.Version); err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		options = append(options, client.InNamespace(namespace))
	}
	var names []string
	for {
		if err := reader.List(ctx, list, append(options, client.Continue(list.GetContinue()))...); err != nil {
			return names, fmt.Errorf("listing objects of kind %s: %w", kind, err)
		}
		err := meta.EachListItem(list, func(object runtime.Object) error {
			about, err := meta.Accessor(object)
			if err == nil {
				names = append(names, about.GetName())
			}
			return err
		})
		if err != nil || list.GetContinue() == "" {
			return names, err
		}
	}
}

// Known returns the names in the kubeconfig of what a flag selects: context, cluster or user.
func (c *Connection) Known(flag string) []string {
	loader, _ := c.loader()
	config, err := loader.RawConfig()
	if err != nil {
		return nil
	}
	switch flag {
	case "context":
		return slices.Sorted(maps.Keys(config.Contexts))
	case "cluster":
		return slices.Sorted(maps.Keys(config.Clusters))
	case "user":
		return slices.Sorted(maps.Keys(config.AuthInfos))
	}
	return nil
}
