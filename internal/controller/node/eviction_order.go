package node

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	podresource "k8s.io/component-helpers/resource"
)

// Within a group, the largest pods are evicted first, and the others shortly after, one after the other. When they
// are scheduled again in that order, large pods find contiguous room before small ones fragment it. Disruption plans
// simulate this order, as if all pods were in one group.
const (
	evictPace = 20 * time.Millisecond
	// evictTail bounds the delay of the last pod.
	evictTail = 2 * time.Second
)

// largestFirst returns the pods ordered by the larger of their shares of the node's CPU and memory, the largest first,
// then by namespace and name.
func largestFirst(pods []*corev1.Pod, node *corev1.Node) []*corev1.Pod {
	sizes := make(map[*corev1.Pod]float64, len(pods))
	for _, p := range pods {
		requests := podresource.PodRequests(p, podresource.PodResourcesOptions{})
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			need, all := requests[name], node.Status.Allocatable[name]
			if !all.IsZero() {
				sizes[p] = max(sizes[p], need.AsApproximateFloat64()/all.AsApproximateFloat64())
			}
		}
	}
	list := slices.Clone(pods)
	slices.SortFunc(list, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// evictionDelay returns the delay of the pod with the given index after the first.
func evictionDelay(turn int) time.Duration { return min(time.Duration(turn)*evictPace, evictTail) }
