package node

import (
	"context"
	"errors"
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

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

const (
	// evictWorkers is how many evictions are asked for at a time.
	evictWorkers = 100
	// evictPerSecond and evictBurst bound the repetitions of refused evictions.
	evictPerSecond, evictBurst = 100, 1000
	// evictSweep is the number of remembered pods above which old ones are looked for.
	evictSweep = 4096
)

// eviction asks one pod to leave.
type eviction struct {
	namespace, name string
	uid             types.UID
	node            string
	reason          string
}

// evictor asks pods to leave, again and again with a back-off per pod until they go. What was asked is in the API as
// soon as it has an effect, so a restart loses nothing: the drain adds its pods again.
//
//	add --> queue --> Eviction API --> 201: the pod terminates
//	          ^             |--------> 404, 409: the pod is another one, or gone
//	          +-- back-off -+--------> 429 (a PDB says no), or an error
type evictor struct {
	r     *Reconciler
	log   logr.Logger
	queue workqueue.TypedRateLimitingInterface[eviction]

	mu sync.Mutex
	// asked has every pod in the queue, with a zero time, and those that agreed, with the time: the cache may show
	// them as running for a moment.
	asked map[types.UID]time.Time
}

func newEvictor(r *Reconciler, log logr.Logger) *evictor {
	limiter := workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[eviction](r.Timers.Eviction, r.Timers.EvictionMax),
		&workqueue.TypedBucketRateLimiter[eviction]{Limiter: rate.NewLimiter(evictPerSecond, evictBurst)},
	)
	return &evictor{r: r, log: log, queue: workqueue.NewTypedRateLimitingQueue(limiter), asked: map[types.UID]time.Time{}}
}

// add asks the pod to leave, unless it is being asked or has just agreed.
func (e *evictor) add(item eviction) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.r.Clock.Now()
	if agreed, known := e.asked[item.uid]; known && (agreed.IsZero() || now.Sub(agreed) < e.r.Timers.WriteVisible) {
		return
	}
	if len(e.asked) >= evictSweep {
		for uid, agreed := range e.asked {
			if !agreed.IsZero() && now.Sub(agreed) >= e.r.Timers.WriteVisible {
				delete(e.asked, uid)
			}
		}
	}
	e.asked[item.uid] = time.Time{}
	e.queue.Add(item)
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
	if !e.try(ctx, item) {
		e.queue.AddRateLimited(item)
		return true
	}
	e.queue.Forget(item)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked[item.uid] = e.r.Clock.Now()
	return true
}

// try asks once and says whether that settles it.
func (e *evictor) try(ctx context.Context, item eviction) (settled bool) {
	pod := &corev1.Pod{}
	if err := e.r.Client.Get(ctx, client.ObjectKey{Namespace: item.namespace, Name: item.name}, pod); err != nil {
		return apierrors.IsNotFound(err)
	}
	if pod.UID != item.uid || !pod.DeletionTimestamp.IsZero() || karpv1.EndedPod(pod) {
		return true
	}
	if protection, _ := karpv1.ProtectionOf(pod); protection.Holds(e.r.Clock.Now()) {
		return true // the drain adds it again when that ends
	}
	// A budget that is still being computed is answered with a Retry-After, for which the client would keep the worker.
	bounded, cancel := context.WithTimeout(ctx, e.r.Timers.EvictionAnswer)
	defer cancel()
	err := e.r.Client.SubResource("eviction").Create(bounded, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: item.namespace, Name: item.name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &item.uid}},
	})
	e.r.Metrics.PodsEvictionRequests.WithLabelValues(strconv.Itoa(code(err))).Inc()
	switch code(err) {
	case http.StatusOK:
		e.r.Metrics.PodsDrained.WithLabelValues(item.reason).Inc()
		e.r.Recorder.Emit(telemetry.Evicted(pod, item.reason))
		return true
	case http.StatusNotFound, http.StatusConflict:
		return true
	case http.StatusTooManyRequests, http.StatusInternalServerError: // a PDB says no; more than one PDB
		e.complain(ctx, pod, err)
		return false
	}
	e.log.Error(err, "evicting a pod", "Pod", item.namespace+"/"+item.name, "Node", item.node)
	return false
}

// complain says on the node which pod keeps it and why.
func (e *evictor) complain(ctx context.Context, pod *corev1.Pod, cause error) {
	node := &corev1.Node{}
	if err := e.r.Client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node); err != nil {
		return
	}
	e.r.Recorder.Emit(telemetry.EvictionRefused(node, pod, cause))
}

// code is the HTTP status of an answer: 200 for success, 0 when there was no answer.
func code(err error) int {
	if err == nil {
		return http.StatusOK
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return int(status.Status().Code)
	}
	return 0
}
