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
type Health struct {
	mu    sync.Mutex
	rings map[types.UID]*ring
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// ring holds the results of the last launches of one pool, the oldest first.
type ring struct {
	outcomes []bool
	// reason and message are those of the last failure.
	reason, message string
}

// NewHealth returns an empty Health.
func NewHealth() *Health { return &Health{rings: map[types.UID]*ring{}} }

// Record records the result of a claim's launch: its node registered, or it exceeded a time limit. Only claims that a
// pool owns count.
func (h *Health) Record(claim *karpv1.NodeClaim, registered bool) {
	for _, owner := range claim.OwnerReferences {
		if owner.Kind == "NodePool" && owner.APIVersion == karpv1.GroupVersion.String() {
			h.record(owner.UID, outcome(claim, registered))
			h.wake(owner.Name)
			return
		}
	}
}

// end is the result of one launch. reason and message describe a failure.
type end struct {
	registered      bool
	reason, message string
}

func outcome(claim *karpv1.NodeClaim, registered bool) end {
	if registered {
		return end{registered: true}
	}
	if c := claim.Condition(karpv1.ConditionLaunched); !c.IsTrue() {
		return end{reason: c.Reason, message: c.Message}
	}
	return end{reason: karpv1.ReasonRegistrationFailed, message: "Failed to register node of claim " + claim.Name}
}

func (h *Health) record(pool types.UID, e end) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rings[pool]
	if r == nil {
		r = &ring{}
		h.rings[pool] = r
	}
	r.add(e.registered)
	if !e.registered {
		r.reason, r.message = e.reason, e.message
	}
}

func (r *ring) add(registered bool) {
	r.outcomes = append(r.outcomes, registered)
	if len(r.outcomes) > ringSize {
		r.outcomes = r.outcomes[1:]
	}
}

func (r *ring) failures() int {
	n := 0
	for _, registered := range r.outcomes {
		if !registered {
			n++
		}
	}
	return n
}

// reset drops the launches of a pool that has changed.
func (h *Health) reset(pool types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rings[pool] = &ring{}
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
	r := h.rings[pool.UID]
	if r == nil {
		r = seeded(pool)
		h.rings[pool.UID] = r
		return status.Condition{}, false
	}
	const condition = karpv1.ConditionNodeRegistrationHealthy
	switch {
	case len(r.outcomes) == 0 && changed:
		return status.Condition{Type: condition, Status: metav1.ConditionUnknown, Reason: karpv1.ReasonAwaitingReconciliation,
			Message: "no NodeClaim has registered or failed to since the NodePool or its node class changed"}, true
	case len(r.outcomes) == 0:
		return status.Condition{}, false
	}
	last, healthy := r.outcomes[len(r.outcomes)-1], r.failures() < unhealthyAt
	switch {
	case last && healthy:
		return yes(condition), true
	case !last && !healthy:
		return no(condition, r.reason, r.message), true
	}
	return status.Condition{}, false
}

// seeded returns the ring of a pool that is new to this process: one success for a healthy pool, two failures for an
// unhealthy one.
func seeded(pool *karpv1.NodePool) *ring {
	r := &ring{}
	switch c := pool.Condition(karpv1.ConditionNodeRegistrationHealthy); {
	case c == nil:
	case c.IsTrue():
		r.outcomes = []bool{true}
	case c.IsFalse():
		r.outcomes = []bool{false, false}
		r.reason, r.message = c.Reason, c.Message
	}
	return r
}

// wakeInto is the source of the Reconciler's requests that Health triggers.
func (h *Health) wakeInto(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = queue
	return nil
}

func (h *Health) wake(pool string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.queue != nil {
		h.queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: pool}})
	}
}
