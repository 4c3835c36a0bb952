package builtin

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Warnings returns what an API server would warn about: fractions of a byte, such as 512m of memory, and rules between
// pods that select none.
func Warnings(object runtime.Object) []string {
	spec, path := specOf(object)
	if spec == nil {
		return nil
	}
	var list []string
	for _, group := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", spec.InitContainers}, {"containers", spec.Containers}} {
		for i := range group.containers {
			at := path.Child(group.name).Index(i).Child("resources")
			list = append(list, fractions(group.containers[i].Resources.Limits, at.Child("limits"))...)
			list = append(list, fractions(group.containers[i].Resources.Requests, at.Child("requests"))...)
		}
	}
	for i := range spec.TopologySpreadConstraints {
		list = append(list, selects(spec.TopologySpreadConstraints[i].LabelSelector, path.Child("topologySpreadConstraints").Index(i))...)
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		list = append(list, termsSelect(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("affinity", "podAffinity"))...)
	}
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		list = append(list, termsSelect(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("affinity", "podAntiAffinity"))...)
	}
	return list
}

func termsSelect(terms []corev1.PodAffinityTerm, weighted []corev1.WeightedPodAffinityTerm, path *field.Path) []string {
	var list []string
	for i := range terms {
		list = append(list, selects(terms[i].LabelSelector, path.Child(required).Index(i))...)
	}
	for i := range weighted {
		list = append(list, selects(weighted[i].PodAffinityTerm.LabelSelector, path.Child(preferred).Index(i).Child("podAffinityTerm"))...)
	}
	return list
}

func selects(selector *metav1.LabelSelector, path *field.Path) []string {
	if selector != nil {
		return nil
	}
	return []string{path.Child("labelSelector").String() + ": a null labelSelector results in matching no pod"}
}

func fractions(amounts corev1.ResourceList, path *field.Path) []string {
	var list []string
	for _, name := range []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if value, given := amounts[name]; given && value.MilliValue()%1000 != 0 {
			list = append(list, fmt.Sprintf("%s: fractional byte value %q is invalid, must be an integer", path.Key(string(name)), value.String()))
		}
	}
	return list
}

// specOf returns the specification of a pod, or of the pods of a workload, and its path; nil for other kinds.
func specOf(object runtime.Object) (*corev1.PodSpec, *field.Path) {
	path := specPath.Child("template", "spec")
	switch o := object.(type) {
	case *corev1.Pod:
		return &o.Spec, specPath
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec, path
	case *appsv1.ReplicaSet:
		return &o.Spec.Template.Spec, path
	case *appsv1.StatefulSet:
		return &o.Spec.Template.Spec, path
	case *appsv1.DaemonSet:
		return &o.Spec.Template.Spec, path
	case *corev1.ReplicationController:
		if o.Spec.Template != nil {
			return &o.Spec.Template.Spec, path
		}
	case *batchv1.Job:
		return &o.Spec.Template.Spec, path
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template.Spec, specPath.Child("jobTemplate").Child("spec", "template", "spec")
	}
	return nil, nil
}
