package interruption

import "github.com/karpenter-go/karpenter/internal/cloud/aws/interruption/notice"

// Notice is what was heard about some machines; Kind is what it says.
type (
	Notice = notice.Notice
	Kind   = notice.Kind
)

// The kinds of package notice.
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
)
