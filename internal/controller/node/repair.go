package node

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/removal"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// RepairName is the name of node repair in logs and metrics.
const RepairName = "node.health"

// repairWorkers is the number of nodes that are examined concurrently.
const repairWorkers = 50

// Repair replaces nodes whose conditions show that they do not recover: a condition that one of the policies names
// and that has lasted longer than its toleration. The claim is deleted with a termination deadline of now: the drain
// removes pods by force and does not wait for volumes, because the kubelet may be unable to end them. Disruption
// budgets do not apply. While more than a fifth of a pool (of all managed nodes, for a claim without a pool) has such
// a condition, for any duration, nothing is repaired: a fault of the network or of this process is more likely.
// Annotations of the pool change these rules (karpv1.RepairRules). Then the node is read from the API server, so that a
// node that has recovered is kept even if the cache is stale. The
// Limiter is asked last, because it counts the removal. See https://karpenter.sh/docs/concepts/disruption/#node-auto-repair.
//
//	Ready=False --toleration--> share of unhealthy nodes --> live read --> Limiter --> deadline on claim --> claim deleted
//	     |                       |                            |             `-- held: NodeRepairBlocked, retried
//	     |                       |                            `-- not as in the cache: retried
//	     |                       `-- more than a fifth: NodeRepairBlocked, retried after RepairRetry
//	     `-- recovered: nothing; the deadline of a repair that was interrupted before the deletion is removed
//
// Fill all fields, then call SetupWithManager.
type Repair struct {
	// Client reads from a cache with the indexes of controller.Index.
	Client client.Client
	// Live reads nodes from the API server, so that a stale cache does not cause the removal of a node that has
	// recovered.
	Live     client.Reader
	Provider cloud.Provider
	// Policies are those of the provider's cloud.Repairer.
	Policies []cloud.RepairPolicy
	Recorder *telemetry.Recorder
	Metrics  *telemetry.Metrics
	// Selection says which pools, claims and nodes are this controller's.
	Selection karpv1.Selection
	Timers    controller.Timers
	Clock     clock.PassiveClock
	// Ahead returns how far Clock is ahead of the API server's clock. Nil means zero.
	Ahead func() time.Duration
	// Limiter is asked before a node that is due is replaced.
	Limiter *removal.Limiter

	classes controller.Classes
	// counting is held from counting the repairs of a pool with a maximum until the next one has begun.
	counting sync.Mutex
}

// SetupWithManager registers the controller. controller.Index must have run before.
func (r *Repair) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.Recognize(mgr.GetScheme()); err != nil {
		return err
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named(RepairName).
		For(&corev1.Node{}, builder.WithPredicates(r.healthChanged())).
		Watches(&karpv1.NodePool{}, handler.EnqueueRequestsFromMapFunc(r.nodesOf), builder.WithPredicates(rulesChanged())).
		WithOptions(ctrlcontroller.Options{
			MaxConcurrentReconciles: repairWorkers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](r.Timers.Retry, r.Timers.RetryMax),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", RepairName, err)
	}
	return nil
}

// Recognize determines which node classes the provider owns. SetupWithManager calls it.
func (r *Repair) Recognize(scheme *runtime.Scheme) (err error) {
	r.classes, err = controller.ClassesOf(r.Provider, scheme)
	r.classes = r.classes.Within(r.Selection)
	return err
}

// healthChanged returns a predicate for nodes that are new or newly managed, and for nodes on which an unhealthy
// condition begins or ends. It does not pass heartbeats.
func (r *Repair) healthChanged() predicate.Predicate {
	return predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, isNode := e.ObjectOld.(*corev1.Node)
			after, _ := e.ObjectNew.(*corev1.Node)
			if !isNode || after == nil {
				return true
			}
			if before.Spec.ProviderID != after.Spec.ProviderID || r.classes.OwnsLabels(before.Labels) != r.classes.OwnsLabels(after.Labels) {
				return true
			}
			if sameConditions(before, after) {
				return false
			}
			rules, err := r.rules(context.Background(), after) // from the cache
			policies := policiesOf(r.Policies, rules)
			return err != nil || unhealthy(before, policies) != unhealthy(after, policies)
		},
	}
}

