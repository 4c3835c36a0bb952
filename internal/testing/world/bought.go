package world

import (
	"math/rand/v2"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
)

const labelPartition = "example.com/partition"

// buy draws price rules and partitions. It uses its own random numbers.
func (p *play) buy(config *Config) {
	random := rand.New(rand.NewPCG(p.Seed, 0xb07))
	if p.has(Partitions) {
		config.Labels = append(config.Labels, labelPartition)
		for i := range config.Types {
			config.Types[i].Requirements = append(config.Types[i].Requirements,
				cloud.Requirement{Key: labelPartition, Operator: "In", Values: []string{"1", "2", "3"}})
		}
	}
	if !p.has(Commitments) {
		return
	}
	for _, name := range []string{"first", "second", "rest"}[random.IntN(2):] {
		factor := float64(2+random.IntN(7)) / 10
		r := pricerule.Rule{Name: name, InstanceTypes: [][]string{{"c*"}, {"m*"}, {"c4", "m8"}, nil}[random.IntN(4)],
			Zones: [][]string{{"a"}, nil}[random.IntN(2)], CapacityTypes: []string{karpv1.CapacityTypeOnDemand}, Factor: &factor}
		switch {
		case name == "rest":
		case random.IntN(2) == 0:
			r.UpTo = &pricerule.Limit{VCPUs: float64(2 + random.IntN(24)), Paid: random.IntN(2) == 0}
		default:
			r.UpTo = &pricerule.Limit{USDPerHour: float64(1+random.IntN(10)) / 10, Paid: random.IntN(2) == 0}
		}
		config.PriceRules = append(config.PriceRules, r)
	}
}
