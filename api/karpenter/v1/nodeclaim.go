package v1

import (
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeClaim asks for one machine and follows it until it is gone.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodeclaims,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".metadata.labels.node\\.kubernetes\\.io/instance-type",description="Instance type of the machine"
// +kubebuilder:printcolumn:name="Capacity",type="string",JSONPath=".metadata.labels.karpenter\\.sh/capacity-type",description="Capacity type of the machine"
// +kubebuilder:printcolumn:name="Zone",type="string",JSONPath=".metadata.labels.topology\\.kubernetes\\.io/zone",description="Zone of the machine"
// +kubebuilder:printcolumn:name="Node",type="string",JSONPath=".status.nodeName",description="Name of the node"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether the node is launched, registered and initialized"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="ImageID",type="string",JSONPath=".status.imageID",priority=1,description="Image that the machine runs"
// +kubebuilder:printcolumn:name="ID",type="string",JSONPath=".status.providerID",priority=1,description="The provider's name of the machine"
// +kubebuilder:printcolumn:name="NodePool",type="string",JSONPath=".metadata.labels.karpenter\\.sh/nodepool",priority=1,description="Pool that the claim belongs to"
// +kubebuilder:printcolumn:name="NodeClass",type="string",JSONPath=".spec.nodeClassRef.name",priority=1,description="Node class of the machine"
// +kubebuilder:printcolumn:name="Drifted",type="string",JSONPath=".status.conditions[?(@.type==\"Drifted\")].status",priority=1,description="Whether the node is not what its pool now says"
type NodeClaim struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is asked for. It cannot change.
	// +kubebuilder:validation:XValidation:message="spec is immutable",rule="self == oldSelf"
	// +required
	Spec NodeClaimSpec `json:"spec"`
	// Status is what has been observed.
	// +optional
	Status NodeClaimStatus `json:"status,omitempty"`
}

// NodeClaimList is a list of NodeClaims.
// +kubebuilder:object:root=true
type NodeClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeClaim `json:"items"`
}

// NodeClaimSpec is what a machine must be like.
type NodeClaimSpec struct {
	// Taints that the node carries for as long as it lives.
	// +listType=atomic
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`
	// StartupTaints that the node carries until somebody else removes them. The node is
	// not initialized before they are gone.
	// +listType=atomic
	// +optional
	StartupTaints []corev1.Taint `json:"startupTaints,omitempty"`
	// Requirements that the machine and its node satisfy, all of them. The list may be
	// empty, but must be there.
	// +kubebuilder:validation:MaxItems:=100
	// +kubebuilder:validation:XValidation:message="operator In needs at least one value",rule="self.all(x, x.operator != 'In' || (has(x.values) && size(x.values) > 0))"
	// +kubebuilder:validation:XValidation:message="operators Gt, Lt, Gte and Lte need exactly one value, an integer that is zero or greater",rule="self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(x.values) && size(x.values) == 1 && x.values[0].matches('^[0-9]+$') && int(x.values[0]) >= 0))"
	// +kubebuilder:validation:XValidation:message="operator In needs at least as many values as minValues",rule="self.all(x, x.operator != 'In' || !has(x.minValues) || (has(x.values) && size(x.values) >= x.minValues))"
	// +listType=atomic
	// +required
	Requirements []Requirement `json:"requirements"`
	// Resources that the machine must offer.
	// +optional
	Resources ResourceRequirements `json:"resources,omitempty"`
	// NodeClassRef names the node class that says how the machine is made.
	// +required
	NodeClassRef NodeClassReference `json:"nodeClassRef"`
	// TerminationGracePeriod is the longest time between the deletion of the claim and the
	// end of its machine, in hours, minutes and seconds ("1h30m"). When it is over,
	// pods are removed against their disruption budgets. Unset: wait for as long as it takes.
	// +kubebuilder:validation:Pattern:=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:Type:="string"
	// +kubebuilder:validation:XValidation:message="must be shorter than 292 years",rule="duration(self) >= duration('0s')"
	// +optional
	TerminationGracePeriod *metav1.Duration `json:"terminationGracePeriod,omitempty"`
	// ExpireAfter is the age at which the claim is deleted, in hours, minutes and seconds
	// ("720h"), or Never.
	// +kubebuilder:default:="720h"
	// +kubebuilder:validation:Pattern:=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:Type:="string"
	// +optional
	ExpireAfter NillableDuration `json:"expireAfter,omitempty"`
}

// ResourceRequirements is what a machine must offer.
type ResourceRequirements struct {
	// Requests is the least amount of each resource, by name: the sum of what the planned
	// pods and the daemons of the node ask for.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
}

// NodeClaimStatus is what has been observed about a machine.
type NodeClaimStatus struct {
	// NodeName is the name of the node, once it has registered.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// ProviderID is the provider's name of the machine, as in the node's spec.providerID.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// ImageID is the image that the machine runs.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// Capacity is what the machine has in total, by resource name, as the provider estimates it.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Allocatable is what the machine offers to pods, by resource name, as the provider estimates it.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Conditions: Ready is true when Launched, Registered and Initialized are.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []status.Condition `json:"conditions,omitempty"`
	// LastPodEventTime is when a pod was last bound to or removed from the node.
	// +optional
	LastPodEventTime metav1.Time `json:"lastPodEventTime,omitempty,omitzero"`
}

// StatusConditions is the set of the claim's conditions, rooted at Ready.
// Those that are missing are added to the object as Unknown: an object that a cache shares is read with Condition.
func (c *NodeClaim) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions(ConditionLaunched, ConditionRegistered, ConditionInitialized).For(c, opts...)
}

// Condition is the claim's condition of a type as StatusConditions shows it, or nil. It leaves the claim as it is, so it is the
// way to read an object that a cache shares.
func (c *NodeClaim) Condition(conditionType string) *status.Condition {
	unshared := *c // conditions that are added go to a slice of their own
	return unshared.StatusConditions().Get(conditionType)
}

// GetConditions implements status.Object.
func (c *NodeClaim) GetConditions() []status.Condition { return c.Status.Conditions }

// SetConditions implements status.Object.
func (c *NodeClaim) SetConditions(conditions []status.Condition) {
	c.Status.Conditions = WithReasons(conditions)
}
