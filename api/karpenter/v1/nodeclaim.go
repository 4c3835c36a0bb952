package v1

import (
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeClaim requests one machine and tracks it until the machine is terminated.
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
	// Spec describes the requested machine. The spec is immutable.
	// +kubebuilder:validation:XValidation:message="spec is immutable",rule="self == oldSelf"
	// +required
	Spec NodeClaimSpec `json:"spec"`
	// Status is the observed state.
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
	Requirements []Requirement `json:"requirements"`
	// Resources that the machine must provide.
	// +optional
	Resources ResourceRequirements `json:"resources,omitempty"`
	// NodeClassRef names the node class, which configures the machine for its cloud provider.
	// +required
	NodeClassRef NodeClassReference `json:"nodeClassRef"`
	// TerminationGracePeriod is the maximum time between the deletion of the claim and the termination of its
	// machine, in hours, minutes and seconds ("1h30m"). When it has elapsed, the remaining pods are deleted
	// even if their PodDisruptionBudgets or the annotation karpenter.sh/do-not-disrupt block their eviction.
	// Unset: no limit.
	// +kubebuilder:validation:Pattern:=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:Type:="string"
	// +kubebuilder:validation:XValidation:message="must be shorter than 292 years",rule="duration(self) >= duration('0s')"
	// +optional
	TerminationGracePeriod *metav1.Duration `json:"terminationGracePeriod,omitempty"`
	// ExpireAfter is the age at which the claim is deleted, in hours, minutes and seconds ("720h"), or Never.
	// Defaults to 720h.
	// +kubebuilder:default:="720h"
	// +kubebuilder:validation:Pattern:=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:Type:="string"
	// +optional
	ExpireAfter NillableDuration `json:"expireAfter,omitempty"`
}

// ResourceRequirements describes the resources that a machine must provide.
type ResourceRequirements struct {
	// Requests is the minimum amount of each resource, by name: the sum of the requests of the planned pods and
	// of the node's DaemonSet pods.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
}

// NodeClaimStatus is the observed state of a claim and its machine.
type NodeClaimStatus struct {
	// NodeName is the name of the node. Set when the node has registered.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// ProviderID is the cloud provider's ID of the machine. It equals the node's spec.providerID.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// ImageID is the ID of the machine's image.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// Capacity is the total amount of each resource of the machine, by resource name, as estimated by the
	// provider.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Allocatable is the amount of each resource that is available to pods, by resource name, as estimated by
	// the provider.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Conditions of the claim. Ready is True when Launched, Registered and Initialized are True.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []status.Condition `json:"conditions,omitempty"`
	// LastPodEventTime is the last time at which a pod was bound to the node or removed from it.
	// +optional
	LastPodEventTime metav1.Time `json:"lastPodEventTime,omitempty,omitzero"`
}

// StatusConditions returns the claim's conditions, with Ready as the root. It adds missing conditions to the
// object as Unknown. For an object from a shared cache, use Condition instead.
func (c *NodeClaim) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions(ConditionLaunched, ConditionRegistered, ConditionInitialized).For(c, opts...)
}

// Condition returns the claim's condition of the given type as StatusConditions returns it, or nil. It does not
// modify the claim, so it is safe for objects from a shared cache.
func (c *NodeClaim) Condition(conditionType string) *status.Condition {
	unshared := *c // added conditions go to a separate slice
	return unshared.StatusConditions().Get(conditionType)
}

// GetConditions implements status.Object.
func (c *NodeClaim) GetConditions() []status.Condition { return c.Status.Conditions }

// SetConditions implements status.Object.
func (c *NodeClaim) SetConditions(conditions []status.Condition) {
	c.Status.Conditions = WithReasons(conditions)
}
