package provider

import (
	"errors"
	"slices"
	"testing"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/cloud/cloudtest"
	_ "github.com/karpenter-go/karpenter/cloud/kwok" // the simulated cloud is importable, too
)

func TestProvider(t *testing.T) { cloudtest.Run(t, newWorld) }

// newWorld returns an empty cloud and the faults that a test can inject.
func newWorld(*testing.T) cloudtest.World {
	c := &Cloud{Ready: map[string]error{"good": nil, "bad": errors.New("no network")}}
	class := func(name string) cloud.ClassRef {
		return cloud.ClassRef{Group: Class.Group, Kind: Class.Kind, Name: name}
	}
	fault := func(flag *bool) func(*testing.T) func() {
		set := func(on bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			*flag = on
		}
		return func(*testing.T) func() {
			set(true)
			return func() { set(false) }
		}
	}
	return cloudtest.World{
		Provider: func(*testing.T) cloud.Provider { return Provider{Cloud: c} },
		Class:    class("good"), NotReady: class("bad"), Missing: class("none"),
		SellOut: func(_ *testing.T, offerings ...cloudtest.Offering) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.sold = func(typeName string, o cloud.Offering) bool {
				return slices.Contains(offerings, cloudtest.Offering{InstanceType: typeName, Zone: o.Zone, CapacityType: o.CapacityType})
			}
		},
		LoseAnswers: fault(&c.loses), Hang: fault(&c.hangs),
	}
}
