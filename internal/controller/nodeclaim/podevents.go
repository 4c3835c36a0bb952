package nodeclaim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// PodEventsName is the name of the PodEvents controller in logs and metrics.
const PodEventsName = "nodeclaim.podevents"

// podEventWorkers is the number of claims that are written concurrently.
const podEventWorkers = 50

// PodEvents writes status.lastPodEventTime of claims, from which consolidateAfter counts. A claim is written at most
// every Timers.PodEvent. Karpenter drops the events in between, so that a node that becomes empty right after it was
// filled is removed early by up to that time. Here, the last of them is recorded when the time has passed. PodEvents
// also measures how long pods took to be bound and to run. Karpenter counts every pod that it sees at its start as
// newly bound, which restarts all waiting times. Here, such a pod counts from the time at which it was bound.
type PodEvents struct {
	// Client reads from a cache with the indexes of controller.Index.
	Client   client.Client
	Provider cloud.Provider
	Metrics  *telemetry.Metrics
	// Selection says which pools, claims and nodes are this controller's.
	Selection karpv1.Selection
	Timers    controller.Timers
	Clock     clock.PassiveClock

	classes controller.Classes
	mutex   sync.Mutex
	// latest is when the last pod event was seen on a node, until it is recorded.
	latest map[string]time.Time
}

// Moment is a pod event on a node, in the queue of PodEvents.
type Moment struct {
	Node string
	// At is zero for the latest event that was seen.
	At time.Time
}

// saw records in memory that a pod event happened now, and returns the Moment to reconcile.
func (p *PodEvents) saw(node string) Moment {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.latest == nil {
		p.latest = map[string]time.Time{}
	}
	p.latest[node] = p.Clock.Now()
	return Moment{Node: node}
}

// when returns the time of a Moment, and false when it has been recorded.
func (p *PodEvents) when(m Moment) (time.Time, bool) {
	if !m.At.IsZero() {
		return m.At, true
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	at, known := p.latest[m.Node]
	return at, known
}

// forget drops the events of a node up to a time.
func (p *PodEvents) forget(node string, upTo time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if at, known := p.latest[node]; known && !at.After(upTo) {
		delete(p.latest, node)
	}
}

// SetupWithManager registers the controller. controller.Index must have run before.
func (p *PodEvents) SetupWithManager(mgr manager.Manager) error {
	classes, err := controller.ClassesOf(p.Provider, mgr.GetScheme())
	if err != nil {
		return err
	}
	p.classes = classes.Within(p.Selection)
	err = builder.TypedControllerManagedBy[Moment](mgr).
		Named(PodEventsName).
		Watches(&corev1.Pod{}, p.Handler()).
		WithOptions(ctrlcontroller.TypedOptions[Moment]{
			MaxConcurrentReconciles: podEventWorkers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[Moment](p.Timers.Retry, p.Timers.RetryMax),
		}).
		Complete(p)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", PodEventsName, err)
	}
	return nil
}

type podEventQueue = workqueue.TypedRateLimitingInterface[Moment]

// Handler returns what enqueues the events of pods.
func (p *PodEvents) Handler() handler.TypedFuncs[client.Object, Moment] {
	return handler.TypedFuncs[client.Object, Moment]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[client.Object], queue podEventQueue) {
			if pod, ok := e.Object.(*corev1.Pod); ok && pod.Spec.NodeName != "" && !daemon(pod) {
				queue.Add(Moment{Node: pod.Spec.NodeName, At: boundAt(pod)})
			}
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[client.Object], queue podEventQueue) {
			before, isPod := e.ObjectOld.(*corev1.Pod)
			after, _ := e.ObjectNew.(*corev1.Pod)
			if !isPod || after == nil {
				return
			}
			p.measure(before, after)
			if moved(before, after) && !daemon(after) {
				queue.Add(p.saw(after.Spec.NodeName))
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[client.Object], queue podEventQueue) {
			pod, ok := e.Object.(*corev1.Pod)
			if ok {
				p.Metrics.Waits.Forget(string(pod.UID))
			}
			if ok && pod.Spec.NodeName != "" && pod.DeletionTimestamp.IsZero() && !karpv1.EndedPod(pod) && !daemon(pod) {
				queue.Add(p.saw(pod.Spec.NodeName))
			}
		},
	}
}

// moved reports whether a pod was bound to its node, ended there, or began to terminate.
func moved(before, after *corev1.Pod) bool {
	if after.Spec.NodeName == "" {
		return false
	}
	return before.Spec.NodeName == "" || karpv1.EndedPod(after) && !karpv1.EndedPod(before) || !after.DeletionTimestamp.IsZero() && before.DeletionTimestamp.IsZero()
}

