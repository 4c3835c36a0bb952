package room

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
)

// UnresolvedError is why the shape or the number of the pods of a buffer is unknown: the reason and the message of its
// condition.
type UnresolvedError struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Error returns the message.
func (e *UnresolvedError) Error() string { return e.Message }

func unresolved(reason, format string, args ...any) error {
	return &UnresolvedError{reason, fmt.Sprintf(format, args...)}
}

// Shape is what a buffer asks for, apart from the number.
type Shape struct {
	Template *corev1.PodTemplateSpec `json:"template"`
	// Replicas is that of the workload, -1 for a PodTemplate.
	Replicas int64 `json:"replicas"`
	// Generation is that of the PodTemplate, 0 for a workload.
	Generation int64 `json:"generation,omitempty"`
}

// Reader reads the objects that buffers refer to.
type Reader interface {
	client.Reader
	client.SubResourceClientConstructor
	RESTMapper() meta.RESTMapper
}

// Resolve reads the shape of a buffer's pods. An *UnresolvedError is a fault of the objects; other errors are those of
// reading.
func Resolve(ctx context.Context, reader Reader, buffer *v1beta1.CapacityBuffer) (*Shape, error) {
	object, err := Referent(buffer)
	switch {
	case err != nil:
		return nil, err
	case object == nil:
		return fromScale(ctx, reader, buffer)
	}
	if err := reader.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, NotFound(buffer)
		}
		return nil, fmt.Errorf("reading what buffer %s/%s refers to: %w", buffer.Namespace, buffer.Name, err)
	}
	return ShapeOf(object)
}

// Referent returns the object that the buffer refers to, without its contents; nil if it is of a kind of which only the
// scale is known. The error is an *UnresolvedError.
func Referent(buffer *v1beta1.CapacityBuffer) (client.Object, error) {
	strategy := buffer.Spec.ProvisioningStrategy
	var object client.Object
	name := ""
	switch ref := buffer.Spec.ScalableRef; {
	case strategy != nil && *strategy != "" && *strategy != v1beta1.StrategyActiveCapacity:
		return nil, unresolved(v1beta1.ReasonResolutionFailed, "strategy %s is not served here", *strategy)
	case buffer.Spec.PodTemplateRef != nil:
		object, name = &corev1.PodTemplate{}, buffer.Spec.PodTemplateRef.Name
	case ref == nil:
		return nil, unresolved(v1beta1.ReasonResolutionFailed, "spec has neither podTemplateRef nor scalableRef")
	default:
		object, name = workload(ref), ref.Name
	}
	if object != nil {
		object.SetNamespace(buffer.Namespace)
		object.SetName(name)
	}
	return object, nil
}

// workload returns an empty object of a known kind of workload, nil for other kinds.
func workload(ref *v1beta1.ScalableRef) client.Object {
	apps := ref.APIGroup == "" || ref.APIGroup == appsv1.GroupName
	switch {
	case apps && ref.Kind == "Deployment":
		return &appsv1.Deployment{}
	case apps && ref.Kind == "StatefulSet":
		return &appsv1.StatefulSet{}
	case apps && ref.Kind == "ReplicaSet":
		return &appsv1.ReplicaSet{}
	case ref.APIGroup == "" && ref.Kind == "ReplicationController":
		return &corev1.ReplicationController{}
	case ref.APIGroup == batchv1.GroupName && ref.Kind == "Job":
		return &batchv1.Job{}
	}
	return nil
}

// NotFound returns the error that what the buffer refers to does not exist.
func NotFound(buffer *v1beta1.CapacityBuffer) error {
	if ref := buffer.Spec.ScalableRef; ref != nil {
		return unresolved(v1beta1.ReasonScalableRefNotFound, "%s %s does not exist", ref.Kind, ref.Name)
	}
	return unresolved(v1beta1.ReasonPodTemplateNotFound, "PodTemplate %s does not exist", buffer.Spec.PodTemplateRef.Name)
}

// ShapeOf returns the shape and the replicas that an object has. A number that is not set is 1.
func ShapeOf(object client.Object) (*Shape, error) {
	replicas := func(n *int32) int64 {
		if n == nil {
			return 1
		}
		return int64(*n)
	}
	switch o := object.(type) {
	case *corev1.PodTemplate:
		return &Shape{Template: &o.Template, Replicas: noWorkload, Generation: o.Generation}, nil
	case *appsv1.Deployment:
		return &Shape{Template: &o.Spec.Template, Replicas: replicas(o.Spec.Replicas)}, nil
	case *appsv1.StatefulSet:
		return &Shape{Template: &o.Spec.Template, Replicas: replicas(o.Spec.Replicas)}, nil
	case *appsv1.ReplicaSet:
		return &Shape{Template: &o.Spec.Template, Replicas: replicas(o.Spec.Replicas)}, nil
	case *corev1.ReplicationController:
		if o.Spec.Template == nil {
			return nil, unresolved(v1beta1.ReasonResolutionFailed, "ReplicationController %s has no template", o.Name)
		}
		return &Shape{Template: o.Spec.Template, Replicas: replicas(o.Spec.Replicas)}, nil
	case *batchv1.Job:
		return &Shape{Template: &o.Spec.Template, Replicas: replicas(o.Spec.Parallelism)}, nil
	}
	return nil, unresolved(v1beta1.ReasonResolutionFailed, "objects of type %T have no known shape", object)
}

// fromScale reads the number from the scale subresource of a kind, and the shape from its newest pod.
func fromScale(ctx context.Context, reader Reader, buffer *v1beta1.CapacityBuffer) (*Shape, error) {
	namespace, ref := buffer.Namespace, buffer.Spec.ScalableRef
	mapping, err := reader.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
	if err != nil {
		return nil, unresolved(v1beta1.ReasonResolutionFailed, "kind %s of group %q is not served", ref.Kind, ref.APIGroup)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	object.SetNamespace(namespace)
	object.SetName(ref.Name)
	if err := reader.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, NotFound(buffer)
		}
		return nil, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	scale := &autoscalingv1.Scale{}
	if err := reader.SubResource("scale").Get(ctx, object, scale); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, unresolved(v1beta1.ReasonResolutionFailed, "kind %s has no scale subresource", ref.Kind)
		}
		return nil, fmt.Errorf("reading the scale of %s %s: %w", ref.Kind, ref.Name, err)
	}
	selector, err := labels.Parse(scale.Status.Selector)
	if err != nil || selector.Empty() {
		return nil, unresolved(v1beta1.ReasonResolutionFailed, "the scale of %s %s has no selector of pods", ref.Kind, ref.Name)
	}
	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing the pods of %s %s: %w", ref.Kind, ref.Name, err)
	}
	pod := newest(pods.Items)
	if pod == nil {
		return nil, unresolved(v1beta1.ReasonResolutionFailed, "%s %s has no pod to take the shape from", ref.Kind, ref.Name)
	}
	return &Shape{Template: &corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}, Replicas: int64(scale.Spec.Replicas)}, nil
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
