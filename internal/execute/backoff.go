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

// noteBackoff sets, or with nil removes, the pool's backoff for a reason of disruption.
func (x *Executor) noteBackoff(ctx context.Context, name, uid, reason string, now *model.Backoff) error {
	return x.annotatePool(ctx, name, uid, karpv1.AnnotationBackoff, func(text string) string { return convert.WithBackoff(text, reason, now) })
}

// holdLaunches sets, or with nil removes, the pool's hold for the pods of a controller.
func (x *Executor) holdLaunches(ctx context.Context, name, uid, owner string, now *model.LaunchHold) error {
	return x.annotatePool(ctx, name, uid, karpv1.AnnotationLaunchBackoff, func(text string) string { return convert.WithHold(text, owner, now) })
}

// annotatePool changes an annotation of a pool, and removes it when nothing is left of it. Several entries share one
// annotation, therefore the optimistic lock.
func (x *Executor) annotatePool(ctx context.Context, name, uid, key string, change func(string) string) error {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
	return x.change(ctx, pool, func() bool {
		before := pool.Annotations[key]
		after := change(before)
		switch {
		case after == before:
			return false
		case after == "":
			delete(pool.Annotations, key)
			return true
		case pool.Annotations == nil:
			pool.Annotations = map[string]string{}
		}
		pool.Annotations[key] = after
		return true
	}, func(patch client.Patch) error { return x.Client.Patch(ctx, pool, patch) })
}
