package plan

import (
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Code identifies the rule that refused.
type Code uint8

// The codes, grouped by the object that refuses. Each comment names, in parentheses, the operands of the Verdict that
// are set.
const (
	OK Code = iota

	// PodInvalid: the pod's own fields cannot be honored (Rejection).
	PodInvalid
	// PodUnsupported: the pod is valid, but uses a feature that is not implemented (Rejection).
	PodUnsupported
	// PodWaiting: the pod waits for something other than a node (Rejection).
	PodWaiting
	// PodContradiction: no label value satisfies the pod (Key).
	PodContradiction

	// NoPools: there is no NodePool at all.
	NoPools
	// PoolBlocked: no node may be launched from the pool now (Rejection).
	PoolBlocked
	// PoolContradiction: the pool's requirements exclude each other (Key).
	PoolContradiction
	// TaintNotTolerated: the pod does not tolerate the taint of the pool or node (Taint).
	TaintNotTolerated
	// LabelUndefined: the pod requires a label that the pool does not define (Key).
	LabelUndefined
	// LabelExcluded: the pool (or node, or bin) and the pod have no common value (Key).
	LabelExcluded
	// TypesExcluded: no remaining instance type has what pod and pool require of a label (Key; Have: types before the
	// rule).
	TypesExcluded
	// ResourceTooLarge: no remaining type has as much (Resource, Need, Have: the largest; Types that met the other
	// rules; Daemons: what the DaemonSets take of each node at least). Need is 0 if the DaemonSets alone take more.
	ResourceTooLarge
	// CombinationTooLarge: each resource exists on some type, but no type has all of them (Resource: the scarcest).
	CombinationTooLarge
	// NoOffering: types fit, but none has an available offering in the remaining zones and capacity types (Types that
	// fit).
	NoOffering
	// LimitReached: the remainder of the pool's limit is too small (Resource, Need, Have: the remainder).
	LimitReached
	// NodeLimitReached: the pool may have no more nodes (Have: the limit).
	NodeLimitReached

	// SpreadExceeded: every remaining domain would exceed maxSkew of a topology spread constraint (Key; Domain: the one with
	// the fewest pods, if these pods cannot get a node there). With Need, the cause is that there are fewer domains than
	// minDomains (Need; Have: their number; Domain: their names).
	SpreadExceeded
	// AffinityUnmet: no remaining domain has a pod that a required affinity term selects (Key).
	AffinityUnmet
	// AntiAffinityBlocked: anti-affinity, of this pod or of a pod in the domain, excludes every remaining domain (Key).
	AntiAffinityBlocked
	// MinValuesUnmet: the suitable types have too few values of a label (Key, Need, Have).
	MinValuesUnmet
	// ReservationTaken: only reserved capacity remains, and all of it is in use (Types that fit).
	ReservationTaken
	// TypesSpared: the suitable types have devices and are withheld from pods that request none.
	TypesSpared
	// NoPlaceFound: no single rule refuses, but no capacity is left after placing the other pods of the plan.
	NoPlaceFound
	// NotReached: the work budget of the plan was spent before these pods were processed.
	NotReached

	// HostPortTaken: a pod on the node uses the same host port (Have: the port; Holder: a DaemonSet of each new node).
	HostPortTaken
	// NodeFull: the node's free resources are too small (Resource, Need, Have).
	NodeFull
	// NodeLeaving: the node is being deleted or disrupted.
	NodeLeaving

	// The codes of Check: why a command is no longer safe.

	// NodeGone: the node or claim no longer exists, or a new one has the same name (Node).
	NodeGone
	// NodeBusy: pods were bound to a node that was to be empty (Node, Have: how many).
	NodeBusy
	// NodeProtected: the node, or a pod on it, has the annotation karpenter.sh/do-not-disrupt (Node; Holder when it is
	// a pod).
	NodeProtected
	// NodeNominated: pods are nominated to the node (Node).
	NodeNominated
	// NodeTooYoung: consolidateAfter has not passed (Node).
	NodeTooYoung
	// NodeNotReady: the node is not initialized (Node).
	NodeNotReady
	// NodeTaken: another command includes the node (Node).
	NodeTaken
	// BudgetExhausted: the pool's budget allows no further disruption (Have: allowed).
	BudgetExhausted
	// BudgetUnreadable: a budget of the pool cannot be parsed. Then nothing is allowed.
	BudgetUnreadable
	// PolicyForbids: the pool's consolidation policy or consolidateAfter Never excludes it.
	PolicyForbids
	// PoolGone: the pool of the node does not exist (Node, Pool: empty if the claim names none).
	PoolGone
	// PoolRefused: the API server would refuse the pool, so its rules are unknown (Node, Rejection).
	PoolRefused
	// NodeStatic: the pool has a fixed number of nodes, which are not consolidated (Node).
	NodeStatic
	// PoolAboveReplicas: the static pool has more nodes than its number of replicas until replacements in progress are
	// done (Node, Need: the number, Have: nodes).
	PoolAboveReplicas
	// NodeUnsettled: a consolidation launched the node, or moved pods to it, less than a minute ago (Node;
	// Need: that time in seconds).
	NodeUnsettled
	// NodeNotDrifted: the node matches its pool again (Node).
	NodeNotDrifted
	// PriceUnknown: the node's type or offering is not in the catalog, so its price is unknown (Node).
	PriceUnknown
	// PDBBlocks: a PodDisruptionBudget allows no eviction of a pod now (Node, Holder).
	PDBBlocks
	// PDBsConflict: more than one PodDisruptionBudget selects a pod. The eviction API refuses such pods (Node; Holder:
	// the first of them; Have: how many).
	PDBsConflict
	// PodsHomeless: pods of the node would be unschedulable elsewhere (Node, Holder: the first of them; Have: how
	// many).
	PodsHomeless
	// NoSaving: no cheaper arrangement was found (Node; if new nodes would be needed: Name, the instance type of
	// the first, Pool, its pool, Need, their number, and Have, the saving with them, which is 0 or negative, or
	// would depend on the type that is launched).
	NoSaving
	// SavingTooSmall: the saving of a change does not justify its disruption (Node; Need and Have: the least and the
	// actual saving in nano-USD per hour).
	SavingTooSmall
	// ScoreTooLow: under the policy Balanced, the disruption is too large for the saving (Node; Need and Have: the
	// least and the actual score in thousandths).
	ScoreTooLow
	// SpotForbidden: only another spot node would be cheaper, and spot nodes do not replace spot nodes (Node).
	SpotForbidden
	// ReplacementChanged: a new plan would launch other replacements than the command lists (Node: the claim).
	ReplacementChanged
	// PodGone: the pods of a plan are no longer pending, nor on nodes that are being removed.
	PodGone
	// ReplacementLost: a replacement node is gone (Node: its claim).
	ReplacementLost
	// DeadlinePassed: a command took too long (Have: the number of its replacements, 0 if it had not launched them).
	DeadlinePassed
	// CommandUnreadable: the annotation on a claim is not a command that names it (Node).
	CommandUnreadable

	// SpotShareReached: in the remaining zones, each suitable type has its share of the pool's spot capacity (Have: the
	// share in percent; Types that fit).
	SpotShareReached
	// SpotShareExceeded: without the node, a type in a zone would exceed its share of the pool's spot capacity (Node;
	// Need: the share, Have: what it would be, in percent).
	SpotShareExceeded

	// NodeExpecting: pods with a reservation on the node are being evicted from other nodes, and none is bound to it
	// yet (Node).
	NodeExpecting
	// NodeHoldsRoom: the empty node has room for virtual pods that fit on no other node (Node; Name: kind and
	// namespace/name of the object that asks for the room).
	NodeHoldsRoom

	// NoCompatibleInstanceTypes: the pool's own requirements exclude every instance type, whatever is available now (Key: the
	// requirement that excludes the last one; Types before that requirement, Have: all types).
	NoCompatibleInstanceTypes

	// Paused: what was attempted before failed repeatedly (Pause; Need: its end, Unix seconds, 0 while another attempt
	// is in progress; Pool: the pool that stores it, empty where it is in memory only; Node, if it is about one).
	Paused
	// TooManyDomains: the topology keys of the pods' constraints have too many combinations of values (Have: the limit).
	TooManyDomains
	// LaunchedAgain: the removal of the node frees limits of its pool, and provisioning would use them to launch another
	// node for its pods (Node; Pool: that of the launch; Holder: the first pod, Have: how many).
	LaunchedAgain
	// NodesUnready: so many nodes are not ready that no node is removed voluntarily (Have: nodes that are not ready, Need: all
	// initialized nodes).
	NodesUnready
	// PodsFollow: pods of the node have required affinity to others that move with them, and the plan has all of them in
	// another domain (Node; Name: the topology key; Holder: the first pod, Have: how many).
	PodsFollow
	// NoNewNode: only nodes that exist can run the pods, which do not fit there (Rejection).
	NoNewNode
	// QuotaReached: the remainder of a CapacityQuota is too small (Quota, Name: the resource, Need, Have: the remainder).
	QuotaReached

	// ZoneShifted: the zone of the node is being avoided as a whole, and its nodes stay (Node, Name: the zone).
	ZoneShifted
)

// Unpayable is the Need of SavingTooSmall where no saving is enough: moving pods has a price, and the payback time is
// zero.
const Unpayable = int64(1) << 62

// Class is the meaning of a refusal for the refused object.
type Class uint8

// The classes of refusals.
const (
	Allowed Class = iota
	// NotNow: the same check may succeed later without a change to the objects.
	NotNow
	// NeverHere: the check fails as long as the pool or node does not change.
	NeverHere
	// NotSupported: the feature is not implemented.
	NotSupported
)

// Class returns the class of the code.
func (c Code) Class() Class {
	switch c {
	case OK:
		return Allowed
	case PodUnsupported:
		return NotSupported
	case PodWaiting, NoPools, PoolBlocked, NoOffering, LimitReached, NodeLimitReached, QuotaReached, SpreadExceeded, AffinityUnmet,
		AntiAffinityBlocked, ReservationTaken, NoPlaceFound, NoNewNode, NotReached, NodeFull, NodeLeaving, NodeBusy, NodeProtected,
		NodeNominated, NodeTooYoung, NodeNotReady, NodeTaken, BudgetExhausted, NodeUnsettled, PoolAboveReplicas, PDBBlocks, PodsHomeless, NoSaving,
		SavingTooSmall, ScoreTooLow, SpotShareReached, SpotShareExceeded, NodeExpecting, NodeHoldsRoom, Paused,
		LaunchedAgain, PodsFollow, NodesUnready, ZoneShifted:
		return NotNow
	case PodInvalid, PodContradiction, PoolContradiction, TaintNotTolerated, LabelUndefined, LabelExcluded,
		TypesExcluded, ResourceTooLarge, CombinationTooLarge, MinValuesUnmet, TypesSpared, HostPortTaken, NodeGone,
		BudgetUnreadable, PolicyForbids, PoolGone, PoolRefused, NodeStatic, NodeNotDrifted, PriceUnknown,
		PDBsConflict, SpotForbidden, ReplacementChanged, PodGone, ReplacementLost, DeadlinePassed, CommandUnreadable,
		NoCompatibleInstanceTypes, TooManyDomains:
	}
	return NeverHere
}

// Verdict is the result of a check: a code and its operands. The zero value means allowed. It holds no text of its own.
// Names are those of the snapshot's objects.
type Verdict struct {
	Code     Code
	Key      label.Key
	Resource quantity.Resource
	// Name is that of the label or resource where it shares Key or Resource with others, because no node has it; else
	// empty.
	Name string
	// Quota is the name of a CapacityQuota.
	Quota string
	// Domain is a value of the label Key.
	Domain string
	// Need and Have are in the resource's unit, or counts.
	Need, Have, Daemons int64
	// Types is how many instance types met every rule before this one.
	Types int
	Taint model.Taint
	Node  string
	Pool  string
	// Others is how many nodes a change removes beside Node.
	Others    int
	Rejection *model.Rejection
	// Holder is the pod that blocks the drain of a node, nil where no pod blocks it.
	Holder *Holder
	Pause  *pause.Pause
}

// PausedVerdict returns the verdict about an attempt during the pause. Need is the first whole second at which the pause
// is over: a loop that sleeps until the second before it would find the verdict unchanged and have no further wake-up.
func PausedVerdict(p pause.Pause) Verdict {
	return Verdict{Code: Paused, Need: p.Until.Add(time.Second - time.Nanosecond).Unix(), Pause: &p}
}

// Holder is a pod that cannot be evicted, and the PodDisruptionBudget that blocks the eviction, if one does. Both are
// namespace/name.
type Holder struct{ Pod, PDB string }

// OK reports whether nothing refuses.
func (v Verdict) OK() bool { return v.Code == OK }

// PoolVerdict is the result for a group in one pool: the first rule that excluded every type, and the rules before it.
type PoolVerdict struct {
	Pool    string
	Verdict Verdict
	// Filters are the rules that excluded instance types, in the order of evaluation, up to the Verdict.
	Filters []Filter
	// Nearest are changes of a single rule after which instance types of the pool would be suitable. It is empty when
	// more than one rule is in the way.
	Nearest []Change
	// Also lists further label rules, each of which alone excludes every type, when the Verdict is such a rule.
	Also []Verdict
}

// Filter is a rule with the number of instance types before and after it.
type Filter struct {
	Rule          Verdict
	Before, After int
}

// Change is a rule that would have to be relaxed. Rule holds the operands of the refusal. For a resource, Have is the
// largest amount among the types that pass all other rules. Types is how many types would then be suitable.
type Change struct {
	Rule  Verdict
	Types int
}

// Refusal is the reason why pods are unschedulable.
type Refusal struct {
	// Pods belong to one group and are in the order of the group.
	Pods []*model.Pod
	// Verdict is about the pods themselves. When it is OK, the pools refused.
	Verdict Verdict
	// Pools are in order of weight.
	Pools []PoolVerdict
	// Nodes are the results for the nodes of the snapshot, most frequent first. It is set only on request.
	Nodes []NodeCount
	// Dropped is how many of the pods' preferences were relaxed without success.
	Dropped int
}

// NodeCount is a rule and how many nodes it excludes for the pods. For a resource, Have is the largest free amount on
// any of these nodes.
type NodeCount struct {
	Rule  Verdict
	Nodes int
}
