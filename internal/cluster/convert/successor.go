package convert

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Pods whose requests are changed while they run (KEP-1287). The pod that their controller creates in their place has
// the requests that it gives to new pods again: a plan that moves a pod with reduced requests must have room for that
// one.

// resizeSubresource is that by which the requests of a running pod are changed.
const resizeSubresource = "resize"

// Created are the requests that a controller gives to new pods, of the resources that a resize changes.
type Created struct{ CPU, Memory int64 }

// CreatedAs returns the requests of a pod, or of a pod of a template.
func CreatedAs(pod *corev1.Pod) Created {
	requests, _ := podRequests(pod)
	return createdOf(requests)
}

func createdOf(requests []quantity.Amount) Created {
	var c Created
	for _, a := range requests {
		switch a.Name {
		case string(corev1.ResourceCPU):
			c.CPU = a.Value
		case string(corev1.ResourceMemory):
			c.Memory = a.Value
		}
	}
	return c
}

// CreatedOf returns the requests of a converted pod.
func CreatedOf(spec *model.PodSpec) Created { return createdOf(spec.Requests) }

// Resized reports whether the requests of the pod were changed while it ran. It accepts pods from the API and pods
// after Trim.
func Resized(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.ManagedFields,
		func(entry metav1.ManagedFieldsEntry) bool { return entry.Subresource == resizeSubresource })
}

// Succeed sets the requests of the pod that the controller creates in place of a bound one: for each resource the
// larger of the pod's own and those of new pods.
func Succeed(spec *model.PodSpec, by Created) {
	own := CreatedOf(spec)
	if spec.State != model.Bound || !spec.Reschedulable || by.CPU <= own.CPU && by.Memory <= own.Memory {
		return
	}
	fresh := slices.DeleteFunc(slices.Clone(spec.Requests), func(a quantity.Amount) bool {
		return a.Name == string(corev1.ResourceCPU) || a.Name == string(corev1.ResourceMemory)
	})
	for _, a := range []quantity.Amount{{Name: string(corev1.ResourceCPU), Value: max(own.CPU, by.CPU)},
		{Name: string(corev1.ResourceMemory), Value: max(own.Memory, by.Memory)}} {
		if a.Value > 0 {
			fresh = append(fresh, a)
		}
	}
	slices.SortFunc(fresh, compareAmounts)
	spec.Successor = fresh
}
