package convert

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// reject returns the reason for which the pod must not be placed, or nil. The order is: the pod opts out, it is
// invalid, it is not supported yet.
func reject(pod *corev1.Pod, alternatives [][]label.Requirement, v *Vocabulary) *model.Rejection {
	if optOut(alternatives) {
		return &model.Rejection{
			Silent: true, Field: "spec",
			Reason: "requires a node that is in no pool (" + model.LabelPool + " DoesNotExist)",
		}
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

// notYet holds the checks for constraints that a pod may have and the engine does not support yet. Placing such a pod
// without the constraint would launch nodes that it cannot use.
var notYet = []func(*corev1.Pod) *model.Rejection{refuseDevices}

func unsupported(field, what string) *model.Rejection {
	return &model.Rejection{Unsupported: true, Field: field, Reason: what + " not supported yet; no node is launched for the pod"}
}

func refuseDevices(pod *corev1.Pod) *model.Rejection {
	if len(pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	return unsupported(at("spec.resourceClaims", 0), "dynamic resource allocation is")
}
