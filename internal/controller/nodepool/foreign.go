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

// A pool whose node class belongs to another provider is managed by that provider's controller, if it runs in the
// cluster. If it does not run, no node is launched from the pool, although the conditions of an earlier controller
// may say that the pool is ready. Leases do not answer the question: this controller may lack permission to read them
// in other namespaces. So it uses the condition Served in the pool's status:
//
//	none ──this controller asks──> Unknown ──the owner removes it──> none, for a while
//	                                  └──timeout──> False, and NodeClassReady is False, OtherProvider
//	                                                  ├──an owner that knows Served writes both──> none
//	                                                  └──another owner writes NodeClassReady──> True, for a day ──> Unknown
//
// An owner that starts later writes NodeClassReady as it does for all its pools. An owner of another implementation
// does not know Served. It overwrites NodeClassReady, and leaves Served. That counts as an answer for so long that
// the two controllers do not keep undoing each other's writes. The condition is stored in the API, so it also counts
// for the next process. The condition Unknown has no effect on a working pool. The condition False does: the pool of
// such an owner is not ready until the owner writes it, once a day.

// These are the pauses before the next question, in multiples of the time in which an answer is expected: after an
// answer, and after the reported NodeClassReady was overwritten.
const (
	afterAnswer   = 10
	afterTakeBack = 24 * 60
)

// questions holds the state of this process for the pools of other providers, by name.
type questions struct {
	mu    sync.Mutex
	pools map[string]*question
}

// question is the state of one pool. asked is when the question was written, or zero if none is pending. rest is the
// end of the pause.
type question struct {
	pool  types.UID
	asked time.Time
	rest  time.Time
}

// weigh advances the conditions of another provider's pool by one step. It returns the time until the next check, or
// 0 if only an event triggers it. patience is the time in which an answer is expected.
func (q *questions) weigh(pool *karpv1.NodePool, owner string, now time.Time, patience time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	about := q.of(pool)
	conditions := pool.StatusConditions()
	served, ready := conditions.Get(karpv1.ConditionServed), conditions.Get(karpv1.ConditionNodeClassReady)
	switch {
	case ready != nil && ready.Reason == karpv1.ReasonOtherProvider:
		about.asked, about.rest = time.Time{}, time.Time{}
		note(pool, noControllerAnswered(), now)
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
		if served.LastTransitionTime.After(now.Add(patience)) { // no clock is that far ahead
			about.rest = time.Time{}
		}
		return about.rested(pool, now, patience)
	case about.asked.IsZero(): // written by an earlier process
		about.asked = now
	}
	if waited := now.Sub(about.asked); waited < patience {
		return patience - waited
	}
	about.asked = time.Time{}
	conditions.Set(withoutController(pool, owner))
	note(pool, noControllerAnswered(), now)
	return 0
}

// rested writes the question if the pause is over, and returns the time until the next check.
func (about *question) rested(pool *karpv1.NodePool, now time.Time, patience time.Duration) time.Duration {
	if now.Before(about.rest) {
		return about.rest.Sub(now)
	}
	about.asked = now
	note(pool, status.Condition{Status: metav1.ConditionUnknown, Reason: karpv1.ReasonAsked, Message: whoRuns}, now)
	return patience
}

// note writes the condition Served with its transition time.
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

func noControllerAnswered() status.Condition {
	return status.Condition{Status: metav1.ConditionFalse, Reason: karpv1.ReasonNotAnswered, Message: "no controller of this NodePool's cloud provider has answered"}
}

func takenBack() status.Condition {
	return status.Condition{Status: metav1.ConditionTrue, Reason: karpv1.ReasonTakenBack, Message: "another controller set NodeClassReady again and left this condition; the question is asked again after a day"}
}

const whoRuns = "a controller of another cloud provider asks whether a controller of this NodePool's provider runs; the latter removes this condition"

// withoutController returns the condition of a pool that is only examined by a controller of another provider.
func withoutController(pool *karpv1.NodePool, owner string) status.Condition {
	class := pool.Spec.Template.Spec.NodeClassRef
	return no(karpv1.ConditionNodeClassReady, karpv1.ReasonOtherProvider,
		fmt.Sprintf("node classes of the kind %s.%s are not of the cloud provider of the running controller (%s), and no controller of their provider has answered", class.Kind, class.Group, owner))
}

// of returns the state of the pool. Another pool of the same name starts with empty state.
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

// answered removes the question and its result.
func answered(pool *karpv1.NodePool) {
	if pool.Condition(karpv1.ConditionServed) != nil {
		_ = pool.StatusConditions().Clear(karpv1.ConditionServed) // fails only for conditions on which Ready depends
	}
}

// watchForeign examines a pool of another provider.
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
		r.foreign.forget(pool.Name) // a question that was not written was not asked
		return controller.Settle(ctrl.Result{}, client.IgnoreNotFound(err), r.Timers.Retry)
	}
	return ctrl.Result{RequeueAfter: after}, nil
}
