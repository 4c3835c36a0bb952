package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KindQuota is the kind of CapacityQuotas.
const KindQuota = "CapacityQuota"

// CapacityQuota limits the capacity of the nodes with certain labels, whichever NodePool or group they belong to.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=capacityquotas,scope=Cluster,categories=autoscaling,shortName={cq}
// +kubebuilder:printcolumn:name="Valid",type="string",JSONPath=".status.conditions[?(@.type==\"cluster-autoscaler.kubernetes.io/valid\")].status",description="Whether the quota is in effect"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:subresource:status
type CapacityQuota struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the desired state.
	// +required
	Spec CapacityQuotaSpec `json:"spec"`
	// Status is the observed state.
	// +optional
	Status CapacityQuotaStatus `json:"status,omitempty"`
}

// CapacityQuotaList is a list of CapacityQuotas.
// +kubebuilder:object:root=true
type CapacityQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityQuota `json:"items"`
}

// CapacityQuotaSpec selects nodes, and limits what they have together.
type CapacityQuotaSpec struct {
	// Selector of the labels of nodes. Unset: all nodes.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Limits of the nodes that the selector selects.
	// +required
	Limits CapacityQuotaLimits `json:"limits"`
}

// CapacityQuotaLimits are amounts of resources.
type CapacityQuotaLimits struct {
	// Resources by name: cpu, memory, nodes (their number), any extended resource, and
	// karpenter-go.github.io/usd-per-hour (their price).
	// +kubebuilder:validation:MinProperties:=1
	// +kubebuilder:validation:MaxProperties:=20
	// +required
	Resources map[corev1.ResourceName]resource.Quantity `json:"resources"`
}

// CapacityQuotaStatus is the observed state of a quota.
type CapacityQuotaStatus struct {
	// Used is what the nodes have together, with those that are about to be launched.
	// +optional
	Used *CapacityQuotaLimits `json:"used,omitempty"`
	// ObservedGeneration is the generation of the spec that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions of the quota.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Condition types of a CapacityQuota, and reasons.
const (
	ConditionReconciled = "Reconciled" // the usage in the status is that of the spec
	ConditionValid      = "cluster-autoscaler.kubernetes.io/valid"

	ReasonReconciliationSucceeded = "ReconciliationSucceeded"
	ReasonReconciliationFailed    = "ReconciliationFailed"
)
