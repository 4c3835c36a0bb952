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

// Kind is the kind of a Provisioner.
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

// Provisioner is the predecessor of NodePool before v1beta1, and often also configures instances. The
// controller translates it to a NodePool and, unless it references an AWSNodeTemplate, to a node class. It owns
// both. Its status lists what cannot be translated. Use a NodePool instead: kubectl karpenter migrate prints it.
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
	// Spec is the desired state, in the format of v1alpha3, v1alpha4 or v1alpha5.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	Spec *apiextensionsv1.JSON `json:"spec,omitempty"`
	// Status is the result of the translation.
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

// ProvisionerStatus is the result of the translation of a Provisioner.
type ProvisionerStatus struct {
	Translation `json:",inline"`
	// NodePool is the name of the NodePool that the Provisioner is translated to.
	// +optional
	NodePool string `json:"nodePool,omitempty"`
	// NodeClass is the kind and the name of the NodePool's node class.
	// +optional
	NodeClass string `json:"nodeClass,omitempty"`
	// Resources is the total capacity of the NodePool's nodes, by resource name.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// Translation describes how an older object is translated to the current API.
type Translation struct {
	// Version is the API version in which most of the spec was written.
	// +optional
	Version string `json:"version,omitempty"`
	// Notes lists the fields that the current API expresses differently or not at all.
	// +listType=atomic
	// +optional
	Notes []Note `json:"notes,omitempty"`
	// Conditions of the object: Ready, Active, Applied, Translated, and NodePoolReady or NodeClassReady.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []status.Condition `json:"conditions,omitempty"`
}

// Note describes the translation of one field.
type Note struct {
	// Field is the path of the field in this object.
	Field string `json:"field"`
	// Effect is the result for the field: carried, defaulted, repaired, changed or impossible.
	Effect string `json:"effect"`
	// To is the path of the resulting field. It is in the NodePool unless it begins with another kind.
	// +optional
	To string `json:"to,omitempty"`
	// Reason explains the effect, and what to do if the meaning of the field is lost.
	Reason string `json:"reason"`
}

// Condition types of older objects. Ready is True when all except Translated and Active are True.
const (
	ConditionActive         = "Active"         // of Provisioners: the same as Ready; documented by their versions
	ConditionTranslated     = "Translated"     // all fields of the object could be translated
	ConditionApplied        = "Applied"        // the resulting objects exist in the API
	ConditionNodePoolReady  = "NodePoolReady"  // of Provisioners: the NodePool is Ready
	ConditionNodeClassReady = "NodeClassReady" // of AWSNodeTemplates: the EC2NodeClass is Ready
)

// Reasons of these conditions.
const (
	ReasonPartsLost   = "PartsLost"   // of Translated: the notes with the effect impossible list the fields
	ReasonNameTaken   = "NameTaken"   // of Applied: an object with this name exists that was not generated from this one
	ReasonRefused     = "Refused"     // of Applied: the API server rejects the resulting object
	ReasonNotMade     = "NotMade"     // of NodeClassReady: no class could be generated
	ReasonNotObserved = "NotObserved" // of NodePoolReady and NodeClassReady: the condition is not reported yet
)

// StatusConditions returns the object's conditions, with Ready as the root.
func (p *Provisioner) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions(ConditionApplied, ConditionNodePoolReady).For(p, opts...)
}

// GetConditions implements status.Object.
func (p *Provisioner) GetConditions() []status.Condition { return p.Status.Conditions }

// SetConditions implements status.Object.
func (p *Provisioner) SetConditions(conditions []status.Condition) { p.Status.Conditions = conditions }
