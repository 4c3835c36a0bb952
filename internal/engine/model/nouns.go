package model

import (
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// The label keys that the engine itself interprets. Providers declare all others.
const (
	LabelPool         = "karpenter.sh/nodepool"
	LabelCapacityType = "karpenter.sh/capacity-type"
	LabelType         = "node.kubernetes.io/instance-type"
	LabelZone         = "topology.kubernetes.io/zone"
	LabelHostname     = "kubernetes.io/hostname"
	LabelRegistered   = "karpenter.sh/registered"
	LabelInitialized  = "karpenter.sh/initialized"
)

// FieldName represents the name of a node where pods select by matchFields. It is not a valid label key.
const FieldName = "field:metadata.name"

// ResourceNodes is the key of a pool's limit on the number of its nodes. No pod requests it.
const ResourceNodes = "nodes"

// PodState is the scheduling state of a pod.
type PodState uint8

// The states of a pod. Pods that the engine ignores (gated, terminal, opted out) are not in the model unless they are
// bound to a node and use its resources.
const (
	// Pending: kube-scheduler marked it unschedulable, and it needs capacity.
	Pending PodState = iota
	// Bound: it is bound to a node and uses its resources.
	Bound
)

// PodSpec is the input for a pod.
type PodSpec struct {
	UID       string
	Namespace string
	Name      string
	Created   time.Time
	State     PodState
	// Node is the name of the node of a Bound pod.
	Node string
	// Nominated is status.nominatedNodeName if this controller wrote it, else empty.
	Nominated string
	// Rejected is the reason for which a Pending pod must not be placed, else nil.
	Rejected *Rejection
	// NoNewNode is the reason for which only nodes that exist can run the pod, else nil. VolumeAlternatives say which.
	NoNewNode *Rejection `json:",omitempty"`

	Labels map[string]string
	// Priority as resolved by the admission plugin.
	Priority int32
	// Requests include "pods": 1.
	Requests []quantity.Amount
	// Successor are the requests of the pod that its controller creates in its place, if those of a Bound pod were reduced
	// while it ran. They include Requests, and exceed them in resources with a fixed number. Otherwise nil.
	Successor []quantity.Amount `json:",omitempty"`
	// Alternatives are the required node affinity terms, each merged with the node selector; any one suffices. An
	// empty list means no requirement.
	Alternatives [][]label.Requirement
	// VolumeAlternatives are the requirements of the pod's volumes on its node; any one suffices, none means no
	// requirement. They are not part of Alternatives because topology spread ignores them.
	VolumeAlternatives [][]label.Requirement
	Volumes            []Volume
	Preferred          []Preference
	Tolerations        []Toleration
	Spread             []Spread
	Terms              []Term
	HostPorts          []HostPort
	Controller         Owner

	// Daemon is true for pods of a DaemonSet and for mirror pods: they end with their node and are not placed.
	Daemon bool
	// Virtual is the kind of a virtual pod, empty for a pod that exists. A virtual pod is Pending and represents room to
	// keep free; no API object exists for it. Controller is the object that asks for the room. See Snapshot.Virtual.
	Virtual string `json:",omitempty"`
	// Reschedulable is false for pods that need no other place: expendable pods, daemons, mirror pods, and
	// terminating pods except those of a StatefulSet.
	Reschedulable bool
	// Terminating: it has a deletion timestamp.
	Terminating bool
	// Ready is the pod's Ready condition: a PodDisruptionBudget may allow the eviction of pods that are not ready.
	Ready bool
	// EvictionCost in thousandths; a pod of priority 0 without annotation costs 1000.
	EvictionCost int64
	// ProtectedUntil is the end of the pod's do-not-disrupt protection; Forever for no end, zero for no protection.
	ProtectedUntil time.Time
}

// The kinds of virtual pods.
const (
	// VirtualBuffer: a unit of spare capacity that a CapacityBuffer asks for.
	VirtualBuffer = "buffer"
	// VirtualReplica: a pod that a workload is about to create. Its controller is the workload.
	VirtualReplica = "replica"
)

// Forever is the time that represents no end.
var Forever = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Owner is an object's controller.
type Owner struct {
	Kind string
	Name string
	UID  string
}

// Rejection is the reason for which an object cannot be used, in terms of the user's object.
type Rejection struct {
	// Unsupported is true if the object is valid but this version does not support it.
	Unsupported bool
	// Silent: the object opted out, and no event is emitted.
	Silent bool
	Field  string
	Reason string
}

// Stage is the progress of a node.
type Stage uint8

// The stages of a node. A claim that is created and not launched is a node too.
const (
	Launching Stage = iota
	Launched
	Registered
	Initialized
)

// String returns the name of the stage.
func (s Stage) String() string {
	return [...]string{"launching", "launched", "registered", "initialized"}[s]
}

// NodeSpec is the input for a node, a claim, or both.
type NodeSpec struct {
	// Name is the name of the node, or of the claim while there is no node.
	Name       string
	UID        string
	ProviderID string
	// Claim and ClaimUID are empty for unmanaged nodes.
	Claim    string
	ClaimUID string
	Pool     string
	Stage    Stage
	Created  time.Time
	// InitializedAt is zero until Stage is Initialized.
	InitializedAt time.Time
	// LastPodEvent is when a pod was last bound or removed (claim status), zero if never.
	LastPodEvent time.Time

	Labels map[string]string
	// Taints are those that affect scheduling: without startup and ephemeral taints until the node is initialized.
	Taints []Taint
	// Capacity and Allocatable are nil while Stage is Launching: then they follow from Requirements.
	Capacity    []quantity.Amount
	Allocatable []quantity.Amount
	// Requirements and Requests are those of the claim while Stage is Launching. Its machine will have at least the
	// requests.
	Requirements []label.Requirement
	Requests     []quantity.Amount
	// LaunchedFor are the pods that the claim was created for, in every stage.
	LaunchedFor []PodRef

	// Ready is the node's Ready condition.
	Ready bool
	// Deleting: the claim or the node has a deletion timestamp, or the machine is being terminated.
	Deleting bool
	// DeletingSince is the earlier deletion timestamp of claim and node, zero without one.
	DeletingSince time.Time
	// Terminating: the machine is being terminated; budgets no longer count the node.
	Terminating bool
	// Disrupted: the node carries the karpenter.sh/disrupted taint.
	Disrupted bool
	// DisruptionReason: the claim carries the condition of that name.
	DisruptionReason bool
	// DoNotDisrupt: the node carries the annotation.
	DoNotDisrupt bool
	// Command is the annotation karpenter-go.github.io/command of the claim, unparsed.
	Command string
	// Drifted is the reason of the claim's Drifted condition, empty if it has not drifted; DriftedSince is the time
	// of that condition.
	Drifted      string
	DriftedSince time.Time
	// ExpiresAt is when expireAfter deletes the claim, whatever pods it has; zero for never.
	ExpiresAt time.Time
	// DrainBounded: the claim has a terminationGracePeriod, so that no pod can block the drain forever.
	DrainBounded bool
	// DrainEnds is when the drain of the node force-deletes the remaining pods, zero for never: the end of the
	// claim's terminationGracePeriod once it is being deleted, or sooner if the cloud reclaims the machine.
	DrainEnds time.Time
	// Replacement says that a consolidation launched the claim.
	Replacement bool
	// Renewal says that the claim was launched in place of a drifted node.
	Renewal bool
	// ConsolidatedAt is when a consolidation last launched the node or moved pods to it, zero for never.
	ConsolidatedAt time.Time
	// PodsSentAt is when pods of nodes being removed were last moved to the node, by a command or because it was
	// launched for them, zero for never.
	PodsSentAt time.Time
	// NominatedUntil is the time until which nominations to this node hold.
	NominatedUntil time.Time
}

// PoolSpec is the input for a NodePool.
type PoolSpec struct {
	Name string
	UID  string
	// Generation of the pool's specification; 0 if unknown.
	Generation int64
	Weight     int32
	// Blocked is the reason for which no node may be launched from the pool now (not ready, static, deleting, class
	// of another provider, no catalog), nil if nodes may be launched.
	Blocked *Rejection
	// Elsewhere: another controller launches nodes from the pool, and nothing but that blocks it.
	Elsewhere bool
	// Refused is the problem of a pool manifest that the API server would not accept: its other fields are unknown,
	// no node is launched from it, and its nodes are kept. It is nil for pools that exist.
	Refused *Rejection
	// Requirements are the template's requirements and labels, the pool's own label and the class label.
	Requirements []label.Requirement
	Taints       []Taint
	// Limits by resource name, including ResourceNodes; nil for no limit.
	Limits []quantity.Amount
	// NodePrice is the cost of a node of the pool in addition to its price, nano-USD per hour: 0 for the default of
	// the run, negative for zero.
	NodePrice int64
	// MaxSpotShare is the largest part of the pool's spot cpu, in percent, that may be of one instance type in one
	// zone; 0 for no limit.
	MaxSpotShare int64
	// Catalog holds the instance types and offerings. Pools share one if the provider returns the same for both.
	Catalog *Catalog

	// ConsolidateAfter is negative for Never.
	ConsolidateAfter time.Duration
	// ExpireAfter is the maximum age of claims that are created now, nil for Never.
	ExpireAfter *time.Duration
	Policy      string
	Budgets     []Budget
	// BudgetError says that a budget cannot be parsed: the pool then allows no disruption at all.
	BudgetError string

	// ClaimSeries is part of the names of new claims. It changes when a claim of the pool is gone whose name may be of the
	// current series; it is empty before that.
	ClaimSeries string

	// Static pools have a fixed number of Replicas; no nodes are launched from them for pods, and they are not
	// consolidated.
	Static   bool
	Replicas int64

	// The requirements on a consolidation, from the pool's annotations: 0 for the default of the run, negative for
	// zero. Payback is the time over which a saving must exceed the price of the disruption, MovePrice that price per
	// unit of eviction cost (nano-USD), MinSaving the minimum saving (nano-USD per hour). MinStay is the time after
	// a consolidation during which moving the same pods again has a higher price: 0 for the Payback.
	Payback   time.Duration
	MinStay   time.Duration
	MovePrice int64
	MinSaving int64

	// Pauses are what waits because it failed before (package pause).
	Pauses pause.List
}

// Departure is a pod that was on a node and has ended or is being preempted, or a node whose removal has begun.
type Departure struct {
	// Removed is the node as it was before that, nil for a pod. The other fields are those of a pod.
	Removed *NodeSpec

	UID, Namespace, Name string
	Controller           Owner
	// Node is the name of its node, Ran how long it ran there.
	Node     string
	Ran      time.Duration
	Priority int32
	// Preempted says that the pod was evicted for another pod. Otherwise it ended by itself, successfully or not.
	Preempted bool
}

// Budget limits how many nodes of a pool may be disrupted at once.
type Budget struct {
	// Reasons that it applies to; empty for all.
	Reasons []string
	// Percent of the pool's nodes, rounded up, if IsPercent; else Count nodes.
	IsPercent bool
	Percent   int64
	Count     int64
	// Inactive: it has a schedule whose window does not include the current time. The store updates it before each
	// snapshot, because the engine does not parse cron expressions.
	Inactive bool
	// Changes is when Inactive changes next, by the budget's schedule; zero without one.
	Changes time.Time
}

// PDBSpec is a PodDisruptionBudget (Kubernetes API, policy/v1).
type PDBSpec struct {
	UID       string
	Namespace string
	Name      string
	// Selector with its namespace. In policy/v1 an empty selector selects every pod of the namespace, a null one
	// none.
	Selector Selector
	// Allowed is status.disruptionsAllowed: how many pods may be evicted now.
	Allowed int64
	// AlwaysEvictUnready is unhealthyPodEvictionPolicy: AlwaysAllow. Healthy says that currentHealthy is at least
	// desiredHealthy, in which case pods that are not ready may be evicted in any case.
	AlwaysEvictUnready bool
	Healthy            bool
	// Blocking: by its spec it never allows any eviction (maxUnavailable 0 or 0%, minAvailable 100%).
	Blocking bool
	// Full: all existing pods must be healthy, so that it allows no eviction before there are more of them
	// (minAvailable 3 of 3 pods).
	Full bool
}

// DaemonSpec is the input for a DaemonSet: the pod that it creates on each node that it admits.
type DaemonSpec struct {
	UID          string
	Namespace    string
	Name         string
	Requests     []quantity.Amount
	Alternatives [][]label.Requirement
	Tolerations  []Toleration
	HostPorts    []HostPort
	// Labels and Terms of its pods.
	Labels map[string]string
	Terms  []Term
}

// InstanceType is a type of machine.
type InstanceType struct {
	Name         string
	Requirements []label.Requirement
	Capacity     []quantity.Amount
	Allocatable  []quantity.Amount
	Offerings    []Offering
	Special      bool
}

// Offering is one zone, capacity type and price of an instance type.
type Offering struct {
	Zone         string
	CapacityType string
	// Price in nano-USD per hour.
	Price     int64
	Available bool
	// RefusedAt is when the cloud last had no capacity, and RetryAt until when that is assumed to hold; zero if unknown.
	// They are for explanations.
	RefusedAt time.Time
	RetryAt   time.Time
	// Interruptions is because of how many interruptions the offering is avoided until RetryAt, 0 if it is not. It is for
	// explanations.
	Interruptions int
	// ZoneShifted: the zone is being avoided as a whole. The offering is not available, and no node of the pool in the
	// zone is removed voluntarily.
	ZoneShifted      bool
	ReservationID    string
	ReservationCount int
	Requirements     []label.Requirement
	// Units is how many units of a commitment a node takes, Limit how many the commitment has; 0 if ReservationID is that of
	// a reservation, of which a node takes one. PerPrice is how many units a node takes for each nano-USD per hour of its
	// price; Units is rounded up then. 0 means that units are millicores.
	Units, Limit int64
	PerPrice     int64
}

// Catalog is a list of instance types, shared by identity: the same pointer always means the same content.
type Catalog struct {
	Types []InstanceType
	// WellKnown are the labels that are unconstrained unless a pool mentions them.
	WellKnown map[string]bool
}

// Nano is one USD in the engine's unit of money.
const Nano = 1_000_000_000
