package v1

import (
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodePool describes which nodes may be launched, how many, and when they may be replaced or removed.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodepools,scope=Cluster,categories=karpenter
// +kubebuilder:printcolumn:name="NodeClass",type="string",JSONPath=".spec.template.spec.nodeClassRef.name",description="Node class of the nodes"
// +kubebuilder:printcolumn:name="Nodes",type="integer",JSONPath=".status.nodes",description="Number of nodes"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether nodes can be launched"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:printcolumn:name="Weight",type="integer",JSONPath=".spec.weight",priority=1,description="Rank among the pools, higher first"
// +kubebuilder:printcolumn:name="CPU",type="string",JSONPath=".status.resources.cpu",priority=1,description="CPU of all nodes, in cores"
// +kubebuilder:printcolumn:name="Memory",type="string",JSONPath=".status.resources.memory",priority=1,description="Memory of all nodes"
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.nodes
type NodePool struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is the desired state.
	// +required
	Spec NodePoolSpec `json:"spec"`
	// Status is the observed state.
	// +optional
	Status NodePoolStatus `json:"status,omitempty"`
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
	// +kubebuilder:default:={consolidateAfter: "0s"}
	// +optional
	Disruption Disruption `json:"disruption"`
	// Limits on the total capacity of this pool's nodes, by resource name. The name "nodes" limits their
	// number. Nodes are launched only while the total is below the limits.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
	// Weight is the priority of the pool. Pools with a higher weight are tried first. Unset: 0.
	// +kubebuilder:validation:Minimum:=1
	// +kubebuilder:validation:Maximum:=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`
	// Replicas is the fixed number of nodes to maintain, independent of pods. A pool with this field is static:
	// it is not used for pending pods and not consolidated. Alpha: requires the feature gate StaticCapacity.
	// +kubebuilder:validation:Minimum:=0
	// +optional
	Replicas *int64 `json:"replicas,omitempty"`
}

// NodeClaimTemplate is the template of a pool's NodeClaims.
type NodeClaimTemplate struct {
	// ObjectMeta is copied to the NodeClaims and to their nodes.
	// +optional
	ObjectMeta ObjectMeta `json:"metadata,omitempty"`
	// Spec is copied to the NodeClaims.
	// +required
	Spec NodeClaimTemplateSpec `json:"spec"`
}

// ObjectMeta is the metadata that a pool sets on its NodeClaims and nodes.
type ObjectMeta struct {
	// Labels of the nodes. Pods may select them.
	// +kubebuilder:validation:MaxProperties:=100
	// +kubebuilder:validation:XValidation:message="a label of the domain karpenter.sh cannot be set, except karpenter.sh/capacity-type",rule="self.all(k, k in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !k.matches('^[^/]*karpenter[.]sh(/|$)'))"
	// +kubebuilder:validation:XValidation:message="the label karpenter.sh/nodepool is set by karpenter",rule="!('karpenter.sh/nodepool' in self)"
	// +kubebuilder:validation:XValidation:message="the label kubernetes.io/hostname is set by the kubelet",rule="!('kubernetes.io/hostname' in self)"
	// +mapType=atomic
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the nodes.
	// +mapType=granular
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
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
	Requirements []Requirement `json:"requirements"`
	// NodeClassRef names the node class. Its group and kind are immutable.
	// +kubebuilder:validation:XValidation:message="nodeClassRef.group cannot change",rule="self.group == oldSelf.group"
	// +kubebuilder:validation:XValidation:message="nodeClassRef.kind cannot change",rule="self.kind == oldSelf.kind"
	// +required
	NodeClassRef NodeClassReference `json:"nodeClassRef"`
	// TerminationGracePeriod is the maximum time between the deletion of a node and the termination of its
	// machine, in hours, minutes and seconds ("1h30m"). When it has elapsed, the remaining pods are deleted
	// even if their PodDisruptionBudgets or the annotation karpenter.sh/do-not-disrupt block their eviction.
	// Unset: no limit.
	// +kubebuilder:validation:Pattern:=`^([0-9]+(s|m|h))+$`
	// +kubebuilder:validation:Type:="string"
	// +kubebuilder:validation:XValidation:message="must be shorter than 292 years",rule="duration(self) >= duration('0s')"
	// +optional
	TerminationGracePeriod *metav1.Duration `json:"terminationGracePeriod,omitempty"`
	// ExpireAfter is the age at which a node is deleted, in hours, minutes and seconds ("720h"), or Never.
	// Defaults to 720h.
	// +kubebuilder:default:="720h"
	// +kubebuilder:validation:Pattern:=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:Type:="string"
	// +optional
	ExpireAfter NillableDuration `json:"expireAfter,omitempty"`
}

