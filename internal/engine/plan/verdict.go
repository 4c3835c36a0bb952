package plan

import (
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Code says which rule refused.
type Code uint8

// The codes, by who refuses. The comment names the operands of the Verdict that are set.
const (
	OK Code = iota

	// PodInvalid: the pod's own fields cannot be honoured (Rejection).
	PodInvalid
	// PodUnsupported: the pod is right, we cannot do it yet (Rejection).
	PodUnsupported
	// PodWaiting: the pod waits for something other than a node (Rejection).
	PodWaiting
	// PodContradiction: no label value satisfies the pod (Key).
	PodContradiction

	// NoPools: there is no pool at all.
	NoPools
	// PoolBlocked: nothing may be bought from the pool now (Rejection).
	PoolBlocked
	// PoolContradiction: the pool's requirements exclude each other (Key).
	PoolContradiction
	// TaintNotTolerated: the pod does not tolerate the taint of the pool or node (Taint).
	TaintNotTolerated
	// LabelUndefined: the pod asks for a label that the pool does not define (Key).
	LabelUndefined
	// LabelExcluded: pool (or node, or bin) and pod agree on no value (Key).
	LabelExcluded
	// TypesExcluded: no type is left that has what pod and pool ask of a label (Key; Have types before).
	TypesExcluded
	// ResourceTooLarge: no type left has as much (Resource, Need, Have: the largest; Types that met the rest).
	ResourceTooLarge
	// CombinationTooLarge: each resource is there on some type, no type has all (Resource: scarcest).
	CombinationTooLarge
	// NoOffering: types fit, none is for sale in what zones and capacity types are left (Types that fit).
	NoOffering
	// LimitReached: the pool's limit leaves too little (Resource, Need, Have: what is left).
	LimitReached
	// NodeLimitReached: the pool may have no further node (Have: the limit).
	NodeLimitReached

	// SpreadExceeded: every domain left would exceed maxSkew of a topology spread constraint (Key).
	SpreadExceeded
	// AffinityUnmet: no domain left holds a pod that a required affinity term asks for (Key).
	AffinityUnmet
	// AntiAffinityBlocked: every domain left holds a pod that anti-affinity, its own or theirs, keeps apart (Key).
	AntiAffinityBlocked
	// MinValuesUnmet: too few values of a label are left on the types that would do (Key, Need, Have).
	MinValuesUnmet
	// ReservationTaken: what is left is reserved capacity, all of it taken (Types that fit).
	ReservationTaken
	// TypesSpared: the types that would do have devices, and are left to pods that ask for some.
	TypesSpared
	// NoPlaceFound: no rule alone is in the way, and beside the other pods of the plan no place was found.
	NoPlaceFound
	// NotReached: the work budget of the plan was spent before the pods' turn came.
	NotReached

	// HostPortTaken: a pod there takes the same host port (Have: the port).
	HostPortTaken
	// NodeFull: the node's free resources are too small (Resource, Need, Have).
	NodeFull
	// NodeLeaving: the node is deleting or being disrupted.
	NodeLeaving

	// The codes of Check: why a command is no longer safe.

	// NodeGone: the node or claim is no longer there, or is another of the same name (Node).
	NodeGone
	// NodeBusy: pods came onto a node that was to be empty (Node, Have: how many).
	NodeBusy
	// NodeProtected: do-not-disrupt on the node, or on a pod of it (Node; Holder when it is a pod).
	NodeProtected
	// NodeNominated: pods were promised the node (Node).
	NodeNominated
	// NodeTooYoung: consolidateAfter has not passed (Node).
	NodeTooYoung
	// NodeNotReady: the node is not initialised (Node).
	NodeNotReady
	// NodeTaken: another command has the node (Node).
	NodeTaken
	// BudgetExhausted: the pool's budget allows no further node (Have: allowed).
	BudgetExhausted
	// BudgetUnreadable: a budget of the pool cannot be read; then nothing is allowed.
	BudgetUnreadable
	// PolicyForbids: the pool's consolidation policy or consolidateAfter Never excludes it.
	PolicyForbids
	// PoolGone: the pool is no longer there.
	PoolGone
	// PoolRefused: the pool is one that the API server would refuse, so that nobody knows what it allows (Node, Rejection).
	PoolRefused
	// NodeStatic: the pool has a fixed number of nodes, which are not consolidated (Node).
	NodeStatic
	// PoolAboveReplicas: the static pool has more nodes than its number, until replacements that are under way are done
	// (Node, Need: the number, Have: nodes).
	PoolAboveReplicas
	// NodeUnsettled: a consolidation launched the node, or sent pods to it, less than the minimum stay ago (Node; Need: the
	// minimum stay in seconds).
	NodeUnsettled
	// NodeNotDrifted: the node is again what its pool says (Node).
	NodeNotDrifted
	// PriceUnknown: the node's type or offering is not in the catalogue, so that nobody can say what it costs (Node).
	PriceUnknown
	// PDBBlocks: a PodDisruptionBudget allows no eviction of a pod now (Node, Holder).
	PDBBlocks
	// PDBsConflict: more than one PodDisruptionBudget selects a pod, which the eviction API refuses (Node; Holder: the
	// first of them; Have: how many).
	PDBsConflict
	// PodsHomeless: pods of the node would have no place elsewhere (Node, Holder: the first of them; Have: how many).
	PodsHomeless
	// NoSaving: no arrangement that costs less was found (Node).
	NoSaving
	// SavingTooSmall: what a change would save is not worth its disruption (Node; Need and Have: the least and the actual
	// saving in nano-USD per hour).
	SavingTooSmall
	// RoomTooTight: pods may be packed in another way than planned, and what may have to be bought for those that are left
	// over is not worth it (Node; Need: the least saving, Have: what is left of the saving, in nano-USD per hour; Holder: a
	// pod for which nothing could be bought, then without numbers).
	RoomTooTight
	// ScoreTooLow: the policy Balanced finds the disruption too large for the saving (Node; Need and Have: the least and
	// the actual score in thousandths).
	ScoreTooLow
	// SpotForbidden: only another spot node would be cheaper, and spot nodes are not replaced by spot nodes (Node).
	SpotForbidden
	// ReplacementChanged: the nodes to be bought for a command are no longer what would be bought (Node: the claim).
	ReplacementChanged
	// PodGone: the pods of a plan are no longer pending, nor on nodes that are leaving.
	PodGone
	// ReplacementLost: a node bought to take a leaving one's place is gone (Node: its claim).
	ReplacementLost
	// DeadlinePassed: a command took too long.
	DeadlinePassed
	// CommandUnreadable: the annotation on a claim is not a command that names it (Node).
	CommandUnreadable

	// SpotShareReached: in the zones left, each type that would do has its share of the pool's spot capacity (Have: the
	// share in percent; Types that fit).
	SpotShareReached
	// SpotShareExceeded: without the node, a type in a zone would have more than its share of the pool's spot capacity (Node;
	// Need: the share, Have: what it would be, in percent).
	SpotShareExceeded

	// NodeExpecting: pods that were sent to the node are evicted elsewhere, and none has come yet (Node).
	NodeExpecting

	// PoolBarren: the pool's own requirements leave no instance type, whatever is available now (Key: the requirement that
	// takes the last one away; Types that it found, Have: all types).
	PoolBarren

	// ReplacementsFailed: replacements of commands of the reason failed, and the reason backs off in the pool (Node; Have: how
	// often in a row; Need: until when, Unix seconds, 0 while another command tries).
	ReplacementsFailed
	// LaunchesHeld: nodes that were launched for pods of the same controller did not come to run them (Rejection: the controller,
	// and what became of the nodes; Have: how many launches; Need: until when the next waits, Unix seconds; Pool: the one that
	// the pause stands on, empty where it is in memory only).
	LaunchesHeld
)

// Unpayable is what SavingTooSmall needs where no saving is enough: moving has a price, and no time to be paid back.
const Unpayable = int64(1) << 62

// Class says what a refusal means for the one who was refused.
type Class uint8

// The classes of refusals.
const (
	Allowed Class = iota
	// NotNow: the same question may be answered differently later, without anybody changing the objects.
	NotNow
	// NeverHere: not on this pool or node as they are.
	NeverHere
	// NotSupported: we cannot do it.
	NotSupported
)

// Class returns what the refusal means.
func (c Code) Class() Class {
	switch c {
	case OK:
		return Allowed
	case PodUnsupported:
		return NotSupported
	case PodWaiting, NoPools, PoolBlocked, NoOffering, LimitReached, NodeLimitReached, SpreadExceeded, AffinityUnmet,
		AntiAffinityBlocked, ReservationTaken, NoPlaceFound, NotReached, NodeFull, NodeLeaving, NodeBusy, NodeProtected,
		NodeNominated, NodeTooYoung, NodeNotReady, NodeTaken, BudgetExhausted, NodeUnsettled, PoolAboveReplicas, PDBBlocks, PodsHomeless, NoSaving,
		SavingTooSmall, RoomTooTight, ScoreTooLow, SpotShareReached, SpotShareExceeded, NodeExpecting, ReplacementsFailed, LaunchesHeld:
		return NotNow
	default:
		return NeverHere
	}
}

// Verdict is the answer of a check: a code and its operands. The zero value is yes. It holds no text of its own; names
// are those of the snapshot's objects.
type Verdict struct {
	Code     Code
	Key      label.Key
	Resource quantity.Resource
	// Need and Have in the resource's unit, or counts.
	Need, Have int64
	// Types that met everything before this rule was asked.
	Types     int
	Taint     model.Taint
	Node      string
	Pool      string
	Rejection *model.Rejection
	// Holder is what holds a node's drain up, nil where that is not the matter.
	Holder *Holder
}

// Holder is a pod that cannot leave its node, and the PodDisruptionBudget that says so, if one does; both as
// namespace/name.
type Holder struct{ Pod, PDB string }

// OK reports whether nothing refuses.
func (v Verdict) OK() bool { return v.Code == OK }

// PoolVerdict is a pool's answer to a group: the first rule that left nothing, and how it came to that.
type PoolVerdict struct {
	Pool    string
	Verdict Verdict
	// Filters are the rules that took instance types away, in the order in which they were asked, up to the Verdict.
	Filters []Filter
	// Nearest are changes of a single thing after which instance types of the pool would do; none when more than one
	// thing is in the way.
	Nearest []Change
	// Also are further rules about labels, each of which alone leaves nothing, when the Verdict is one of them.
	Also []Verdict
}

// Filter is a rule with the instance types that were left before it was asked and after.
type Filter struct {
	Rule          Verdict
	Before, After int
}

// Change is a rule that would have to give way. Rule is as it refuses; for a resource Have is the most that the types
// have which pass all other rules. Types is how many would do then.
type Change struct {
	Rule  Verdict
	Types int
}

// Refusal says why pods have no place.
type Refusal struct {
	// Pods of one group, in the order of the group.
	Pods []*model.Pod
	// Verdict is about the pods themselves; when it is OK, the pools refused.
	Verdict Verdict
	// Pools, by weight.
	Pools []PoolVerdict
	// Nodes are the answers of the nodes of the snapshot, most frequent first; only where they were asked for.
	Nodes []NodeCount
	// Dropped is how many of the pods' preferences were given up in vain.
	Dropped int
}

// NodeCount is a rule and how many nodes it keeps the pods from. Of a resource, Have is the most that is free on any of
// them.
type NodeCount struct {
	Rule  Verdict
	Nodes int
}
