package v1

import corev1 "k8s.io/api/core/v1"

// Operator relates a label to the values of a Requirement.
// +kubebuilder:validation:Enum:={In,NotIn,Exists,DoesNotExist,Gt,Lt,Gte,Lte}
type Operator string

// The operators. The four bounds compare the label's value as an integer.
const (
	OperatorIn           Operator = "In"           // the label has one of the values
	OperatorNotIn        Operator = "NotIn"        // the label is absent or has none of the values
	OperatorExists       Operator = "Exists"       // the label is present, whatever its value
	OperatorDoesNotExist Operator = "DoesNotExist" // the label is absent
	OperatorGt           Operator = "Gt"           // greater than the one value
	OperatorLt           Operator = "Lt"           // less than the one value
	OperatorGte          Operator = "Gte"          // greater than or equal to the one value
	OperatorLte          Operator = "Lte"          // less than or equal to the one value
)

// Requirement restricts one label of the nodes to launch. Several requirements on one key must all hold.
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
	Operator Operator `json:"operator"`
	// Values of the label: at least one for In; exactly one integer, zero or greater,
	// for Gt, Lt, Gte and Lte; none for Exists and DoesNotExist.
	// +kubebuilder:validation:items:MaxLength:=63
	// +kubebuilder:validation:items:Pattern:=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitempty"`
	// MinValues is the minimum number of distinct values of this label among the instance types of a launch
	// request. Alpha.
	// +kubebuilder:validation:Minimum:=1
	// +kubebuilder:validation:Maximum:=50
	// +optional
	MinValues *int `json:"minValues,omitempty"`
}

// RequirementOf converts a requirement of a pod's node selector term.
func RequirementOf(r corev1.NodeSelectorRequirement) Requirement {
	return Requirement{Key: r.Key, Operator: Operator(r.Operator), Values: r.Values}
}

// NodeClassReference names the provider's object that configures nodes: images, networks, identities.
type NodeClassReference struct {
	// Group is the API group of the node class, for example karpenter.kwok.sh.
	// +kubebuilder:validation:Pattern:=`^[^/]*$`
	// +kubebuilder:validation:XValidation:message="group must not be empty",rule="self != ''"
	// +required
	Group string `json:"group"`
	// Kind of the node class, for example KWOKNodeClass.
	// +kubebuilder:validation:XValidation:message="kind must not be empty",rule="self != ''"
	// +required
	Kind string `json:"kind"`
	// Name of the node class.
	// +kubebuilder:validation:XValidation:message="name must not be empty",rule="self != ''"
	// +required
	Name string `json:"name"`
}
