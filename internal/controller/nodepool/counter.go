package nodepool

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/prometheus/client_golang/prometheus"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// CounterName is the counter's name in logs and metrics.
const CounterName = "nodepool.counter"

// Counter writes the number of nodes of a pool, and their resources. Fill all fields, then call SetupWithManager.
type Counter struct {
	// Client reads from a cache with the indexes of controller.Index.
	Client   client.Client
	Provider cloud.Provider
	Metrics  *telemetry.Metrics
	// Selection says which pools, claims and nodes are this controller's.
	Selection karpv1.Selection
	Timers    controller.Timers

	classes controller.Classes
}

// SetupWithManager registers the controller. controller.Index must have run before. Events of nodes and claims are
// collected for Timers.Counting: the queue keeps one delayed request per pool.
func (c *Counter) SetupWithManager(mgr ctrl.Manager) error {
	classes, err := controller.ClassesOf(c.Provider, mgr.GetScheme())
	if err != nil {
		return err
	}
	c.classes = classes.Within(c.Selection)
	counted := builder.WithPredicates(countable())
	err = ctrl.NewControllerManagedBy(mgr).
		Named(CounterName).
		For(&karpv1.NodePool{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Node{}, delayed(c.Timers.Counting), counted).
		Watches(&karpv1.NodeClaim{}, delayed(c.Timers.Counting), counted).
		WithOptions(ctrlcontroller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](c.Timers.Retry, c.Timers.RetryMax),
		}).
		Complete(c)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", CounterName, err)
	}
	return nil
}

// delayed returns a handler that enqueues the pool of a node or claim after the delay.
func delayed(delay time.Duration) handler.EventHandler {
	add := func(object client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if pool := object.GetLabels()[karpv1.LabelNodePool]; pool != "" {
			queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: pool}}, delay)
		}
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { add(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(e.Object, q) },
	}
}

// countable returns a predicate for the events that change a count.
func countable() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if e.ObjectOld == nil || e.ObjectNew == nil {
			return true
		}
		return e.ObjectOld.GetLabels()[karpv1.LabelNodePool] != e.ObjectNew.GetLabels()[karpv1.LabelNodePool] ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			machineOf(e.ObjectOld) != machineOf(e.ObjectNew) ||
			!equality.Semantic.DeepEqual(capacityOf(e.ObjectOld), capacityOf(e.ObjectNew))
	}}
}

func capacityOf(object client.Object) corev1.ResourceList {
	switch o := object.(type) {
	case *corev1.Node:
		return o.Status.Capacity
	case *karpv1.NodeClaim:
		return o.Status.Capacity
	}
	return nil
}

func machineOf(object client.Object) string {
	switch o := object.(type) {
	case *corev1.Node:
		return o.Spec.ProviderID
	case *karpv1.NodeClaim:
		return o.Status.ProviderID
	}
	return ""
}

// Reconcile counts one pool. Pools of other providers are not counted.
func (c *Counter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pool := &karpv1.NodePool{}
	if err := c.Client.Get(ctx, request.NamespacedName, pool); err != nil {
		if client.IgnoreNotFound(err) == nil {
			c.forget(request.Name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !c.classes.OwnsPool(pool) {
		return ctrl.Result{}, nil
	}
	mine := client.MatchingFields{controller.FieldPool: pool.Name}
	var nodes corev1.NodeList
	if err := c.Client.List(ctx, &nodes, mine, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the nodes of pool %s: %w", pool.Name, err)
	}
	var claims karpv1.NodeClaimList
	if err := c.Client.List(ctx, &claims, mine, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the claims of pool %s: %w", pool.Name, err)
	}
	total := count(nodes.Items, claims.Items)
	c.publish(pool, total)
	base := pool.DeepCopy()
	number := total[karpv1.ResourceNodes]
	pool.Status.Nodes = number.Value()
	if !equality.Semantic.DeepEqual(pool.Status.Resources, total) {
		pool.Status.Resources = total
	}
	if equality.Semantic.DeepEqual(base.Status, pool.Status) {
		return ctrl.Result{}, nil
	}
	// Only these two fields differ, and only this controller writes them, so no lock is needed.
	if err := c.Client.Status().Patch(ctx, pool, client.MergeFrom(base)); err != nil {
		return controller.Settle(ctrl.Result{}, fmt.Errorf("writing the resources of pool %s: %w", pool.Name, err), c.Timers.Retry)
	}
	return ctrl.Result{}, nil
}

// publish sets the pool's gauges, in cores, bytes or units.
func (c *Counter) publish(pool *karpv1.NodePool, total corev1.ResourceList) {
	limits := corev1.ResourceList(pool.Spec.Limits)
	for name, amount := range total {
		c.Metrics.NodePoolsUsage.WithLabelValues(telemetry.ResourceType(string(name)), pool.Name).Set(amount.AsApproximateFloat64())
		if _, limited := limits[name]; !limited {
			c.Metrics.NodePoolsLimit.DeleteLabelValues(telemetry.ResourceType(string(name)), pool.Name)
		}
	}
	for name, amount := range limits {
		c.Metrics.NodePoolsLimit.WithLabelValues(telemetry.ResourceType(string(name)), pool.Name).Set(amount.AsApproximateFloat64())
	}
}

func (c *Counter) forget(pool string) {
	c.Metrics.NodePoolsUsage.DeletePartialMatch(prometheus.Labels{"nodepool": pool})
	c.Metrics.NodePoolsLimit.DeletePartialMatch(prometheus.Labels{"nodepool": pool})
}

// count returns the sum of the machines of a pool that are not being removed: nodes by their capacity, and launched
// claims without a node by the capacity that the provider declared. The well-known resources are always present, even
// if zero.
func count(nodes []corev1.Node, claims []karpv1.NodeClaim) corev1.ResourceList {
	total := corev1.ResourceList{karpv1.ResourceNodes: *resource.NewQuantity(0, resource.DecimalSI)}
	for _, name := range karpv1.WellKnownResources() {
		total[name] = resource.Quantity{}
	}
	promised := map[string]corev1.ResourceList{} // by provider ID, of claims
	leaving := map[string]bool{}
	for i := range claims {
		claim := &claims[i]
		switch id := claim.Status.ProviderID; {
		case id == "":
		case !claim.DeletionTimestamp.IsZero():
			leaving[id] = true
		default:
			promised[id] = claim.Status.Capacity
		}
	}
	for i := range nodes {
		node := &nodes[i]
		id := node.Spec.ProviderID
		promise := promised[id]
		delete(promised, id)
		if leaving[id] || !node.DeletionTimestamp.IsZero() {
			continue
		}
		add(total, filled(node.Status.Capacity, promise))
	}
	for _, capacity := range promised {
		add(total, capacity)
	}
	return total
}

// filled returns the node's capacity. Resources that the kubelet has not reported yet come from promise.
func filled(capacity, promise corev1.ResourceList) corev1.ResourceList {
	whole := capacity.DeepCopy()
	if whole == nil {
		whole = corev1.ResourceList{}
	}
	for name, amount := range promise {
		if have := whole[name]; have.IsZero() {
			whole[name] = amount
		}
	}
	return whole
}

// add counts one node.
func add(total, capacity corev1.ResourceList) {
	for name, amount := range capacity {
		sum := total[name]
		sum.Add(amount)
		total[name] = sum
	}
	nodes := total[karpv1.ResourceNodes]
	nodes.Add(*resource.NewQuantity(1, resource.DecimalSI))
	total[karpv1.ResourceNodes] = nodes
}
