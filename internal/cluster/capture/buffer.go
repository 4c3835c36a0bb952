package capture

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/room"
)

// BufferShape is what a CapacityBuffer refers to, or why that is not known.
type BufferShape struct {
	// Buffer is NAMESPACE/NAME.
	Buffer string                `json:"buffer"`
	Shape  *room.Shape           `json:"shape,omitempty"`
	Fault  *room.UnresolvedError `json:"fault,omitempty"`
}

// ShapeOf reads what a buffer refers to. An error means that the API server did not answer.
func ShapeOf(ctx context.Context, reader room.Reader, buffer *autoscalingv1beta1.CapacityBuffer) (BufferShape, error) {
	read := BufferShape{Buffer: buffer.Namespace + "/" + buffer.Name}
	shape, err := room.Resolve(ctx, reader, buffer)
	switch {
	case err == nil:
		read.Shape = trimmed(shape)
	case errors.As(err, &read.Fault):
	case apierrors.IsForbidden(err):
		read.Fault = &room.UnresolvedError{Reason: autoscalingv1beta1.ReasonResolutionFailed,
			Message: strings.Join(strings.Fields(err.Error()), " ")}
	default:
		return read, err
	}
	return read, nil
}

// trimmed removes what no decision depends on, such as environments of containers.
func trimmed(shape *room.Shape) *room.Shape {
	pod := corev1.Pod{ObjectMeta: shape.Template.ObjectMeta, Spec: shape.Template.Spec}
	convert.Trim(&pod)
	pod.OwnerReferences = nil
	return &room.Shape{Template: &corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec},
		Replicas: shape.Replicas, Generation: shape.Generation}
}
