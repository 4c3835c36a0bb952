package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// NodeClaim requests one machine and tracks it until the machine is terminated.
// +kubebuilder:object:root=true
// +kubebuilder:deprecatedversion:warning="karpenter.sh/v1beta1 NodeClaim is converted to karpenter.sh/v1"
// +kubebuilder:resource:path=nodeclaims,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".metadata.labels.node\\.kubernetes\\.io/instance-type",description="Instance type of the machine"
// +kubebuilder:printcolumn:name="Zone",type="string",JSONPath=".metadata.labels.topology\\.kubernetes\\.io/zone",description="Zone of the machine"
// +kubebuilder:printcolumn:name="Node",type="string",JSONPath=".status.nodeName",description="Name of the node"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether the node is launched, registered and initialized"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Capacity",type="string",JSONPath=".metadata.labels.karpenter\\.sh/capacity-type",priority=1,description="Capacity type of the machine"
// +kubebuilder:printcolumn:name="NodePool",type="string",JSONPath=".metadata.labels.karpenter\\.sh/nodepool",priority=1,description="Pool that the claim belongs to"
// +kubebuilder:printcolumn:name="NodeClass",type="string",JSONPath=".spec.nodeClassRef.name",priority=1,description="Node class of the machine"
type NodeClaim struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec describes the requested machine. The spec is immutable.
	// +kubebuilder:validation:XValidation:message="spec is immutable",rule="self == oldSelf"
	// +required
	Spec NodeClaimSpec `json:"spec"`
	// Status is the observed state.
	// +optional
	Status karpv1.NodeClaimStatus `json:"status,omitempty"`
}

// NodeClaimList is a list of NodeClaims.
// +kubebuilder:object:root=true
type NodeClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeClaim `json:"items"`
}

// NodeClaimSpec describes the requested machine and its node.
type NodeClaimSpec struct {
	// Taints of the node. Karpenter sets them when the node registers. Pods must tolerate them.
	// +listType=atomic
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`
	// StartupTaints of the node, which another component removes when the node is ready for pods. The node is
	// not initialized until they are removed.
	// +listType=atomic
	// +optional
	StartupTaints []corev1.Taint `json:"startupTaints,omitempty"`
	// Requirements on the labels of the node. All of them must hold. The list is required, and may be empty.
	// +kubebuilder:validation:MaxItems:=100
	// +kubebuilder:validation:XValidation:message="operator In needs at least one value",rule="self.all(x, x.operator != 'In' || (has(x.values) && size(x.values) > 0))"
	// +kubebuilder:validation:XValidation:message="operators Gt, Lt, Gte and Lte need exactly one value, an integer that is zero or greater",rule="self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(x.values) && size(x.values) == 1 && x.values[0].matches('^[0-9]+$') && int(x.values[0]) >= 0))"
	// +kubebuilder:validation:XValidation:message="operator In needs at least as many values as minValues",rule="self.all(x, x.operator != 'In' || !has(x.minValues) || (has(x.values) && size(x.values) >= x.minValues))"
	// +listType=atomic
	// +required
	Requirements []karpv1.Requirement `json:"requirements"`
	// Resources that the machine must provide.
	// +optional
	Resources karpv1.ResourceRequirements `json:"resources,omitempty"`
	// NodeClassRef names the node class, which configures the machine for its cloud provider.
	// +required
	NodeClassRef NodeClassReference `json:"nodeClassRef"`
	// Kubelet is configuration of the kubelet. It replaces that of the node class.
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`
	// TerminationGracePeriod is the maximum time between the deletion of the claim and the termination of its
	// machine, as in karpenter.sh/v1.
	// +kubebuilder:validation:Pattern:=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:Type:="string"
	// +kubebuilder:validation:XValidation:message="must be shorter than 292 years",rule="duration(self) >= duration('0s')"
	// +optional
	TerminationGracePeriod *metav1.Duration `json:"terminationGracePeriod,omitempty"`
	// ExpireAfter is the age at which the claim is deleted, as in karpenter.sh/v1. Unset: the value of its
	// NodePool.
	// +kubebuilder:validation:Pattern:=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:Type:="string"
	// +optional
	ExpireAfter *karpv1.NillableDuration `json:"expireAfter,omitempty"`
}
