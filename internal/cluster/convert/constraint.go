package convert

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// reject says why the pod is not to be placed, nil when it may be. The order is: it does not want us, it is wrong, we
// cannot do it yet.
func reject(pod *corev1.Pod, alternatives [][]label.Requirement, v *Vocabulary) *model.Rejection {
	if optOut(alternatives) {
		return &model.Rejection{
			Silent: true, Field: "spec",
			Reason: "requires a node that is in no pool (" + model.LabelPool + " DoesNotExist)",
		}
	}
	if refused := refuseFields(pod); refused != nil {
		return refused
	}
	if len(alternatives) > 0 {
		if refused := refuseSelector(pod, v); refused != nil {
			return refused
		}
	}
	for _, refuse := range notYet {
		if refused := refuse(pod); refused != nil {
			return refused
		}
	}
	return nil
}

// notYet are the constraints that a pod may state and the engine cannot honour yet. Each goes when the engine learns
// it. To place such a pod as if it had not asked would buy nodes that it cannot use.
var notYet = []func(*corev1.Pod) *model.Rejection{
	refuseSpread, refusePodAffinity, refusePodAntiAffinity, refuseVolumes, refuseHostPorts, refuseDevices,
}

func unsupported(field, what string) *model.Rejection {
	return &model.Rejection{Unsupported: true, Field: field, Reason: what + " not supported yet; no node is launched for the pod"}
}

func refuseSpread(pod *corev1.Pod) *model.Rejection {
	for i := range pod.Spec.TopologySpreadConstraints {
		if pod.Spec.TopologySpreadConstraints[i].WhenUnsatisfiable == corev1.DoNotSchedule {
			return unsupported(at("spec.topologySpreadConstraints", i), "topology spread with whenUnsatisfiable: DoNotSchedule is")
		}
	}
	return nil
}

func refusePodAffinity(pod *corev1.Pod) *model.Rejection {
	a := pod.Spec.Affinity
	if a == nil || a.PodAffinity == nil || len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) == 0 {
		return nil
	}
	return unsupported("spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution", "required pod affinity is")
}

func refusePodAntiAffinity(pod *corev1.Pod) *model.Rejection {
	a := pod.Spec.Affinity
	if a == nil || a.PodAntiAffinity == nil || len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) == 0 {
		return nil
	}
	return unsupported("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution", "required pod anti-affinity is")
}

func refuseVolumes(pod *corev1.Pod) *model.Rejection {
	for i := range pod.Spec.Volumes {
		switch volume := &pod.Spec.Volumes[i]; {
		case volume.PersistentVolumeClaim != nil:
			return unsupported(at("spec.volumes", i)+".persistentVolumeClaim", "persistent volumes are")
		case volume.Ephemeral != nil:
			return unsupported(at("spec.volumes", i)+".ephemeral", "generic ephemeral volumes are")
		}
	}
	return nil
}

func refuseHostPorts(pod *corev1.Pod) *model.Rejection {
	if refused := hostPortIn("spec.containers", pod.Spec.Containers); refused != nil {
		return refused
	}
	return hostPortIn("spec.initContainers", pod.Spec.InitContainers)
}

func hostPortIn(list string, containers []corev1.Container) *model.Rejection {
	for i := range containers {
		for j := range containers[i].Ports {
			if port := containers[i].Ports[j].HostPort; port > 0 {
				return unsupported(fmt.Sprintf("%s[%d].ports[%d].hostPort", list, i, j), "host ports are")
			}
		}
	}
	return nil
}

func refuseDevices(pod *corev1.Pod) *model.Rejection {
	if len(pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	return unsupported(at("spec.resourceClaims", 0), "dynamic resource allocation is")
}
