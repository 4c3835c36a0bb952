package aws

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/awssim"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/cloudtest"
)

// The types that the suite buys: two sizes, three families, both architectures, one with a GPU.
var suiteTypes = []string{"c5.large", "g4dn.xlarge", "m5.large", "m5.xlarge", "m6g.large"}

// On demand EC2 sells the cheapest, in a zone of its choice; of spot it chooses.
func TestConformance(t *testing.T) {
	t.Run("on demand", func(t *testing.T) {
		cloudtest.Run(t, func(t *testing.T) cloudtest.World {
			w := newWorld(t, suiteTypes...)
			for i := range w.types {
				w.types[i].Usage = []string{catalog.UsageOnDemand}
			}
			suite := w.conformance()
			suite.Chooses = cloudtest.AmongEqualPrices
			return suite
		})
	})
	t.Run("spot", func(t *testing.T) {
		cloudtest.Run(t, func(t *testing.T) cloudtest.World {
			suite := newWorld(t, suiteTypes...).conformance()
			suite.Chooses = cloudtest.AmongAll
			return suite
		})
	})
}

func (w *world) conformance() cloudtest.World {
	return cloudtest.World{
		Provider: func(t *testing.T) cloud.Provider { return w.provider(t) },
		Class:    classRef("default"), NotReady: classRef("unready"), Missing: classRef("missing"),
		SellOut: func(t *testing.T, offerings ...cloudtest.Offering) {
			t.Helper()
			for _, pool := range w.drained {
				check(t, w.sim.Refill(pool.InstanceType, pool.Zone, pool.CapacityType))
			}
			if w.drained != nil {
				w.clock.skip(instance.UnavailableFor) // what was refused is believed for a while
			}
			w.drained = nil
			for _, o := range offerings {
				check(t, w.sim.Drain(o.InstanceType, o.Zone, o.CapacityType, 0))
				w.drained = append(w.drained, o)
			}
		},
		LoseAnswers: func(t *testing.T) func() {
			t.Helper()
			id, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultLose, Service: "ec2", Action: "CreateFleet"})
			check(t, err)
			return func() { w.sim.Clear(id) }
		},
		Hang: func(t *testing.T) func() {
			t.Helper()
			id, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultFreeze})
			check(t, err)
			hung := make(chan struct{})
			w.hung.Store(&hung)
			return func() {
				w.hung.Store(nil)
				close(hung)
				w.sim.Clear(id)
			}
		},
	}
}
