package convert

import (
	"slices"

	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

var onePod = *resource.NewQuantity(1, resource.DecimalSI)

// podRequests returns the resources that the pod uses on a node: the effective request of KEP-753 with sidecars and
// overhead, during an in-place resize the larger of the requested and the allocated amounts, and one of the node's
// pods. Amounts that the engine cannot handle are rejected and count as zero.
func podRequests(pod *corev1.Pod) ([]quantity.Amount, *model.Rejection) {
	if isPlain(pod) {
		return plainRequests(pod)
	}
	if refused := refuseAmounts(pod); refused != nil {
		return amounts(corev1.ResourceList{corev1.ResourcePods: onePod}, up), refused
	}
	list := podresource.PodRequests(pod, podresource.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
	list[corev1.ResourcePods] = onePod
	return amounts(list, up), nil
}

// isPlain reports whether the pod's requests are just those of its one container. Most pods are plain, and the
// general rule allocates ten maps for them.
func isPlain(pod *corev1.Pod) bool {
	return len(pod.Spec.Containers) == 1 && len(pod.Spec.InitContainers) == 0 && len(pod.Spec.Overhead) == 0 &&
		pod.Spec.Resources == nil && pod.Status.Resources == nil && len(pod.Status.AllocatedResources) == 0 &&
		len(pod.Status.ContainerStatuses) == 0
}

func plainRequests(pod *corev1.Pod) ([]quantity.Amount, *model.Rejection) {
	list := pod.Spec.Containers[0].Resources.Requests
	to := make([]quantity.Amount, 0, len(list)+1)
	for name, q := range list {
		if unreasonable(q) {
			return []quantity.Amount{{Name: string(corev1.ResourcePods), Value: 1}}, unreadable("spec.containers[0].resources.requests", name)
		}
		if value := units(name, q, up); value != 0 && name != corev1.ResourcePods {
			to = append(to, quantity.Amount{Name: string(name), Value: value})
		}
	}
	to = append(to, quantity.Amount{Name: string(corev1.ResourcePods), Value: 1})
	slices.SortFunc(to, compareAmounts)
	return to, nil
}

// refuseAmounts rejects unreasonable amounts: adding 1e100000000 to another amount takes too long.
func refuseAmounts(pod *corev1.Pod) *model.Rejection {
	if refused := amountsOf("spec.containers", pod.Spec.Containers); refused != nil {
		return refused
	}
	if refused := amountsOf("spec.initContainers", pod.Spec.InitContainers); refused != nil {
		return refused
	}
	if name, bad := beyond(pod.Spec.Overhead); bad {
		return unreadable("spec.overhead", name)
	}
	if pod.Spec.Resources != nil {
		if name, bad := beyond(pod.Spec.Resources.Requests); bad {
			return unreadable("spec.resources.requests", name)
		}
	}
	return statusAmounts(pod)
}

func amountsOf(list string, containers []corev1.Container) *model.Rejection {
	for i := range containers {
		if name, bad := beyond(containers[i].Resources.Requests); bad {
			return unreadable(at(list, i)+".resources.requests", name)
		}
	}
	return nil
}

func statusAmounts(pod *corev1.Pod) *model.Rejection {
	if name, bad := beyond(pod.Status.AllocatedResources); bad {
		return unreadable("status.allocatedResources", name)
	}
	if pod.Status.Resources != nil {
		if name, bad := beyond(pod.Status.Resources.Requests); bad {
			return unreadable("status.resources.requests", name)
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			if name, bad := beyond(statuses[i].AllocatedResources); bad {
				return unreadable(fmt.Sprintf("status of container %s, allocatedResources", statuses[i].Name), name)
			}
			if statuses[i].Resources == nil {
				continue
			}
			if name, bad := beyond(statuses[i].Resources.Requests); bad {
				return unreadable(fmt.Sprintf("status of container %s, resources.requests", statuses[i].Name), name)
			}
		}
	}
	return nil
}

func unreadable(list string, name corev1.ResourceName) *model.Rejection {
	return &model.Rejection{
		Field:  fmt.Sprintf("%s[%s]", list, name),
		Reason: "the amount is out of range; it must be 0, or from 1n to 9223372036854775807",
	}
}
