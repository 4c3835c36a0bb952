package neutral

// Outcome is what a plan leads to.
type Outcome struct {
	// Cost is the price of all nodes and 0.005 for each node, in USD per hour.
	Cost float64
	// Unschedulable is the number of pods without a place.
	Unschedulable int
	// Nodes are those that are launched for a purchase.
	Nodes []Node
}

// Node is a node that is launched.
type Node struct {
	Pool string
	// Type is the cheapest of the instance types that the node may have.
	Type  string
	Types []string
	// Price is in USD per hour.
	Price float64
}

// tolerated is the share by which a plan may cost more.
const tolerated = 0.005

// Ratio returns the cost with a change as a multiple of the cost without it.
func (with Outcome) Ratio(without Outcome) float64 {
	switch {
	case with.Cost == without.Cost:
		return 1
	case without.Cost == 0:
		return 2
	}
	return with.Cost / without.Cost
}

// Changed reports whether a change has altered the cost, or the number of pods without a place.
func (with Outcome) Changed(without Outcome) bool {
	r := with.Ratio(without)
	return r > 1+1e-6 || r < 1-1e-6 || with.Unschedulable != without.Unschedulable
}

// Dearer reports whether the plan with a change is worse than the plan without it: more pods have no place, or as many
// and the cost is notably higher.
func (with Outcome) Dearer(without Outcome) bool {
	if with.Unschedulable != without.Unschedulable {
		return with.Unschedulable > without.Unschedulable
	}
	return with.Ratio(without) > 1+tolerated
}
