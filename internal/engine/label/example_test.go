package label_test

import (
	"fmt"

	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// A pod that wants more than three CPUs, but not six, shares nodes with a pool of four and six CPUs: those of four.
func Example() {
	pod := []label.Requirement{
		{Key: "cpus", Operator: label.Gt, Values: []string{"3"}},
		{Key: "cpus", Operator: label.NotIn, Values: []string{"6"}},
	}
	pool := []label.Requirement{{Key: "cpus", Operator: label.In, Values: []string{"4", "6"}}}

	mentions := label.NewMentions()
	for _, r := range append(pod, pool...) {
		mentions.Requirement(r)
	}
	space := mentions.Space()
	podRow, _, _ := space.Encode(pod)
	poolRow, _, _ := space.Encode(pool)
	both := space.All()

	fmt.Println("compatible:", space.And(both, podRow, poolRow))
	fmt.Println("requirements:", space.Requirements(both, space.All()))
	// Output:
	// compatible: true
	// requirements: [cpus In [4]]
}
