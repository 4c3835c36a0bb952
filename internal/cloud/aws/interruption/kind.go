package interruption

import "github.com/karpenter-go/karpenter/internal/cloud/aws/interruption/notice"

// Notice describes an event of some machines, and Kind is its kind.
type (
	Notice = notice.Notice
	Kind   = notice.Kind
)

// The kinds from package notice.
const (
	SpotInterrupted         = notice.SpotInterrupted
	ReservationInterrupted  = notice.ReservationInterrupted
	RebalanceRecommendation = notice.RebalanceRecommendation
	InstanceStopped         = notice.InstanceStopped
	InstanceTerminated      = notice.InstanceTerminated
	ScheduledChange         = notice.ScheduledChange
	NoOp                    = notice.NoOp
	Malformed               = notice.Malformed
	InstanceStatus          = notice.InstanceStatus
	SystemStatus            = notice.SystemStatus
	EventStatus             = notice.EventStatus
	EBSStatus               = notice.EBSStatus
	BlockExpiring           = notice.BlockExpiring
)
