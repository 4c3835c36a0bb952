package fakeapi

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// delete removes an object, or begins its removal where finalizers or a pod's grace period delay it.
func (q request) delete(body []byte) (ref, error) {
	options, err := readDelete(body)
	if err != nil {
		return ref{}, err
	}
	return q.removed(options)
}

// readDelete reads the options of a deletion.
func readDelete(body []byte) (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	switch {
	case len(body) == 0:
		return options, nil
	case body[0] == '{':
		return options, json.Unmarshal(body, options)
	}
	_, _, err := decoder.Decode(body, nil, options)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return options, nil
}

func (q request) removed(options *metav1.DeleteOptions) (ref, error) {
	r, content, err := q.stored()
	if err != nil {
		return r, err
	}
	if p := options.Preconditions; p != nil && (p.UID != nil && *p.UID != content.GetUID() ||
		p.ResourceVersion != nil && *p.ResourceVersion != content.GetResourceVersion()) {
		return ref{}, apierrors.NewConflict(q.shelf.kind.groupResource(), q.name, fmt.Errorf("precondition failed: the object is %s at %s",
			content.GetUID(), content.GetResourceVersion()))
	}
	grace, old := q.grace(content, options), content.GetDeletionGracePeriodSeconds()
	if grace == 0 && len(content.GetFinalizers()) == 0 {
		switch { // watches see the period of a pod first
		case old != nil && *old > 0:
			content.SetDeletionGracePeriodSeconds(&grace)
			content = q.store(content).content.DeepCopy()
		case old == nil && options.GracePeriodSeconds == nil && q.shelf.kind.Kind == "Pod":
			content = q.leave(content, 0).content.DeepCopy()
		}
		return ref{q.end(content), 0}, nil
	}
	if content.GetDeletionTimestamp() != nil && (old == nil || *old <= grace) {
		return r, nil // it is being removed already, not later than this request says
	}
	return q.leave(content, grace), nil
}

// leave stores that an object is being removed, with a period in seconds.
func (q request) leave(content *unstructured.Unstructured, grace int64) ref {
	until := metav1.NewTime(time.Now().Truncate(time.Second).Add(time.Duration(grace) * time.Second))
	content.SetDeletionTimestamp(&until)
	content.SetDeletionGracePeriodSeconds(&grace)
	if generation := content.GetGeneration(); generation > 0 {
		content.SetGeneration(generation + 1)
	}
	return q.store(content)
}

// grace is how long a pod is left to its kubelet, in seconds; other objects have none.
func (q request) grace(content *unstructured.Unstructured, options *metav1.DeleteOptions) int64 {
	if q.shelf.kind.Kind != "Pod" {
		return 0
	}
	pod := &corev1.Pod{}
	if typed(content, pod) != nil || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded ||
		pod.Status.Phase == corev1.PodFailed {
		return 0
	}
	switch {
	case options.GracePeriodSeconds != nil:
		return *options.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}

// evict deletes a pod if its PodDisruptionBudgets allow it, and counts it there.
func (q request) evict(body []byte) (ref, error) {
	eviction := &policyv1.Eviction{}
	if len(body) > 0 && body[0] == '{' {
		if err := json.Unmarshal(body, eviction); err != nil {
			return ref{}, apierrors.NewBadRequest(err.Error())
		}
	} else if _, _, err := decoder.Decode(body, nil, eviction); err != nil {
		return ref{}, apierrors.NewBadRequest(err.Error())
	}
	r, content, err := q.stored()
	if err != nil {
		return r, err
	}
	if err := q.allowed(content.GetLabels()); err != nil {
		return ref{}, err
	}
	options := eviction.DeleteOptions
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	if err := q.mark(content); err != nil {
		return ref{}, err
	}
	_, err = q.removed(options)
	return ref{}, err
}

// mark writes the condition of a pod that is evicted
// (https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions).
func (q request) mark(content *unstructured.Unstructured) error {
	pod := &corev1.Pod{}
	if err := typed(content, pod); err != nil {
		return err
	}
	pod.Status.Conditions = append(dropped(pod.Status.Conditions, corev1.DisruptionTarget), corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
		LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second))})
	return q.write(pod)
}

// write stores a pod.
func (q request) write(pod *corev1.Pod) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(q.shelf.kind.GroupVersionKind)
	q.store(u)
	return nil
}

// allowed takes a disruption from the budgets that select the labels, or returns an error if one has none left.
func (q request) allowed(marks labels.Set) error {
	budgets := q.shelves[policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")]
	found, _, _ := budgets.page(position{}, 0, in(q.namespace, selector{labels.Everything(), fields.Everything()}))
	var charged []*policyv1.PodDisruptionBudget
	for _, r := range found {
		content, err := r.whole()
		if err != nil {
			return err
		}
		budget := &policyv1.PodDisruptionBudget{}
		if err := typed(content, budget); err != nil {
			return err
		}
		selects, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || !selects.Matches(marks) {
			continue
		}
		if budget.Status.DisruptionsAllowed <= 0 {
			refused := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
			refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause,
				Message: "The disruption budget " + budget.Name + " needs more healthy pods"}}
			return refused
		}
		charged = append(charged, budget)
	}
	for _, budget := range charged {
		budget.Status.DisruptionsAllowed--
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(budget)
		if err != nil {
			return err
		}
		at := request{Request: q.Request, Server: q.Server, shelf: budgets, namespace: budget.Namespace, name: budget.Name}
		at.store(&unstructured.Unstructured{Object: content})
	}
	return nil
}

// bind sets the node of a pod.
func (q request) bind(body []byte) (ref, error) {
	binding, err := decode(body)
	if err != nil {
		return ref{}, apierrors.NewBadRequest(err.Error())
	}
	r, content, err := q.stored()
	if err != nil {
		return r, err
	}
	pod := &corev1.Pod{}
	if err := typed(content, pod); err != nil {
		return r, err
	}
	if pod.Spec.NodeName != "" {
		return ref{}, apierrors.NewConflict(q.shelf.kind.groupResource(), q.name,
			fmt.Errorf("pod %s is already assigned to node %q", q.name, pod.Spec.NodeName))
	}
	pod.Spec.NodeName, _, _ = unstructured.NestedString(binding.Object, "target", "name")
	pod.Status.Conditions = append(dropped(pod.Status.Conditions, corev1.PodScheduled), corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second))})
	pod.Status.NominatedNodeName = ""
	return ref{}, q.write(pod)
}

// dropped returns the conditions without those of a type.
func dropped(conditions []corev1.PodCondition, of corev1.PodConditionType) []corev1.PodCondition {
	var kept []corev1.PodCondition
	for _, c := range conditions {
		if c.Type != of {
			kept = append(kept, c)
		}
	}
	return kept
}
