package aws

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// TestPrepare checks that Prepare loads types and prices from AWS and triggers a new read of the catalogs. The error
// names data that is not available, and the other data is loaded.
func TestPrepare(t *testing.T) { synctest.Test(t, testPrepare) }

func testPrepare(t *testing.T) {
	w := newVirtualWorld(t, quick(), "m5.large")
	changed := make(chan struct{}, 10)
	p := w.provider(t, func(o *Options) {
		o.Types, o.Changed = nil, func() { changed <- struct{}{} }
	})
	id, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultFail, Service: "pricing", Code: "AccessDeniedException", Status: 400})
	check(t, err)
	if err := p.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "prices on demand") {
		t.Errorf("with access to the price list denied: error %v", err)
	}
	onDemand, spot := p.prices.Updated()
	if !onDemand.IsZero() || spot.IsZero() || len(changed) != 2 {
		t.Errorf("updated at %v and %v, %d changes announced; want those of spot and of types", onDemand, spot, len(changed))
	}
	types := p.shelf.types()
	if m5, found := p.shelf.typeOf("m5.large"); !found || m5.Zones == nil || len(types) == len(catalog.Load().Types) {
		t.Errorf("%d types, m5.large in zones %v: the embedded ones", len(types), m5.Zones)
	}
	w.sim.Clear(id)
	check(t, p.Prepare(t.Context()))
	if onDemand, _ = p.prices.Updated(); onDemand.IsZero() {
		t.Error("on-demand prices have not been updated")
	}
}

// TestRounds checks that an isolated VPC has no round for instance profiles and makes no call to the price list.
func TestRounds(t *testing.T) { synctest.Test(t, testRounds) }

func testRounds(t *testing.T) {
	w := newVirtualWorld(t, quick(), "m5.large")
	connected, isolated := w.provider(t), w.provider(t, func(o *Options) { o.IsolatedVPC = true })
	if all, some := len(connected.rounds(logr.Discard()).List), len(isolated.rounds(logr.Discard()).List); some != all-1 {
		t.Errorf("%d rounds in an isolated VPC, want one less than %d", some, all)
	}
	w.sim.ResetCalls()
	check(t, isolated.Prepare(t.Context()))
	for call := range w.sim.Calls() {
		if call.Service == "pricing" {
			t.Errorf("an isolated VPC called %s", call.Action)
		}
	}
}
