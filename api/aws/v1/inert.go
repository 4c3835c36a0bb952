package v1

// NotYetActedOn are the fields of the spec that the class sets, and that are accepted but do nothing yet, in a fixed
// order: paths from the spec on. Whoever shows the class's status says so.
func (c *EC2NodeClass) NotYetActedOn() []string {
	var fields []string
	if len(c.Spec.CapacityReservationSelectorTerms) > 0 {
		fields = append(fields, "capacityReservationSelectorTerms")
	}
	if c.Spec.PlacementGroupSelector != nil {
		fields = append(fields, "placementGroupSelector")
	}
	if c.Family().Windows() {
		fields = append(fields, "amiFamily") // also if it is that of the alias
	}
	return append(fields, c.Spec.Kubelet.Expressions()...)
}
