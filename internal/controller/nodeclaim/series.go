package nodeclaim

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// longestSeries is how long the write of a series may take: ending claims of all pools wait for it.
const longestSeries = 2 * time.Second

// series holds the series of names that this process began, by pool. The cache may not show them yet. Its lock keeps
// the claims of a pool that end together from beginning one each.
type series struct {
	mutex sync.Mutex
	began map[types.UID]string
}

// beginSeries begins another series of names for the claims of the pool, unless the ending claim is older than the
// current one: a later claim for the same pods would get the name of this one, and logs, metrics and audits by name
// would mix two machines. It is written before the claim is gone, and a creation that is repeated after a crash is of the
// same series. A write that is refused, or takes longer than longestSeries, delays no claim further: then the name may come
// back.
func (r *Reconciler) beginSeries(ctx context.Context, claim *karpv1.NodeClaim) (time.Duration, error) {
	pool := &karpv1.NodePool{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: claim.Labels[karpv1.LabelNodePool]}, pool); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	r.series.mutex.Lock()
	defer r.series.mutex.Unlock()
	for _, current := range []string{pool.Annotations[karpv1.AnnotationClaimSeries], r.series.began[pool.UID]} {
		text, _, _ := strings.Cut(current, "/")
		if since, err := time.Parse(time.RFC3339, text); err == nil && claim.CreationTimestamp.Time.Before(since) {
			return 0, nil
		}
	}
	// Both times are the API server's, and a claim of the series is created after the deletion that began it.
	next := claim.DeletionTimestamp.UTC().Format(time.RFC3339) + "/" + string(claim.UID)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{karpv1.AnnotationClaimSeries: next},
	}})
	if err != nil {
		return 0, err
	}
	pool = pool.DeepCopy()
	writing, cancel := context.WithTimeout(ctx, longestSeries)
	defer cancel()
	if err := r.Client.Patch(writing, pool, client.RawPatch(types.MergePatchType, patch)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "beginning a series of names for nodeclaims", "nodePool", pool.Name)
		return 0, nil
	}
	if r.series.began == nil {
		r.series.began = map[types.UID]string{}
	}
	if r.series.began[pool.UID] = next; r.Wrote != nil {
		r.Wrote(pool)
	}
	return 0, nil
}
