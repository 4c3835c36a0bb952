package node

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	podresource "k8s.io/component-helpers/resource"
)

// Within a group the largest pods are asked first, and the others a little later one after the other: started again in
// that order they find room that smaller ones would have scattered over. Disruption plans rehearse this order, as if all pods
// were of one group.
const (
	evictPace = 20 * time.Millisecond
	// evictTail bounds how much later the last pod is asked.
	evictTail = 2 * time.Second
)

// inTurn orders pods by the larger of the parts of the node's cpu and memory that they ask for, the largest first, then by
// namespace and name.
func inTurn(pods []*corev1.Pod, node *corev1.Node) []*corev1.Pod {
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

// pace is how much later than the first the pod of that turn is asked.
func pace(turn int) time.Duration { return min(time.Duration(turn)*evictPace, evictTail) }
