package aws

import (
	"testing"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/cloud/cloudtest"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// suiteTypes are the instance types of the suite: two sizes, three families, both architectures, one with a GPU.
var suiteTypes = []string{"c5.large", "g4dn.xlarge", "m5.large", "m5.xlarge", "m6g.large"}

// On demand, EC2 launches the cheapest type in a zone that it chooses. For spot, EC2 chooses the type as well.
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

// The suite passes whatever the endpoint does with filters, client tokens, fields and pages, under a policy that denies
// launches without encrypted volumes and session tokens, and with open capacity reservations, which must remain unused.
func TestConformanceUnderFaults(t *testing.T) {
	conditions := map[string]func(t *testing.T, w *world){
		"denied by condition keys": func(t *testing.T, w *world) {
			check(t, w.sim.DenyUnless(awssim.ConditionEncrypted, "true"))
			check(t, w.sim.DenyUnless(awssim.ConditionTokens, "required"))
		},
		"open reservations": func(t *testing.T, w *world) {
			for _, name := range suiteTypes {
				w.sim.AddReservation(awssim.CapacityReservation{Type: name, Zone: "us-east-1a", Total: 2})
			}
			t.Cleanup(func() {
				for _, r := range w.sim.Reservations() {
					if r.Available != r.Total {
						t.Errorf("of the open reservation of %s, %d of %d are left", r.Type, r.Available, r.Total)
					}
				}
			})
		},
	}
	for _, kind := range []awssim.FaultKind{awssim.FaultIgnoreFilters, awssim.FaultIgnoreTokens, awssim.FaultUnknownFields,
		awssim.FaultOlderFields, awssim.FaultOddPages} {
		conditions[string(kind)] = func(t *testing.T, w *world) {
			_, err := w.sim.Inject(awssim.Fault{Kind: kind})
			check(t, err)
		}
	}
	for name, condition := range conditions {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // mostly waits
			cloudtest.Run(t, func(t *testing.T) cloudtest.World {
				w := newWorld(t, suiteTypes...)
				for i := range w.types {
					w.types[i].Usage = []string{catalog.UsageOnDemand}
				}
				condition(t, w)
				suite := w.conformance()
				suite.Chooses = cloudtest.AmongEqualPrices
				return suite
			})
		})
	}
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
				w.clock.skip(instance.UnavailableFor) // refusals expire after a while
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
