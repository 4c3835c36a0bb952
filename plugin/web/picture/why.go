package picture

import "github.com/karpenter-go/karpenter/plugin/web/view"

// reason is why a node stays: its code with a color that is the same in every fleet, and words.
type reason struct {
	code    string
	role    Role
	pattern Pattern
	text    string
}

// notManaged is the code of a node without a claim, or before the decision.
const notManaged = ""

// otherReason is that of codes that the table lacks. A test allows none with which the engine keeps a node.
var otherReason = reason{"other", Neutral, Crossed, "other reasons"}

// reasons are in the order of the legend: what would change, what can be lifted, what time changes, and the rest. Codes that
// are lifted alike have one color and differ by pattern.
var reasons = []reason{
	{"Proposed", Good, Solid, "would be removed now"},
	{"NoSaving", Series0, Solid, "nothing cheaper was found"},
	{"PodsHomeless", Series0, Hatched, "its pods fit nowhere else"},
	{"PodsFollow", Series0, Dotted, "its pods would follow others"},
	{"NoOffering", Series0, Crossed, "no offering for its replacement is available"},
	{"PDBBlocks", Series3, Solid, "a PodDisruptionBudget"},
	{"PDBsConflict", Series3, Hatched, "several PodDisruptionBudgets of a pod"},
	{"NodeProtected", Series2, Solid, "an annotation of the node or a pod"},
	{"BudgetExhausted", Series6, Solid, "the budget of its pool"},
	{"BudgetUnreadable", Series6, Hatched, "a budget that cannot be read"},
	{"NodesUnready", Series6, Dotted, "many nodes are not ready"},
	{"PoolAboveReplicas", Series6, Crossed, "other nodes of its static pool are being replaced"},
	{"LimitReached", Series2, Hatched, "a limit of its pool"},
	{"NodeLimitReached", Series2, Dotted, "the limit of nodes of its pool"},
	{"QuotaReached", Series2, Crossed, "a CapacityQuota"},
	{"PolicyForbids", Series4, Solid, "the policy of its pool"},
	{"NodeStatic", Series4, Hatched, "its pool has a fixed number of nodes"},
	{"SpotForbidden", Series4, Dotted, "spot nodes are not replaced by spot nodes"},
	{"SpotShareExceeded", Series4, Crossed, "the spot share of its pool"},
	{"SavingTooSmall", Series5, Solid, "saves less than moving its pods costs"},
	{"ScoreTooLow", Series5, Hatched, "saves too little for the pods moved"},
	{"LaunchedAgain", Series5, Dotted, "a node like it would be launched again"},
	{"SpotShareReached", Series5, Crossed, "the spot share has no room for its replacement"},
	{"NodeTooYoung", Series7, Solid, "consolidateAfter has not passed"},
	{"NodeUnsettled", Series7, Hatched, "pods were moved to it recently"},
	{"NodeNominated", Series7, Dotted, "pods are nominated to it"},
	{"NodeExpecting", Series7, Crossed, "it waits for pods"},
	{"NodeHoldsRoom", Series1, Solid, "it holds room for a buffer"},
	{"ZoneShifted", Series3, Dotted, "traffic is shifted away from its zone"},
	{"NodeBusy", Series1, Hatched, "it has pods"},
	{"NotReached", Series1, Dotted, "not examined in this round"},
	{"NodeTaken", Series1, Crossed, "a command is under way"},
	{"NodeNotReady", Warn, Solid, "it is not initialized"},
	{"NodeLeaving", Warn, Hatched, "it is being deleted"},
	{"Paused", Warn, Dotted, "paused after failures"},
	{"PoolBlocked", Warn, Crossed, "its pool launches no nodes now"},
	{"PriceUnknown", Bad, Solid, "its price is unknown"},
	{"PoolGone", Bad, Hatched, "its pool does not exist"},
	{"PoolRefused", Bad, Dotted, "its pool is refused"},
	{"PoolContradiction", Bad, Crossed, "the requirements of its pool exclude each other"},
	{"NoCompatibleInstanceTypes", Neutral, Hatched, "no instance type meets its pool's requirements"},
	{notManaged, Neutral, Solid, "not managed, or not decided"},
}

// reasonOf returns the reason of a code.
func reasonOf(code string) reason {
	for _, r := range reasons {
		if r.code == code {
			return r
		}
	}
	return otherReason
}

// whys returns the look of the reasons for which nodes stay.
func whys() *look {
	l, at := &look{}, map[string]int{}
	for i, r := range append(reasons[:len(reasons):len(reasons)], otherReason) {
		class := r.code
		if class == notManaged {
			class = "none"
		}
		at[r.code], l.keys = i, append(l.keys, Key{Role: r.role, Pattern: r.pattern, Text: r.text, Class: class})
	}
	l.class = func(n *view.Node) int {
		if i, known := at[n.Code]; known {
			return i
		}
		return len(reasons)
	}
	return l
}
