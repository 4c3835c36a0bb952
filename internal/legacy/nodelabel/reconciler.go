package nodelabel

import (
	"context"
	"fmt"
	"iter"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Name is the controller's name in logs and metrics.
const Name = "node.oldnames"

// workers is the number of nodes that are labeled concurrently.
const workers = 20

// Reconciler sets the old labels that pods use on managed nodes. Fill all fields, then call SetupWithManager.
type Reconciler struct {
	// Client reads from a cache.
	Client   client.Client
	Pods     Pods
	Provider cloud.Provider
	Recorder *telemetry.Recorder
	Timers   controller.Timers

	classes controller.Classes
	keys    keys
}

// Pods returns all pods, each valid until the next one: a list of them would take much memory.
type Pods func(context.Context) (iter.Seq[*corev1.Pod], error)

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	classes, err := controller.ClassesOf(r.Provider, mgr.GetScheme())
	if err != nil {
		return err
	}
	r.classes = classes
	err = ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&corev1.Node{}, builder.WithPredicates(predicate.NewPredicateFuncs(r.ours), predicate.LabelChangedPredicate{})).
		Watches(&corev1.Pod{}, r.users()).
		Watches(&appsv1.DaemonSet{}, r.users()).
		WithOptions(ctrlcontroller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](r.Timers.Retry, r.Timers.RetryMax),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// ours reports whether the node has been matched with a claim of this provider's classes, or is about to be.
func (r *Reconciler) ours(o client.Object) bool { return r.classes.OwnsLabels(o.GetLabels()) }

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// users returns the handler for objects that may use old names. A name that was not in use before triggers all nodes.
func (r *Reconciler) users() handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { r.look(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { r.look(ctx, e.ObjectNew, q) },
	}
}

func (r *Reconciler) look(ctx context.Context, user client.Object, q queue) {
	var uses []use
	owner := user.GetUID()
	switch o := user.(type) {
	case *corev1.Pod:
		uses = usesOf(&o.Spec)
		if r.keys.add(uses) {
			r.again(ctx, q)
		}
		uses = annotated(uses, o.Annotations)
		if c := metav1.GetControllerOfNoCopy(o); c != nil {
			owner = c.UID
		}
	case *appsv1.DaemonSet:
		uses = usesOf(&o.Spec.Template.Spec)
		if r.keys.add(uses) {
			r.again(ctx, q)
		}
	}
	if len(uses) > 0 && user.GetDeletionTimestamp().IsZero() {
		r.Recorder.Emit(telemetry.OldName(user, owner, words(uses), isUndefined(uses)))
	}
}

// again enqueues all managed nodes.
func (r *Reconciler) again(ctx context.Context, q queue) {
	ctrl.LoggerFrom(ctx).Info("pods use labels of versions before v1; nodes get these labels too", "labels", r.keys.list())
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing nodes to label")
		return
	}
	for i := range nodes.Items {
		if r.ours(&nodes.Items[i]) {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: nodes.Items[i].Name}})
		}
	}
}

// Reconcile labels one node.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := &corev1.Node{}
	if err := r.Client.Get(ctx, request.NamespacedName, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	more := r.keys.missing(node.Labels)
	if len(more) == 0 || !r.ours(node) {
		return ctrl.Result{}, nil
	}
	base := node.DeepCopy()
	maps.Copy(node.Labels, more)
	// No lock is needed: the patch adds labels and changes nothing else.
	if err := r.Client.Patch(ctx, node, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("adding labels of older versions to node %s: %w", node.Name, err)
	}
	return ctrl.Result{}, nil
}

// Complete adds the old labels in use to a node that is about to accept pods, on the object only.
func (r *Reconciler) Complete(ctx context.Context, node *corev1.Node) error {
	if err := r.keys.count(ctx, r.Pods, r.Client); err != nil {
		return err
	}
	for key, value := range r.keys.missing(node.Labels) {
		metav1.SetMetaDataLabel(&node.ObjectMeta, key, value)
	}
	return nil
}
