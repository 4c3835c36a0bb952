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
//	nothing ──condition Served is Unknown──> asked ──its owner takes it away──> answered ──a while──> nothing
//	                                           └──a while──> nobody: NodeClassReady is False, OtherProvider
//
// An owner that comes later writes NodeClassReady as it does for all its pools, so that neither undoes what the other
// writes. What is asked takes nothing from a pool that works.

// questions are those of this process, by pool: when they were asked.
type questions struct {
	mu    sync.Mutex
	asked map[types.UID]time.Time
}

// answersHold is for how many times as long as one is waited for an answer holds.
const answersHold = 10

// weigh brings the conditions of another provider's pool a step further at a time, and says after how long to look again, 0
// for not by itself. An answer is waited for as long as patience.
func (q *questions) weigh(pool *karpv1.NodePool, owner string, now time.Time, patience time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	conditions := pool.StatusConditions()
	asked, ours := q.asked[pool.UID]
	waited := now.Sub(asked)
	switch ready := conditions.Get(karpv1.ConditionNodeClassReady); {
	case ready != nil && ready.Reason == karpv1.ReasonOtherProvider:
		answered(pool)
		delete(q.asked, pool.UID)
		return 0
	case conditions.Get(karpv1.ConditionServed) == nil && ours && waited < answersHold*patience:
		return answersHold*patience - waited
	case conditions.Get(karpv1.ConditionServed) == nil:
		conditions.Set(status.Condition{
			Type: karpv1.ConditionServed, Status: metav1.ConditionUnknown, Reason: karpv1.ReasonAsked,
			Message: "a controller of another provider asks whether one runs that this pool is of; that one takes this away",
		})
		q.ask(pool.UID, now)
		return patience
	case !ours: // by a process before us
		q.ask(pool.UID, now)
		return patience
	case waited < patience:
		return patience - waited
	}
	delete(q.asked, pool.UID)
	answered(pool)
	class := pool.Spec.Template.Spec.NodeClassRef
	conditions.Set(no(karpv1.ConditionNodeClassReady, karpv1.ReasonOtherProvider,
		fmt.Sprintf("node classes of the kind %s.%s are not of the cloud provider of the controller that runs (%s), and no other controller has said that it is there", class.Kind, class.Group, owner)))
	return 0
}

func (q *questions) ask(pool types.UID, now time.Time) {
	if q.asked == nil {
		q.asked = map[types.UID]time.Time{}
	}
	q.asked[pool] = now
}

func (q *questions) forget(pool types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.asked, pool)
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
