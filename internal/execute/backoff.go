package execute

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// noteBackoff sets, or with nil removes, the pool's backoff for a reason of disruption. Other reasons share the annotation,
// therefore the optimistic lock.
func (x *Executor) noteBackoff(ctx context.Context, name, uid, reason string, now *model.Backoff) error {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
	return x.change(ctx, pool, func() bool {
		before := pool.Annotations[karpv1.AnnotationBackoff]
		after := convert.WithBackoff(before, reason, now)
		switch {
		case after == before:
			return false
		case after == "":
			delete(pool.Annotations, karpv1.AnnotationBackoff)
			return true
		case pool.Annotations == nil:
			pool.Annotations = map[string]string{}
		}
		pool.Annotations[karpv1.AnnotationBackoff] = after
		return true
	}, func(patch client.Patch) error { return x.Client.Patch(ctx, pool, patch) })
}
