package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// NodePool says what nodes may be launched, in what number, and when they may be
// replaced or removed.
// +kubebuilder:object:root=true
// +kubebuilder:deprecatedversion:warning="karpenter.sh/v1beta1 NodePool is converted to karpenter.sh/v1; 'karpenter migrate' rewrites manifests"
// +kubebuilder:resource:path=nodepools,scope=Cluster,categories=karpenter
// +kubebuilder:printcolumn:name="NodeClass",type="string",JSONPath=".spec.template.spec.nodeClassRef.name",description="Node class of the nodes"
// +kubebuilder:printcolumn:name="Weight",type="integer",JSONPath=".spec.weight",priority=1,description="Rank among the pools, higher first"
// +kubebuilder:subresource:status
type NodePool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what the owner of the pool wants.
	// +required
	Spec NodePoolSpec `json:"spec"`
	// Status is what has been observed.
	// +optional
	Status karpv1.NodePoolStatus `json:"status,omitempty"`
}

// NodePoolList is a list of NodePools.
// +kubebuilder:object:root=true
type NodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodePool `json:"items"`
}

// NodePoolSpec is what the owner of the pool wants.
// +kubebuilder:validation:XValidation:message="replicas cannot be added to or removed from an existing NodePool",rule="has(self.replicas) == has(oldSelf.replicas)"
// +kubebuilder:validation:XValidation:message="with replicas, limits may only name nodes",rule="!has(self.replicas) || !has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits)"
// +kubebuilder:validation:XValidation:message="with replicas, weight must not be set",rule="!has(self.replicas) || !has(self.weight)"
type NodePoolSpec struct {
	// Template of the NodeClaims that this pool creates. Nodes that no longer agree with
	// it have drifted and are replaced.
	// +required
	Template NodeClaimTemplate `json:"template"`
	// Disruption says when nodes of this pool may be removed or replaced on purpose.
	// +kubebuilder:default:={consolidationPolicy: WhenUnderutilized, expireAfter: "720h"}
	// +kubebuilder:validation:XValidation:message="consolidateAfter must be set with consolidationPolicy WhenEmpty",rule="self.consolidationPolicy != 'WhenEmpty' || has(self.consolidateAfter)"
	// +optional
	Disruption Disruption `json:"disruption"`
	// Limits on the sum of the capacity of this pool's nodes, by resource name. Nodes are
	// launched only while the sum is below.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
	// Weight ranks pools: one with a higher weight is tried first. Unset counts as 0.
	// +kubebuilder:validation:Minimum:=1
	// +kubebuilder:validation:Maximum:=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`
	// Replicas is as in karpenter.sh/v1: the number of nodes to keep, whatever pods ask for.
	// +kubebuilder:validation:Minimum:=0
	// +optional
	Replicas *int64 `json:"replicas,omitempty"`
}

// NodeClaimTemplate is what every NodeClaim of a pool starts from.
type NodeClaimTemplate struct {
	// ObjectMeta is copied to the NodeClaims and to their nodes.
	// +optional
	ObjectMeta karpv1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is copied to the NodeClaims.
	// +required
	Spec NodeClaimTemplateSpec `json:"spec"`
}

