package discovery

import (
	"slices"
	"strings"

	"github.com/awslabs/operatorpkg/status"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// WithoutReservations removes everything about capacity reservations: they are not used, and the class does not depend
// on them.
func (s Show) WithoutReservations() {
	s.Class.Status.CapacityReservations = nil
	s.Class.Status.Conditions = slices.DeleteFunc(s.Class.Status.Conditions, func(c status.Condition) bool {
		return c.Type == awsv1.ConditionCapacityReservationsReady
	})
}

// reasonNotYetActedOn is the reason that versions wrote which accepted the selector of reservations without effect.
const reasonNotYetActedOn = "NotYetActedOn"

// ExpectReservations makes the class depend on its capacity reservations. A class of a version that did not use them was
// ready without, and stays so if they cannot be read.
func (s Show) ExpectReservations() {
	known := slices.ContainsFunc(s.Class.Status.Conditions, func(c status.Condition) bool {
		return c.Type == awsv1.ConditionCapacityReservationsReady
	})
	switch {
	case !known:
		s.conditions().SetUnknown(awsv1.ConditionCapacityReservationsReady)
	case s.conditions().Get(awsv1.ConditionCapacityReservationsReady).Reason == reasonNotYetActedOn:
		s.conditions().SetTrue(awsv1.ConditionCapacityReservationsReady)
	}
}

// Reservations writes the result of Reservations.Find. The condition is true even if there are none, and names those
// that no machine of the class can use.
func (s Show) Reservations(found FoundReservations) {
	s.Class.Status.CapacityReservations = nil
	for i := range found.List {
		s.Class.Status.CapacityReservations = append(s.Class.Status.CapacityReservations, found.List[i].CapacityReservation)
	}
	const condition = awsv1.ConditionCapacityReservationsReady
	if len(found.Unusable) == 0 {
		s.conditions().SetTrue(condition)
		return
	}
	s.conditions().SetTrueWithReason(condition, condition,
		"spec.capacityReservationSelectorTerms: not used: "+strings.Join(found.Unusable, "; "))
}
