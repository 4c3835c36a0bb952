package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// NodePool describes which nodes may be launched, how many, and when they may be replaced or removed.
// +kubebuilder:object:root=true
// +kubebuilder:deprecatedversion:warning="karpenter.sh/v1beta1 NodePool is converted to karpenter.sh/v1; 'kubectl karpenter migrate' rewrites manifests"
// +kubebuilder:resource:path=nodepools,scope=Cluster,categories=karpenter
// +kubebuilder:printcolumn:name="NodeClass",type="string",JSONPath=".spec.template.spec.nodeClassRef.name",description="Node class of the nodes"
// +kubebuilder:printcolumn:name="Weight",type="integer",JSONPath=".spec.weight",priority=1,description="Rank among the pools, higher first"
// +kubebuilder:subresource:status
type NodePool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the desired state.
	// +required
	Spec NodePoolSpec `json:"spec"`
	// Status is the observed state.
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

// NodePoolSpec is the desired state of a pool.
// +kubebuilder:validation:XValidation:message="replicas cannot be added to or removed from an existing NodePool",rule="has(self.replicas) == has(oldSelf.replicas)"
// +kubebuilder:validation:XValidation:message="with replicas, limits may only name nodes",rule="!has(self.replicas) || !has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits)"
// +kubebuilder:validation:XValidation:message="with replicas, weight must not be set",rule="!has(self.replicas) || !has(self.weight)"
type NodePoolSpec struct {
	// Template of the NodeClaims that this pool creates. Nodes that no longer match the template have drifted
	// and are replaced.
	// +required
	Template NodeClaimTemplate `json:"template"`
	// Disruption configures when nodes of this pool may be removed or replaced voluntarily.
	// +kubebuilder:default:={consolidationPolicy: WhenUnderutilized, expireAfter: "720h"}
	// +kubebuilder:validation:XValidation:message="consolidateAfter must be set with consolidationPolicy WhenEmpty",rule="self.consolidationPolicy != 'WhenEmpty' || has(self.consolidateAfter)"
	// +optional
	Disruption Disruption `json:"disruption"`
	// Limits on the total capacity of this pool's nodes, by resource name. Nodes are launched only while the
	// total is below the limits.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
	// Weight is the priority of the pool. Pools with a higher weight are tried first. Unset: 0.
	// +kubebuilder:validation:Minimum:=1
	// +kubebuilder:validation:Maximum:=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`
	// Replicas is the fixed number of nodes to maintain, as in karpenter.sh/v1.
	// +kubebuilder:validation:Minimum:=0
	// +optional
	Replicas *int64 `json:"replicas,omitempty"`
}

// NodeClaimTemplate is the template of a pool's NodeClaims.
type NodeClaimTemplate struct {
	// ObjectMeta is copied to the NodeClaims and to their nodes.
	// +optional
	ObjectMeta karpv1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is copied to the NodeClaims.
	// +required
	Spec NodeClaimTemplateSpec `json:"spec"`
}

