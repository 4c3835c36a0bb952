package node

import (
	"context"
	"errors"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// severalBudgets is in the answer (with code 500) to the eviction of a pod that several PodDisruptionBudgets select
// (k8s.io/kubernetes, pkg/registry/core/pod/storage/eviction.go).
const severalBudgets = "more than one PodDisruptionBudget"

// refused says whether the answer to an eviction is a no, in contrast to an error: a budget that allows none (429), a
// budget with too many evictions under way or an admission policy (403), several budgets (500), or to come back later
// for longer than we wait (a budget that is still being computed).
func refused(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	switch code(err) {
	case http.StatusTooManyRequests, http.StatusForbidden:
		return true
	case http.StatusInternalServerError:
		return strings.Contains(err.Error(), severalBudgets)
	}
	return false
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

// complain says on the node, once it has been drained for a while, which pod keeps it, what the API said, and which budgets the
// pod has.
func (e *evictor) complain(ctx context.Context, pod *corev1.Pod, cause error) {
	node := &corev1.Node{}
	if err := e.r.Client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node); err != nil || !e.r.tells(node) {
		return
	}
	var budgets policyv1.PodDisruptionBudgetList
	if err := e.r.Client.List(ctx, &budgets, client.InNamespace(pod.Namespace)); err != nil {
		e.log.Error(err, "looking for the budgets of a pod", "pod", pod.Namespace+"/"+pod.Name)
	}
	e.r.Recorder.Emit(telemetry.EvictionRefused(node, pod, said(cause), budgetsOf(pod, budgets.Items)))
}

// said is the API's answer with its causes, which name the budget and its numbers.
func said(err error) string {
	text := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			text += " " + cause.Message
		}
	}
	return text
}

// budgetsOf are the names of the PodDisruptionBudgets, of the pod's namespace, that select the pod.
func budgetsOf(pod *corev1.Pod, budgets []policyv1.PodDisruptionBudget) []string {
	var names []string
	for i := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budgets[i].Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			names = append(names, budgets[i].Name)
		}
	}
	return names
}