// sameConditions reports whether the conditions of two states of a node differ in heartbeats at most.
func sameConditions(a, b *corev1.Node) bool {
	return slices.EqualFunc(a.Status.Conditions, b.Status.Conditions, func(a, b corev1.NodeCondition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.LastTransitionTime.Equal(&b.LastTransitionTime)
	})
}

// rulesChanged returns a predicate for pools whose rules of repair have changed.
func rulesChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // the nodes have their own events
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, _ := karpv1.ParseRepairRules(e.ObjectOld.GetAnnotations())
			after, _ := karpv1.ParseRepairRules(e.ObjectNew.GetAnnotations())
			return !reflect.DeepEqual(before, after)
		},
	}
}

// nodesOf requests that the nodes of a pool are examined.
func (r *Repair) nodesOf(ctx context.Context, pool client.Object) []reconcile.Request {
	var nodes corev1.NodeList
	err := r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy, client.MatchingFields{controller.FieldPool: pool.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the nodes of a pool whose rules of repair have changed", "nodePool", pool.GetName())
		return nil
	}
	requests := make([]reconcile.Request, len(nodes.Items))
	for i := range nodes.Items {
		requests[i].Name = nodes.Items[i].Name
	}
	return requests
}

// rules returns the rules of the node's pool, the defaults if it has none or it does not exist. Invalid annotations are
// ignored: the condition ValidationSucceeded of the pool reports them.
func (r *Repair) rules(ctx context.Context, node *corev1.Node) (karpv1.RepairRules, error) {
	name := node.Labels[karpv1.LabelNodePool]
	if name == "" {
		return karpv1.DefaultRepairRules(), nil
	}
	var pool karpv1.NodePool
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &pool); client.IgnoreNotFound(err) != nil {
		return karpv1.RepairRules{}, fmt.Errorf("reading the rules of repair of NodePool %s: %w", name, err)
	}
	rules, _ := karpv1.ParseRepairRules(pool.Annotations)
	return rules, nil
}

// Reconcile examines one node.
func (r *Repair) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.classes.OwnsLabels(node.Labels) {
		return ctrl.Result{}, nil
	}
	claim, err := r.claim(ctx, node)
	if err != nil || claim == nil || !claim.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, err
	}
	again, err := r.repair(ctx, node, claim)
	return controller.Settle(ctrl.Result{RequeueAfter: again}, err, r.Timers.Retry)
}

// claim returns the node's claim, or nil when the node has no managed claim, or more than one.
func (r *Repair) claim(ctx context.Context, node *corev1.Node) (*karpv1.NodeClaim, error) {
	if node.Spec.ProviderID == "" {
		return nil, nil
	}
	var claims karpv1.NodeClaimList
	if err := r.Client.List(ctx, &claims, client.MatchingFields{controller.FieldClaimProviderID: node.Spec.ProviderID}); err != nil {
		return nil, fmt.Errorf("listing the claims of node %s: %w", node.Name, err)
	}
	if len(claims.Items) != 1 || !r.classes.OwnsClaim(&claims.Items[0]) {
		return nil, nil
	}
	return &claims.Items[0], nil
}

