package model

import (
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// The label keys that the engine itself gives a meaning to. Providers declare the rest.
const (
	LabelPool         = "karpenter.sh/nodepool"
	LabelCapacityType = "karpenter.sh/capacity-type"
	LabelType         = "node.kubernetes.io/instance-type"
	LabelZone         = "topology.kubernetes.io/zone"
	LabelHostname     = "kubernetes.io/hostname"
)

// FieldName stands for the name of a node where pods select by matchFields. No label can have this key.
const FieldName = "field:metadata.name"

// ResourceNodes is the key of a pool's limit on the number of its nodes; no pod asks for it.
const ResourceNodes = "nodes"

// Effect is a taint's effect.
type Effect uint8

// The effects of a taint. AnyEffect only appears in tolerations.
const (
	AnyEffect Effect = iota
	NoSchedule
	PreferNoSchedule
	NoExecute
)

func (e Effect) String() string {
	return [...]string{"", "NoSchedule", "PreferNoSchedule", "NoExecute"}[e]
}

// Taint keeps pods without a matching toleration away.
type Taint struct {
	Key    string
	Value  string
	Effect Effect
}

// Toleration matches taints. An empty Key with Exists matches every key, AnyEffect every effect.
type Toleration struct {
	Key    string
	Exists bool
	Value  string
	Effect Effect
}

// Tolerates reports whether the toleration matches the taint (Kubernetes API, Toleration).
func (t Toleration) Tolerates(taint Taint) bool {
	if t.Effect != AnyEffect && t.Effect != taint.Effect {
		return false
	}
	if t.Key == "" {
		return t.Exists
	}
	return t.Key == taint.Key && (t.Exists || t.Value == taint.Value)
}

// Untolerated returns the first taint that keeps a pod with the tolerations off a node, PreferNoSchedule left aside.
func Untolerated(taints []Taint, tolerations []Toleration) (Taint, bool) {
	for _, taint := range taints {
		if taint.Effect != PreferNoSchedule && !tolerated(taint, tolerations) {
			return taint, true
		}
	}
	return Taint{}, false
}

// Avoided returns the first PreferNoSchedule taint that the tolerations do not match.
func Avoided(taints []Taint, tolerations []Toleration) (Taint, bool) {
	for _, taint := range taints {
		if taint.Effect == PreferNoSchedule && !tolerated(taint, tolerations) {
			return taint, true
		}
	}
	return Taint{}, false
}

func tolerated(taint Taint, tolerations []Toleration) bool {
	for _, t := range tolerations {
		if t.Tolerates(taint) {
			return true
		}
	}
	return false
}

// PodState says what the engine may do with a pod.
type PodState uint8

// The states of a pod. Pods that are none of our business (gated, terminal, ours to ignore) never enter the model
// unless they are bound to a node and use its resources.
const (
	// Pending: kube-scheduler found no place for it; it wants one from us.
	Pending PodState = iota
	// Bound: it is on a node and uses it.
	Bound
)

// PodSpec is a pod as the outside describes it.
type PodSpec struct {
	UID       string
	Namespace string
	Name      string
	Created   time.Time
	State     PodState
	// Node is the name of the node a Bound pod is on.
	Node string
	// Nominated is status.nominatedNodeName when we wrote it, else empty.
	Nominated string
	// Rejected says why the pod is not to be placed although it is Pending, else nil.
	Rejected *Rejection

	Labels map[string]string
	// Priority as resolved by the admission plugin.
	Priority int32
	// Requests include "pods": 1.
	Requests []quantity.Amount
	// Alternatives are the required node affinity terms, each merged with the node selector; any one suffices. No
	// entry means no requirement.
	Alternatives [][]label.Requirement
	// VolumeAlternatives are what the pod's volumes demand of its node; any one suffices, none means no demand. They
	// are not part of Alternatives because topology spread does not count them.
	VolumeAlternatives [][]label.Requirement
	Volumes            []Volume
	Preferred          []Preference
	Tolerations        []Toleration
	Spread             []Spread
	Terms              []Term
	HostPorts          []HostPort
	Controller         Owner

	// Daemon is true for pods of a DaemonSet, and for mirror pods: they leave with their node and are not placed.
	Daemon bool
	// Reschedulable is false for bound pods that nobody will start again elsewhere: daemons, mirror pods, pods that
	// are terminating (a StatefulSet's excepted).
	Reschedulable bool
	// Terminating: it has a deletion timestamp.
	Terminating bool
	// Ready is the pod's Ready condition: a PodDisruptionBudget may let those go that are not.
	Ready bool
	// EvictionCost in thousandths; a pod of priority 0 without annotation costs 1000.
	EvictionCost int64
	// ProtectedUntil is the end of the pod's do-not-disrupt protection, Forever for no end, zero for none.
	ProtectedUntil time.Time
}

// Forever is the end of what does not end.
var Forever = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Owner is an object's controller.
type Owner struct {
	Kind string
	Name string
	UID  string
}

// Rejection is why an object cannot be used, in the words of the user's object.
type Rejection struct {
	// Unsupported is true when the object is right and we cannot do it (yet).
	Unsupported bool
	// Silent: the object opted out, nobody wants to hear of it.
	Silent bool
	Field  string
	Reason string
}

// Stage is how far a node has come.
type Stage uint8

// The stages of a node. A claim that is created and not launched is a node too.
const (
	Launching Stage = iota
	Launched
	Registered
	Initialized
)

func (s Stage) String() string {
	return [...]string{"launching", "launched", "registered", "initialized"}[s]
}

// NodeSpec is a node, a claim, or both, as the outside describes them.
type NodeSpec struct {
	// Name is the node's name; while there is no node, the claim's.
	Name       string
	UID        string
	ProviderID string
	// Claim and ClaimUID are empty for nodes that are not ours.
	Claim    string
	ClaimUID string
	Pool     string
	Stage    Stage
	Created  time.Time
	// InitializedAt is zero until Stage is Initialized.
	InitializedAt time.Time
	// LastPodEvent is when a pod last came or went (claim status), zero if never.
	LastPodEvent time.Time

	Labels map[string]string
	// Taints are those that matter to scheduling: without startup and ephemeral taints until initialised.
	Taints []Taint
	// Capacity and Allocatable are nil while Stage is Launching: then they follow from Requirements.
	Capacity    []quantity.Amount
	Allocatable []quantity.Amount
	// Requirements and Requests are the claim's while Stage is Launching. A machine for it has at least the requests.
	Requirements []label.Requirement
	Requests     []quantity.Amount
	// Promised are the UIDs of the pods that the claim was created for, until Stage is Initialized, and then of those that it is
	// ReservedFor. They are planned onto it first, so that a plan made again, also after a restart, says the same.
	Promised []string
	// ReservedFor are the words (Pod.Promise) of the pods that a plan put onto the node later, as the claim has them.
	ReservedFor []string
	// Owners are, by index of Promised, the controllers (UIDs) of those pods that ran on a node that was leaving when the
	// claim was bought for them, empty for the others; nil when there are none. A pod that comes in such a pod's place
	// has another UID and the same controller.
	Owners []string

	// Ready is the node's Ready condition.
	Ready bool
	// Deleting: the claim or the node has a deletion timestamp, or the machine is being terminated.
	Deleting bool
	// Terminating: the machine is being terminated; budgets no longer count the node.
	Terminating bool
	// Disrupted: the node carries the karpenter.sh/disrupted taint.
	Disrupted bool
	// DisruptionReason: the claim carries the condition of that name.
	DisruptionReason bool
	// DoNotDisrupt: the node carries the annotation.
	DoNotDisrupt bool
	// Command is the annotation karpenter-go.github.io/command of the claim, as written.
	Command string
	// Drifted is the reason of the claim's Drifted condition, empty when it has not drifted; DriftedSince is when it became
	// so.
	Drifted      string
	DriftedSince time.Time
	// ExpiresAt is when expireAfter deletes the claim whatever is on it; zero for never.
	ExpiresAt time.Time
	// DrainBounded: the claim has a terminationGracePeriod, so that no pod can hold the node for ever.
	DrainBounded bool
	// DrainEnds is when the drain of the node deletes what is left on it by force, zero for never: the end of the claim's
	// terminationGracePeriod once it is being deleted, or sooner, when the cloud takes the machine back.
	DrainEnds time.Time
	// BoughtFor are the UIDs of the pods that the claim was launched for, in every stage. Replacement says that a
	// consolidation launched it.
	BoughtFor   []string
	Replacement bool
	// ConsolidatedAt is when a consolidation last bought the node or sent pods there, zero for never.
	ConsolidatedAt time.Time
	// ExpectingSince is when pods of nodes that leave were last sent to the node, by a command or because it was bought for
	// them, zero for never.
	ExpectingSince time.Time
	// NominatedUntil: pods were promised this node until then.
	NominatedUntil time.Time
}

// PoolSpec is a NodePool as the outside describes it.
type PoolSpec struct {
	Name string
	UID  string
	// Generation of the pool's specification; 0 if unknown.
	Generation int64
	Weight     int32
	// Blocked says why nothing may be bought from the pool now (not ready, static, deleting, class of another
	// provider, no catalogue), nil when something may.
	Blocked *Rejection
	// Refused says what is wrong with a pool as it is written that the API server would not take: nothing more is known of
	// it, nothing is bought from it, and its nodes stay. It is nil for pools that exist.
	Refused *Rejection
	// Requirements are the template's requirements and labels, the pool's own label and the class label.
	Requirements []label.Requirement
	Taints       []Taint
	// Limits by resource name, ResourceNodes included; nil for no limit.
	Limits []quantity.Amount
	// NodePrice is what a node of the pool costs beyond its price, nano-USD per hour: 0 for what the run says, a negative
	// value for nothing.
	NodePrice int64
	// MaxSpotShare is the greatest part of the pool's spot cpu, in percent, that may be of one instance type in one zone; 0
	// for any.
	MaxSpotShare int64
	// Catalogue is what can be bought. Pools share one where the provider says the same for both.
	Catalogue *Catalogue

	// ConsolidateAfter is negative for Never.
	ConsolidateAfter time.Duration
	// ExpireAfter is how old claims that are created now may become, nil for Never.
	ExpireAfter *time.Duration
	Policy      string
	Budgets     []Budget
	// BudgetError says that a budget cannot be read: then the pool allows no disruption at all.
	BudgetError string

	// Static pools have a fixed number of Replicas; nothing is bought from them for pods, and they are not consolidated.
	Static   bool
	Replicas int64

	// What a consolidation must bring, from the pool's annotations: 0 for what the run says, a negative value for nothing.
	// Payback is the time over which a saving must exceed the price of the disruption, MovePrice that price per unit of
	// eviction cost (nano-USD), MinSaving the least saving (nano-USD per hour). MinStay is for how long what a consolidation
	// did stands: 0 for the Payback.
	Payback   time.Duration
	MinStay   time.Duration
	MovePrice int64
	MinSaving int64

	// Backoffs are the reasons of disruption whose replacements failed lately, sorted by reason.
	Backoffs []Backoff
	// Holds are the controllers of pods for which nothing is launched for now, sorted by Owner.
	Holds []LaunchHold
}

// MostHolds is how many holds a pool has room for: those that last longest.
const MostHolds = 250

// LaunchHold says that launches for the pods of a controller wait, because nodes that were launched for them did not come
// to run them.
type LaunchHold struct {
	// Owner is the UID of the controller, or of a pod without one; Name is its kind, namespace and name.
	Owner, Name string
	// Failures is how many launches led to nothing, Until when the next may come, Why what became of the last nodes.
	Failures int
	Until    time.Time
	Why      string
	// Pauses is the number of this pause in a row; zero: not known.
	Pauses int
}

// Departure is a pod that was on a node and has ended or is being preempted.
type Departure struct {
	UID, Namespace, Name string
	Controller           Owner
	// Node is where it was, Ran for how long.
	Node     string
	Ran      time.Duration
	Priority int32
	// Preempted: it had to make room for another. Else it has ended by itself, well or badly.
	Preempted bool
}

// Backoff says how often in a row replacements for a reason of disruption failed, and when that was noted last.
type Backoff struct {
	Reason   string
	Failures int
	At       time.Time
	// Why says what became of the last replacements, with the cloud's answer where it is known. It decides nothing.
	Why string
}

// Budget limits how many nodes of a pool may be disrupted at once.
type Budget struct {
	// Reasons it applies to; empty for all.
	Reasons []string
	// Percent of the pool's nodes, rounded up, when IsPercent; else Count nodes.
	IsPercent bool
	Percent   int64
	Count     int64
	// Inactive: it has a schedule whose window does not hold now. The store brings it up to date before each
	// snapshot, because reading cron is not the engine's business.
	Inactive bool
	// Changes is when Inactive turns next, by the budget's schedule; zero without one.
	Changes time.Time
}

// PDBSpec is a PodDisruptionBudget (Kubernetes API, policy/v1).
type PDBSpec struct {
	UID       string
	Namespace string
	Name      string
	// Selector with its namespace. In policy/v1 an empty selector selects every pod of the namespace, a null one none.
	Selector Selector
	// Allowed is status.disruptionsAllowed: how many pods may be evicted now.
	Allowed int64
	// AlwaysEvictUnready is unhealthyPodEvictionPolicy: AlwaysAllow; Healthy that currentHealthy reaches desiredHealthy, in
	// which case pods that are not ready may go in any case.
	AlwaysEvictUnready bool
	Healthy            bool
	// Blocking: as it is written it never allows any eviction (maxUnavailable 0 or 0%, minAvailable 100%).
	Blocking bool
	// Full: as many pods must be healthy as there are, so that it allows no eviction before there are more of them
	// (minAvailable 3 of 3 pods).
	Full bool
}

// DaemonSpec is a DaemonSet: what it will put on a node that it admits.
type DaemonSpec struct {
	UID          string
	Namespace    string
	Name         string
	Requests     []quantity.Amount
	Alternatives [][]label.Requirement
	Tolerations  []Toleration
	HostPorts    []HostPort
	// Labels and Terms are those of its pods.
	Labels map[string]string
	Terms  []Term
}

// InstanceType is a size that one can buy.
type InstanceType struct {
	Name         string
	Requirements []label.Requirement
	Capacity     []quantity.Amount
	Allocatable  []quantity.Amount
	Offerings    []Offering
	Special      bool
}

// Offering is one zone, capacity type and price of a type.
type Offering struct {
	Zone         string
	CapacityType string
	// Price in nano-USD per hour.
	Price            int64
	Available        bool
	ReservationID    string
	ReservationCount int
	Requirements     []label.Requirement
}

// Catalogue is a list of types, shared by identity: the same pointer means the same content for ever.
type Catalogue struct {
	Types []InstanceType
	// WellKnown are the labels that are unconstrained unless a pool mentions them.
	WellKnown map[string]bool
}

// Nano is one USD in the engine's unit of money.
const Nano = 1_000_000_000
