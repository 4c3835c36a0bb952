// Package notice reads what AWS says about machines: the events that come by way of SQS, as a Notice.
//
//	EventBridge event, or one wrapped by SNS --> Parse --> Notice{Kind, Instances, Sent, At}
//
// Whoever can write to the queue can send anything, so Parse is fuzzed, and a text that is no event of a known form is
// Malformed and never a mistake of ours. Events that are none of ours are NoOp.
//
// The package is pure, and must not know SQS, claims or what follows from a notice.
package notice

import "time"

// Kind is what a notice says. The values are those of the label message_type of
// karpenter_interruption_received_messages_total, and of the label reason of karpenter_nodeclaims_disrupted_total.
type Kind string

// The kinds that a message can be of.
const (
	SpotInterrupted         Kind = "spot_interrupted"
	ReservationInterrupted  Kind = "capacity_reservation_interrupted"
	RebalanceRecommendation Kind = "rebalance_recommendation"
	InstanceStopped         Kind = "instance_stopped"
	InstanceTerminated      Kind = "instance_terminated"
	ScheduledChange         Kind = "scheduled_change"
	// NoOp is an event that nothing follows from: of another service, of a state that does not matter.
	NoOp Kind = "no_op"
	// Malformed is a message that is no event at all, or an event of a known type without what it must say. Our own.
	Malformed Kind = "malformed"
)

// The kinds that polling finds.
const (
	InstanceStatus Kind = "instance_status"
	SystemStatus   Kind = "system_status"
	EventStatus    Kind = "event_status"
)

// Notice is what was heard about some machines.
type Notice struct {
	Kind Kind
	// Instances are the ids of the machines (i-0123...), without duplicates; empty for NoOp and Malformed.
	Instances []string
	// Sent is when the event happened, zero if it does not say.
	Sent time.Time
	// At is when the machine is, or was, changed, zero if that is not known.
	At time.Time
	// What is further detail for people: the state, the code of the scheduled event, why nothing follows.
	What string
}