// repair performs a due repair of the node and returns when to check again, in addition to events.
func (r *Repair) repair(ctx context.Context, node *corev1.Node, claim *karpv1.NodeClaim) (time.Duration, error) {
	rules, err := r.rules(ctx, node)
	if err != nil {
		return 0, err
	}
	policies := policiesOf(r.Policies, rules)
	problem := unhealthy(node, policies)
	if !problem.found() || rules.Off {
		return 0, r.undoDeadline(ctx, claim)
	}
	if left := problem.toleratedUntil.Sub(apiTime(r.Clock.Now(), r.Ahead)); left > 0 {
		return left, nil
	}
	if rules.AtOnce > 0 { // else several workers count before one of them deletes
		r.counting.Lock()
		defer r.counting.Unlock()
	}
	why, err := r.blocked(ctx, node, rules, policies)
	if err != nil {
		return 0, err
	}
	if why != "" {
		r.Recorder.Emit(telemetry.NodeRepairBlocked(node, why), telemetry.NodeRepairBlocked(claim, why))
		return r.Timers.RepairRetry, nil
	}
	// The event that updates the cache starts the next reconcile.
	if same, err := r.stillUnhealthy(ctx, node, policies, problem); err != nil || !same {
		return r.Timers.RepairRetry, err
	}
	return r.replaceIfAllowed(ctx, node, claim, problem, rules)
}

// blocked returns why no node of the node's pool is repaired now, "" if the node may be.
func (r *Repair) blocked(ctx context.Context, node *corev1.Node, rules karpv1.RepairRules, policies []cloud.RepairPolicy) (string, error) {
	nodes, err := r.peers(ctx, node)
	if err != nil {
		return "", err
	}
	count, most := countUnhealthy(nodes, policies), rules.MaxUnhealthy(len(nodes))
	switch {
	case count > most && rules.Count >= 0:
		return fmt.Sprintf("more than %d nodes are unhealthy in the %s: %d of %d", most, scopeOf(node), count, len(nodes)), nil
	case count > most:
		return fmt.Sprintf("more than %d%% nodes are unhealthy in the %s: %d of %d", rules.Percent, scopeOf(node), count, len(nodes)), nil
	case rules.AtOnce == 0:
		return "", nil
	}
	var claims karpv1.NodeClaimList
	inPool := client.MatchingLabels{karpv1.LabelNodePool: node.Labels[karpv1.LabelNodePool]}
	if err := r.Live.List(ctx, &claims, inPool); err != nil { // the cache may lag behind the last deletion
		return "", fmt.Errorf("listing the claims beside node %s: %w", node.Name, err)
	}
	repaired := 0
	for i := range claims.Items {
		if !claims.Items[i].DeletionTimestamp.IsZero() && claims.Items[i].Annotations[karpv1.AnnotationRepair] != "" {
			repaired++
		}
	}
	if repaired >= rules.AtOnce {
		return fmt.Sprintf("at most %d nodes are repaired at once in the %s", rules.AtOnce, scopeOf(node)), nil
	}
	return "", nil
}

// stillUnhealthy reports whether the node on the API server has the same unhealthy condition as in the cache.
func (r *Repair) stillUnhealthy(ctx context.Context, node *corev1.Node, policies []cloud.RepairPolicy,
	problem unhealthyCondition) (bool, error) {
	now := &corev1.Node{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(node), now); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("reading node %s again: %w", node.Name, err)
	}
	return now.UID == node.UID && unhealthy(now, policies) == problem, nil
}

// replaceIfAllowed asks the Limiter, and replaces the node if that is allowed. It returns the time until the next check.
func (r *Repair) replaceIfAllowed(ctx context.Context, node *corev1.Node, claim *karpv1.NodeClaim,
	problem unhealthyCondition, rules karpv1.RepairRules) (time.Duration, error) {
	// A machine that the cloud does not show either is handled by the collector (package nodeclaim).
	may, err := r.Limiter.Ask(ctx, removal.Case{
		Machine: node.Spec.ProviderID, Pool: claim.Labels[karpv1.LabelNodePool], Cause: removal.CauseUnhealthy,
	})
	if err != nil {
		return 0, err
	}
	if !may[0] {
		const why = "involuntary removals are paused, because too many machines were to be removed: see the pauses of the NodePool"
		r.Recorder.Emit(telemetry.NodeRepairBlocked(node, why), telemetry.NodeRepairBlocked(claim, why))
		return r.Timers.RepairRetry, nil
	}
	return 0, r.replace(ctx, claim, problem, rules.Grace)
}

