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

// Trim drops managed fields from an object that is about to be kept, because they are a third of its size. On a pod
// that we nominated one minimal entry remains, which is what NominatedByUs needs. Of workloads and Services only what
// selects pods is kept. It changes the object and may be applied again. A pod that was trimmed must be written by patches only: an update would send the remains as the truth.
func Trim(obj metav1.Object) {
	trimWorkload(obj)
	pod, ok := obj.(*corev1.Pod)
	if !ok || !NominatedByUs(pod) {
		obj.SetManagedFields(nil)
		return
	}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager:     NominationManager,
		Operation:   metav1.ManagedFieldsOperationUpdate,
		APIVersion:  "v1",
		FieldsType:  "FieldsV1",
		FieldsV1:    metav1.NewFieldsV1(nominationFields),
		Subresource: "status",
	}}
}

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
