package nodeclaim

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// ConsistencyName is the name of the Consistency controller in logs and metrics.
const ConsistencyName = "nodeclaim.consistency"

const (
	// consistencyWorkers is the number of claims that are compared concurrently.
	consistencyWorkers = 50
	// leastPercent is the minimum of an expected resource that a node must have, in percent.
	leastPercent = 90
)

// Consistency checks every Timers.Consistency whether each initialized node has the resources that its claim
// declares. A machine with defective memory, or a kubelet that reports too little, accepts fewer pods than are
// planned onto it. A finding is reported as a condition of the claim and an event, and has no other effect.
type Consistency struct {
	// Client reads from a cache with the indexes of controller.Index.
	Client   client.Client
	Provider cloud.Provider
	Recorder *telemetry.Recorder
	// Selection says which pools, claims and nodes are this controller's.
	Selection karpv1.Selection
	Timers    controller.Timers

	classes controller.Classes
}

// SetupWithManager registers the controller. controller.Index must have run before.
func (c *Consistency) SetupWithManager(mgr ctrl.Manager) error {
	classes, err := controller.ClassesOf(c.Provider, mgr.GetScheme())
	if err != nil {
		return err
	}
	c.classes = classes.Within(c.Selection)
	err = ctrl.NewControllerManagedBy(mgr).
		Named(ConsistencyName).
		For(&karpv1.NodeClaim{}, builder.WithPredicates(initializing())).
		WithOptions(ctrlcontroller.Options{
			MaxConcurrentReconciles: consistencyWorkers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](c.Timers.Retry, c.Timers.RetryMax),
		}).
		Complete(c)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", ConsistencyName, err)
	}
	return nil
}

// initializing returns a predicate for claims that are first seen or that become initialized. Later comparisons run
// periodically.
func initializing() predicate.Predicate {
	is := func(o client.Object) bool {
		claim, ok := o.(*karpv1.NodeClaim)
		return ok && claim.Condition(karpv1.ConditionInitialized).IsTrue()
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return is(e.Object) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return is(e.ObjectNew) && !is(e.ObjectOld) },
	}
}

// Reconcile compares one claim with its node.
func (c *Consistency) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	claim := &karpv1.NodeClaim{}
	if err := c.Client.Get(ctx, request.NamespacedName, claim); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !c.classes.OwnsClaim(claim) || !claim.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	err := c.compare(ctx, claim)
	return controller.Settle(ctrl.Result{RequeueAfter: c.Timers.Consistency}, err, c.Timers.Retry)
}

// compare writes the findings, if there is a node to compare with.
func (c *Consistency) compare(ctx context.Context, claim *karpv1.NodeClaim) error {
	if !claim.Condition(karpv1.ConditionInitialized).IsTrue() {
		return nil
	}
	nodes, err := nodesOf(ctx, c.Client, claim.Status.ProviderID)
	if err != nil {
		return err
	}
	node, missing := pick(nodes)
	if missing != (unmet{}) {
		return nil // Registered and Initialized report this
	}
	issues := shape(claim, node)
	for _, issue := range issues {
		c.Recorder.Emit(telemetry.FailedConsistencyCheck(claim, issue))
	}
	base := claim.DeepCopy()
	if len(issues) == 0 {
		claim.StatusConditions().SetTrue(karpv1.ConditionConsistentStateFound)
	} else {
		claim.StatusConditions().SetFalse(karpv1.ConditionConsistentStateFound, karpv1.ReasonConsistencyCheckFailed, strings.Join(issues, "; "))
	}
	if equality.Semantic.DeepEqual(base.Status, claim.Status) {
		return nil
	}
	if err := c.Client.Status().Patch(ctx, claim, controller.Locked(base)); err != nil {
		return fmt.Errorf("writing the consistency of claim %s: %w", claim.Name, err)
	}
	return nil
}

// shape returns one message for each requested resource of which the node has less than 90 % of the amount in the
// claim's status. Each message contains the expected and the actual amount.
func shape(claim *karpv1.NodeClaim, node *corev1.Node) []string {
	var issues []string
	for _, name := range resourceNames(claim.Spec.Resources.Requests) {
		requested, promised, there := claim.Spec.Resources.Requests[name], claim.Status.Capacity[name], node.Status.Capacity[name]
		if requested.IsZero() || promised.IsZero() {
			continue
		}
		percent := 100 * there.AsApproximateFloat64() / promised.AsApproximateFloat64()
		if percent < leastPercent {
			issues = append(issues, fmt.Sprintf("expected %s of resource %s, but found %s (%.1f%% of expected)", promised.String(), name, there.String(), percent))
		}
	}
	return issues
}
