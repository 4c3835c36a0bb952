package v1alpha5

import (
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Kind is the kind of Provisioners.
const Kind = "Provisioner"

var (
	// GroupVersion is karpenter.sh/v1alpha5.
	GroupVersion = schema.GroupVersion{Group: karpv1.Group, Version: "v1alpha5"}
	// SchemeBuilder collects the registration of this package's kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers this package's kinds with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Provisioner{}, &ProvisionerList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Provisioner is what a NodePool was before v1beta1, often together with how machines are made. It becomes a NodePool and,
// unless it names an AWSNodeTemplate, a node class, which it owns; its status tells what has no counterpart today.
// Write a NodePool instead: karpenter migrate shows it.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=provisioners,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="NodePool",type="string",JSONPath=".status.nodePool",description="NodePool that it became"
// +kubebuilder:printcolumn:name="NodeClass",type="string",JSONPath=".status.nodeClass",description="Node class of the nodes"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether nodes can be launched"
// +kubebuilder:printcolumn:name="Translated",type="string",JSONPath=".status.conditions[?(@.type==\"Translated\")].status",description="Whether all that it says could be said today"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Written",type="string",JSONPath=".status.version",priority=1,description="Version that it was written in"
type Provisioner struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what the owner wants, in the words of v1alpha3, v1alpha4 or v1alpha5.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	Spec *apiextensionsv1.JSON `json:"spec,omitempty"`
	// Status is what the object has become.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status ProvisionerStatus `json:"status,omitempty"`
}

// ProvisionerList is a list of Provisioners.
// +kubebuilder:object:root=true
type ProvisionerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Provisioner `json:"items"`
}

// ProvisionerStatus is what a Provisioner has become.
type ProvisionerStatus struct {
	Translation `json:",inline"`
	// NodePool is the name of the NodePool that it became.
	// +optional
	NodePool string `json:"nodePool,omitempty"`
	// NodeClass is the kind and the name of the node class that the NodePool names.
	// +optional
	NodeClass string `json:"nodeClass,omitempty"`
	// Resources is the sum of the capacity of the NodePool's nodes.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// Translation is what could and could not be said of an older object today.
type Translation struct {
	// Version is the one that most of the spec was written in.
	// +optional
	Version string `json:"version,omitempty"`
	// Notes are the fields that are said differently today, or not at all.
	// +listType=atomic
	// +optional
	Notes []Note `json:"notes,omitempty"`
	// Conditions: Ready, Active, Applied, Translated, and NodePoolReady or NodeClassReady.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []status.Condition `json:"conditions,omitempty"`
}

// Note is what became of one field.
type Note struct {
	// Field is the path of the field in this object.
	Field string `json:"field"`
	// Effect is what happened to it: carried, defaulted, repaired, changed or impossible.
	Effect string `json:"effect"`
	// To is the path of what it became, in the NodePool unless it begins with another kind.
	// +optional
	To string `json:"to,omitempty"`
	// Reason says why, and what to do if its meaning is lost.
	Reason string `json:"reason"`
}

// Condition types of older objects. Ready is true when all but Translated and Active are.
const (
	ConditionActive         = "Active"         // of Provisioners, as their versions documented it: the same as Ready
	ConditionTranslated     = "Translated"     // everything that the object says could be said today
	ConditionApplied        = "Applied"        // what it became is in the API
	ConditionNodePoolReady  = "NodePoolReady"  // of Provisioners: the NodePool is Ready
	ConditionNodeClassReady = "NodeClassReady" // of AWSNodeTemplates: the EC2NodeClass is Ready
)

// Reasons of these conditions.
const (
	ReasonPartsLost   = "PartsLost"   // of Translated: notes of the effect impossible say which
	ReasonNameTaken   = "NameTaken"   // of Applied: an object of this name is there that was not made from this one
	ReasonRefused     = "Refused"     // of Applied: the API server refuses what the object became
	ReasonNotMade     = "NotMade"     // of NodeClassReady: no class could be made
	ReasonNotObserved = "NotObserved" // of NodePoolReady and NodeClassReady: nobody has said yet
)

// StatusConditions is the set of the object's conditions, rooted at Ready.
func (p *Provisioner) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions(ConditionApplied, ConditionNodePoolReady).For(p, opts...)
}

// GetConditions implements status.Object.
func (p *Provisioner) GetConditions() []status.Condition { return p.Status.Conditions }

// SetConditions implements status.Object.
func (p *Provisioner) SetConditions(conditions []status.Condition) { p.Status.Conditions = conditions }
