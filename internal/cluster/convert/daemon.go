package convert

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Daemon converts a DaemonSet by its template: limits are copied to requests that are missing, as admission will do,
// and the tolerations that the DaemonSet controller adds are there.
func Daemon(set *appsv1.DaemonSet, v *Vocabulary) model.DaemonSpec {
	pod := &corev1.Pod{Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Labels = set.Namespace, set.Spec.Template.Labels
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			requestLimits(&containers[i].Resources)
		}
	}
	if pod.Spec.Resources != nil {
		requestLimits(pod.Spec.Resources)
	}
	requests, _ := podRequests(pod)
	return model.DaemonSpec{
		UID: string(set.UID), Namespace: set.Namespace, Name: set.Name,
		Requests:     requests,
		Alternatives: alternatives(&pod.Spec, v),
		HostPorts:    hostPorts(pod),
		Labels:       pod.Labels,
		Terms:        terms(pod, v, &Around{}),
		Tolerations:  append(tolerations(pod.Spec.Tolerations), daemonTolerations(&pod.Spec)...),
	}
}

// requestLimits asks for the limit where nothing is asked for.
func requestLimits(r *corev1.ResourceRequirements) {
	missing := map[corev1.ResourceName]resource.Quantity{}
	for name, limit := range r.Limits {
		if _, asked := r.Requests[name]; !asked {
			missing[name] = limit
		}
	}
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	maps.Copy(r.Requests, missing)
}

// daemonTolerations are those that the DaemonSet controller gives to every daemon pod.
// Source: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations
func daemonTolerations(spec *corev1.PodSpec) []model.Toleration {
	added := []model.Toleration{
		{Key: corev1.TaintNodeNotReady, Exists: true, Effect: model.NoExecute},
		{Key: corev1.TaintNodeUnreachable, Exists: true, Effect: model.NoExecute},
		{Key: corev1.TaintNodeDiskPressure, Exists: true, Effect: model.NoSchedule},
		{Key: corev1.TaintNodeMemoryPressure, Exists: true, Effect: model.NoSchedule},
		{Key: corev1.TaintNodePIDPressure, Exists: true, Effect: model.NoSchedule},
		{Key: corev1.TaintNodeUnschedulable, Exists: true, Effect: model.NoSchedule},
	}
	if spec.HostNetwork {
		added = append(added, model.Toleration{Key: corev1.TaintNodeNetworkUnavailable, Exists: true, Effect: model.NoSchedule})
	}
	return added
}
