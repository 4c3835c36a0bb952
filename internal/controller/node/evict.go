package node

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/telemetry"
)

const (
	// evictorName is the queue's name in logs and in the metrics of work queues.
	evictorName = "eviction-queue"
	// evictWorkers is how many evictions are asked for at a time.
	evictWorkers = 100
	// evictPerSecond and evictBurst bound the repetitions of refused evictions.
	evictPerSecond, evictBurst = 100, 1000
	// evictSweep is the number of remembered pods above which old ones are looked for.
	evictSweep = 4096
)

// target is a pod that shall leave.
type target struct {
	types.NamespacedName
	uid types.UID
}

// order is what is known about a target beside its name.
type order struct {
	node, reason string
	// deadline is the earliest that was heard of; zero for none. A later one does not give the pod more time: it may
	// have been told already.
	deadline time.Time
	// wait is how long it takes until the pod is first asked.
	wait time.Duration
	// hurry: the pod is to be deleted by force, and nothing that was refused before delays that.
	hurry bool
	// agreed is when the pod was evicted or deleted; zero while it is in the queue. The cache may show it as running
	// for a moment after.
	agreed time.Time
	// again: an order about this pod was carried out before. What the cache shows may be older than that, so the API server
	// decides: else a stale pod would be deleted and counted twice.
	again bool
}

// evictor makes pods leave: it asks, again and again with a back-off per pod until they go, and deletes those whose
// deadline leaves them no more than their grace period. What was asked is in the API as soon as it has an effect, so a
// restart loses nothing: the drain adds its pods again.
//
//	add --> queue --> Eviction, or at the deadline DELETE --> 2xx: the pod terminates
//	          ^             |--------> 404, 409: the pod is another one, or gone
//	          +-- back-off -+--------> 429 (a PDB says no), 500 (several PDBs), 403, or an error
type evictor struct {
	r     *Reconciler
	log   logr.Logger
	queue workqueue.TypedRateLimitingInterface[target]

	mu     sync.Mutex
	orders map[target]*order
}

func newEvictor(r *Reconciler, log logr.Logger) *evictor {
	limiter := workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[target](r.Timers.Eviction, r.Timers.EvictionMax),
		&workqueue.TypedBucketRateLimiter[target]{Limiter: rate.NewLimiter(evictPerSecond, evictBurst)},
	)
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[target]{Name: evictorName})
	return &evictor{r: r, log: log, queue: queue, orders: map[target]*order{}}
}

// add makes the pod leave, unless it is being asked or has just agreed. A pod in a hurry does not wait for its back-off.
func (e *evictor) add(pod *corev1.Pod, o order) {
	item := target{client.ObjectKeyFromObject(pod), pod.UID}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.r.Clock.Now()
	have := e.orders[item]
	if have != nil {
		o.deadline = earlier(have.deadline, o.deadline)
		o.again = have.again
		if !e.over(have, now) && (!o.hurry || have.hurry) {
			have.deadline = o.deadline
			return
		}
	}
	if len(e.orders) >= evictSweep {
		for other, order := range e.orders {
			if e.over(order, now) {
				delete(e.orders, other)
			}
		}
	}
	e.orders[item] = &o
	if o.hurry {
		e.queue.Forget(item)
	}
	e.queue.AddAfter(item, o.wait)
}

// over says whether an order was carried out long enough ago for the cache to show it.
func (e *evictor) over(o *order, now time.Time) bool {
	return !o.agreed.IsZero() && now.Sub(o.agreed) >= e.r.Timers.WriteVisible
}

// Start works on the queue until the context ends.
func (e *evictor) Start(ctx context.Context) error {
	var group sync.WaitGroup
	for range evictWorkers {
		group.Go(func() {
			for e.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	e.queue.ShutDown()
	group.Wait()
	return nil
}

// NeedLeaderElection says that only the leader evicts.
func (e *evictor) NeedLeaderElection() bool { return true }

func (e *evictor) next(ctx context.Context) bool {
	item, closed := e.queue.Get()
	if closed {
		return false
	}
	defer e.queue.Done(item)
	o := e.order(item)
	if !e.try(ctx, item, o) {
		e.queue.AddRateLimited(item)
		return true
	}
	e.queue.Forget(item)
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := e.orders[item]; now != nil {
		now.again = true
		if now.hurry == o.hurry { // else what came in while we asked (a deadline, a hurry) has its own turn
			now.agreed = e.r.Clock.Now()
		}
	}
	return true
}

// order is a copy of what is known about a target now.
func (e *evictor) order(item target) order {
	e.mu.Lock()
	defer e.mu.Unlock()
	if o := e.orders[item]; o != nil {
		return *o
	}
	return order{}
}

// try asks, or deletes, once and says whether that settles it.
func (e *evictor) try(ctx context.Context, item target, o order) (settles bool) {
	// A budget that is still being computed is answered with a Retry-After, for which the client would keep the worker.
	bounded, cancel := context.WithTimeout(ctx, e.r.Timers.EvictionAnswer)
	defer cancel()
	pod := &corev1.Pod{}
	var reader client.Reader = e.r.Client
	if o.again {
		reader = e.r.Live
	}
	if err := reader.Get(bounded, item.NamespacedName, pod); err != nil {
		return apierrors.IsNotFound(err)
	}
	if pod.UID != item.uid {
		return true
	}
	switch step := next(pod, e.r.termsOf(o.deadline)); step.action {
	case evict:
		return e.evict(bounded, pod, o)
	case force:
		return e.force(bounded, pod, o, step.grace)
	}
	return true // gone, going, or protected: then the drain adds it again when that ends
}

// evict asks through the Eviction API.
func (e *evictor) evict(ctx context.Context, pod *corev1.Pod, o order) (settles bool) {
	err := e.r.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	})
	e.r.Metrics.PodsEvictionRequests.WithLabelValues(strconv.Itoa(code(err))).Inc()
	switch {
	case err == nil:
		e.r.Metrics.PodsDrained.WithLabelValues(o.reason).Inc()
		e.r.Recorder.Emit(telemetry.Evicted(pod, o.reason))
		return true
	case code(err) == http.StatusNotFound, code(err) == http.StatusConflict:
		return true
	case refused(err):
		e.complain(context.WithoutCancel(ctx), pod, err)
		return false
	}
	e.log.Error(err, "evicting a pod", "pod", pod.Namespace+"/"+pod.Name, "node", o.node)
	return false
}

// force deletes a pod with the seconds that its node's deadline leaves it.
func (e *evictor) force(ctx context.Context, pod *corev1.Pod, o order, grace int64) (settles bool) {
	err := e.r.Client.Delete(ctx, pod, client.GracePeriodSeconds(grace), client.Preconditions{UID: &pod.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return true
	}
	if err != nil {
		e.log.Error(err, "deleting a pod at its node's deadline", "pod", pod.Namespace+"/"+pod.Name, "node", o.node)
		return false
	}
	if pod.DeletionTimestamp.IsZero() {
		e.r.Metrics.PodsDrained.WithLabelValues(o.reason).Inc()
	}
	e.r.Recorder.Emit(telemetry.Disrupted(pod, o.deadline, grace))
	return true
}