// NodeClaimTemplateSpec is a NodeClaimSpec without what depends on the pods.
type NodeClaimTemplateSpec struct {
	// Taints that the nodes carry for as long as they live. Pods must tolerate them.
	// +listType=atomic
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`
	// StartupTaints that the nodes carry until somebody else removes them. Pods need not
	// tolerate them to make a node be launched; a node is not initialized before they go.
	// +listType=atomic
	// +optional
	StartupTaints []corev1.Taint `json:"startupTaints,omitempty"`
	// Requirements restrict the nodes, beyond what the pods themselves ask for. The list
	// may be empty, but must be there.
	// +kubebuilder:validation:MaxItems:=100
	// +kubebuilder:validation:XValidation:message="operator In needs at least one value",rule="self.all(x, x.operator != 'In' || (has(x.values) && size(x.values) > 0))"
	// +kubebuilder:validation:XValidation:message="operators Gt, Lt, Gte and Lte need exactly one value, an integer that is zero or greater",rule="self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(x.values) && size(x.values) == 1 && x.values[0].matches('^[0-9]+$') && int(x.values[0]) >= 0))"
	// +kubebuilder:validation:XValidation:message="operator In needs at least as many values as minValues",rule="self.all(x, x.operator != 'In' || !has(x.minValues) || (has(x.values) && size(x.values) >= x.minValues))"
	// +kubebuilder:validation:XValidation:message="the label karpenter.sh/nodepool cannot be required by a NodePool",rule="self.all(x, x.key != 'karpenter.sh/nodepool')"
	// +listType=atomic
	// +required
	Requirements []karpv1.Requirement `json:"requirements"`
	// Resources must be empty: they depend on the pods.
	// +kubebuilder:validation:XValidation:message="resources must be empty in a NodePool: they depend on the pods",rule="!has(self.requests)"
	// +optional
	Resources *karpv1.ResourceRequirements `json:"resources,omitempty"`
	// NodeClassRef names the node class.
	// +required
	NodeClassRef NodeClassReference `json:"nodeClassRef"`
	// Kubelet is configuration of the kubelet. It wins over that of the node class.
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`
	// TerminationGracePeriod is as in karpenter.sh/v1: the longest time between the deletion
	// of a node and the end of its machine.
	// +kubebuilder:validation:Pattern:=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:Type:="string"
	// +kubebuilder:validation:XValidation:message="must be shorter than 292 years",rule="duration(self) >= duration('0s')"
	// +optional
	TerminationGracePeriod *metav1.Duration `json:"terminationGracePeriod,omitempty"`
}

// ConsolidationPolicy says which nodes consolidation may touch.
// +kubebuilder:validation:Enum:={WhenEmpty,WhenUnderutilized,Balanced}
type ConsolidationPolicy string

// The consolidation policies.
const (
	ConsolidateWhenEmpty         ConsolidationPolicy = "WhenEmpty"         // only nodes without pods to move
	ConsolidateWhenUnderutilized ConsolidationPolicy = "WhenUnderutilized" // whenever it saves money
	ConsolidateBalanced          ConsolidationPolicy = "Balanced"          // as in karpenter.sh/v1
)

// Disruption says when nodes may be removed or replaced on purpose.
type Disruption struct {
	// ConsolidateAfter is how long a node must have seen no pod come or go before it may
	// be consolidated, in hours, minutes and seconds ("30s"), or Never. It is needed with
	// WhenEmpty; unset with WhenUnderutilized it is 0s.
	// +kubebuilder:validation:Pattern:=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:Type:="string"
	// +optional
	ConsolidateAfter *karpv1.NillableDuration `json:"consolidateAfter,omitempty"`
	// ConsolidationPolicy says which nodes may be consolidated: only empty ones, or all that
	// would save money; Balanced is as in karpenter.sh/v1.
	// +kubebuilder:default:="WhenUnderutilized"
	// +optional
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`
	// ExpireAfter is the age at which a node is deleted, in hours, minutes and seconds
	// ("720h"), or Never.
	// +kubebuilder:default:="720h"
	// +kubebuilder:validation:Pattern:=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:Type:="string"
	// +optional
	ExpireAfter karpv1.NillableDuration `json:"expireAfter,omitempty"`
	// Budgets limit how many nodes may be disrupted at the same time. The strictest of
	// those that are active counts. An empty list means no limit.
	// +kubebuilder:default:={{nodes: "10%"}}
	// +kubebuilder:validation:MaxItems:=50
	// +kubebuilder:validation:XValidation:message="schedule and duration must be set together",rule="self.all(x, has(x.schedule) == has(x.duration))"
	// +listType=atomic
	// +optional
	Budgets []karpv1.Budget `json:"budgets,omitzero"`
}
