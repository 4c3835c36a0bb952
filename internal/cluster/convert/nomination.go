package convert

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NominationManager is the field manager under which this controller writes status.nominatedNodeName. It
// distinguishes these nominations from those of kube-scheduler, also after a restart.
const NominationManager = "karpenter-nominate"

// nominationFields is the remaining part of a pod's managed fields if this controller wrote the nomination.
const nominationFields = `{"f:status":{"f:nominatedNodeName":{}}}`

// NominatedByUs reports whether this controller wrote the pod's status.nominatedNodeName. It accepts pods from the
// API and pods after Trim.
func NominatedByUs(pod *corev1.Pod) bool {
	if pod.Status.NominatedNodeName == "" {
		return false
	}
	for i := range pod.ManagedFields {
		if ownsNomination(&pod.ManagedFields[i]) {
			return true
		}
	}
	return false
}

func ownsNomination(entry *metav1.ManagedFieldsEntry) bool {
	if entry.Manager != NominationManager || entry.Subresource != "status" || entry.FieldsV1 == nil {
		return false
	}
	var owned struct {
		Status struct {
			NominatedNodeName json.RawMessage `json:"f:nominatedNodeName"`
		} `json:"f:status"`
	}
	return json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) == nil && owned.Status.NominatedNodeName != nil
}

// SelectorOf returns the pod selector of a ReplicationController, ReplicaSet, StatefulSet or Deployment, nil for other
// objects.
func SelectorOf(obj any) *metav1.LabelSelector {
	switch o := obj.(type) {
	case *corev1.ReplicationController:
		return &metav1.LabelSelector{MatchLabels: o.Spec.Selector}
	case *appsv1.ReplicaSet:
		return o.Spec.Selector
	case *appsv1.StatefulSet:
		return o.Spec.Selector
	case *appsv1.Deployment:
		return o.Spec.Selector
	}
	return nil
}
