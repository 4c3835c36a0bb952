package v1alpha1

import (
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Kind is the kind of NodeOverlays.
const Kind = "NodeOverlay"

var (
	// GroupVersion is karpenter.sh/v1alpha1.
	GroupVersion = schema.GroupVersion{Group: karpv1.Group, Version: "v1alpha1"}
	// SchemeBuilder collects the registration of this package's kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers this package's kinds with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &NodeOverlay{}, &NodeOverlayList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// NodeOverlay changes the prices and the capacity of the instance types that match its requirements.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodeoverlays,scope=Cluster,categories=karpenter,shortName={overlays}
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether the overlay is valid and in effect"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Weight",type="integer",JSONPath=".spec.weight",priority=1,description="Rank among the overlays, higher first"
// +kubebuilder:subresource:status
type NodeOverlay struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the desired state.
	// +required
	Spec NodeOverlaySpec `json:"spec"`
	// Status is the observed state.
	// +optional
	Status NodeOverlayStatus `json:"status,omitempty"`
}

// NodeOverlayList is a list of NodeOverlays.
// +kubebuilder:object:root=true
type NodeOverlayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeOverlay `json:"items"`
}

// NodeOverlaySpec selects instance types and offerings, and describes the change.
// +kubebuilder:validation:XValidation:message="price and priceAdjustment cannot both be set",rule="!has(self.price) || !has(self.priceAdjustment)"
type NodeOverlaySpec struct {
	// Requirements on the labels of the NodePool's template, of the instance type and of the offering. All of them
	// must hold. The list is required, and may be empty: then it matches everything.
	// +kubebuilder:validation:MaxItems:=100
	// +kubebuilder:validation:XValidation:message="operators In and NotIn need at least one value",rule="self.all(x, !(x.operator in ['In', 'NotIn']) || (has(x.values) && size(x.values) > 0))"
	// +kubebuilder:validation:XValidation:message="operators Gt, Lt, Gte and Lte need exactly one value, an integer that is zero or greater",rule="self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(x.values) && size(x.values) == 1 && x.values[0].matches('^[0-9]+$') && int(x.values[0]) >= 0))"
	// +listType=atomic
	// +required
	Requirements []Requirement `json:"requirements"`
	// Price of the matching offerings, in USD per hour, as a decimal number. It replaces the provider's price.
	// +kubebuilder:validation:Pattern:=`^\d+(\.\d+)?$`
	// +optional
	Price *string `json:"price,omitempty"`
	// PriceAdjustment changes the price of the matching offerings by an amount in USD per hour ("+0.05", "-0.1"), or
	// by a percentage ("-10%", "+5.5%"). The result is at least zero.
	// +kubebuilder:validation:Pattern:=`^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$`
	// +optional
	PriceAdjustment *string `json:"priceAdjustment,omitempty"`
	// Capacity is added to the matching instance types. cpu, memory, ephemeral-storage and pods cannot be set.
	// +kubebuilder:validation:XValidation:message="invalid resource restricted: cpu, memory, ephemeral-storage and pods cannot be set",rule="self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))"
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Weight is the rank of the overlay. Where several overlays change the same price or resource, the one with the
	// highest weight applies. Two of the same weight conflict. Unset: 0.
	// +kubebuilder:validation:Minimum:=1
	// +kubebuilder:validation:Maximum:=10000
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// Requirement restricts one label. The controller checks it too, and reports violations in the condition
// ValidationSucceeded: earlier definitions accepted any key and value.
type Requirement struct {
	// Key of the label.
	// +kubebuilder:validation:MaxLength:=316
	// +kubebuilder:validation:Pattern:=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	// +kubebuilder:validation:XValidation:message="a label of the domain karpenter.sh cannot be required, except karpenter.sh/capacity-type and karpenter.sh/nodepool",rule="self in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !self.matches('^[^/]*karpenter[.]sh(/|$)')"
	// +kubebuilder:validation:XValidation:message="the label kubernetes.io/hostname cannot be required",rule="self != 'kubernetes.io/hostname'"
	// +required
	Key string `json:"key"`
	// Operator that relates the label to the values: In, NotIn, Exists, DoesNotExist, or Gt, Lt, Gte and Lte,
	// which compare integers.
	// +required
	Operator karpv1.Operator `json:"operator"`
	// Values of the label: at least one for In and NotIn; exactly one integer, zero or greater,
	// for Gt, Lt, Gte and Lte; none for Exists and DoesNotExist.
	// +kubebuilder:validation:items:MaxLength:=63
	// +kubebuilder:validation:items:Pattern:=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitempty"`
}

// NodeOverlayStatus is the observed state of an overlay.
type NodeOverlayStatus struct {
	// Conditions of the overlay. Ready is True if it is valid and conflicts with no other overlay.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []status.Condition `json:"conditions,omitempty"`
}

// ConditionValidationSucceeded is True if the overlay is valid and does not conflict with another one.
const ConditionValidationSucceeded = "ValidationSucceeded"

// Reasons of ConditionValidationSucceeded, False.
const (
	ReasonRuntimeValidation = "RuntimeValidation" // a field is invalid
	ReasonConflict          = "Conflict"          // another overlay of the same weight changes the same price or resource
)

// StatusConditions returns the conditions. Ready depends on ValidationSucceeded.
func (o *NodeOverlay) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions(ConditionValidationSucceeded).For(o, opts...)
}

// GetConditions implements status.Object.
func (o *NodeOverlay) GetConditions() []status.Condition { return o.Status.Conditions }

// SetConditions implements status.Object.
func (o *NodeOverlay) SetConditions(conditions []status.Condition) {
	o.Status.Conditions = karpv1.WithReasons(conditions)
}