// daemon reports whether the pod belongs to its node: it is created and removed with it.
func daemon(pod *corev1.Pod) bool { return karpv1.DaemonPod(pod) || karpv1.MirrorPod(pod) }

// boundAt returns when the pod was bound, or its creation time if that is unknown.
func boundAt(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.UTC()
		}
	}
	return pod.CreationTimestamp.UTC()
}

// measure observes how long the pod took to be bound and to run.
func (p *PodEvents) measure(before, after *corev1.Pod) {
	age := p.Clock.Now().Sub(after.CreationTimestamp.Time).Seconds()
	planned, waited := p.Metrics.Waits.Since(string(after.UID))
	if before.Spec.NodeName == "" && after.Spec.NodeName != "" {
		p.Metrics.PodsBound.Observe(age)
		if waited {
			p.Metrics.Traces.Bound(after.Namespace, after.Name, after.Spec.NodeName, planned, p.Clock.Now())
			p.Metrics.PodsProvisioningBound.Observe(p.Clock.Since(planned).Seconds())
		}
	}
	if before.Status.Phase == corev1.PodPending && after.Status.Phase != corev1.PodPending {
		p.Metrics.Waits.Forget(string(after.UID))
	}
	if before.Status.Phase == corev1.PodPending && after.Status.Phase == corev1.PodRunning {
		p.Metrics.PodsStartup.Observe(age)
		if waited {
			p.Metrics.PodsProvisioningStartup.Observe(p.Clock.Since(planned).Seconds())
		}
	}
}

// Reconcile records a pod event on the claims of its node.
func (p *PodEvents) Reconcile(ctx context.Context, m Moment) (ctrl.Result, error) {
	at, unnoted := p.when(m)
	if !unnoted {
		return ctrl.Result{}, nil
	}
	claims, err := claimsOn(ctx, p.Client, p.classes, m.Node)
	if err != nil {
		return ctrl.Result{}, err
	}
	var again time.Duration
	for i := range claims {
		claim := &claims[i]
		due, wanted := p.due(claim, at)
		if wait := due.Sub(p.Clock.Now()); wanted && wait > 0 {
			again = max(again, wait)
		} else if wanted {
			if err := p.note(ctx, claim, at); err != nil {
				return ctrl.Result{}, err
			}
		}
	}
	if again == 0 && m.At.IsZero() {
		p.forget(m.Node, at)
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// claimsOn returns the managed claims of a node: normally one, and none when the node is gone or not managed.
func claimsOn(ctx context.Context, reader client.Reader, classes controller.Classes, name string) ([]karpv1.NodeClaim, error) {
	node := &corev1.Node{}
	if err := reader.Get(ctx, types.NamespacedName{Name: name}, node); err != nil || node.Spec.ProviderID == "" {
		return nil, client.IgnoreNotFound(err)
	}
	var claims karpv1.NodeClaimList
	if err := reader.List(ctx, &claims, client.MatchingFields{controller.FieldClaimProviderID: node.Spec.ProviderID}); err != nil {
		return nil, fmt.Errorf("listing the claims of node %s: %w", name, err)
	}
	return slices.DeleteFunc(claims.Items, func(c karpv1.NodeClaim) bool { return !classes.OwnsClaim(&c) }), nil
}

// due returns when a pod event is to be recorded. It returns false if the claim already shows it or a later one. An
// event from before the initialization of the claim is not recorded after it, because the waiting time begins with
// the initialization. Claims store whole seconds.
func (p *PodEvents) due(claim *karpv1.NodeClaim, at time.Time) (time.Time, bool) {
	known := claim.Status.LastPodEventTime.Time
	if known.IsZero() {
		c := claim.Condition(karpv1.ConditionInitialized)
		return at, !c.IsTrue() || !at.Before(c.LastTransitionTime.Time)
	}
	return known.Add(p.Timers.PodEvent), at.Truncate(time.Second).After(known)
}

// note writes the one field. The UID is the precondition, so no lock is needed.
func (p *PodEvents) note(ctx context.Context, claim *karpv1.NodeClaim, at time.Time) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": claim.UID},
		"status":   map[string]any{"lastPodEventTime": at.UTC().Format(time.RFC3339)},
	})
	if err != nil {
		return err
	}
	err = p.Client.Status().Patch(ctx, claim, client.RawPatch(types.MergePatchType, patch))
	if err != nil && !controller.Stale(err) {
		return fmt.Errorf("noting a pod event on claim %s: %w", claim.Name, err)
	}
	return nil
}
