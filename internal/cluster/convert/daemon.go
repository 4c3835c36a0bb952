package convert

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Daemon converts a DaemonSet: its template after admission by the API server and, resource by resource, the actual
// requests of its pods of the current template if they are larger. Webhooks and autoscalers change pods in ways that
// a template does not show. around and running may be nil.
func Daemon(set *appsv1.DaemonSet, v *Vocabulary, around *Around, running *DaemonPods) model.DaemonSpec {
	if around == nil {
		around = &Around{}
	}
	pod := &corev1.Pod{Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Labels = set.Namespace, set.Spec.Template.Labels
	Admit(pod, around.Admission)
	requests, _ := podRequests(pod)
	return model.DaemonSpec{
		UID: string(set.UID), Namespace: set.Namespace, Name: set.Name,
		Requests:     largest(requests, running.of(set)...),
		Alternatives: alternatives(&pod.Spec, v),
		HostPorts:    hostPorts(pod),
		Labels:       pod.Labels,
		Terms:        terms(pod, v, &Around{}),
		Tolerations:  append(tolerations(pod.Spec.Tolerations), daemonTolerations(&pod.Spec)...),
	}
}

// daemonTolerations returns the tolerations of the spec and those that the DaemonSet controller adds to every daemon
// pod. Source: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations
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
