package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// nodePrice is the cost of a node beyond the price of its offering, in USD per hour.
const nodePrice = 0.005

// answer holds the fields of an answer of simulate that are printed. Money is in USD per hour.
type answer struct {
	Nodes                 []struct{ InstanceTypes []string }
	Unschedulable         []struct{ Pod string }
	PricePerHour          float64
	CostPerHour           float64
	LowerBoundCostPerHour float64
	Stats                 struct{ AllocBytes int64 }
}

func readAnswer(r io.Reader) (*answer, error) {
	var a answer
	if err := json.NewDecoder(r).Decode(&a); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if a.Nodes == nil {
		return nil, fmt.Errorf("reading the answer: no field nodes")
	}
	return &a, nil
}

// medianOptions returns the median number of instance types that new nodes may become, 0 without nodes.
func (a *answer) medianOptions() int {
	if len(a.Nodes) == 0 {
		return 0
	}
	lengths := make([]int, len(a.Nodes))
	for i := range a.Nodes {
		lengths[i] = len(a.Nodes[i].InstanceTypes)
	}
	slices.Sort(lengths)
	return lengths[len(lengths)/2]
}
