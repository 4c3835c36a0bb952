package room

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podresource "k8s.io/component-helpers/resource"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
)

// Labels that virtual pods carry in memory. They are those of Karpenter, and are never written to the API.
const (
	labelFake      = "karpenter.sh/capacity-buffer-fake-pod"
	labelName      = "karpenter.sh/capacity-buffer-name"
	labelNamespace = "karpenter.sh/capacity-buffer-namespace"
)

// virtualPod returns the pod of that number, from 0, of a buffer. It is like one that kube-scheduler found unschedulable,
// without volumes that need a claim of their own.
func virtualPod(buffer *v1beta1.CapacityBuffer, template *corev1.PodTemplateSpec, number int64) *corev1.Pod {
	pod := &corev1.Pod{Spec: *template.Spec.DeepCopy()}
	pod.Name = fmt.Sprintf("capacity-buffer-%s-%d", buffer.Name, number)
	pod.Namespace = buffer.Namespace
	pod.UID = PodUID(buffer.UID, number)
	pod.CreationTimestamp = buffer.CreationTimestamp
	pod.Labels = map[string]string{labelFake: "true", labelName: buffer.Name, labelNamespace: buffer.Namespace}
	for key, value := range template.Labels {
		pod.Labels[key] = value
	}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.Kind, Name: buffer.Name,
		UID: buffer.UID, Controller: new(true)}}
	pod.Spec.NodeName, pod.Spec.SchedulingGates, pod.Spec.Volumes = "", nil, nil
	pod.Spec.Priority = new(int32(math.MinInt32))
	for _, v := range template.Spec.Volumes {
		if v.PersistentVolumeClaim == nil && v.Ephemeral == nil {
			pod.Spec.Volumes = append(pod.Spec.Volumes, *v.DeepCopy())
		}
	}
	unschedulable := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}
	pod.Status.Conditions = []corev1.PodCondition{unschedulable}
	return pod
}

// PodUID returns the UID of the virtual pod of that number of a buffer.
func PodUID(buffer types.UID, number int64) types.UID {
	return types.UID(fmt.Sprintf("%s-%d", buffer, number))
}

// Pods returns the virtual pods of the buffer.
func (q *Request) Pods() []*corev1.Pod {
	pods := make([]*corev1.Pod, q.Count)
	for n := range q.Count {
		pods[n] = virtualPod(q.Buffer, q.Shape.Template, n)
	}
	return pods
}

// requestOf returns the requests of one pod of the template, with sidecars and overhead.
func requestOf(template *corev1.PodTemplateSpec) corev1.ResourceList {
	return podresource.PodRequests(&corev1.Pod{Spec: template.Spec}, podresource.PodResourcesOptions{})
}
