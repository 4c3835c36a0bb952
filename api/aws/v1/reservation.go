package v1

import (
	"strings"
	"time"
)

// Values of CapacityReservation.ReservationType and State.
const (
	ReservationTypeDefault       = "default"
	ReservationTypeCapacityBlock = "capacity-block"
	ReservationActive            = "active"
	ReservationExpiring          = "expiring"
)

// EC2 begins to terminate the instances of a capacity block 30 minutes before its end, and those of UltraServers 60
// minutes before. Machines leave it ten minutes earlier.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html
const (
	blockReclaim      = 30 * time.Minute
	ultraServer       = 60 * time.Minute
	leaveBeforeHand   = 10 * time.Minute
	ultraServerPrefix = "u-p6e"
	ultraServerFamily = "p6e-gb200"
)

// ReclaimedAt returns when EC2 begins to terminate the instances of a capacity block, zero if it never does.
func (r *CapacityReservation) ReclaimedAt() time.Time {
	if r.ReservationType != ReservationTypeCapacityBlock || r.EndTime == nil {
		return time.Time{}
	}
	if strings.HasPrefix(r.InstanceType, ultraServerPrefix) || strings.HasPrefix(r.InstanceType, ultraServerFamily) {
		return r.EndTime.Add(-ultraServer)
	}
	return r.EndTime.Add(-blockReclaim)
}

// ExpiringAt returns when machines begin to leave a capacity block, zero if they never do.
func (r *CapacityReservation) ExpiringAt() time.Time {
	if at := r.ReclaimedAt(); !at.IsZero() {
		return at.Add(-leaveBeforeHand)
	}
	return time.Time{}
}

// StateAt returns the state at a time: expiring shortly before the end of a capacity block, otherwise active.
func (r *CapacityReservation) StateAt(now time.Time) string {
	if at := r.ExpiringAt(); !at.IsZero() && !now.Before(at) {
		return ReservationExpiring
	}
	return ReservationActive
}
