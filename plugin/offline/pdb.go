package offline

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// budgetProblem returns the error of the API server
// (https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/policy/validation/validation.go), nil for none. A
// missing selector selects no pod, an empty one every pod of the namespace; both are allowed.
func budgetProblem(spec *policyv1.PodDisruptionBudgetSpec) error {
	if spec.MinAvailable != nil && spec.MaxUnavailable != nil {
		return fmt.Errorf("spec.maxUnavailable: is %s beside spec.minAvailable %s, want one of the two", spec.MaxUnavailable.String(), spec.MinAvailable.String())
	}
	if err := shareProblem("spec.minAvailable", spec.MinAvailable); err != nil {
		return err
	}
	if err := shareProblem("spec.maxUnavailable", spec.MaxUnavailable); err != nil {
		return err
	}
	if p := spec.UnhealthyPodEvictionPolicy; p != nil && *p != policyv1.IfHealthyBudget && *p != policyv1.AlwaysAllow {
		return fmt.Errorf("spec.unhealthyPodEvictionPolicy: is %q, want %s or %s", *p, policyv1.IfHealthyBudget, policyv1.AlwaysAllow)
	}
	wrong := metav1validation.ValidateLabelSelector(spec.Selector, metav1validation.LabelSelectorValidationOptions{}, field.NewPath("spec", "selector"))
	if len(wrong) > 0 {
		return wrong[0]
	}
	return nil
}

// shareProblem returns what is wrong with a number of pods or a percentage of them.
func shareProblem(name string, share *intstr.IntOrString) error {
	const want = "want a number of pods, zero or more, or a percentage from \"0%\" to \"100%\""
	switch {
	case share == nil:
		return nil
	case share.Type == intstr.Int && share.IntVal < 0:
		return fmt.Errorf("%s: is %d, %s", name, share.IntVal, want)
	case share.Type == intstr.Int:
		return nil
	}
	digits := strings.TrimLeft(strings.TrimSuffix(share.StrVal, "%"), "0")
	if len(validation.IsValidPercent(share.StrVal)) > 0 || len(digits) > 3 || len(digits) == 3 && digits > "100" {
		return fmt.Errorf("%s: is %q, %s", name, share.StrVal, want)
	}
	return nil
}

// assumeHealthy gives objects of files the status that a cluster would have set. Pods on nodes without a contrary
// status are ready. PodDisruptionBudgets without a status get the one that the disruption controller would compute,
// with the number of a controller's known pods as its scale.
func (o *completion) assumeHealthy() {
	for _, p := range o.pods {
		if !p.live {
			assumeReady(p.object)
		}
	}
	var scales map[owner]int
	var pods podIndex
	for _, b := range o.budgets {
		if b.live || !bare(&b.object.Status) {
			continue
		}
		if scales == nil {
			pods = newPodIndex(o.pods)
			scales = pods.scales()
		}
		assumeStatus(b.object, pods.selected(b.object.Namespace, b.object.Spec.Selector), scales)
	}
}

// bare reports whether the status is not set.
func bare(status *policyv1.PodDisruptionBudgetStatus) bool {
	return status.ObservedGeneration == 0 && status.DisruptionsAllowed == 0 && status.CurrentHealthy == 0 &&
		status.DesiredHealthy == 0 && status.ExpectedPods == 0 && len(status.Conditions) == 0
}

func assumeReady(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
}

// scales counts the pods of each controller.
func (index podIndex) scales() map[owner]int {
	scales := map[owner]int{}
	for at, pods := range index {
		for _, pod := range pods {
			if of, has := ownerOf(pod); has && at == pod.Namespace { // the other entries are the same pods by label
				scales[of]++
			}
		}
	}
	return scales
}

// assumeStatus sets the status that the disruption controller computes
// (https://github.com/kubernetes/kubernetes/blob/master/pkg/controller/disruption/disruption.go).
func assumeStatus(pdb *policyv1.PodDisruptionBudget, pods []*corev1.Pod, scales map[owner]int) {
	expected, desired := healthyWanted(pdb, pods, scales)
	healthy := 0
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && ready(pod) {
			healthy++
		}
	}
	status := &pdb.Status
	status.ObservedGeneration = pdb.Generation
	status.ExpectedPods, status.DesiredHealthy, status.CurrentHealthy = int32(expected), int32(desired), int32(healthy)
	if expected > 0 && healthy > desired {
		status.DisruptionsAllowed = int32(healthy - desired)
	}
}

// healthyWanted returns the expected number of pods, and the required number of healthy ones.
func healthyWanted(pdb *policyv1.PodDisruptionBudget, pods []*corev1.Pod, scales map[owner]int) (expected, desired int) {
	scale, seen := 0, map[owner]bool{}
	for _, pod := range pods {
		if of, has := ownerOf(pod); has && !seen[of] {
			seen[of] = true
			scale += scales[of]
		}
	}
	switch least, most := pdb.Spec.MinAvailable, pdb.Spec.MaxUnavailable; {
	case most != nil:
		unavailable, err := intstr.GetScaledValueFromIntOrPercent(most, scale, true)
		if err != nil {
			return 0, 0
		}
		return scale, max(0, scale-unavailable)
	case least != nil && least.Type == intstr.Int:
		return len(pods), least.IntValue()
	case least != nil:
		available, err := intstr.GetScaledValueFromIntOrPercent(least, scale, true)
		if err != nil {
			return 0, 0
		}
		return scale, available
	}
	return 0, 0
}

func ready(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
