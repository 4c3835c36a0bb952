package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Name is the controller's name in logs and metrics.
const Name = "node.termination"

// workers is the number of nodes that are processed concurrently, unless Workers is set.
const workers = 500

// Reconciler terminates nodes. Fill all fields except Workers, then call SetupWithManager.
type Reconciler struct {
	// Client reads from a cache with the indexes of controller.Index.
	Client client.Client
	// Live reads pods that were deleted before from the API server, so that they are deleted and counted once.
	Live     client.Reader
	Provider cloud.Provider
	Recorder *telemetry.Recorder
	Metrics  *telemetry.Metrics
	// Selection says which pools, claims and nodes are this controller's.
	Selection karpv1.Selection
	Timers    controller.Timers
	// Protection defines which annotations protect pods from eviction.
	Protection karpv1.ProtectionRules
	Clock      clock.PassiveClock
	// Destination returns the claim or node that the latest plan assigns to a running pod, or an empty string if there
	// is none. If it is nil, the drain of a node with an interruption notice does not wait (notice.go).
	Destination func(pod types.UID) string
	// Reports returns whether the node's kubelet reports, by its condition Ready or its Lease.
	Reports func(ctx context.Context, node *corev1.Node) (bool, error)
	// Ahead returns how far Clock is ahead of the API server's clock, which sets the times of pods and nodes. Nil
	// means zero.
	Ahead func() time.Duration
	// Workers is the number of nodes that are processed concurrently. 0 means 500.
	Workers int
	// Evictions is the queue of pods to evict. Nil means a queue of its own. The manager serves it; a caller without
	// one calls Evict for each of its items.
	Evictions workqueue.TypedRateLimitingInterface[Target]

	classes controller.Classes
	evictor *evictor
}

// Evict evicts the next pod of Evictions. It returns false when the queue is shut down.
func (r *Reconciler) Evict(ctx context.Context) bool { return r.evictor.next(ctx) }

// SetupWithManager registers the controller and its eviction queue. controller.Index must have run before.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	classes, err := controller.ClassesOf(r.Provider, mgr.GetScheme())
	if err != nil {
		return err
	}
	r.classes = classes.Within(r.Selection)
	if r.Workers == 0 {
		r.Workers = workers
	}
	r.evictor = newEvictor(r, mgr.GetLogger().WithName(evictorName))
	if err := mgr.Add(r.evictor); err != nil {
		return fmt.Errorf("setting up the eviction queue: %w", err)
	}
	leaving := predicate.NewPredicateFuncs(func(o client.Object) bool { return !o.GetDeletionTimestamp().IsZero() })
	err = ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&corev1.Node{}, builder.WithPredicates(leaving)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(nodeOf), builder.WithPredicates(podFinished())).
		Watches(&storagev1.VolumeAttachment{}, handler.EnqueueRequestsFromMapFunc(nodeOfAttachment), builder.WithPredicates(detached())).
		WithOptions(ctrlcontroller.Options{
			MaxConcurrentReconciles: r.Workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](r.Timers.Eviction, r.Timers.EvictionMax),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// podFinished returns a predicate for the events after which a drain may have less to wait for.
func podFinished() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return true },
		UpdateFunc: func(e event.UpdateEvent) bool {
			pod, ok := e.ObjectNew.(*corev1.Pod)
			return ok && karpv1.EndedPod(pod)
		},
	}
}

// detached returns a predicate for deletions of volume attachments.
func detached() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
	}
}

func nodeOfAttachment(_ context.Context, attachment client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: attachment.(*storagev1.VolumeAttachment).Spec.NodeName}}}
}

func nodeOf(_ context.Context, pod client.Object) []reconcile.Request {
	name := pod.(*corev1.Pod).Spec.NodeName
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

// termination holds a node that is being terminated and the data about it.
type termination struct {
	node *corev1.Node
	// claim is nil for a node without a claim, or with several claims of which none owns it.
	claim *karpv1.NodeClaim
	pods  []corev1.Pod // shared with the cache: read only
	now   time.Time    // by the API server's clock, as deadlines are
	// deadline is when everything that remains is removed by force, or zero for never. readable is false when the
	// claim's annotation for it is not a time.
	deadline time.Time
	readable bool
}

// Reconcile advances the termination of a deleted node as far as currently possible.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if node.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(node,
		karpv1.FinalizerTermination) || !r.classes.OwnsLabels(node.Labels) {
		return ctrl.Result{}, nil
	}
	again, err := r.advance(ctx, node)
	return controller.Settle(ctrl.Result{RequeueAfter: again}, err, r.Timers.Drain)
}

// advance gathers the state and runs the stages until one is not done. It returns the pause before the next check.
func (r *Reconciler) advance(ctx context.Context, node *corev1.Node) (time.Duration, error) {
	l, err := r.gather(ctx, node)
	if err != nil {
		return 0, err
	}
	stages := r.terminationSteps()
	gone, err := r.machineGone(ctx, l)
	if err != nil {
		return 0, err
	}
	if gone {
		stages = []terminationStep{r.removeClaim, r.release}
	}
	for _, stage := range stages {
		if again, err := stage(ctx, l); err != nil || again > 0 {
			return again, err
		}
	}
	return 0, nil
}

// claimOf returns the claim of the node: the only one that shows its machine, or, of several, the one that owns the
// node.
func claimOf(node *corev1.Node, claims []karpv1.NodeClaim) *karpv1.NodeClaim {
	if len(claims) == 1 {
		return &claims[0]
	}
	for i := range claims {
		if karpv1.OwnsNode(&claims[i], node) {
			return &claims[i]
		}
	}
	return nil
}

func (r *Reconciler) gather(ctx context.Context, node *corev1.Node) (*termination, error) {
	l := &termination{node: node, now: apiTime(r.Clock.Now(), r.Ahead)}
	if id := node.Spec.ProviderID; id != "" {
		var claims karpv1.NodeClaimList
		if err := r.Client.List(ctx, &claims, client.MatchingFields{controller.FieldClaimProviderID: id}); err != nil {
			return nil, fmt.Errorf("listing the claims of node %s: %w", node.Name, err)
		}
		l.claim = claimOf(node, claims.Items)
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, client.MatchingFields{controller.FieldPodNode: node.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pods of node %s: %w", node.Name, err)
	}
	l.pods = pods.Items
	l.deadline, l.readable = deadlineOf(l.claim)
	return l, nil
}

// machineGone reports whether there is nothing left to drain: the kubelet is silent and the machine does not exist.
func (r *Reconciler) machineGone(ctx context.Context, l *termination) (bool, error) {
	if karpv1.NodeReady(l.node) || l.node.Spec.ProviderID == "" {
		return false, nil
	}
	if reports, err := r.Reports(ctx, l.node); err != nil || reports {
		return false, err
	}
	_, err := r.Provider.Machine(ctx, l.node.Spec.ProviderID)
	if errors.Is(err, cloud.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking for the machine of node %s: %v", l.node.Name, err) // not wrapped, see terminate
	}
	return false, nil
}
