// Package decide lets package offline answer the inputs of package neutral, as `kubectl karpenter simulate` does with
// files. Its tests are the property: neutral changes leave the cost of a plan as it is.
package decide

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/karpenter-go/karpenter/internal/testing/neutral"
	"github.com/karpenter-go/karpenter/plugin/offline"
)

// Decision is an outcome and the CPU time that it took, in seconds.
type Decision struct {
	neutral.Outcome

	CPU float64
}

// Input decides an input, whose files are written into a folder: which nodes are launched for its pending pods, or, if it
// has nodes, the fleet after consolidation until nothing changes. It decides so many times; the CPU time is the least.
func Input(in *neutral.Input, folder string, times int) (Decision, error) {
	if err := in.Write(folder); err != nil {
		return Decision{}, err
	}
	best, err := Folder(folder, in.Bound())
	for range times - 1 {
		d, _ := Folder(folder, in.Bound())
		best.CPU = min(best.CPU, d.CPU)
	}
	if err != nil {
		return best, fmt.Errorf("%s: %w", in.Name, err)
	}
	return best, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Folder decides the files of a folder.
func Folder(folder string, disrupt bool) (Decision, error) {
	policy := offline.DefaultPolicy()
	policy.UntilStable = disrupt
	if prices := filepath.Join(folder, neutral.PriceFile); exists(prices) {
		policy.PriceFile = prices
	}
	if err := policy.Check(); err != nil {
		return Decision{}, err
	}
	source := offline.Source{Paths: []string{folder}, Cluster: &offline.Cluster{}}
	read, err := source.Read(context.Background(), policy)
	if err != nil {
		return Decision{}, err
	}
	if len(read.Problems) > 0 {
		return Decision{}, errors.Join(read.Problems...)
	}
	if disrupt {
		a := read.Disrupt(&policy, 1).Answer()
		return Decision{neutral.Outcome{Cost: float64(a.After.CostPerHour)}, a.Stats.CPUSeconds}, errors.Join(read.Problems...)
	}
	a := read.Decide(&policy, 1).Answer()
	outcome := neutral.Outcome{Cost: a.CostPerHour, Unschedulable: a.Pods.Unschedulable}
	for i := range a.Nodes {
		n := &a.Nodes[i]
		outcome.Nodes = append(outcome.Nodes, neutral.Node{Pool: n.NodePool, Type: n.InstanceType, Types: n.InstanceTypes,
			Price: n.PricePerHour})
	}
	return Decision{outcome, a.Stats.CPUSeconds}, errors.Join(read.Problems...)
}
