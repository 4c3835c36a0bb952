package nodepool

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
)

// A pool whose node class is of another provider is that provider's to look after, if its controller runs beside us. If it
// does not, nothing is bought from the pool, and what an earlier controller wrote says that it is ready. Leases do not tell:
// ours may not be read in other namespaces. So we ask, in the pool's status:
//
//	rest ──condition Served is Unknown──> asked ──its owner takes it away──────────────────> answered ──a while──> rest
//	                                        └──a while──> NodeClassReady is False, OtherProvider ──its owner takes it back──> rest, for long
//
// An owner that comes later writes NodeClassReady as it does for all its pools. One that does not know the question, of other
// programs than ours, takes back what we said instead of answering; that counts as an answer for so long that the two do not
// undo each other's writes. What is asked takes nothing from a pool that works.

// How many times as long as an answer is waited for nothing is asked: after an answer, and after what we said was taken back.
const (
	afterAnswer   = 10
	afterTakeBack = 24 * 60
)

// questions are what this process knows of the pools of other providers.
type questions struct {
	mu    sync.Mutex
	pools map[types.UID]*question
}

// question is where we are with a pool: when it was asked, zero for not now; whether it is told to be nobody's; until when
// it is left alone.
type question struct {
	asked time.Time
	told  bool
	rest  time.Time
}

// weigh brings the conditions of another provider's pool a step further at a time, and says after how long to look again, 0
// for not by itself. An answer is waited for as long as patience.
func (q *questions) weigh(pool *karpv1.NodePool, owner string, now time.Time, patience time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	about := q.of(pool.UID)
	conditions := pool.StatusConditions()
	open := conditions.Get(karpv1.ConditionServed) != nil
	switch ready := conditions.Get(karpv1.ConditionNodeClassReady); {
	case ready != nil && ready.Reason == karpv1.ReasonOtherProvider:
		answered(pool)
		*about = question{told: true}
		return 0
	case about.told:
		answered(pool)
		*about = question{rest: now.Add(afterTakeBack * patience)}
		return afterTakeBack * patience
	case !open && !about.asked.IsZero():
		*about = question{rest: about.asked.Add(afterAnswer * patience)}
	}
	switch waited := now.Sub(about.asked); {
	case !open && now.Before(about.rest):
		return about.rest.Sub(now)
	case !open:
		conditions.Set(status.Condition{Type: karpv1.ConditionServed, Status: metav1.ConditionUnknown, Reason: karpv1.ReasonAsked, Message: whoRuns})
		about.asked = now
		return patience
	case about.asked.IsZero(): // by a process before us
		about.asked = now
		return patience
	case waited < patience:
		return patience - waited
	}
	answered(pool)
	*about = question{told: true}
	conditions.Set(nobodys(pool, owner))
	return 0
}

const whoRuns = "a controller of another provider asks whether one runs that this pool is of; that one takes this away"

// nobodys is the condition of a pool that only a controller of another provider looks at.
func nobodys(pool *karpv1.NodePool, owner string) status.Condition {
	class := pool.Spec.Template.Spec.NodeClassRef
	return no(karpv1.ConditionNodeClassReady, karpv1.ReasonOtherProvider,
		fmt.Sprintf("node classes of the kind %s.%s are not of the cloud provider of the controller that runs (%s), and no other controller has said that it is there", class.Kind, class.Group, owner))
}

func (q *questions) of(pool types.UID) *question {
	if q.pools == nil {
		q.pools = map[types.UID]*question{}
	}
	if q.pools[pool] == nil {
		q.pools[pool] = &question{}
	}
	return q.pools[pool]
}

func (q *questions) forget(pool types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.pools, pool)
}

// answered takes the question away.
func answered(pool *karpv1.NodePool) {
	if pool.StatusConditions().Get(karpv1.ConditionServed) != nil {
		_ = pool.StatusConditions().Clear(karpv1.ConditionServed) // refuses only what Ready depends on
	}
}

// watchForeign looks at a pool of another provider.
func (r *Reconciler) watchForeign(ctx context.Context, pool *karpv1.NodePool) (ctrl.Result, error) {
	if !pool.DeletionTimestamp.IsZero() {
		r.foreign.forget(pool.UID)
		return ctrl.Result{}, nil
	}
	base := pool.DeepCopy()
	after := r.foreign.weigh(pool, r.Provider.Name(), time.Now(), r.Timers.ClassRecheck)
	if equality.Semantic.DeepEqual(base.Status, pool.Status) {
		return ctrl.Result{RequeueAfter: after}, nil
	}
	if err := r.Client.Status().Patch(ctx, pool, controller.Locked(base)); err != nil {
		r.foreign.forget(pool.UID) // what is not written was not asked
		return controller.Settle(ctrl.Result{}, client.IgnoreNotFound(err), r.Timers.Retry)
	}
	return ctrl.Result{RequeueAfter: after}, nil
}
