package v1alpha1

import (
	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Group is the API group of KWOKNodeClass, and the domain of the kwok provider's labels.
const Group = "karpenter.kwok.sh"

// Kind is the kind in a NodePool's nodeClassRef.
const Kind = "KWOKNodeClass"

var (
	// GroupVersion is karpenter.kwok.sh/v1alpha1.
	GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}
	// SchemeBuilder collects the registration of this package's kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers this package's kinds with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &KWOKNodeClass{}, &KWOKNodeClassList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// KWOKNodeClass configures simulated nodes.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=kwoknodeclasses,scope=Cluster,categories=karpenter,shortName={kwoknc,kwokncs}
// +kubebuilder:subresource:status
type KWOKNodeClass struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the desired state.
	// +optional
	Spec KWOKNodeClassSpec `json:"spec,omitempty"`
	// Status is the observed state. A simulated class has no dependencies, so it is Ready immediately.
	// +kubebuilder:default:={conditions: {{type: "Ready", status: "True", reason: "Ready", message: "", lastTransitionTime: "2024-01-01T00:00:00Z"}}}
	// +optional
	Status KWOKNodeClassStatus `json:"status,omitempty"`
}

// KWOKNodeClassList is a list of KWOKNodeClasses.
// +kubebuilder:object:root=true
type KWOKNodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KWOKNodeClass `json:"items"`
}

// KWOKNodeClassSpec is the desired state of a class.
type KWOKNodeClassSpec struct {
	// NodeRegistrationDelay is the time between the launch of a machine and the creation of its node, in hours,
	// minutes and seconds ("30s"). Unset: no delay.
	// +kubebuilder:validation:Pattern:=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:Type:="string"
	// +kubebuilder:validation:XValidation:message="must be shorter than 292 years",rule="duration(self) >= duration('0s')"
	// +optional
	NodeRegistrationDelay *metav1.Duration `json:"nodeRegistrationDelay,omitempty"`
}

// KWOKNodeClassStatus is the observed state of a class.
type KWOKNodeClassStatus struct {
	// Conditions of the class. Ready is True if machines can be launched.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []status.Condition `json:"conditions,omitempty"`
}

// StatusConditions returns the class's conditions: only Ready, which depends on no other condition.
func (c *KWOKNodeClass) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions().For(c, opts...)
}

// GetConditions implements status.Object.
func (c *KWOKNodeClass) GetConditions() []status.Condition { return c.Status.Conditions }

// SetConditions implements status.Object.
func (c *KWOKNodeClass) SetConditions(conditions []status.Condition) {
	c.Status.Conditions = karpv1.WithReasons(conditions)
}
