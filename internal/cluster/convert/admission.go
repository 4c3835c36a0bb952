package convert

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
)

// Admission looks up the objects that admission plugins of the API server apply to new pods.
type Admission interface {
	// LimitRanges returns those of the namespace, in any order.
	LimitRanges(namespace string) []*corev1.LimitRange
	// RuntimeClass returns nil if there is none of the name.
	RuntimeClass(name string) *nodev1.RuntimeClass
}

// Admit changes a pod that is not created yet to the form that the API server will store, as far as placement depends
// on it: the defaults of its version, then those of the plugins LimitRanger and RuntimeClass. Admitting a pod twice
// changes nothing. It does not resolve priorities. It changes the pod's lists of containers and tolerations and its
// maps in place.
//
// Sources: pkg/apis/core/v1/defaults.go and plugin/pkg/admission/{limitranger,runtimeclass} of Kubernetes 1.36;
// https://kubernetes.io/docs/concepts/policy/limit-range/,
// https://kubernetes.io/docs/concepts/containers/runtime-class/.
func Admit(pod *corev1.Pod, by Admission) {
	spec := &pod.Spec
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			r := &containers[i].Resources
			r.Requests = withDefaults(r.Requests, r.Limits)
		}
	}
	defaultPodLevelRequests(pod)
	if by == nil {
		return
	}
	defaults := containerDefaults(by.LimitRanges(pod.Namespace))
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			containers[i].Resources.Requests = withDefaults(containers[i].Resources.Requests, defaults)
		}
	}
	if spec.RuntimeClassName != nil {
		applyRuntimeClass(spec, by.RuntimeClass(*spec.RuntimeClassName))
	}
}

// withDefaults returns the list with the defaults of the resources that it lacks.
func withDefaults(list, defaults corev1.ResourceList) corev1.ResourceList {
	for name, amount := range defaults {
		if _, given := list[name]; given {
			continue
		}
		if list == nil {
			list = corev1.ResourceList{}
		}
		list[name] = amount
	}
	return list
}

// defaultPodLevelRequests sets the default requests of a pod with pod-level limits (KEP-2837): those of its
// containers if a resource can be overcommitted, else the limits.
func defaultPodLevelRequests(pod *corev1.Pod) {
	r := pod.Spec.Resources
	if r == nil || len(r.Limits) == 0 || refuseAmounts(pod) != nil {
		return
	}
	containers := maps.Clone(podresource.AggregateContainerRequests(pod, podresource.PodResourcesOptions{}))
	maps.DeleteFunc(containers, func(name corev1.ResourceName, _ resource.Quantity) bool {
		return name != corev1.ResourceCPU && name != corev1.ResourceMemory
	})
	r.Requests = withDefaults(r.Requests, containers)
	limits := maps.Clone(r.Limits)
	maps.DeleteFunc(limits, func(name corev1.ResourceName, _ resource.Quantity) bool {
		return !podresource.IsSupportedPodLevelResource(name)
	})
	r.Requests = withDefaults(r.Requests, limits)
}

// containerDefaults returns the default requests of containers without requests. LimitRanger applies several
// LimitRanges in an unspecified order, so the largest default counts.
func containerDefaults(ranges []*corev1.LimitRange) corev1.ResourceList {
	var defaults corev1.ResourceList
	for _, r := range ranges {
		for name, amount := range defaultRequests(r) {
			if before, known := defaults[name]; known && units(name, before, up) >= units(name, amount, up) {
				continue
			}
			if defaults == nil {
				defaults = corev1.ResourceList{}
			}
			defaults[name] = amount
		}
	}
	return defaults
}

// defaultRequests returns the defaults of one LimitRange. The API server fills in the missing fields of a stored
// LimitRange, but files lack them: the request defaults to the default limit, this to the maximum, and the remaining
// ones to the minimum. Items of the type Pod have no defaults.
func defaultRequests(r *corev1.LimitRange) corev1.ResourceList {
	var all corev1.ResourceList
	for i := range r.Spec.Limits {
		item := &r.Spec.Limits[i]
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		requests := maps.Clone(item.DefaultRequest)
		for _, otherwise := range []corev1.ResourceList{item.Default, item.Max, item.Min} {
			requests = withDefaults(requests, otherwise)
		}
		if all == nil {
			all = corev1.ResourceList{}
		}
		maps.Copy(all, requests)
	}
	return all
}

// applyRuntimeClass adds the scheduling and overhead of the class. A pod that contradicts its class is never
// admitted; it is left unchanged.
func applyRuntimeClass(spec *corev1.PodSpec, class *nodev1.RuntimeClass) {
	if class == nil {
		return
	}
	if class.Overhead != nil && len(spec.Overhead) == 0 {
		spec.Overhead = class.Overhead.PodFixed
	}
	if class.Scheduling == nil {
		return
	}
	for key, value := range class.Scheduling.NodeSelector {
		if _, given := spec.NodeSelector[key]; given {
			continue
		}
		if spec.NodeSelector == nil {
			spec.NodeSelector = map[string]string{}
		}
		spec.NodeSelector[key] = value
	}
	for _, toleration := range class.Scheduling.Tolerations {
		if !slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool { return sameToleration(t, toleration) }) {
			spec.Tolerations = append(spec.Tolerations, toleration)
		}
	}
}

func sameToleration(a, b corev1.Toleration) bool {
	return a.Key == b.Key && a.Operator == b.Operator && a.Value == b.Value && a.Effect == b.Effect
}
