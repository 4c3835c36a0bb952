package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of CapacityBuffer.
const Group = "autoscaling.x-k8s.io"

// Kind is the kind of CapacityBuffers.
const Kind = "CapacityBuffer"

var (
	// GroupVersion is autoscaling.x-k8s.io/v1beta1.
	GroupVersion = schema.GroupVersion{Group: Group, Version: "v1beta1"}
	// SchemeBuilder collects the registration of this package's kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers this package's kinds with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &CapacityBuffer{}, &CapacityBufferList{}, &CapacityQuota{}, &CapacityQuotaList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// StrategyActiveCapacity is the provisioning strategy that keeps room on nodes that run.
const StrategyActiveCapacity = "buffer.x-k8s.io/active-capacity"

// CapacityBuffer keeps room for a number of pods of one shape.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=capacitybuffers,scope=Namespaced,categories=autoscaling,shortName={cb}
// +kubebuilder:printcolumn:name="Strategy",type="string",JSONPath=".spec.provisioningStrategy",description="How the room is provided"
// +kubebuilder:printcolumn:name="PodTemplate",type="string",JSONPath=".status.podTemplateRef.name",description="PodTemplate with the shape of the pods"
// +kubebuilder:printcolumn:name="Replicas",type="integer",JSONPath=".status.replicas",description="Number of pods for which room is kept"
// +kubebuilder:printcolumn:name="ConditionsType",type="string",JSONPath=".status.conditions[*].type",description="Types of the conditions"
// +kubebuilder:printcolumn:name="ConditionsStatus",type="string",JSONPath=".status.conditions[*].status",description="Status of the conditions"
// +kubebuilder:printcolumn:name="ConditionsReason",type="string",JSONPath=".status.conditions[*].reason",description="Reasons of the conditions"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas
type CapacityBuffer struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the desired state.
	// +required
	Spec CapacityBufferSpec `json:"spec"`
	// Status is the observed state.
	// +optional
	Status CapacityBufferStatus `json:"status,omitempty"`
}

// CapacityBufferList is a list of CapacityBuffers.
// +kubebuilder:object:root=true
type CapacityBufferList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityBuffer `json:"items"`
}

// CapacityBufferSpec describes the shape and the number of the pods for which room is kept.
// +kubebuilder:validation:XValidation:message="podTemplateRef needs replicas or limits",rule="!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)"
// +kubebuilder:validation:XValidation:message="podTemplateRef and scalableRef cannot both be set",rule="!has(self.podTemplateRef) || !has(self.scalableRef)"
type CapacityBufferSpec struct {
	// ProvisioningStrategy is how the room is provided. Defaults to buffer.x-k8s.io/active-capacity: on nodes that
	// run.
	// +kubebuilder:default:="buffer.x-k8s.io/active-capacity"
	// +optional
	ProvisioningStrategy *string `json:"provisioningStrategy,omitempty"`
	// PodTemplateRef names a PodTemplate of the same namespace with the shape of the pods.
	// +optional
	PodTemplateRef *LocalObjectRef `json:"podTemplateRef,omitempty"`
	// ScalableRef names a workload of the same namespace with the shape of the pods.
	// +optional
	ScalableRef *ScalableRef `json:"scalableRef,omitempty"`
	// Replicas is the number of pods. With percentage, the larger number applies.
	// +kubebuilder:validation:Minimum:=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Percentage is the number of pods in percent of the replicas of the workload that scalableRef names, rounded
	// up.
	// +kubebuilder:validation:Minimum:=0
	// +optional
	Percentage *int32 `json:"percentage,omitempty"`
	// Limits on the total requests of the pods, by resource name. Without replicas and percentage, they determine
	// the number of pods.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// LocalObjectRef names an object of the same namespace.
type LocalObjectRef struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength:=1
	// +required
	Name string `json:"name"`
}

// ScalableRef names a workload of the same namespace.
type ScalableRef struct {
	// APIGroup of the workload, for example apps. Empty: the core group.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind of the workload, for example Deployment.
	// +kubebuilder:validation:MinLength:=1
	// +required
	Kind string `json:"kind"`
	// Name of the workload.
	// +kubebuilder:validation:MinLength:=1
	// +required
	Name string `json:"name"`
}

// CapacityBufferStatus is the observed state of a buffer.
type CapacityBufferStatus struct {
	// PodTemplateRef names the PodTemplate with the shape of the pods.
	// +optional
	PodTemplateRef *LocalObjectRef `json:"podTemplateRef,omitempty"`
	// PodTemplateGeneration is the generation of that PodTemplate.
	// +optional
	PodTemplateGeneration *int64 `json:"podTemplateGeneration,omitempty"`
	// Replicas is the number of pods for which room is to be kept.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// ReadyReplicas is the number of pods for which there is room on initialized nodes. Not part of the shared API.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`
	// ProvisioningStrategy is the strategy in effect.
	// +optional
	ProvisioningStrategy *string `json:"provisioningStrategy,omitempty"`
	// Conditions of the buffer.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Condition types of a CapacityBuffer.
const (
	ConditionReadyForProvisioning = "ReadyForProvisioning" // the shape and the number of the pods are known
	ConditionProvisioning         = "Provisioning"         // there is room for all pods on initialized nodes
	ConditionLimitedByQuotas      = "LimitedByQuotas"      // a quota reduces the number of pods
)

// Reasons of the conditions of a CapacityBuffer.
const (
	ReasonResolved            = "Resolved"
	ReasonPodTemplateNotFound = "PodTemplateNotFound"
	ReasonScalableRefNotFound = "ScalableRefNotFound"
	ReasonResolutionFailed    = "ResolutionFailed"

	ReasonFitsExistingCapacity    = "FitsExistingCapacity"
	ReasonRequiresNewCapacity     = "RequiresNewCapacity"
	ReasonBufferEmpty             = "BufferEmpty"
	ReasonNotReadyForProvisioning = "NotReadyForProvisioning"
	ReasonInfeasible              = "Infeasible"
	ReasonPaused                  = "Paused"

	ReasonResourceQuotasAllocated = "ResourceQuotasAllocated"
	ReasonVirtualPodLimit         = "VirtualPodLimit"
	ReasonNotLimited              = "NotLimited"
)
