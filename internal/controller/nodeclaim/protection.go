package nodeclaim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// ProtectionsName is the name of the Protections controller in logs and metrics.
const ProtectionsName = "pod.protection"

// Protections emits an event on each pod on a managed node whose karpenter.sh/do-not-disrupt annotation cannot be
// parsed, as soon as the pod is bound. The pod's owner expects that it is protected, and an event at the drain is too
// late.
type Protections struct {
	// Client reads from a cache with the indexes of controller.Index.
	Client   client.Client
	Provider cloud.Provider
	Rules    karpv1.ProtectionRules
	Recorder *telemetry.Recorder
	// Selection says which pools, claims and nodes are this controller's.
	Selection karpv1.Selection
	Timers    controller.Timers

	classes controller.Classes
}

// SetupWithManager registers the controller. controller.Index must have run before.
func (p *Protections) SetupWithManager(mgr ctrl.Manager) error {
	classes, err := controller.ClassesOf(p.Provider, mgr.GetScheme())
	if err != nil {
		return err
	}
	p.classes = classes.Within(p.Selection)
	err = ctrl.NewControllerManagedBy(mgr).
		Named(ProtectionsName).
		For(&corev1.Pod{}).
		WithEventFilter(predicate.NewPredicateFuncs(func(object client.Object) bool {
			pod, is := object.(*corev1.Pod)
			return is && p.unreadable(pod)
		})).
		WithOptions(ctrlcontroller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](p.Timers.Retry, p.Timers.RetryMax),
		}).
		Complete(p)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", ProtectionsName, err)
	}
	return nil
}

// unreadable reports whether the pod is on a node and has an annotation that does not have the intended effect.
func (p *Protections) unreadable(pod *corev1.Pod) bool {
	_, annotated := pod.Annotations[karpv1.AnnotationDoNotDisrupt]
	if !annotated || pod.Spec.NodeName == "" || !pod.DeletionTimestamp.IsZero() || karpv1.EndedPod(pod) {
		return false
	}
	_, valid := p.Rules.Of(pod)
	return !valid
}

// Reconcile reports one pod, if its node is managed.
func (p *Protections) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if err := p.Client.Get(ctx, request.NamespacedName, pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !p.unreadable(pod) {
		return ctrl.Result{}, nil
	}
	claims, err := claimsOn(ctx, p.Client, p.classes, pod.Spec.NodeName)
	if err != nil || len(claims) == 0 {
		return ctrl.Result{}, err
	}
	protection, _ := p.Rules.Of(pod)
	p.Recorder.Emit(telemetry.InvalidDoNotDisrupt(pod, pod.Annotations[karpv1.AnnotationDoNotDisrupt], protection.Forever))
	return ctrl.Result{}, nil
}
