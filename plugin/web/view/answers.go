package view

import "slices"

// Pending is a set of pods with the same outcome.
type Pending struct {
	// Pod is the first of them, Count their number. Workload is the controller of the first.
	Pod      string
	Count    int
	Workload string
	// Outcome is NoPlace, NewNode, ExistingNode, NodeInFlight or Ignored, as in `kubectl karpenter explain pod`.
	Outcome string
	// Why is the reason, or the target, in a sentence.
	Why string
	// Nearest is the smallest change after which a node could run them; empty if there is none of a single rule.
	Nearest string
	Pools   []PoolFilter
}

// PoolFilter is why a pool has no node for the pods: the rules in the order in which they are applied, with the number
// of instance types that remain.
type PoolFilter struct {
	Pool string
	// Code and Text are the rule that excluded the last type.
	Code, Text string
	Rules      []Filter
	Nearest    string
}

// Filter is a rule, and the number of instance types before and after it.
type Filter struct {
	Rule          string
	Before, After int
}

// Blocker is what keeps nodes from being removed. Money is USD per hour.
type Blocker struct {
	// Kind is PodDisruptionBudget, Annotation, Budget, Window, Price of moving, Policy or another, in words; Name the
	// object.
	Kind, Name string
	Code       string
	// Text is the reason as an example of one node.
	Text string
	// Nodes are the names of the nodes, Held is the price of those whose price is known: all but Unpriced.
	Nodes    []string
	Held     float64
	Unpriced int
	// Saving is by how much the fleet at rest is cheaper without it. Known is false while that is not computed, and for
	// those that are Fixed: no change of the cluster's objects lifts them.
	Saving       float64
	Known, Fixed bool
	// Changes is when it may end by time alone, empty if it does not.
	Changes string
}

// Savings are all blockers, the one whose nodes cost most first. Done is the number of savings that are computed, Of how many
// can be. Stopped says that the time for them has passed.
type Savings struct {
	Blockers []Blocker
	Done, Of int
	Stopped  bool
}

// Plan is the way from the fleet of today to the one after all steps.
type Plan struct {
	Before, After Figures
	Steps         []Step
	// Fleet has all nodes of the steps: those of today and the added ones.
	Fleet *Fleet
	// Homeless is the number of pods without a place after the steps, if these include launches for pending pods.
	Homeless int
}

// Figures are the totals of a fleet.
type Figures struct {
	Nodes int     `json:"nodes"`
	Price float64 `json:"pricePerHour"`
}

// Step is a command.
type Step struct {
	Reason, Method string
	Remove, Add    []string
	// AddText says of which types the added nodes are.
	AddText string
	Moved   int
	// WaitSeconds is how long the step waits for time to pass, from the time of the plan.
	WaitSeconds int64
	// Price is the total after the step, and Saving the total before it without that, USD per hour.
	Saving float64
	Price  float64
	// Shares are those of the nodes that have other pods after the step, by name.
	Shares map[string]Shares
}

// Append adds a step, whose Saving follows from the prices of the nodes. What a command is judged by also has the price
// of moving and the overhead of a node.
func (p *Plan) Append(s Step) {
	before := p.Before.Price
	if last := len(p.Steps) - 1; last >= 0 {
		before = p.Steps[last].Price
	}
	s.Saving = before - s.Price
	p.Steps = append(p.Steps, s)
}

// Gains are what the steps of a plan do, in USD per hour: Removals steps remove nodes and save Saving, in sum, and
// Launches steps give pending pods a node, for Cost.
type Gains struct {
	Removals, Launches int
	Saving, Cost       float64
}

// Gains returns what the steps do.
func (p *Plan) Gains() Gains {
	var g Gains
	for i := range p.Steps {
		if s := &p.Steps[i]; len(s.Remove) > 0 {
			g.Removals, g.Saving = g.Removals+1, g.Saving+s.Saving
		} else {
			g.Launches, g.Cost = g.Launches+1, g.Cost-s.Saving
		}
	}
	return g
}

// Shares are the parts of cpu and memory that pods request of a node.
type Shares struct{ CPU, Memory float64 }

// Normalized returns the plan with its fleet in the order of Fleet.Normalize, which a plan that is being made has not.
func (p *Plan) Normalized() *Plan {
	sorted, fleet := *p, *p.Fleet
	fleet.Nodes = slices.Clone(fleet.Nodes)
	fleet.Normalize()
	sorted.Fleet = &fleet
	return &sorted
}

// At returns the fleet after a number of steps: nodes that the steps have removed or added are marked, and nodes that
// are added later are missing.
func (p *Plan) At(step int) *Fleet {
	step = min(max(step, 0), len(p.Steps))
	change, shares := map[string]Change{}, map[string]Shares{}
	later := map[string]bool{}
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, name := range s.Add {
			if change[name] = Added; i >= step {
				later[name] = true
			}
		}
		if i >= step {
			continue
		}
		for _, name := range s.Remove {
			change[name] = Removed
		}
		for name, share := range s.Shares {
			shares[name] = share
		}
	}
	fleet := *p.Fleet
	fleet.Nodes = nil
	for _, n := range p.Fleet.Nodes {
		if later[n.Name] {
			continue
		}
		n.Change = change[n.Name]
		if share, changed := shares[n.Name]; changed {
			n.CPUShare, n.MemoryShare, n.Pods = share.CPU, share.Memory, nil
		}
		fleet.Nodes = append(fleet.Nodes, n)
	}
	return &fleet
}

// NodeDetail is what is known of a node beyond its row.
type NodeDetail struct {
	// Text is what explain says about it.
	Text string
	Pods []PodDetail
}

// PodDetail is what is known of a pod.
type PodDetail struct {
	// Key is NAMESPACE/NAME. Node is empty for a pod that has none.
	Key, Node string
	// Workload is its controller in words, State what is special about it, Text what explain says of one without a node.
	Workload, State, Text string
	// CPU and Memory are requests, in millicores and bytes; Requests are all of them in words. Share is the larger of the
	// first two as a part of what the node has.
	CPU, Memory int64
	Requests    []string
	Share       float64
	Priority    int32
	// Labels are KEY=VALUE, sorted. Keeps are the reasons for which it cannot be evicted now.
	Labels, Keeps []string
}
