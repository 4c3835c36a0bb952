// Package notice parses AWS events about machines, which are delivered by SQS, into a Notice.
//
//	EventBridge event, or one wrapped by SNS --> Parse --> Notice{Kind, Instances, Sent, At}
//
// Every sender with access to the queue can send arbitrary text, so Parse is fuzzed. A text that is not an event of a
// known form is Malformed and never causes a panic. Irrelevant events are NoOp.
//
// The package is pure, and must not depend on SQS, claims or the handling of a notice.
package notice

import "time"

// Kind is the kind of a notice. The values are those of the label message_type of
// karpenter_interruption_received_messages_total, and of the label reason of karpenter_nodeclaims_disrupted_total.
type Kind string

// Kinds of messages.
const (
	SpotInterrupted         Kind = "spot_interrupted"
	ReservationInterrupted  Kind = "capacity_reservation_interrupted"
	RebalanceRecommendation Kind = "rebalance_recommendation"
	InstanceStopped         Kind = "instance_stopped"
	InstanceTerminated      Kind = "instance_terminated"
	ScheduledChange         Kind = "scheduled_change"
	// NoOp is an event that requires no action: from another service, or about an irrelevant state.
	NoOp Kind = "no_op"
	// Malformed is a message that is not an event, or an event of a known type that lacks required fields. It is
	// specific to this implementation.
	Malformed Kind = "malformed"
)

// Kinds that polling finds.
const (
	InstanceStatus Kind = "instance_status"
	SystemStatus   Kind = "system_status"
	EventStatus    Kind = "event_status"
	EBSStatus      Kind = "attached_ebs_status"     // not upstream
	BlockExpiring  Kind = "capacity_block_expiring" // not upstream
)

// Notice describes an event of some machines.
type Notice struct {
	Kind Kind
	// Instances are the IDs of the machines (i-0123...), without duplicates. It is empty for NoOp and Malformed.
	Instances []string
	// Sent is when the event happened, zero if unknown.
	Sent time.Time
	// At is when the machine is, or was, changed, zero if unknown.
	At time.Time
	// What is additional text for users: the state, the code of the scheduled event, or why no action is required.
	What string
}