// NodeClaimTemplateSpec is a NodeClaimSpec without the fields that depend on the pods.
type NodeClaimTemplateSpec struct {
	// Taints of the nodes. Karpenter sets them when a node registers. Pods must tolerate them.
	// +listType=atomic
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`
	// StartupTaints of the nodes, which another component removes when a node is ready for pods. A node is
	// launched also for pods that do not tolerate them. A node is not initialized until they are removed.
	// +listType=atomic
	// +optional
	StartupTaints []corev1.Taint `json:"startupTaints,omitempty"`
	// Requirements on the labels of the nodes, in addition to the requirements of the pods. The list is
	// required, and may be empty.
	// +kubebuilder:validation:MaxItems:=100
	// +kubebuilder:validation:XValidation:message="operator In needs at least one value",rule="self.all(x, x.operator != 'In' || (has(x.values) && size(x.values) > 0))"
	// +kubebuilder:validation:XValidation:message="operators Gt, Lt, Gte and Lte need exactly one value, an integer that is zero or greater",rule="self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(x.values) && size(x.values) == 1 && x.values[0].matches('^[0-9]+$') && int(x.values[0]) >= 0))"
	// +kubebuilder:validation:XValidation:message="operator In needs at least as many values as minValues",rule="self.all(x, x.operator != 'In' || !has(x.minValues) || (has(x.values) && size(x.values) >= x.minValues))"
	// +kubebuilder:validation:XValidation:message="the label karpenter.sh/nodepool cannot be required by a NodePool",rule="self.all(x, x.key != 'karpenter.sh/nodepool')"
	// +listType=atomic
	// +required
	Requirements []karpv1.Requirement `json:"requirements"`
	// Resources must be empty, because they depend on the pods.
	// +kubebuilder:validation:XValidation:message="resources must be empty in a NodePool: they depend on the pods",rule="!has(self.requests)"
	// +optional
	Resources *karpv1.ResourceRequirements `json:"resources,omitempty"`
	// NodeClassRef names the node class.
	// +required
	NodeClassRef NodeClassReference `json:"nodeClassRef"`
	// Kubelet is configuration of the kubelet. It replaces that of the node class.
	// +optional
	Kubelet *KubeletConfiguration `json:"kubelet,omitempty"`
	// TerminationGracePeriod is the maximum time between the deletion of a node and the termination of its
	// machine, as in karpenter.sh/v1.
	// +kubebuilder:validation:Pattern:=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:Type:="string"
	// +kubebuilder:validation:XValidation:message="must be shorter than 292 years",rule="duration(self) >= duration('0s')"
	// +optional
	TerminationGracePeriod *metav1.Duration `json:"terminationGracePeriod,omitempty"`
}

// ConsolidationPolicy selects the nodes that consolidation may remove or replace.
// +kubebuilder:validation:Enum:={WhenEmpty,WhenUnderutilized,Balanced}
type ConsolidationPolicy string

// The consolidation policies.
const (
	ConsolidateWhenEmpty         ConsolidationPolicy = "WhenEmpty"         // only nodes without pods to move
	ConsolidateWhenUnderutilized ConsolidationPolicy = "WhenUnderutilized" // whenever it reduces cost
	ConsolidateBalanced          ConsolidationPolicy = "Balanced"          // as in karpenter.sh/v1
)

// Disruption configures when nodes may be removed or replaced voluntarily.
type Disruption struct {
	// ConsolidateAfter is how long no pod must have been added to or removed from a node before the node may be
	// consolidated, in hours, minutes and seconds ("30s"), or Never. Required with WhenEmpty. Defaults to 0s
	// with WhenUnderutilized.
	// +kubebuilder:validation:Pattern:=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:Type:="string"
	// +optional
	ConsolidateAfter *karpv1.NillableDuration `json:"consolidateAfter,omitempty"`
	// ConsolidationPolicy selects the nodes that may be consolidated. WhenEmpty: only nodes without pods to
	// move. WhenUnderutilized: all nodes, whenever it reduces cost. Balanced: as in karpenter.sh/v1. Defaults
	// to WhenUnderutilized.
	// +kubebuilder:default:="WhenUnderutilized"
	// +optional
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`
	// ExpireAfter is the age at which a node is deleted, in hours, minutes and seconds ("720h"), or Never.
	// Defaults to 720h.
	// +kubebuilder:default:="720h"
	// +kubebuilder:validation:Pattern:=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:Type:="string"
	// +optional
	ExpireAfter karpv1.NillableDuration `json:"expireAfter,omitempty"`
	// Budgets limit how many nodes may be disrupted at the same time. The strictest active budget applies.
	// Defaults to one budget of 10% of the nodes. An empty list means no limit.
	// +kubebuilder:default:={{nodes: "10%"}}
	// +kubebuilder:validation:MaxItems:=50
	// +kubebuilder:validation:XValidation:message="schedule and duration must be set together",rule="self.all(x, has(x.schedule) == has(x.duration))"
	// +listType=atomic
	// +optional
	Budgets []karpv1.Budget `json:"budgets,omitzero"`
}