// ConsolidationPolicy selects the nodes that consolidation may remove or replace.
// +kubebuilder:validation:Enum:={WhenEmpty,WhenEmptyOrUnderutilized,Balanced}
type ConsolidationPolicy string

// The consolidation policies.
const (
	ConsolidateWhenEmpty                ConsolidationPolicy = "WhenEmpty"                // only nodes without pods to move
	ConsolidateWhenEmptyOrUnderutilized ConsolidationPolicy = "WhenEmptyOrUnderutilized" // whenever it reduces cost
	ConsolidateBalanced                 ConsolidationPolicy = "Balanced"                 // when the saving outweighs the disruption
)

// DisruptionReason is the reason why a node is removed or replaced voluntarily.
// +kubebuilder:validation:Enum:={Underutilized,Empty,Drifted}
type DisruptionReason string

// The reasons that a budget may name.
const (
	DisruptionUnderutilized DisruptionReason = "Underutilized" // the pods fit on other nodes at a lower cost
	DisruptionEmpty         DisruptionReason = "Empty"         // no pod needs the node
	DisruptionDrifted       DisruptionReason = "Drifted"       // the node no longer matches its pool
)

// Disruption configures when nodes may be removed or replaced voluntarily.
type Disruption struct {
	// ConsolidateAfter is how long no pod must have been added to or removed from a node before the node may be
	// consolidated, in hours, minutes and seconds ("30s"), or Never. Defaults to 0s.
	// +kubebuilder:default:="0s"
	// +kubebuilder:validation:Pattern:=`^(([0-9]+(s|m|h))+|Never)$`
	// +kubebuilder:validation:Type:="string"
	// +optional
	ConsolidateAfter NillableDuration `json:"consolidateAfter,omitempty"`
	// ConsolidationPolicy selects the nodes that may be consolidated. WhenEmpty: only nodes without pods to
	// move. WhenEmptyOrUnderutilized: all nodes, whenever it reduces cost. Balanced: all nodes, when the saving
	// outweighs the disruption. Defaults to WhenEmptyOrUnderutilized.
	// +kubebuilder:default:="WhenEmptyOrUnderutilized"
	// +optional
	ConsolidationPolicy ConsolidationPolicy `json:"consolidationPolicy,omitempty"`
	// Budgets limit how many nodes may be disrupted at the same time. The strictest active budget applies.
	// Defaults to one budget of 10% of the nodes. An empty list means no limit.
	// +kubebuilder:default:={{nodes: "10%"}}
	// +kubebuilder:validation:MaxItems:=50
	// +kubebuilder:validation:XValidation:message="schedule and duration must be set together",rule="self.all(x, has(x.schedule) == has(x.duration))"
	// +listType=atomic
	// +optional
	Budgets []Budget `json:"budgets,omitzero"`
}

