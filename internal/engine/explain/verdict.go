package explain

import (
	"strconv"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Verdict returns the reason for a refusal in one clause, or "nothing is against it" for OK.
func Verdict(snap *model.Snapshot, v plan.Verdict) string {
	if int(v.Code) >= len(sayings) || sayings[v.Code].say == nil {
		return "refused by rule " + strconv.Itoa(int(v.Code))
	}
	return sayings[v.Code].say(operands{snap, v})
}

// OfEach is Verdict with "each node" for the node, so that the texts for several nodes can be compared, and shared
// where they are equal.
func OfEach(snap *model.Snapshot, node string, v plan.Verdict) string {
	if v.Node == node {
		v.Node = eachNode
	}
	return Verdict(snap, v)
}

// eachNode is not a valid name of a node.
const eachNode = "each node"

// Code returns the name of a code as in the source, for programs to read.
func Code(c plan.Code) string {
	if int(c) >= len(sayings) || sayings[c].name == "" {
		return "Code" + strconv.Itoa(int(c))
	}
	return sayings[c].name
}

// operands is a verdict and the snapshot with the names of its operands.
type operands struct {
	snap *model.Snapshot
	plan.Verdict
}

func (o operands) key() string {
	if name := o.label(); name != "" {
		return "label " + name
	}
	return "a label"
}

// label returns the key of the label, "" if it is not known.
func (o operands) label() string {
	switch {
	case o.Verdict.Name != "":
		return o.Verdict.Name
	case o.snap == nil || o.snap.Space == nil || int(o.Key) >= o.snap.Space.Len():
		return ""
	}
	return o.snap.Space.Name(o.Key)
}

func (o operands) resource() string {
	if o.Verdict.Name != "" {
		return o.Verdict.Name
	}
	if o.snap == nil || int(o.Resource) >= len(o.snap.Resources) {
		return "a resource"
	}
	return o.snap.Resources[o.Resource]
}

// needHave returns the amounts in the resource's unit.
func (o operands) needHave() (need, have string) { return pair(o.resource(), o.Need, o.Have) }

func (o operands) rejection() string {
	if o.Rejection == nil {
		return "for a reason that was not given"
	}
	if o.Rejection.Field == "" {
		return o.Rejection.Reason
	}
	return o.Rejection.Field + ": " + o.Rejection.Reason
}

func (o operands) node() string {
	switch o.Node {
	case "":
		return "the node"
	case eachNode:
		return eachNode
	}
	return "node " + o.Node
}

// nodes returns the first node of a change, and how many others there are.
func (o operands) nodes() string {
	if o.Others > 0 && o.Node != eachNode {
		return o.node() + " and " + count(o.Others, "other")
	}
	return o.node()
}

// saying is the name of a code and its text.
type saying struct {
	name string
	say  func(o operands) string
}

func says(text string) func(operands) string { return func(operands) string { return text } }

// sayings by code. A test fails if a code has none.
var sayings = [...]saying{
	plan.OK:               {"OK", says("nothing is against it")},
	plan.PodInvalid:       {"PodInvalid", operands.rejection},
	plan.PodUnsupported:   {"PodUnsupported", operands.rejection},
	plan.PodWaiting:       {"PodWaiting", operands.rejection},
	plan.PodContradiction: {"PodContradiction", func(o operands) string { return "the pod's own requirements leave no value for " + o.key() }},

	plan.NoPools:                   {"NoPools", says("there is no node pool")},
	plan.PoolBlocked:               {"PoolBlocked", operands.rejection},
	plan.PoolContradiction:         {"PoolContradiction", func(o operands) string { return "the pool's own requirements leave no value for " + o.key() }},
	plan.NoCompatibleInstanceTypes: {"NoCompatibleInstanceTypes", matchesNone},
	plan.TaintNotTolerated:         {"TaintNotTolerated", func(o operands) string { return "taint " + Taint(o.Taint) + " is not tolerated" }},
	plan.LabelUndefined:            {"LabelUndefined", func(o operands) string { return o.key() + " is required, and the pool does not define it" }},
	plan.LabelExcluded:             {"LabelExcluded", func(o operands) string { return "no value of " + o.key() + " satisfies both pod and pool" }},
	plan.TypesExcluded:             {"TypesExcluded", typesExcluded},
	plan.ResourceTooLarge:          {"ResourceTooLarge", resourceTooLarge},
	plan.CombinationTooLarge:       {"CombinationTooLarge", combinationTooLarge},
	plan.NoOffering:                {"NoOffering", noOffering},
	plan.LimitReached:              {"LimitReached", limitReached},
	plan.NodeLimitReached:          {"NodeLimitReached", func(o operands) string { return "the limit of " + strconv.FormatInt(o.Have, 10) + " nodes is reached" }},
	plan.QuotaReached:              {"QuotaReached", quotaReached},

	plan.SpreadExceeded: {"SpreadExceeded", func(o operands) string {
		if o.Need > 0 {
			return "the topology spread constraint on " + o.key() + " has minDomains " + strconv.FormatInt(o.Need, 10) + ", and these pods have " +
				count(int(o.Have), "domain") + strings.TrimSuffix(": "+o.Domain, ": ") + "; each of these has as many pods as maxSkew allows"
		}
		text := "every remaining domain would exceed the maxSkew of the topology spread constraint on " + o.key()
		if o.Domain != "" {
			text += ": " + o.Domain + " counts as a domain, and these pods cannot get a node there"
		}
		return text
	}},
	plan.AffinityUnmet: {"AffinityUnmet", func(o operands) string {
		return "no remaining domain has a pod that the pod affinity on " + o.key() + " selects"
	}},
	plan.AntiAffinityBlocked: {"AntiAffinityBlocked", func(o operands) string {
		return "pod anti-affinity on " + o.key() + ", of these pods or of existing pods, excludes every remaining domain"
	}},
	plan.MinValuesUnmet:   {"MinValuesUnmet", minValuesUnmet},
	plan.ReservationTaken: {"ReservationTaken", reservationTaken},
	plan.TypesSpared:      {"TypesSpared", says("instance types with devices are reserved for pods that request devices")},
	plan.NoPlaceFound:     {"NoPlaceFound", says("no capacity left after placing the other pending pods")},
	plan.NoNewNode:        {"NoNewNode", operands.rejection},
	plan.NotReached:       {"NotReached", says("the work budget was spent before this was reached")},
	plan.TooManyDomains: {"TooManyDomains", func(o operands) string {
		return "the topology keys of the constraints between pods have more combinations of values than the limit of " +
			strconv.FormatInt(o.Have, 10)
	}},

	plan.HostPortTaken: {"HostPortTaken", func(o operands) string {
		port := strconv.FormatInt(o.Have, 10)
		if o.Holder != nil {
			return "the pods of DaemonSet " + o.Holder.Pod + " use host port " + port + " on its nodes"
		}
		return "a pod on " + o.node() + " uses host port " + port
	}},
	plan.NodeFull:    {"NodeFull", nodeFull},
	plan.NodeLeaving: {"NodeLeaving", func(o operands) string { return o.node() + " is being removed" }},

	plan.NodeGone: {"NodeGone", func(o operands) string { return o.node() + " is gone" }},
	plan.NodeBusy: {"NodeBusy", func(o operands) string {
		return o.node() + " is expected to be empty and has " + count(int(o.Have), "pod")
	}},
	plan.NodeProtected: {"NodeProtected", nodeProtected},
	plan.NodeNominated: {"NodeNominated", func(o operands) string { return "pods are nominated to " + o.node() }},
	plan.NodeTooYoung:  {"NodeTooYoung", func(o operands) string { return "consolidateAfter of " + o.node() + " has not passed yet" }},
	plan.NodeNotReady:  {"NodeNotReady", func(o operands) string { return o.node() + " is not initialized" }},
	plan.NodeTaken:     {"NodeTaken", func(o operands) string { return o.node() + " is part of another command" }},
	plan.BudgetExhausted: {"BudgetExhausted", func(o operands) string {
		return "the pool's budget allows at most " + count(int(o.Have), "node") + " at once"
	}},
	plan.BudgetUnreadable: {"BudgetUnreadable", budgetUnreadable},
	plan.PolicyForbids:    {"PolicyForbids", says("the pool's consolidation policy forbids it")},
	plan.PoolGone:         {"PoolGone", poolGone},
	plan.PoolRefused:      {"PoolRefused", func(o operands) string { return "the pool of " + o.node() + " is refused: " + o.rejection() }},
	plan.NodeStatic: {"NodeStatic", func(o operands) string {
		return o.node() + " belongs to a pool with a fixed number of nodes, which are not consolidated"
	}},
	plan.PoolAboveReplicas: {"PoolAboveReplicas", func(o operands) string {
		return "the pool of " + o.node() + " has " + count(int(o.Have), "node") + " for " + count(int(o.Need), "replica") + "; others are being replaced"
	}},
	plan.NodeUnsettled: {"NodeUnsettled", func(o operands) string {
		return "a consolidation launched " + o.node() + ", or moved pods to it, less than " + span(o.Need) + " ago"
	}},
	plan.NodeExpecting: {"NodeExpecting", func(o operands) string {
		return o.node() + " is kept for pods that were moved to it and are not bound yet"
	}},
	plan.NodeHoldsRoom: {"NodeHoldsRoom", func(o operands) string {
		return o.node() + " has the room that " + o.Name + " asks for, and no other node has"
	}},
	plan.NodeNotDrifted: {"NodeNotDrifted", func(o operands) string { return o.node() + " is not drifted" }},
	plan.PriceUnknown:   {"PriceUnknown", priceUnknown},
	plan.PDBBlocks: {"PDBBlocks", func(o operands) string {
		return o.pdb() + " allows no eviction of " + o.pods() + " on " + o.node() + " now"
	}},
	plan.PDBsConflict:   {"PDBsConflict", pdbsConflict},
	plan.PodsHomeless:   {"PodsHomeless", podsHomeless},
	plan.NoSaving:       {"NoSaving", noSaving},
	plan.SavingTooSmall: {"SavingTooSmall", savingTooSmall},
	plan.LaunchedAgain:  {"LaunchedAgain", launchedAgain},
	plan.PodsFollow:     {"PodsFollow", podsFollow},
	plan.NodesUnready: {"NodesUnready", func(o operands) string {
		return strconv.FormatInt(o.Have, 10) + " of " + count(int(o.Need), "node") + " are not ready: no node is removed voluntarily meanwhile"
	}},
	plan.ZoneShifted: {"ZoneShifted", func(o operands) string {
		return o.node() + " is in zone " + o.Name + ", which traffic is shifted away from; its nodes stay meanwhile"
	}},
	plan.ScoreTooLow: {"ScoreTooLow", func(o operands) string {
		return "the policy Balanced requires a score of " + thousandths(o.Need) + " or more, and removing " + o.nodes() + " scores " + thousandths(o.Have)
	}},
	plan.SpotForbidden: {"SpotForbidden", func(o operands) string {
		return o.node() + " is a spot node, and only another spot node would cost less; the feature gate SpotToSpotConsolidation is off"
	}},
	plan.ReplacementChanged: {"ReplacementChanged", func(o operands) string {
		return "the replacement " + o.Node + " is no longer what would be launched"
	}},
	plan.PodGone:         {"PodGone", says("the pods are no longer pending")},
	plan.ReplacementLost: {"ReplacementLost", func(o operands) string { return "the replacement " + o.Node + " is gone" }},
	plan.DeadlinePassed:  {"DeadlinePassed", says("the deadline has passed")},
	plan.SpotShareReached: {"SpotShareReached", func(o operands) string {
		return "all matching types are available as spot only, and each has reached its " + strconv.FormatInt(o.Have, 10) + "% of the pool's spot capacity (max-spot-share)"
	}},
	plan.SpotShareExceeded: {"SpotShareExceeded", func(o operands) string {
		return "without " + o.node() + " one instance type in one zone would have " + strconv.FormatInt(o.Have, 10) + "% of the pool's spot capacity, and may have at most " +
			strconv.FormatInt(o.Need, 10) + "% (max-spot-share)"
	}},
	plan.Paused:            {"Paused", paused},
	plan.CommandUnreadable: {"CommandUnreadable", func(o operands) string { return "the command on " + o.node() + " cannot be read" }},
}

// noSaving names the new node that the pods would need, as far as it is known.
func noSaving(o operands) string {
	if o.Name == "" {
		return "no change that was tried runs the pods of " + o.nodes() + " for less"
	}
	pods := "the pods of " + o.nodes()
	more := ""
	if o.Need > 1 {
		more = " and " + count(int(o.Need-1), "other")
	}
	switch {
	case o.Have > 0:
		return pods + " would fit on a new " + o.Name + " of pool " + o.Pool + more +
			" for less, but no list of types that minValues and the zones allow " +
			"costs less whichever of them is launched"
	case o.Have == 0:
		return pods + " do not all fit on other nodes; the cheapest new node for the rest, " + o.Name + " of pool " + o.Pool +
			more + ", costs as much"
	}
	return pods + " do not all fit on other nodes; the cheapest new node for the rest, " + o.Name + " of pool " + o.Pool +
		more + ", costs " + dollars(-o.Have) +
		" per hour more"
}

func budgetUnreadable(o operands) string {
	text := "a budget of the pool cannot be read, so no node may be disrupted"
	if o.snap == nil || o.snap.Pool(o.Pool) == nil || o.snap.Pool(o.Pool).BudgetError == "" {
		return text
	}
	return text + ": " + o.snap.Pool(o.Pool).BudgetError
}

func poolGone(o operands) string {
	switch {
	case o.Pool != "":
		return "NodePool " + o.Pool + " of " + o.node() + " does not exist; a NodePool of that name would own the node again"
	case o.Node != "":
		return o.node() + " belongs to no NodePool, whose rules could allow its removal"
	}
	return "the pool is gone"
}

func priceUnknown(o operands) string {
	text := "the price of " + o.node() + " is unknown: "
	if o.snap != nil && o.snap.Node(o.Node) != nil && o.snap.Pool(o.snap.Node(o.Node).Pool) == nil {
		return text + "no NodePool offers its instance type in its zone and capacity type"
	}
	return text + "its instance type has no offering in its zone and capacity type"
}

func paused(o operands) string {
	if o.Pause == nil {
		return "a pause after failures has not ended"
	}
	if o.Need == 0 {
		return o.Pause.Name + " failed " + count(o.Pause.Failures, "time") + " in a row: " + o.Pause.Why + "; another attempt is in progress"
	}
	text := o.Pause.String()
	if o.Pool != "" {
		text += "; to try again at once: kubectl annotate nodepool " + o.Pool + " karpenter-go.github.io/pauses-"
	}
	return text
}

func (o operands) pod() string {
	if o.Holder == nil || o.Holder.Pod == "" {
		return "a pod"
	}
	return "pod " + o.Holder.Pod
}

func (o operands) pdb() string {
	if o.Holder == nil || o.Holder.PDB == "" {
		return "a PodDisruptionBudget"
	}
	return "PodDisruptionBudget " + o.Holder.PDB
}

func nodeProtected(o operands) string {
	text := o.node() + " is protected by the annotation karpenter.sh/do-not-disrupt"
	if o.Holder != nil {
		text += " of " + o.pods()
	}
	return text
}

func pdbsConflict(o operands) string {
	others := "another"
	if o.Have > 2 {
		others = count(int(o.Have-1), "other")
	}
	return o.pod() + " on " + o.node() + " is selected by " + o.pdb() + " and " + others +
		"; the API server refuses to evict such a pod: keep one"
}

func podsHomeless(o operands) string {
	text := o.pod() + " of " + o.node() + " would be unschedulable elsewhere"
	if o.Have > 1 {
		text = count(int(o.Have), "pod") + " of " + o.node() + " would be unschedulable elsewhere, " + o.pod() + " among them"
	}
	if why := o.boundHere(); why != "" {
		return text + ": " + why
	}
	return text
}

// boundHere returns why no new node can run the pod of the verdict, for example because of a local volume; "" if a
// new node can.
func (o operands) boundHere() string {
	if o.snap == nil || o.Holder == nil || o.snap.Node(o.Node) == nil {
		return ""
	}
	for _, p := range o.snap.Node(o.Node).Pods {
		if p.Key() == o.Holder.Pod && p.NoNewNode != nil {
			return p.NoNewNode.Reason
		}
	}
	return ""
}

func podsFollow(o operands) string {
	return "moved one by one, " + o.pods() + " would follow the pods to which required affinity refers back into their " + o.Name
}

// pods returns the first pod, and how many others there are.
func (o operands) pods() string {
	if o.Have > 1 {
		return o.pod() + " and " + count(int(o.Have-1), "other pod")
	}
	return o.pod()
}

func launchedAgain(o operands) string {
	return "NodePool " + o.Pool + " would launch another node for " + o.pods() + " as soon as the removal of " + o.node() + " frees its limits"
}

func savingTooSmall(o operands) string {
	if o.Need >= plan.Unpayable {
		return "no saving is worth moving the pods of " + o.nodes() + ": the payback time is too short for any saving"
	}
	worth := "; the disruption requires a saving of " + dollars(o.Need) + " per hour"
	if o.Have <= 0 {
		return "removing " + o.nodes() + " saves nothing" + worth
	}
	return "removing " + o.nodes() + " saves " + dollars(o.Have) + " per hour" + worth + " (annotations payback, move-price, min-saving and min-stay of the pool)"
}

// span returns a number of seconds in the notation of users: 1h, not 1h0m0s.
func span(seconds int64) string {
	text := (time.Duration(seconds) * time.Second).String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// dollars returns nano-USD as USD with four digits.
func dollars(nano int64) string {
	// The output of FormatFloat always parses.
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(float64(nano)/model.Nano, 'g', 4, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64) + " USD"
}

func thousandths(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'g', -1, 64) }

func typesExcluded(o operands) string {
	return "none of " + count(o.Types, "type") + " satisfies the requirements on " + o.key()
}

func resourceTooLarge(o operands) string {
	need, have := o.needHave()
	daemons, _ := pair(o.resource(), o.Daemons, o.Need)
	if o.Need == 0 {
		return "the DaemonSets of each node need " + daemons + " of " + o.resource() + ", none of " + count(o.Types, "type") + " has as much"
	}
	text := "needs " + need + " of " + o.resource()
	if o.Daemons > 0 {
		text += " beside DaemonSets that need " + daemons
	}
	switch {
	case o.Types == 0:
		return text + ", and no type is left to have it"
	case o.Have == 0 && o.Types == 1:
		return text + ", the only type left has none"
	case o.Have == 0:
		return text + ", none of " + count(o.Types, "type") + " has any"
	case o.Types == 1:
		return text + ", the only type left has " + have
	}
	return text + ", the largest of " + count(o.Types, "type") + " has " + have
}

func combinationTooLarge(o operands) string {
	need, _ := o.needHave()
	return "none of " + count(o.Types, "type") + " has enough of every resource (of those with enough of the others, none has " + need + " of " + o.resource() + ")"
}

func noOffering(o operands) string {
	if o.Types == 0 {
		return "no instance type has an available offering"
	}
	return "none of " + count(o.Types, "matching type") + " has an available offering in the remaining zones and capacity types"
}

func minValuesUnmet(o operands) string {
	return "minValues of " + o.key() + " is " + strconv.FormatInt(o.Need, 10) + ", with " + count(int(o.Have), "value") + " in " +
		count(o.Types, "matching type")
}

func reservationTaken(o operands) string {
	return "the reserved capacity is used up, and none of " + count(o.Types, "matching type") + " has another available offering"
}

func limitReached(o operands) string {
	need, have := o.needHave()
	text := "the limit has " + have + " of " + o.resource() + " left"
	if o.Types == 0 {
		return text + ", the node has " + need
	}
	return text + ", the smallest of " + count(o.Types, "matching type") + " has " + need
}

func quotaReached(o operands) string {
	if o.Quota == "" {
		return "a CapacityQuota is reached"
	}
	need, have := o.needHave()
	text := "CapacityQuota " + o.Quota + " has " + have + " of " + o.resource() + " left, "
	if o.Types == 0 {
		return text + "the node counts " + need
	}
	return text + "the cheapest of " + count(o.Types, "matching type") + " counts " + need
}

func nodeFull(o operands) string {
	need, have := o.needHave()
	return "needs " + need + " of " + o.resource() + ", " + o.node() + " has " + have + " free"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Taint returns a taint in the notation of kubectl: key=value:Effect.
func Taint(t model.Taint) string {
	text := t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	return text + ":" + t.Effect.String()
}

// longList is the maximum number of values of a requirement that are shown.
const longList = 5

// requirement returns a requirement without its key, with long lists truncated.
func requirement(r label.Requirement) string {
	values := r.Values
	rest := ""
	if len(values) > longList {
		values, rest = values[:longList], " and "+strconv.Itoa(len(r.Values)-longList)+" more"
	}
	if len(values) == 0 && rest == "" && r.Operator != label.In {
		return r.Operator.String()
	}
	return r.Operator.String() + " [" + strings.Join(values, " ") + rest + "]"
}

func resourceName(snap *model.Snapshot, r quantity.Resource) string {
	return operands{snap, plan.Verdict{Resource: r}}.resource()
}