// peers returns the nodes of the node's pool, or of all pools for a node without a pool. They are shared with the
// cache.
func (r *Repair) peers(ctx context.Context, node *corev1.Node) ([]corev1.Node, error) {
	var nodes corev1.NodeList
	options := []client.ListOption{client.UnsafeDisableDeepCopy}
	if pool := node.Labels[karpv1.LabelNodePool]; pool != "" {
		options = append(options, client.MatchingFields{controller.FieldPool: pool})
	}
	if err := r.Client.List(ctx, &nodes, options...); err != nil {
		return nil, fmt.Errorf("listing the nodes beside node %s: %w", node.Name, err)
	}
	var ours []corev1.Node
	for i := range nodes.Items {
		if r.classes.OwnsLabels(nodes.Items[i].Labels) {
			ours = append(ours, nodes.Items[i])
		}
	}
	return ours, nil
}

// scopeOf returns the name of the set of nodes that is counted.
func scopeOf(node *corev1.Node) string {
	if pool := node.Labels[karpv1.LabelNodePool]; pool != "" {
		return "nodepool " + pool
	}
	return "cluster"
}

// replace deletes the claim with a deadline of now, or after the grace of its pool. The deadline is written first: once
// the claim is deleted, its drain may begin at any moment, and would wait. If the process stops in between, the next
// reconcile deletes the claim or undoes the write. The terminationGracePeriod of the claim limits the grace.
func (r *Repair) replace(ctx context.Context, claim *karpv1.NodeClaim, problem unhealthyCondition, grace time.Duration) error {
	if most := claim.Spec.TerminationGracePeriod; most != nil {
		grace = min(grace, most.Duration)
	}
	if claim.Annotations[karpv1.AnnotationRepair] == "" {
		base := claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.AnnotationRepair, string(problem.condition))
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.AnnotationTerminationTimestamp,
			apiTime(r.Clock.Now(), r.Ahead).Add(grace).UTC().Format(time.RFC3339))
		if err := r.Client.Patch(ctx, claim, controller.Locked(base)); err != nil {
			return fmt.Errorf("noting the termination deadline on claim %s: %w", claim.Name, err)
		}
	}
	if err := r.Client.Delete(ctx, claim, controller.Unchanged(claim)); err != nil {
		return fmt.Errorf("deleting claim %s: %w", claim.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("deleted a claim whose node is unhealthy", "nodeClaim", claim.Name, "reason",
		telemetry.DisruptedUnhealthy, "condition", problem.condition, "status", problem.status, "toleratedUntil", problem.toleratedUntil)
	r.Recorder.Emit(telemetry.DisruptionTerminating(claim, telemetry.EventUnhealthy))
	pool, capacity := claim.Labels[karpv1.LabelNodePool], claim.Labels[karpv1.LabelCapacityType]
	r.Metrics.Disrupted(claim, telemetry.DisruptedUnhealthy, "")
	r.Metrics.Moving(claim, telemetry.DisruptedUnhealthy, "", controller.PodsOn(ctx, r.Client, claim.Status.NodeName))
	r.Metrics.NodeClaimsUnhealthyDisrupted.WithLabelValues(snake(string(problem.condition)), pool, capacity, claim.Status.ImageID).Inc()
	return nil
}

// undoDeadline removes the deadline of a repair that was not completed, because the process stopped before the deletion
// and the node has recovered since. The deadline would shorten the next drain.
func (r *Repair) undoDeadline(ctx context.Context, claim *karpv1.NodeClaim) error {
	if claim.Annotations[karpv1.AnnotationRepair] == "" {
		return nil
	}
	base := claim.DeepCopy()
	delete(claim.Annotations, karpv1.AnnotationRepair)
	delete(claim.Annotations, karpv1.AnnotationTerminationTimestamp)
	if err := r.Client.Patch(ctx, claim, controller.Locked(base)); err != nil {
		return fmt.Errorf("removing the termination deadline of claim %s: %w", claim.Name, err)
	}
	return nil
}
