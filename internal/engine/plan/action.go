package plan

import (
	"fmt"
	"time"
)

// Action is one API write. Every action names its object by UID where there is one, may be done twice, and means
// nothing to an object that came later under the same name.
type Action interface {
	fmt.Stringer
	action()
}

// TaintNode puts karpenter.sh/disrupted:NoSchedule on a node.
type TaintNode struct{ Node, UID string }

// UntaintNode takes it off again.
type UntaintNode struct{ Node, UID string }

// WriteCommand writes a command on a candidate's claim.
type WriteCommand struct {
	Claim, UID string
	Command    Command
}

// ClearCommand takes the command off a claim.
type ClearCommand struct{ Claim, UID string }

// SetDisruptionReason sets the claim's condition DisruptionReason.
type SetDisruptionReason struct {
	Claim, UID string
	Reason     Reason
}

// ClearDisruptionReason takes the condition off again.
type ClearDisruptionReason struct{ Claim, UID string }

// CreateClaim buys a node. Reason is "provisioned" or the reason of a command in lower case, as in metrics.
type CreateClaim struct {
	NewClaim NewClaim
	Reason   string
}

// DeleteClaim begins the end of a node: drain, termination, removal are the claim's and node's controllers' work.
type DeleteClaim struct {
	Claim, UID string
	Reason     Reason
}

// MarkConsolidated notes on a claim that a consolidation sends pods to its node.
type MarkConsolidated struct {
	Claim, UID string
	At         time.Time
}

// MarkExpecting notes on a claim that pods are sent to its node which are not there yet.
type MarkExpecting struct {
	Claim, UID string
	At         time.Time
}

// ReservePods notes on a claim, as words of model.Pod.Promise, the pods that a plan put onto its node beside those that the claim
// was created for. None takes the note off.
type ReservePods struct {
	Claim, UID string
	Pods       []string
}

// NominatePod promises a pod a node in status.nominatedNodeName.
type NominatePod struct{ Namespace, Name, UID, Node string }

// ClearNomination takes our promise of the node From back; a nomination to another node, which somebody wrote
// meanwhile, stays.
type ClearNomination struct{ Namespace, Name, UID, From string }

func (TaintNode) action()             {}
func (UntaintNode) action()           {}
func (WriteCommand) action()          {}
func (ClearCommand) action()          {}
func (SetDisruptionReason) action()   {}
func (ClearDisruptionReason) action() {}
func (CreateClaim) action()           {}
func (DeleteClaim) action()           {}
func (MarkConsolidated) action()      {}
func (MarkExpecting) action()         {}
func (ReservePods) action()           {}
func (NominatePod) action()           {}
func (ClearNomination) action()       {}

func (a TaintNode) String() string   { return "taint node " + a.Node }
func (a UntaintNode) String() string { return "untaint node " + a.Node }
func (a WriteCommand) String() string {
	return fmt.Sprintf("write command %s (%s) on claim %s", a.Command.ID, a.Command.Phase, a.Claim)
}
func (a ClearCommand) String() string { return "clear the command on claim " + a.Claim }
func (a SetDisruptionReason) String() string {
	return fmt.Sprintf("set disruption reason %s on claim %s", a.Reason, a.Claim)
}
func (a ClearDisruptionReason) String() string {
	return "clear the disruption reason on claim " + a.Claim
}
func (a CreateClaim) String() string { return "create claim " + a.NewClaim.Name }
func (a DeleteClaim) String() string { return "delete claim " + a.Claim }
func (a MarkConsolidated) String() string {
	return "note a consolidation on claim " + a.Claim
}
func (a MarkExpecting) String() string {
	return "note on claim " + a.Claim + " that pods are sent to it"
}
func (a ReservePods) String() string {
	return fmt.Sprintf("reserve claim %s for %d pods", a.Claim, len(a.Pods))
}
func (a NominatePod) String() string {
	return fmt.Sprintf("nominate pod %s/%s to node %s", a.Namespace, a.Name, a.Node)
}
func (a ClearNomination) String() string {
	return fmt.Sprintf("clear the nomination of pod %s/%s", a.Namespace, a.Name)
}
