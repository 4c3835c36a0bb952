package room

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
)

// MostVirtualPods is the maximum number of virtual pods of all buffers together. It is that of the Cluster Autoscaler's
// injection of pods.
const MostVirtualPods = 5000

// noWorkload is the number of replicas where no workload is referenced.
const noWorkload = -1

// count returns for how many pods a buffer asks: the larger of replicas and percentage of the workload's replicas, at
// most as many as the limits allow. Without replicas and percentage, the limits alone determine the number. request is
// that of one pod, replicas that of the workload.
func count(spec *v1beta1.CapacityBufferSpec, request corev1.ResourceList, replicas int64) int64 {
	most := within(spec.Limits, request)
	asked, wanted := int64(0), false
	if spec.Replicas != nil {
		asked, wanted = int64(*spec.Replicas), true
	}
	if spec.Percentage != nil && spec.ScalableRef != nil {
		wanted = true
		if replicas > 0 && *spec.Percentage > 0 {
			asked = max(asked, (replicas*int64(*spec.Percentage)+99)/100)
		}
	}
	switch {
	case !wanted && most < 0:
		return 0
	case !wanted:
		return most
	case most < 0:
		return asked
	}
	return min(asked, most)
}

// whyNone returns why the count of a buffer is 0.
func whyNone(spec *v1beta1.CapacityBufferSpec, request corev1.ResourceList, replicas int64) string {
	names := make([]string, 0, len(spec.Limits))
	for name := range spec.Limits {
		names = append(names, string(name))
	}
	slices.Sort(names)
	limits, most := strings.Join(names, ", "), within(spec.Limits, request)
	ofWorkload := spec.Percentage != nil && spec.ScalableRef != nil
	switch {
	case most == 0:
		return "spec.limits: one pod requests more of " + limits + " than they allow"
	case ofWorkload && *spec.Percentage > 0 && replicas <= 0:
		return fmt.Sprintf("spec.percentage: %s %s has no replicas", spec.ScalableRef.Kind, spec.ScalableRef.Name)
	case ofWorkload:
		return "spec.percentage is 0"
	case spec.Replicas != nil:
		return "spec.replicas is 0"
	case len(names) > 0:
		return "spec.limits: the pods request no " + limits + ", so their number does not follow from it; set spec.replicas"
	}
	return "spec has neither replicas, nor limits, nor a percentage of a scalableRef"
}

// within returns how many times the request fits into the limits, -1 for no limit. Resources that are not requested are
// not limited. If no resource is in both, and there are limits, nothing fits by them: the result is -1.
func within(limits, request corev1.ResourceList) int64 {
	most := int64(-1)
	for name, limit := range limits {
		one := request[name]
		if one.Sign() <= 0 {
			continue
		}
		if n := max(0, times(limit, one)); most < 0 || n < most {
			most = n
		}
	}
	return most
}

// times returns how many times an amount fits into another, rounded down.
func times(limit, one resource.Quantity) int64 {
	const exact = int64(1) << 50 // larger amounts are compared in whole units
	if limit.Value() > exact/1000 || one.Value() > exact/1000 {
		return limit.Value() / max(1, one.Value())
	}
	return limit.MilliValue() / max(1, one.MilliValue())
}

// quotaUse is what buffers have taken of the quotas of a namespace, by name of the quota.
type quotaUse map[string]corev1.ResourceList

// withinQuotas returns how many of n pods the quotas of the namespace allow beside what exists and what other buffers
// have taken, and the names of the quotas that allow fewer than n. It takes the pods that are allowed.
func (u quotaUse) withinQuotas(quotas []corev1.ResourceQuota, pod *corev1.PodSpec, request corev1.ResourceList, n int64) (int64, []string) {
	allowed := n
	var by []string
	for i := range quotas {
		q := &quotas[i]
		if !concerns(q, pod, request) {
			continue
		}
		for name, hard := range q.Status.Hard {
			one := perPod(name, request)
			if one.IsZero() {
				continue
			}
			rest := hard.DeepCopy()
			rest.Sub(q.Status.Used[name])
			rest.Sub(u[q.Name][name])
			fits := max(0, times(rest, one))
			if fits < n && !slices.Contains(by, q.Name) {
				by = append(by, q.Name)
			}
			allowed = min(allowed, fits)
		}
	}
	for i := range quotas {
		q := &quotas[i]
		if !concerns(q, pod, request) {
			continue
		}
		if u[q.Name] == nil {
			u[q.Name] = corev1.ResourceList{}
		}
		for name := range q.Status.Hard {
			all, taken := perPod(name, request), u[q.Name][name]
			all.Mul(allowed)
			taken.Add(all)
			u[q.Name][name] = taken
		}
	}
	slices.Sort(by)
	return allowed, by
}

// concerns reports whether the quota counts pods of the shape: it has no scopes, or those that every such pod has. Quotas
// for priority classes and other selections do not count virtual pods.
func concerns(q *corev1.ResourceQuota, pod *corev1.PodSpec, request corev1.ResourceList) bool {
	if q.Spec.ScopeSelector != nil {
		return false
	}
	for _, scope := range q.Spec.Scopes {
		switch {
		case scope == corev1.ResourceQuotaScopeNotTerminating && pod.ActiveDeadlineSeconds == nil:
		case scope == corev1.ResourceQuotaScopeTerminating && pod.ActiveDeadlineSeconds != nil:
		case scope == corev1.ResourceQuotaScopeNotBestEffort && len(request) > 0:
		case scope == corev1.ResourceQuotaScopeBestEffort && len(request) == 0:
		default:
			return false
		}
	}
	return true
}

// perPod returns how much one pod uses of a quota's resource.
func perPod(name corev1.ResourceName, request corev1.ResourceList) resource.Quantity {
	switch name {
	case corev1.ResourcePods, "count/pods":
		return *resource.NewQuantity(1, resource.DecimalSI)
	}
	return request[corev1.ResourceName(strings.TrimPrefix(string(name), corev1.DefaultResourceRequestsPrefix))]
}

// fairly reduces the numbers so that their sum is at most total: small numbers stay, large ones get equal shares.
func fairly(numbers []int64, total int64) []int64 {
	shares := slices.Clone(numbers)
	order := make([]int, len(numbers))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(min(max(numbers[a]-numbers[b], -1), 1)) })
	for i, at := range order {
		shares[at] = min(numbers[at], total/int64(len(order)-i))
		total -= shares[at]
	}
	return shares
}
