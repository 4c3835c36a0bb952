package room

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Request is what a buffer asks for.
type Request struct {
	Buffer *v1beta1.CapacityBuffer
	// Shape is nil if it is not known; Err is why.
	Shape *Shape
	Err   error
	// Asked is the number of pods that the buffer asks for, Count the number that it gets. Allot sets them.
	Asked, Count int64
	// Limited is why Count is less.
	Limited Limit
	// Closed is why it asks for no pods, at this time or ever; Invalid is why its times cannot be read.
	Closed, Invalid string
	// Refused is why the engine can place such pods nowhere, nil if it can.
	Refused *model.Rejection
}

// Limit is the reason and the message of the condition LimitedByQuotas.
type Limit struct{ Reason, Message string }

// Compare orders buffers as they get quotas: the oldest first.
func Compare(a, b *v1beta1.CapacityBuffer) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// Allot computes the numbers of all buffers at a time, in the order in which they get quotas. quotas returns those of a
// namespace.
func Allot(requests []*Request, quotas func(namespace string) []corev1.ResourceQuota, now time.Time) {
	asked, use := make([]int64, len(requests)), map[string]quotaUse{}
	for i, q := range requests {
		q.Asked, q.Limited = 0, Limit{v1beta1.ReasonNotLimited, ""}
		if q.Closed, q.Invalid = schedule(q.Buffer.Annotations, now); q.Shape == nil || q.Closed+q.Invalid != "" {
			continue
		}
		namespace, one := q.Buffer.Namespace, requestOf(q.Shape.Template)
		if use[namespace] == nil {
			use[namespace] = quotaUse{}
		}
		if q.Asked = count(&q.Buffer.Spec, one, q.Shape.Replicas); q.Asked == 0 {
			q.Closed = whyNone(&q.Buffer.Spec, one, q.Shape.Replicas)
		}
		var by []string
		asked[i], by = use[namespace].withinQuotas(quotas(namespace), &q.Shape.Template.Spec, one, q.Asked)
		if len(by) > 0 {
			q.Limited = Limit{v1beta1.ReasonResourceQuotasAllocated,
				fmt.Sprintf("ResourceQuota %s allows %d of %d", strings.Join(by, ", "), asked[i], q.Asked)}
		}
	}
	for i, n := range fairly(asked, MostVirtualPods) {
		if requests[i].Count = n; n < asked[i] {
			requests[i].Limited = Limit{v1beta1.ReasonVirtualPodLimit, fmt.Sprintf("all buffers together may have %d virtual pods", MostVirtualPods)}
		}
	}
}

// Sort orders requests for Allot.
func Sort(requests []*Request) {
	slices.SortFunc(requests, func(a, b *Request) int { return Compare(a.Buffer, b.Buffer) })
}
