package capture

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/room"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
)

// Controller is what a running controller has for a capture.
type Controller struct {
	// Objects are those of its state, and Sale is what its provider offers.
	Objects []state.Object
	Sale    *PriceList
	Scheme  *runtime.Scheme
	// Buffers lists CapacityBuffers, nil if they have no effect. Live reads what they refer to.
	Buffers client.Reader
	Live    room.Reader
}

// Input returns what the controller decides on.
func (c *Controller) Input(ctx context.Context) (*Input, error) {
	input := &Input{Objects: []json.RawMessage{}, Sale: c.Sale}
	for _, object := range c.Objects {
		if err := input.add(c.Scheme, object); err != nil {
			return nil, err
		}
	}
	if c.Buffers == nil {
		return input, nil
	}
	return input, c.addBuffers(ctx, input)
}

// add adds an object of a cluster.
func (i *Input) add(scheme *runtime.Scheme, object runtime.Object) error {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return fmt.Errorf("encoding an object: %w", err)
	}
	text, err := json.Marshal(Trimmed(object, kind))
	if err != nil {
		return fmt.Errorf("encoding an object of the kind %s: %w", kind.Kind, err)
	}
	i.Cluster = append(i.Cluster, text)
	return nil
}

// Trimmed returns a copy of an object of a cluster with its kind, and without what no decision depends on, such as
// environments of containers.
func Trimmed(object runtime.Object, kind schema.GroupVersionKind) runtime.Object {
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(kind)
	if about, ok := object.(metav1.Object); ok {
		convert.Trim(about)
	}
	return object
}

// addBuffers adds the CapacityBuffers, the ResourceQuotas that limit them, and what they refer to.
func (c *Controller) addBuffers(ctx context.Context, input *Input) error {
	var buffers autoscalingv1beta1.CapacityBufferList
	if err := c.Buffers.List(ctx, &buffers); meta.IsNoMatchError(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("listing CapacityBuffers: %w", err)
	}
	var quotas corev1.ResourceQuotaList
	if len(buffers.Items) > 0 {
		if err := c.Live.List(ctx, &quotas); err != nil {
			return fmt.Errorf("listing ResourceQuotas: %w", err)
		}
	}
	for i := range quotas.Items {
		if err := input.add(c.Scheme, &quotas.Items[i]); err != nil {
			return err
		}
	}
	for i := range buffers.Items {
		shape, err := ShapeOf(ctx, c.Live, &buffers.Items[i])
		if err != nil {
			return fmt.Errorf("reading what CapacityBuffer %s refers to: %w", shape.Buffer, err)
		}
		input.Buffers = append(input.Buffers, shape)
		if err := input.add(c.Scheme, &buffers.Items[i]); err != nil {
			return err
		}
	}
	return nil
}
