package plan

import (
	"fmt"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/pause"
)

// Action is one API write. Every action identifies its object by UID where one exists, is idempotent, and has no effect
// on a later object of the same name.
type Action interface {
	fmt.Stringer
	action()
}

// TaintNode adds the taint karpenter.sh/disrupted:NoSchedule to a node.
type TaintNode struct{ Node, UID string }

// UntaintNode removes the taint karpenter.sh/disrupted:NoSchedule from a node.
type UntaintNode struct{ Node, UID string }

// WriteCommand writes a command on a candidate's claim.
type WriteCommand struct {
	Claim, UID string
	Command    Command
}

// ClearCommand removes the command from a claim.
type ClearCommand struct{ Claim, UID string }

// SetDisruptionReason sets the claim's condition DisruptionReason.
type SetDisruptionReason struct {
	Claim, UID string
	Reason     Reason
}

// ClearDisruptionReason removes the claim's condition DisruptionReason.
type ClearDisruptionReason struct{ Claim, UID string }

// CreateClaim launches a node. Reason is "provisioned" or the reason of a command in lower case, as in metrics.
type CreateClaim struct {
	NewClaim NewClaim
	Reason   string
}

// DeleteClaim deletes a claim. The controllers of claims and nodes then drain the node, terminate the machine and
// remove the objects.
type DeleteClaim struct {
	Claim, UID string
	Reason     Reason
}

// MarkConsolidated records on a claim that a consolidation moves pods to its node.
type MarkConsolidated struct {
	Claim, UID string
	At         time.Time
}

// MarkPodsSent records on a claim that its node has reservations for pods that are not bound to it yet.
type MarkPodsSent struct {
	Claim, UID string
	At         time.Time
}

// NominatePod sets status.nominatedNodeName of a pod.
type NominatePod struct{ Namespace, Name, UID, Node string }

// ClearNomination removes our nomination of a pod to the node From. A nomination to another node, written by another
// client, is not changed.
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
func (MarkPodsSent) action()          {}
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
func (a MarkPodsSent) String() string {
	return "note on claim " + a.Claim + " that pods are sent to it"
}
func (a NominatePod) String() string {
	return fmt.Sprintf("nominate pod %s/%s to node %s", a.Namespace, a.Name, a.Node)
}
func (a ClearNomination) String() string {
	return fmt.Sprintf("clear the nomination of pod %s/%s", a.Namespace, a.Name)
}

// SetPause stores a pause on a pool.
type SetPause struct {
	Pool, UID string
	Pause     pause.Pause
}

// EndPause removes a pause from a pool.
type EndPause struct {
	Pool, UID string
	Key       pause.Key
}

func (SetPause) action() {}
func (EndPause) action() {}

func (a SetPause) String() string {
	return fmt.Sprintf("note failure %d of %s on pool %s", a.Pause.Failures, a.Pause.Name, a.Pool)
}
func (a EndPause) String() string {
	return fmt.Sprintf("end the pause %s of %s on pool %s", a.Key.Reason, a.Key.Scope, a.Pool)
}
