package convert

import (
	"maps"
	"math/bits"
	"slices"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// committed returns the offering at the price of a commitment. cpu is the capacity of the type, in millicores.
func committed(listed model.Offering, c *cloud.Commitment, cpu int64) model.Offering {
	o := listed
	o.Price, _ = nano(c.Price)
	o.ReservationID = model.CommitmentID(c.Rank, c.Name)
	o.Units, o.Limit = cpu, int64(c.VCPUs*1000+0.5)
	if c.USD > 0 {
		o.PerPrice = int64(max(1, c.Scale))
		o.Limit, _ = nano(c.USD)
		o.Units = rounded(o.Price * o.PerPrice)
	}
	o.Units = max(1, o.Units)
	o.Requirements = append(slices.Clone(o.Requirements),
		label.Requirement{Key: model.FieldCommitment, Operator: label.In, Values: []string{c.Name}})
	return o
}

// rounded rounds up to three binary digits, by a quarter at most, so that few sizes are distinguished: one plan leaves at
// most a fifth of a commitment unused, though it covers another machine. What machines use is counted exactly.
func rounded(units int64) int64 {
	drop := max(0, bits.Len64(uint64(units))-3)
	return (units + 1<<drop - 1) >> drop << drop
}

// distinguish adds to the offerings of a catalog with commitments which of them are bought without one. Other catalogs
// stay as they are.
func distinguish(c *model.Catalog) {
	some := slices.ContainsFunc(c.Types, func(t model.InstanceType) bool {
		return slices.ContainsFunc(t.Offerings, func(o model.Offering) bool { return o.Units > 0 })
	})
	if !some {
		return
	}
	c.WellKnown = maps.Clone(c.WellKnown)
	if c.WellKnown == nil {
		c.WellKnown = map[string]bool{}
	}
	c.WellKnown[model.FieldCommitment] = true
	for i := range c.Types {
		for k := range c.Types[i].Offerings {
			if o := &c.Types[i].Offerings[k]; o.Units == 0 {
				o.Requirements = append(slices.Clone(o.Requirements),
					label.Requirement{Key: model.FieldCommitment, Operator: label.DoesNotExist})
			}
		}
	}
}
