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
// ours may not be read in other namespaces. So we ask, in the pool's status, by the condition Served:
//
//	none ──we ask──> Unknown ──its owner takes it away──> none, for a while
//	                    └──a while──> False, and NodeClassReady is False, OtherProvider
//	                                    ├──an owner that knows the question writes both──> none
//	                                    └──another one writes NodeClassReady──> True, for a day ──> Unknown
//
// An owner that comes later writes NodeClassReady as it does for all its pools. One that does not know the question, of other
// programs than ours, takes back what we said instead of answering; that counts as an answer for so long that the two do not
// undo each other's writes. It stands in the API, so that it also counts for the next process. To be asked takes nothing from a
// pool that works. To be told does: the pool of such an owner is not ready until the owner has written, once a day.

// How many times as long as an answer is waited for nothing is asked: after an answer, and after what we said was taken back.
const (
	afterAnswer   = 10
	afterTakeBack = 24 * 60
)

// questions are what this process knows of the pools of other providers, by name.
type questions struct {
	mu    sync.Mutex
	pools map[string]*question
}

// question is where we are with a pool: when it was asked, zero for not now; until when it is left alone.
type question struct {
	pool  types.UID
	asked time.Time
	rest  time.Time
}

// weigh brings the conditions of another provider's pool a step further at a time, and says after how long to look again, 0
// for not by itself. An answer is waited for as long as patience.
func (q *questions) weigh(pool *karpv1.NodePool, owner string, now time.Time, patience time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	about := q.of(pool)
	conditions := pool.StatusConditions()
	served, ready := conditions.Get(karpv1.ConditionServed), conditions.Get(karpv1.ConditionNodeClassReady)
	switch {
	case ready != nil && ready.Reason == karpv1.ReasonOtherProvider:
		about.asked, about.rest = time.Time{}, time.Time{}
		note(pool, nobodyAnswered(), now)
		return 0
	case served == nil && !about.asked.IsZero(): // answered
		about.rest, about.asked = about.asked.Add(afterAnswer*patience), time.Time{}
		return about.rested(pool, now, patience)
	case served == nil:
		return about.rested(pool, now, patience)
	case served.IsFalse():
		note(pool, takenBack(), now)
		return afterTakeBack * patience
	case served.IsTrue():
		about.rest = served.LastTransitionTime.Add(afterTakeBack * patience)
		if served.LastTransitionTime.After(now.Add(patience)) { // nobody's clock is so fast
			about.rest = time.Time{}
		}
		return about.rested(pool, now, patience)
	case about.asked.IsZero(): // by a process before us
		about.asked = now
	}
	if waited := now.Sub(about.asked); waited < patience {
		return patience - waited
	}
	about.asked = time.Time{}
	conditions.Set(nobodys(pool, owner))
	note(pool, nobodyAnswered(), now)
	return 0
}

// rested asks, if the pool has been left alone for long enough.
func (about *question) rested(pool *karpv1.NodePool, now time.Time, patience time.Duration) time.Duration {
	if now.Before(about.rest) {
		return about.rest.Sub(now)
	}
	about.asked = now
	note(pool, status.Condition{Status: metav1.ConditionUnknown, Reason: karpv1.ReasonAsked, Message: whoRuns}, now)
	return patience
}

// note writes the condition Served, with the time since when it says so.
func note(pool *karpv1.NodePool, served status.Condition, now time.Time) {
	served.Type = karpv1.ConditionServed
	before := pool.Condition(karpv1.ConditionServed)
	if before != nil && before.Status == served.Status {
		return
	}
	pool.StatusConditions().Set(served)
	for i := range pool.Status.Conditions {
		if c := &pool.Status.Conditions[i]; c.Type == karpv1.ConditionServed {
			c.LastTransitionTime = metav1.NewTime(now)
		}
	}
}

func nobodyAnswered() status.Condition {
	return status.Condition{Status: metav1.ConditionFalse, Reason: karpv1.ReasonNotAnswered, Message: "no controller of this NodePool's cloud provider has answered"}
}

func takenBack() status.Condition {
	return status.Condition{Status: metav1.ConditionTrue, Reason: karpv1.ReasonTakenBack, Message: "the condition NotAnswered was removed by hand; the question is asked again after a day"}
}

const whoRuns = "a controller of another cloud provider asks whether a controller of this NodePool's provider runs; the latter removes this condition"

// nobodys is the condition of a pool that only a controller of another provider looks at.
func nobodys(pool *karpv1.NodePool, owner string) status.Condition {
	class := pool.Spec.Template.Spec.NodeClassRef
	return no(karpv1.ConditionNodeClassReady, karpv1.ReasonOtherProvider,
		fmt.Sprintf("node classes of the kind %s.%s are not of the cloud provider of the running controller (%s), and no controller of their provider has answered", class.Kind, class.Group, owner))
}

// of is what is known of the pool; another one of its name begins anew.
func (q *questions) of(pool *karpv1.NodePool) *question {
	if q.pools == nil {
		q.pools = map[string]*question{}
	}
	if about := q.pools[pool.Name]; about == nil || about.pool != pool.UID {
		q.pools[pool.Name] = &question{pool: pool.UID}
	}
	return q.pools[pool.Name]
}

func (q *questions) forget(pool string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.pools, pool)
}

// answered takes the question away, and what became of it.
func answered(pool *karpv1.NodePool) {
	if pool.Condition(karpv1.ConditionServed) != nil {
		_ = pool.StatusConditions().Clear(karpv1.ConditionServed) // refuses only what Ready depends on
	}
}

// watchForeign looks at a pool of another provider.
func (r *Reconciler) watchForeign(ctx context.Context, pool *karpv1.NodePool) (ctrl.Result, error) {
	if !pool.DeletionTimestamp.IsZero() {
		r.foreign.forget(pool.Name)
		return ctrl.Result{}, nil
	}
	base := pool.DeepCopy()
	after := r.foreign.weigh(pool, r.Provider.Name(), r.Clock.Now(), r.Timers.ClassRecheck)
	if equality.Semantic.DeepEqual(base.Status, pool.Status) {
		return ctrl.Result{RequeueAfter: after}, nil
	}
	if err := r.Client.Status().Patch(ctx, pool, controller.Locked(base)); err != nil {
		r.foreign.forget(pool.Name) // what is not written was not asked
		return controller.Settle(ctrl.Result{}, client.IgnoreNotFound(err), r.Timers.Retry)
	}
	return ctrl.Result{RequeueAfter: after}, nil
}
