package convert

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Objects are trimmed before they are stored. Of a typical pod with two containers, two thirds are managed fields,
// environments, probes, mounts and container statuses; of a node nearly everything is its images. No decision depends
// on them.
//
// Invariant: a trimmed object is converted like the original, and Trim may be applied again. A new field of pods or
// nodes that any code reads from the mirror or the manager's cache must be kept here (TestTrim, FuzzPod).

// Trim removes unused fields from an object before it is stored. It changes the object. If this controller nominated a
// pod, or its requests were changed while it ran, one minimal entry of the managed fields remains for NominatedByUs and
// for Resized. Trimmed objects must be written by patches only: an update would write the remaining fields as the
// complete object.
func Trim(obj metav1.Object) {
	trimWorkload(obj)
	delete(obj.GetAnnotations(), corev1.LastAppliedConfigAnnotation) // the whole manifest once more
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

// trimWorkload keeps only the pod selectors of workloads and Services, and the scale of workloads (scale.go). Of the pods
// of DaemonSets and Deployments it keeps what trimPod keeps of pods: their environments and arguments may be secret.
func trimWorkload(obj metav1.Object) {
	if trimScale(obj) {
		return
	}
	switch o := obj.(type) {
	case *corev1.Service:
		o.Spec, o.Status = corev1.ServiceSpec{Selector: o.Spec.Selector}, corev1.ServiceStatus{}
	case *corev1.ReplicationController:
		o.Spec, o.Status = corev1.ReplicationControllerSpec{Selector: o.Spec.Selector}, corev1.ReplicationControllerStatus{}
	case *appsv1.DaemonSet:
		trimPodSpec(&o.Spec.Template.Spec)
	case *appsv1.Deployment:
		trimPodSpec(&o.Spec.Template.Spec)
	}
}

// trimNode removes what the kubelet reports for schedulers, attachers and people: images, which are most of a node,
// volumes, addresses and versions.
func trimNode(node *corev1.Node) {
	s := &node.Status
	s.Images, s.VolumesInUse, s.VolumesAttached, s.Config, s.RuntimeHandlers = nil, nil, nil, nil, nil
	s.Addresses, s.NodeInfo, s.DaemonEndpoints, s.Features = nil, corev1.NodeSystemInfo{}, corev1.NodeDaemonEndpoints{}, nil
	node.Spec.PodCIDR, node.Spec.PodCIDRs = "", nil
}

func trimPod(pod *corev1.Pod) {
	var kept []metav1.ManagedFieldsEntry
	if pod.Spec.NodeName != "" {
		pod.Status.NominatedNodeName = ""
	}
	if NominatedByUs(pod) {
		kept = append(kept, metav1.ManagedFieldsEntry{
			Manager:     NominationManager,
			Operation:   metav1.ManagedFieldsOperationUpdate,
			APIVersion:  "v1",
			FieldsType:  "FieldsV1",
			FieldsV1:    metav1.NewFieldsV1(nominationFields),
			Subresource: "status",
		})
	}
	if Resized(pod) {
		kept = append(kept, metav1.ManagedFieldsEntry{Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
			Subresource: resizeSubresource})
	}
	pod.ManagedFields = kept
	trimPodStatus(pod)
	pod.Annotations = readAnnotations(pod.Annotations)
	trimPodSpec(&pod.Spec)
	pod.Spec.Hostname, pod.Spec.Subdomain = "", ""
	if isDaemon(pod) {
		pod.Spec.Affinity = nil // it names the node
	}
}

func trimPodSpec(spec *corev1.PodSpec) {
	spec.Containers = trimContainers(spec.Containers, spec.HostNetwork)
	spec.InitContainers = trimContainers(spec.InitContainers, spec.HostNetwork)
	spec.Volumes = trimVolumes(spec.Volumes)
	spec.EphemeralContainers, spec.SecurityContext, spec.ImagePullSecrets, spec.HostAliases, spec.DNSConfig, spec.ReadinessGates = nil, nil, nil, nil, nil, nil
}

// annotationsOfPods are the annotations that are read from pods. Others may take up to 256 KiB per pod.
var annotationsOfPods = []string{
	karpv1.AnnotationDoNotDisrupt, karpv1.AnnotationDoNotEvict, karpv1.AnnotationSafeToEvict, karpv1.AnnotationPodDeletionCost,
}

// readAnnotations keeps the annotations in annotationsOfPods.
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

// trimContainers keeps the resources and host ports of containers.
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

// trimVolumes keeps the volumes with a claim, at their original indexes, which messages refer to.
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

// trimPodStatus removes addresses and container statuses. It keeps the container statuses with resources while one
// differs from the container's spec: then a resize is in progress.
func trimPodStatus(pod *corev1.Pod) {
	s := &pod.Status
	s.HostIP, s.HostIPs, s.PodIP, s.PodIPs = "", nil, "", nil
	s.EphemeralContainerStatuses, s.ResourceClaimStatuses, s.ExtendedResourceClaimStatus = nil, nil, nil
	s.Conditions = trimConditions(s.Conditions)
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

// trimConditions keeps whether the pod is scheduled, ready or disrupted. When it became ready is not read.
func trimConditions(all []corev1.PodCondition) []corev1.PodCondition {
	var kept []corev1.PodCondition
	for i := range all {
		switch c := all[i]; c.Type {
		case corev1.PodScheduled, corev1.DisruptionTarget:
			c.LastProbeTime = metav1.Time{}
			kept = append(kept, c)
		case corev1.PodReady:
			kept = append(kept, corev1.PodCondition{Type: c.Type, Status: c.Status})
		}
	}
	return kept
}

// asIs reports whether the containers have the resources in their spec, according to the statuses.
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
		// Comparing 1e100000000 takes too long.
		if other, has := b[name]; !has || unreasonable(amount) || unreasonable(other) || amount.Cmp(other) != 0 {
			return false
		}
	}
	return true
}