// Budget limits how many nodes of a pool may be disrupted at the same time.
type Budget struct {
	// Reasons for disruption that the budget applies to: Underutilized, Empty, Drifted. Unset: all of them.
	// +kubebuilder:validation:MaxItems:=50
	// +listType=set
	// +optional
	Reasons []DisruptionReason `json:"reasons,omitempty"`
	// Nodes is the maximum number of nodes, or percentage of the pool's nodes (rounded up), that may be
	// disrupted at the same time. Defaults to 10%.
	// +kubebuilder:default:="10%"
	// +kubebuilder:validation:Pattern:=`^((100|[0-9]{1,2})%|[0-9]+)$`
	// +required
	Nodes string `json:"nodes"`
	// Schedule is when the budget becomes active: a cron expression of five fields, or @annually, @yearly,
	// @monthly, @weekly, @daily, @midnight or @hourly, in UTC. Unset: the budget is always active.
	// +kubebuilder:validation:Pattern:=`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$`
	// +kubebuilder:validation:MaxLength:=256
	// +kubebuilder:validation:XValidation:message="schedule must be five cron fields (minutes 0-59, hours 0-23, days 1-31, months 1-12 or jan-dec, weekdays 0-6 or sun-sat) or a name such as @daily",rule="!self.matches('^[^@].*[[:space:]].+[[:space:]].+[[:space:]].+[[:space:]].+') || self.matches('(?i)^(@[a-z]+|[[:space:]]*([*]|[?]|0*[0-5]?[0-9](-0*[0-5]?[0-9])?)(/0*[1-9][0-9]*)?(,([*]|[?]|0*[0-5]?[0-9](-0*[0-5]?[0-9])?)(/0*[1-9][0-9]*)?)*[[:space:]]+([*]|[?]|0*([01]?[0-9]|2[0-3])(-0*([01]?[0-9]|2[0-3]))?)(/0*[1-9][0-9]*)?(,([*]|[?]|0*([01]?[0-9]|2[0-3])(-0*([01]?[0-9]|2[0-3]))?)(/0*[1-9][0-9]*)?)*[[:space:]]+([*]|[?]|0*([1-9]|[12][0-9]|3[01])(-0*([1-9]|[12][0-9]|3[01]))?)(/0*[1-9][0-9]*)?(,([*]|[?]|0*([1-9]|[12][0-9]|3[01])(-0*([1-9]|[12][0-9]|3[01]))?)(/0*[1-9][0-9]*)?)*[[:space:]]+([*]|[?]|(0*([1-9]|1[0-2])|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(-(0*([1-9]|1[0-2])|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))?)(/0*[1-9][0-9]*)?(,([*]|[?]|(0*([1-9]|1[0-2])|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(-(0*([1-9]|1[0-2])|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))?)(/0*[1-9][0-9]*)?)*[[:space:]]+([*]|[?]|(0*[0-6]|sun|mon|tue|wed|thu|fri|sat)(-(0*[0-6]|sun|mon|tue|wed|thu|fri|sat))?)(/0*[1-9][0-9]*)?(,([*]|[?]|(0*[0-6]|sun|mon|tue|wed|thu|fri|sat)(-(0*[0-6]|sun|mon|tue|wed|thu|fri|sat))?)(/0*[1-9][0-9]*)?)*[[:space:]]*)$')"
	// +optional
	Schedule *string `json:"schedule,omitempty"`
	// Duration is how long the budget stays active after each time of the schedule, in hours and minutes
	// ("8h30m"). Required with schedule.
	// +kubebuilder:validation:Pattern:=`^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$`
	// +kubebuilder:validation:Type:="string"
	// +kubebuilder:validation:XValidation:message="must be shorter than 292 years",rule="duration(self) >= duration('0s')"
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
}

// NodePoolStatus is the observed state of a pool.
type NodePoolStatus struct {
	// Resources is the total capacity of the pool's nodes that are not being deleted, by resource name. The
	// name "nodes" holds their number.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Nodes is the number of the pool's nodes that are not being deleted.
	// +kubebuilder:default:=0
	// +optional
	Nodes int64 `json:"nodes"`
	// NodeClassObservedGeneration is the last observed generation of the node class.
	// +optional
	NodeClassObservedGeneration int64 `json:"nodeClassObservedGeneration,omitempty"`
	// Conditions of the pool. Ready is True when ValidationSucceeded and NodeClassReady are True.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []status.Condition `json:"conditions,omitempty"`
}

// Static reports whether the pool maintains a fixed number of nodes.
func (p *NodePool) Static() bool { return p.Spec.Replicas != nil }

// WeightOrZero returns the pool's weight, or 0 if it is unset.
func (p *NodePool) WeightOrZero() int32 {
	if p.Spec.Weight == nil {
		return 0
	}
	return *p.Spec.Weight
}

// StatusConditions returns the pool's conditions, with Ready as the root. It adds missing conditions to the
// object as Unknown. For an object from a shared cache, use Condition instead.
func (p *NodePool) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions(ConditionValidationSucceeded, ConditionNodeClassReady).For(p, opts...)
}

// Condition returns the pool's condition of the given type as StatusConditions returns it, or nil. It does not
// modify the pool, so it is safe for objects from a shared cache.
func (p *NodePool) Condition(conditionType string) *status.Condition {
	unshared := *p // added conditions go to a separate slice
	return unshared.StatusConditions().Get(conditionType)
}

// GetConditions implements status.Object.
func (p *NodePool) GetConditions() []status.Condition { return p.Status.Conditions }

// SetConditions implements status.Object.
func (p *NodePool) SetConditions(conditions []status.Condition) {
	p.Status.Conditions = WithReasons(conditions)
}
