package buffer

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
)

// The reasons of conditions.
const (
	ReasonResolved            = "Resolved"
	ReasonPodTemplateNotFound = "PodTemplateNotFound"
	ReasonScalableRefNotFound = "ScalableRefNotFound"
	ReasonResolutionFailed    = "ResolutionFailed"

	ReasonFitsExistingCapacity    = "FitsExistingCapacity"
	ReasonRequiresNewCapacity     = "RequiresNewCapacity"
	ReasonBufferEmpty             = "BufferEmpty"
	ReasonNotReadyForProvisioning = "NotReadyForProvisioning"
	ReasonInfeasible              = "Infeasible"

	ReasonResourceQuotasAllocated = "ResourceQuotasAllocated"
	ReasonVirtualPodLimit         = "VirtualPodLimit"
	ReasonNotLimited              = "NotLimited"
)

// unresolvedError is why the shape or the number of the pods of a buffer is unknown.
type unresolvedError struct{ reason, message string }

// Error returns the message.
func (e *unresolvedError) Error() string { return e.message }

func unresolved(reason, format string, args ...any) error {
	return &unresolvedError{reason, fmt.Sprintf(format, args...)}
}

// shape is what a buffer asks for, apart from the number.
type shape struct {
	template *corev1.PodTemplateSpec
	// replicas is that of the workload, noWorkload for a PodTemplate.
	replicas int64
	// generation is that of the PodTemplate, 0 for a workload.
	generation int64
}

// Reader reads the objects that buffers refer to.
type Reader interface {
	client.Reader
	client.SubResourceClientConstructor
	RESTMapper() meta.RESTMapper
}

// resolve reads the shape of a buffer's pods. An *unresolvedError is a fault of the objects; other errors are those of
// reading.
func resolve(ctx context.Context, reader Reader, buffer *v1beta1.CapacityBuffer) (*shape, error) {
	strategy := buffer.Spec.ProvisioningStrategy
	switch {
	case strategy != nil && *strategy != "" && *strategy != v1beta1.StrategyActiveCapacity:
		return nil, unresolved(ReasonResolutionFailed, "strategy %s is not served here", *strategy)
	case buffer.Spec.PodTemplateRef != nil:
		return fromTemplate(ctx, reader, types.NamespacedName{Namespace: buffer.Namespace, Name: buffer.Spec.PodTemplateRef.Name})
	case buffer.Spec.ScalableRef != nil:
		return fromWorkload(ctx, reader, buffer.Namespace, buffer.Spec.ScalableRef)
	}
	return nil, unresolved(ReasonResolutionFailed, "spec has neither podTemplateRef nor scalableRef")
}

func fromTemplate(ctx context.Context, reader Reader, key types.NamespacedName) (*shape, error) {
	template := &corev1.PodTemplate{}
	if err := reader.Get(ctx, key, template); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, unresolved(ReasonPodTemplateNotFound, "PodTemplate %s does not exist", key.Name)
		}
		return nil, fmt.Errorf("reading PodTemplate %s: %w", key, err)
	}
	return &shape{template: &template.Template, replicas: noWorkload, generation: template.Generation}, nil
}

// fromWorkload reads the shape from a workload of a known kind, or from a pod of any other kind with a scale subresource.
func fromWorkload(ctx context.Context, reader Reader, namespace string, ref *v1beta1.ScalableRef) (*shape, error) {
	var object client.Object
	apps := ref.APIGroup == "" || ref.APIGroup == appsv1.GroupName
	switch {
	case apps && ref.Kind == "Deployment":
		object = &appsv1.Deployment{}
	case apps && ref.Kind == "StatefulSet":
		object = &appsv1.StatefulSet{}
	case apps && ref.Kind == "ReplicaSet":
		object = &appsv1.ReplicaSet{}
	case ref.APIGroup == "" && ref.Kind == "ReplicationController":
		object = &corev1.ReplicationController{}
	case ref.APIGroup == batchv1.GroupName && ref.Kind == "Job":
		object = &batchv1.Job{}
	default:
		return fromScale(ctx, reader, namespace, ref)
	}
	if err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, object); err != nil {
		return nil, notFound(ref, err)
	}
	return shapeOf(object)
}

func notFound(ref *v1beta1.ScalableRef, err error) error {
	if apierrors.IsNotFound(err) {
		return unresolved(ReasonScalableRefNotFound, "%s %s does not exist", ref.Kind, ref.Name)
	}
	return fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
}

// shapeOf returns the shape and the replicas of a workload. A number that is not set is 1.
func shapeOf(object client.Object) (*shape, error) {
	replicas := func(n *int32) int64 {
		if n == nil {
			return 1
		}
		return int64(*n)
	}
	switch o := object.(type) {
	case *appsv1.Deployment:
		return &shape{template: &o.Spec.Template, replicas: replicas(o.Spec.Replicas)}, nil
	case *appsv1.StatefulSet:
		return &shape{template: &o.Spec.Template, replicas: replicas(o.Spec.Replicas)}, nil
	case *appsv1.ReplicaSet:
		return &shape{template: &o.Spec.Template, replicas: replicas(o.Spec.Replicas)}, nil
	case *corev1.ReplicationController:
		if o.Spec.Template == nil {
			return nil, unresolved(ReasonResolutionFailed, "ReplicationController %s has no template", o.Name)
		}
		return &shape{template: o.Spec.Template, replicas: replicas(o.Spec.Replicas)}, nil
	case *batchv1.Job:
		return &shape{template: &o.Spec.Template, replicas: replicas(o.Spec.Parallelism)}, nil
	}
	return nil, unresolved(ReasonResolutionFailed, "objects of type %T have no known shape", object)
}

// fromScale reads the number from the scale subresource of a kind, and the shape from its newest pod.
func fromScale(ctx context.Context, reader Reader, namespace string, ref *v1beta1.ScalableRef) (*shape, error) {
	mapping, err := reader.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
	if err != nil {
		return nil, unresolved(ReasonResolutionFailed, "kind %s of group %q is not served", ref.Kind, ref.APIGroup)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	object.SetNamespace(namespace)
	object.SetName(ref.Name)
	if err := reader.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, notFound(ref, err)
	}
	scale := &autoscalingv1.Scale{}
	if err := reader.SubResource("scale").Get(ctx, object, scale); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, unresolved(ReasonResolutionFailed, "kind %s has no scale subresource", ref.Kind)
		}
		return nil, fmt.Errorf("reading the scale of %s %s: %w", ref.Kind, ref.Name, err)
	}
	selector, err := labels.Parse(scale.Status.Selector)
	if err != nil || selector.Empty() {
		return nil, unresolved(ReasonResolutionFailed, "the scale of %s %s has no selector of pods", ref.Kind, ref.Name)
	}
	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing the pods of %s %s: %w", ref.Kind, ref.Name, err)
	}
	pod := newest(pods.Items)
	if pod == nil {
		return nil, unresolved(ReasonResolutionFailed, "%s %s has no pod to take the shape from", ref.Kind, ref.Name)
	}
	return &shape{template: &corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}, replicas: int64(scale.Spec.Replicas)}, nil
}

// newest returns the pod that was created last, the first by name of several, nil for none.
func newest(pods []corev1.Pod) *corev1.Pod {
	var last *corev1.Pod
	for i := range pods {
		p := &pods[i]
		if last == nil || last.CreationTimestamp.Before(&p.CreationTimestamp) ||
			last.CreationTimestamp.Equal(&p.CreationTimestamp) && p.Name < last.Name {
			last = p
		}
	}
	return last
}
