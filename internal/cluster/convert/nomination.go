package convert

import (
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NominationManager is the field manager under which we write status.nominatedNodeName. It is how we tell our
// nominations from kube-scheduler's, also after a restart.
const NominationManager = "karpenter-nominate"

// nominationFields is what remains of a pod's managed fields when the nomination is ours.
const nominationFields = `{"f:status":{"f:nominatedNodeName":{}}}`

// NominatedByUs reports whether the pod's status.nominatedNodeName is ours. It works on pods as the API sends them and
// on those that Trim has seen.
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

// SelectorOf is how a ReplicationController, ReplicaSet or StatefulSet selects its pods, nil for anything else.
func SelectorOf(obj any) *metav1.LabelSelector {
	switch o := obj.(type) {
	case *corev1.ReplicationController:
		return &metav1.LabelSelector{MatchLabels: o.Spec.Selector}
	case *appsv1.ReplicaSet:
		return o.Spec.Selector
	case *appsv1.StatefulSet:
		return o.Spec.Selector
	}
	return nil
}
