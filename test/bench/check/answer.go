package check

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Answer holds the fields of an answer of simulate that are checked. Money is in USD per hour; a pod is
// "namespace/name".
type Answer struct {
	Nodes         []NewNode
	ExistingNodes []ExistingNode
	Unschedulable []Unschedulable
	BindOrder     []string // nil: not given
	PricePerHour  *float64
	CostPerHour   *float64
	// These are printed by the benchmark and not judged.
	LowerBoundPerHour     float64
	LowerBoundCostPerHour float64
	Stats                 Stats
}

// Stats are the statistics that the run reports.
type Stats struct {
	CPUSeconds   float64
	WallSeconds  float64
	AllocBytes   int64
	PeakRSSBytes int64
}

// NewNode is a node to launch.
type NewNode struct {
	Name          string
	NodePool      string
	InstanceType  string
	Zone          string
	CapacityType  string
	PricePerHour  *float64
	InstanceTypes []string
	Pods          []string
}

// ExistingNode is a node of the workload that gets pending pods.
type ExistingNode struct {
	Name string
	Pods []string
}

// Unschedulable is an unschedulable pod.
type Unschedulable struct {
	Pod     string
	Reasons []json.RawMessage
}

// Read reads an answer. It rejects an answer without nodes, or with a node that lacks a name, pool, type, zone,
// capacity type or price.
func Read(r io.Reader) (*Answer, error) {
	var a Answer
	if err := json.NewDecoder(r).Decode(&a); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if a.Nodes == nil {
		return nil, fmt.Errorf("reading the answer: no field nodes")
	}
	for i, n := range a.Nodes {
		if slices.Contains([]string{n.Name, n.NodePool, n.InstanceType, n.Zone, n.CapacityType}, "") || n.PricePerHour == nil {
			return nil, fmt.Errorf("reading the answer: nodes[%d]: name, nodePool, instanceType, zone, capacityType and pricePerHour are needed", i)
		}
	}
	return &a, nil
}
