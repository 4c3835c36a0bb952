package node

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// severalBudgets is part of the response (with code 500) to the eviction of a pod that several PodDisruptionBudgets
// select (k8s.io/kubernetes, pkg/registry/core/pod/storage/eviction.go).
const severalBudgets = "more than one PodDisruptionBudget"

// refused reports whether the response to an eviction is a refusal, in contrast to an error: a budget that allows
// none (429), a budget with too many evictions in progress or an admission policy (403), several budgets (500), or a
// Retry-After that exceeds the time limit of the request (a budget that is still being computed).
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

// code returns the HTTP status of a response: 200 for success, 0 without a response.
func code(err error) int {
	if err == nil {
		return http.StatusOK
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return int(status.Status().Code)
	}
	return 0
}

// reportRefusal emits an event on the node and a log line, once its drain has lasted for a while, with the pod that
// blocks it, the response of the API server, the budgets of the pod, and the duration of the drain.
func (e *evictor) reportRefusal(ctx context.Context, pod *corev1.Pod, cause error) {
	node := &corev1.Node{}
	if err := e.r.Client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node); err != nil {
		return
	}
	waited, long := e.r.drained(node)
	if !long {
		return
	}
	var budgets policyv1.PodDisruptionBudgetList
	if err := e.r.Client.List(ctx, &budgets, client.InNamespace(pod.Namespace)); err != nil {
		e.log.Error(err, "looking for the budgets of a pod", "pod", pod.Namespace+"/"+pod.Name)
	}
	names := budgetsOf(pod, budgets.Items)
	e.r.Recorder.Emit(telemetry.EvictionRefused(node, pod, responseText(cause), names, waited))
	if e.r.Recorder.Once(drainLogged, append([]string{node.Name}, names...)...) {
		e.log.Info("a drain waits for a pod that may not be evicted", "node", node.Name, "nodePool", node.Labels[karpv1.LabelNodePool],
			"pod", pod.Namespace+"/"+pod.Name, "podDisruptionBudgets", names, "reason", responseText(cause),
			"waited", waited.Round(time.Second).String())
	}
}

// responseText returns the API server's response with its causes, which contain the name and the numbers of the budget.
func responseText(err error) string {
	text := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			text += " " + cause.Message
		}
	}
	return text
}

// budgetsOf returns the names of the PodDisruptionBudgets in the pod's namespace that select the pod.
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
