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
	// evictWorkers is the number of concurrent evictions.
	evictWorkers = 100
	// evictPerSecond and evictBurst bound the retries of refused evictions.
	evictPerSecond, evictBurst = 100, 1000
	// evictSweep is the number of remembered pods above which old entries are removed.
	evictSweep = 4096
)

// Target is a pod that is to be evicted.
type Target struct {
	types.NamespacedName
	uid types.UID
}

// evictionOrder holds the data about a target except its name.
type evictionOrder struct {
	node, reason string
	// deadline is the earliest known deadline, or zero for none. A later one does not give the pod more time, because
	// the pod may have been deleted with the earlier one already.
	deadline time.Time
	// delay is the delay before the first eviction.
	delay time.Duration
	// forced means that the pod is to be deleted by force, without delay because of earlier refusals.
	forced bool
	// doneAt is when the pod was evicted or deleted, and zero while it is in the queue. The cache may show it as
	// running for a moment after that.
	doneAt time.Time
	// repeated means that an order for this pod was executed before. The cache may be older than that, so the API server
	// decides: otherwise a pod in a stale cache would be deleted and counted twice.
	repeated bool
}

// evictor removes pods: it requests evictions, with backoff per pod, until they succeed, and deletes pods whose
// deadline leaves them no more than their grace period. The effect of a request is stored in the API, so a restart
// loses nothing: the drain adds its pods again. See
// https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/.
//
//	add --> queue --> Eviction, or at the deadline DELETE --> 2xx: the pod terminates
//	          ^             |--------> 404, 409: the pod was replaced, or is gone
//	          +-- backoff --+--------> 429 (refused by a PDB), 500 (several PDBs), 403, or an error
type evictor struct {
	r     *Reconciler
	log   logr.Logger
	queue workqueue.TypedRateLimitingInterface[Target]

	mu     sync.Mutex
	orders map[Target]*evictionOrder
}

func newEvictor(r *Reconciler, log logr.Logger) *evictor {
	limiter := workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[Target](r.Timers.Eviction, r.Timers.EvictionMax),
		&workqueue.TypedBucketRateLimiter[Target]{Limiter: rate.NewLimiter(evictPerSecond, evictBurst)},
	)
	queue := r.Evictions
	if queue == nil {
		queue = workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[Target]{Name: evictorName})
	}
	return &evictor{r: r, log: log, queue: queue, orders: map[Target]*evictionOrder{}}
}

// add enqueues the pod, unless it is being evicted or has just been evicted. A forced pod does not wait for its
// backoff.
func (e *evictor) add(pod *corev1.Pod, o evictionOrder) {
	item := Target{client.ObjectKeyFromObject(pod), pod.UID}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.r.Clock.Now()
	have := e.orders[item]
	if have != nil {
		o.deadline = earlier(have.deadline, o.deadline)
		o.repeated = have.repeated
		if !e.expired(have, now) && (!o.forced || have.forced) {
			have.deadline = o.deadline
			return
		}
	}
	if len(e.orders) >= evictSweep {
		for other, order := range e.orders {
			if e.expired(order, now) {
				delete(e.orders, other)
			}
		}
	}
	e.orders[item] = &o
	if o.forced {
		e.queue.Forget(item)
	}
	e.queue.AddAfter(item, o.delay)
}

// expired reports whether an order was executed long enough ago for the cache to show it.
func (e *evictor) expired(o *evictionOrder, now time.Time) bool {
	return !o.doneAt.IsZero() && now.Sub(o.doneAt) >= e.r.Timers.WriteVisible
}

// Start processes the queue until the context ends.
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

// NeedLeaderElection returns true: only the leader evicts.
func (e *evictor) NeedLeaderElection() bool { return true }

func (e *evictor) next(ctx context.Context) bool {
	item, closed := e.queue.Get()
	if closed {
		return false
	}
	defer e.queue.Done(item)
	o := e.order(item)
	if !e.attempt(ctx, item, o) {
		e.queue.AddRateLimited(item)
		return true
	}
	e.queue.Forget(item)
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := e.orders[item]; now != nil {
		now.repeated = true
		if now.forced == o.forced { // otherwise a change during the request (a deadline, forced) is processed next
			now.doneAt = e.r.Clock.Now()
		}
	}
	return true
}

// order returns a copy of the current data about a target.
func (e *evictor) order(item Target) evictionOrder {
	e.mu.Lock()
	defer e.mu.Unlock()
	if o := e.orders[item]; o != nil {
		return *o
	}
	return evictionOrder{}
}

// attempt requests one eviction or deletion, and reports whether that settles the target.
func (e *evictor) attempt(ctx context.Context, item Target, o evictionOrder) (settles bool) {
	// The API server responds with a Retry-After to an eviction whose budget is still being computed. The client
	// would block the worker for that time.
	bounded, cancel := context.WithTimeout(ctx, e.r.Timers.EvictionAnswer)
	defer cancel()
	pod := &corev1.Pod{}
	var reader client.Reader = e.r.Client
	if o.repeated {
		reader = e.r.Live
	}
	if err := reader.Get(bounded, item.NamespacedName, pod); err != nil {
		return apierrors.IsNotFound(err)
	}
	if pod.UID != item.uid {
		return true
	}
	switch step := next(pod, e.r.policyAt(o.deadline)); step.action {
	case evict:
		return e.evict(bounded, pod, o)
	case force:
		return e.force(bounded, pod, o, step.grace)
	}
	return true // gone, terminating, or protected: then the drain adds it again when that ends
}

// evict uses the Eviction API. It reports whether the target is settled.
func (e *evictor) evict(ctx context.Context, pod *corev1.Pod, o evictionOrder) (settles bool) {
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
		e.reportRefusal(context.WithoutCancel(ctx), pod, err)
		return false
	}
	e.log.Error(err, "evicting a pod", "pod", pod.Namespace+"/"+pod.Name, "node", o.node)
	return false
}

// force deletes a pod with the grace period in seconds that its node's deadline allows. It reports whether the target
// is settled.
func (e *evictor) force(ctx context.Context, pod *corev1.Pod, o evictionOrder, grace int64) (settles bool) {
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
