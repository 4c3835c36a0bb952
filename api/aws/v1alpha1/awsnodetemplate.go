package v1alpha1

import (
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
)

// Kind is the kind of an AWSNodeTemplate.
const Kind = "AWSNodeTemplate"

var (
	// GroupVersion is karpenter.k8s.aws/v1alpha1.
	GroupVersion = schema.GroupVersion{Group: awsv1.Group, Version: "v1alpha1"}
	// SchemeBuilder collects the registration of this package's kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers this package's kinds with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &AWSNodeTemplate{}, &AWSNodeTemplateList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// AWSNodeTemplate is the predecessor of EC2NodeClass before v1beta1. The controller translates it to an
// EC2NodeClass, which it owns. Its status lists what cannot be translated. Use an EC2NodeClass instead:
// kubectl karpenter migrate prints it.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=awsnodetemplates,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="NodeClass",type="string",JSONPath=".status.nodeClass",description="EC2NodeClass that it became"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether machines can be launched"
// +kubebuilder:printcolumn:name="Translated",type="string",JSONPath=".status.conditions[?(@.type==\"Translated\")].status",description="Whether all that it says could be said today"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type AWSNodeTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the desired state.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +nullable
	// +optional
	Spec *apiextensionsv1.JSON `json:"spec,omitempty"`
	// Status is the result of the translation.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Status AWSNodeTemplateStatus `json:"status,omitempty"`
}

// AWSNodeTemplateList is a list of AWSNodeTemplates.
// +kubebuilder:object:root=true
type AWSNodeTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AWSNodeTemplate `json:"items"`
}

// AWSNodeTemplateStatus is the result of the translation of an AWSNodeTemplate.
type AWSNodeTemplateStatus struct {
	karpv1alpha5.Translation `json:",inline"`
	// NodeClass is the name of the EC2NodeClass that the AWSNodeTemplate is translated to.
	// +optional
	NodeClass string `json:"nodeClass,omitempty"`
	// Subnets that match the selector.
	// +listType=atomic
	// +optional
	Subnets []Subnet `json:"subnets,omitempty"`
	// SecurityGroups that match the selector.
	// +listType=atomic
	// +optional
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`
	// AMIs that are used for launches.
	// +listType=atomic
	// +optional
	AMIs []AMI `json:"amis,omitempty"`
}

// Subnet is a subnet for launches.
type Subnet struct {
	ID   string `json:"id"`
	Zone string `json:"zone"`
}

// SecurityGroup is a security group of the instances.
type SecurityGroup struct {
	ID string `json:"id"`
	// +optional
	Name string `json:"name,omitempty"`
}

// AMI is a machine image, with requirements on the labels of the instances that can run it.
type AMI struct {
	ID string `json:"id"`
	// +optional
	Name string `json:"name,omitempty"`
	// +listType=atomic
	// +optional
	Requirements []corev1.NodeSelectorRequirement `json:"requirements,omitempty"`
}

// StatusConditions returns the object's conditions, with Ready as the root.
func (t *AWSNodeTemplate) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions(karpv1alpha5.ConditionApplied, karpv1alpha5.ConditionNodeClassReady).For(t, opts...)
}

// GetConditions implements status.Object.
func (t *AWSNodeTemplate) GetConditions() []status.Condition { return t.Status.Conditions }

// SetConditions implements status.Object.
func (t *AWSNodeTemplate) SetConditions(conditions []status.Condition) {
	t.Status.Conditions = conditions
}
