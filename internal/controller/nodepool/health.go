package nodepool

import (
	"context"
	"sync"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// ringSize is the number of launches from which the health of a pool is computed. unhealthyAt is the number of
// failures among them that makes the pool unhealthy (half).
const (
	ringSize    = 4
	unhealthyAt = ringSize / 2
)

// Health records, for each pool, the results of the last launches. It is kept in memory. After a restart it is
// initialized from the pool's condition.
//
// It is not a pause, and no count of failures in a row: the condition is upstream's, which compares the last four launches
// and delays none.
type Health struct {
	mu    sync.Mutex
	rings map[types.UID]ring
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// ring holds the results of the last launches of one pool, the oldest first, each as the condition that it suggests.
type ring []status.Condition

// NewHealth returns an empty Health.
func NewHealth() *Health { return &Health{rings: map[types.UID]ring{}} }

// Record records the result of a claim's launch: its node registered, or it exceeded a time limit. Only claims that a
// pool owns count.
func (h *Health) Record(claim *karpv1.NodeClaim, registered bool) {
	for _, owner := range claim.OwnerReferences {
		if owner.Kind == "NodePool" && owner.APIVersion == karpv1.GroupVersion.String() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.rings[owner.UID] = h.rings[owner.UID].with(outcome(claim, registered))
			if h.queue != nil {
				h.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: owner.Name}})
			}
			return
		}
	}
}

func outcome(claim *karpv1.NodeClaim, registered bool) status.Condition {
	const condition = karpv1.ConditionNodeRegistrationHealthy
	if registered {
		return yes(condition)
	}
	if c := claim.Condition(karpv1.ConditionLaunched); !c.IsTrue() {
		return no(condition, c.Reason, c.Message)
	}
	return no(condition, karpv1.ReasonRegistrationFailed, "Failed to register node of claim "+claim.Name)
}

func (r ring) with(c status.Condition) ring {
	r = append(r, c)
	return r[max(0, len(r)-ringSize):]
}

func (r ring) healthy() bool {
	failures := 0
	for _, c := range r {
		if c.IsFalse() {
			failures++
		}
	}
	return failures < unhealthyAt
}

// reset drops the launches of a pool that has changed.
func (h *Health) reset(pool types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rings[pool] = ring{}
}

func (h *Health) forget(pool types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.rings, pool)
}

// condition derives the pool's condition from the ring. If the ring is not conclusive, the condition is kept, or
// becomes Unknown if the pool was changed. A single failure does not prove health, nor does a single success after
// many failures.
func (h *Health) condition(pool *karpv1.NodePool, changed bool) (c status.Condition, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, recorded := h.rings[pool.UID]
	switch {
	case !recorded:
		h.rings[pool.UID] = seeded(pool)
		return status.Condition{}, false
	case len(r) == 0 && changed:
		return status.Condition{Type: karpv1.ConditionNodeRegistrationHealthy, Status: metav1.ConditionUnknown,
			Reason:  karpv1.ReasonAwaitingReconciliation,
			Message: "no NodeClaim has registered or failed to since the NodePool or its node class changed"}, true
	case len(r) == 0:
		return status.Condition{}, false
	}
	last := r[len(r)-1]
	return last, last.IsTrue() == r.healthy()
}

// seeded returns the ring of a pool that is new to this process: one success for a healthy pool, two failures for an
// unhealthy one.
func seeded(pool *karpv1.NodePool) ring {
	switch c := pool.Condition(karpv1.ConditionNodeRegistrationHealthy); {
	case c == nil:
		return ring{}
	case c.IsTrue():
		return ring{yes(c.Type)}
	case c.IsFalse():
		failure := no(c.Type, c.Reason, c.Message)
		return ring{failure, failure}
	}
	return ring{}
}

// wakeInto is the source of the Reconciler's requests that Health triggers.
func (h *Health) wakeInto(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = queue
	return nil
}
