package v1

// NotYetActedOn returns the fields that the class sets and that are accepted but not yet implemented, as paths
// relative to the spec, in a fixed order. They are reported with the class's status.
func (c *EC2NodeClass) NotYetActedOn() []string {
	var fields []string
	if len(c.Spec.CapacityReservationSelectorTerms) > 0 {
		fields = append(fields, "capacityReservationSelectorTerms")
	}
	if c.Spec.PlacementGroupSelector != nil {
		fields = append(fields, "placementGroupSelector")
	}
	if c.Family().Windows() {
		fields = append(fields, "amiFamily") // also if the family is that of the alias
	}
	return append(fields, c.Spec.Kubelet.Expressions()...)
}
