package convert

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Objects are trimmed before they are kept: of a pod as clusters have them, with two containers, two thirds are managed
// fields, environments, probes, mounts and reports of containers, and of a node nearly all are its images. Nothing here decides by them.
//
// Invariant: the conversion of a trimmed object is that of the object, and Trim may be applied again. A new field of pods or
// nodes that some code reads from the mirror or the manager's cache must be kept here (TestTrim, FuzzPod).

// Trim drops what nobody reads from an object that is about to be kept. On a pod that we nominated one minimal entry of the
// managed fields remains, which is what NominatedByUs needs. It changes the object. What was trimmed must be written by
// patches only: an update would send the remains as the truth.
func Trim(obj metav1.Object) {
	trimWorkload(obj)
	switch o := obj.(type) {
	case *corev1.Pod:
		trimPod(o)
	case *corev1.Node:
		trimNode(o)
		o.SetManagedFields(nil)
	default:
		obj.SetManagedFields(nil)
	}
}

// trimWorkload keeps of workloads and Services what selects pods.
func trimWorkload(obj metav1.Object) {
	switch o := obj.(type) {
	case *corev1.Service:
		o.Spec, o.Status = corev1.ServiceSpec{Selector: o.Spec.Selector}, corev1.ServiceStatus{}
	case *corev1.ReplicationController:
		o.Spec, o.Status = corev1.ReplicationControllerSpec{Selector: o.Spec.Selector}, corev1.ReplicationControllerStatus{}
	case *appsv1.ReplicaSet:
		o.Spec, o.Status = appsv1.ReplicaSetSpec{Selector: o.Spec.Selector}, appsv1.ReplicaSetStatus{}
	case *appsv1.StatefulSet:
		o.Spec, o.Status = appsv1.StatefulSetSpec{Selector: o.Spec.Selector}, appsv1.StatefulSetStatus{}
	}
}

// trimNode drops what kubelet tells schedulers and attachers of a node: images, which are most of it, and volumes.
func trimNode(node *corev1.Node) {
	s := &node.Status
	s.Images, s.VolumesInUse, s.VolumesAttached, s.Config, s.RuntimeHandlers = nil, nil, nil, nil, nil
}

func trimPod(pod *corev1.Pod) {
	if NominatedByUs(pod) {
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager:     NominationManager,
			Operation:   metav1.ManagedFieldsOperationUpdate,
			APIVersion:  "v1",
			FieldsType:  "FieldsV1",
			FieldsV1:    metav1.NewFieldsV1(nominationFields),
			Subresource: "status",
		}}
	} else {
		pod.ManagedFields = nil
	}
	trimPodStatus(pod)
	pod.Annotations = readAnnotations(pod.Annotations)
	spec := &pod.Spec
	spec.Containers = trimContainers(spec.Containers, spec.HostNetwork)
	spec.InitContainers = trimContainers(spec.InitContainers, spec.HostNetwork)
	spec.Volumes = trimVolumes(spec.Volumes)
	spec.EphemeralContainers, spec.SecurityContext, spec.ImagePullSecrets, spec.HostAliases, spec.DNSConfig, spec.ReadinessGates = nil, nil, nil, nil, nil, nil
}

// annotationsOfPods are those that are read from pods. Others may be 256 KiB a pod.
var annotationsOfPods = []string{
	karpv1.AnnotationDoNotDisrupt, karpv1.AnnotationDoNotEvict, karpv1.AnnotationSafeToEvict, karpv1.AnnotationPodDeletionCost,
}

// readAnnotations keeps the annotations that are read.
func readAnnotations(all map[string]string) map[string]string {
	var kept map[string]string
	for _, key := range annotationsOfPods {
		if value, has := all[key]; has {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

// trimContainers keeps what containers ask of their node: resources, and ports of the host.
func trimContainers(containers []corev1.Container, hostNetwork bool) []corev1.Container {
	for i := range containers {
		c := &containers[i]
		var ports []corev1.ContainerPort
		for _, port := range c.Ports {
			if port.HostPort != 0 || hostNetwork {
				ports = append(ports, port)
			}
		}
		*c = corev1.Container{Name: c.Name, Resources: c.Resources, Ports: ports, RestartPolicy: c.RestartPolicy}
	}
	return containers
}

// trimVolumes keeps those with a claim, at the places in the list at which messages name them.
func trimVolumes(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for i, volume := range volumes {
		if volume.PersistentVolumeClaim == nil && volume.Ephemeral == nil {
			continue
		}
		for len(kept) < i {
			kept = append(kept, corev1.Volume{Name: volumes[len(kept)].Name})
		}
		kept = append(kept, corev1.Volume{Name: volume.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: volume.PersistentVolumeClaim, Ephemeral: volume.Ephemeral,
		}})
	}
	return kept
}

// trimPodStatus drops addresses and reports of containers; of the latter those on resources remain while one differs from
// what the container asks for: then a resize is under way.
func trimPodStatus(pod *corev1.Pod) {
	s := &pod.Status
	s.HostIP, s.HostIPs, s.PodIP, s.PodIPs = "", nil, "", nil
	s.EphemeralContainerStatuses, s.ResourceClaimStatuses, s.ExtendedResourceClaimStatus = nil, nil, nil
	if asIs(pod, s.ContainerStatuses) && asIs(pod, s.InitContainerStatuses) {
		s.ContainerStatuses, s.InitContainerStatuses = nil, nil
		return
	}
	for _, statuses := range [][]corev1.ContainerStatus{s.ContainerStatuses, s.InitContainerStatuses} {
		for i := range statuses {
			c := &statuses[i]
			*c = corev1.ContainerStatus{Name: c.Name, Resources: c.Resources, AllocatedResources: c.AllocatedResources}
		}
	}
}

// asIs reports whether the containers have what they ask for, as far as the statuses say.
func asIs(pod *corev1.Pod, statuses []corev1.ContainerStatus) bool {
	for i := range statuses {
		s := &statuses[i]
		if s.Resources == nil && len(s.AllocatedResources) == 0 {
			continue
		}
		known := false
		for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
			for j := range containers {
				if c := &containers[j]; c.Name == s.Name {
					known = true
					if s.Resources == nil || !sameAmounts(c.Resources.Requests, s.Resources.Requests) || !sameAmounts(c.Resources.Requests, s.AllocatedResources) {
						return false
					}
				}
			}
		}
		if !known {
			return false
		}
	}
	return true
}

func sameAmounts(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, amount := range a {
		// To compare 1e100000000 takes forever.
		if other, has := b[name]; !has || unreasonable(amount) || unreasonable(other) || amount.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
