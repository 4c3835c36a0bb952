package world

import (
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// What keeps pods on their nodes: PodDisruptionBudgets, whose status the disruption controller of Kubernetes updates with a
// small delay, and do-not-disrupt annotations.

// pdbOf returns a PodDisruptionBudget of the pods like the template.
func pdbOf(random *rand.Rand, template *corev1.Pod) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: template.Labels["app"]}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: template.Labels}
	b.Spec.MaxUnavailable = new(intstr.FromInt32(int32(1 + random.IntN(3))))
	return b
}

// budgets returns the PodDisruptionBudgets of a pod in what a process or the API has.
func budgets(in *shelves, pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var all []*policyv1.PodDisruptionBudget
	for _, o := range in.list(kindOf(&policyv1.PodDisruptionBudget{}), "", "") {
		if b := o.(*policyv1.PodDisruptionBudget); b.Namespace == pod.Namespace && selects(b.Spec.Selector, pod) {
			all = append(all, b)
		}
	}
	return all
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// lets reports whether the eviction API allows the eviction of the pod, given the status of its budget.
func lets(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	healthy := b.Status.DesiredHealthy > 0 && b.Status.CurrentHealthy >= b.Status.DesiredHealthy
	return !isReady(pod) && healthy || b.Status.ObservedGeneration == b.Generation && b.Status.DisruptionsAllowed > 0
}

// evict simulates the eviction API.
func (w *World) evict(pod *corev1.Pod) error {
	for _, b := range budgets(&w.api.shelves, pod) {
		if !lets(b, pod) {
			return apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
		}
	}
	w.disruptions.evicts(pod)
	for _, b := range budgets(&w.api.shelves, pod) {
		if isReady(pod) && b.Status.DisruptionsAllowed > 0 {
			edit(w.api, b, func(o *policyv1.PodDisruptionBudget) { o.Status.DisruptionsAllowed-- })
		}
	}
	w.api.delete(pod, nil)
	return nil
}

// recount starts the disruption controller of Kubernetes after a change of a pod or of a budget.
func (w *World) recount(o client.Object) {
	switch o.(type) {
	case *corev1.Pod, *policyv1.PodDisruptionBudget:
	default:
		return
	}
	if w.counting || len(w.api.shelves.of(kindOf(&policyv1.PodDisruptionBudget{})).objects) == 0 {
		return
	}
	w.counting = true
	w.Clock.in(w.between(100*time.Millisecond, 1500*time.Millisecond), func() {
		w.counting = false
		for _, b := range listOf[*policyv1.PodDisruptionBudget](w.api) {
			if fresh := w.statusOf(b); !fresh.same(b.Status) {
				edit(w.api, b, fresh.set)
			}
		}
	})
}

// budgetStatus is the part of the status of a budget that decisions depend on.
type budgetStatus struct {
	generation                          int64
	expected, healthy, desired, allowed int32
}

func (s budgetStatus) same(as policyv1.PodDisruptionBudgetStatus) bool {
	return s == budgetStatus{as.ObservedGeneration, as.ExpectedPods, as.CurrentHealthy, as.DesiredHealthy, as.DisruptionsAllowed}
}

func (s budgetStatus) set(b *policyv1.PodDisruptionBudget) {
	b.Status.ObservedGeneration, b.Status.ExpectedPods, b.Status.CurrentHealthy = s.generation, s.expected, s.healthy
	b.Status.DesiredHealthy, b.Status.DisruptionsAllowed = s.desired, s.allowed
}

func (w *World) statusOf(b *policyv1.PodDisruptionBudget) budgetStatus {
	s := budgetStatus{generation: b.Generation}
	for _, p := range w.Pods() {
		if !selects(b.Spec.Selector, p) {
			continue
		}
		s.expected = int32(w.ownerOf(p).replicas)
		if isReady(p) && p.DeletionTimestamp.IsZero() {
			s.healthy++
		}
	}
	s.desired = max(0, s.expected-b.Spec.MaxUnavailable.IntVal)
	s.allowed = max(0, s.healthy-s.desired)
	return s
}

// protect makes the existing and future pods of an app forbid their disruption, or allows it.
func (w *World) protect(app *corev1.Pod, forbids bool) {
	set := func(p *corev1.Pod) {
		delete(p.Annotations, karpv1.AnnotationDoNotDisrupt)
		if forbids {
			p.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}
		}
	}
	set(app)
	o := w.ownerOf(app)
	if o.template != nil {
		set(o.template)
	}
	for _, p := range o.deletable() {
		edit(w.api, p, set)
	}
}
