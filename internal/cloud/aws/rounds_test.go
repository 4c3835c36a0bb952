package aws

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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
	switch {
	case !onDemand.IsZero():
		t.Errorf("onDemand.IsZero() is false, updated at %v", onDemand)
	case spot.IsZero():
		t.Errorf("spot.IsZero() is true, and %v", spot)
	case len(changed) != 2:
		t.Errorf("len(changed) is %v, want 2", len(changed))
	}
	types := p.catalogs.types()
	switch m5, found := p.catalogs.typeOf("m5.large"); {
	case !found:
		t.Errorf("found is false")
	case m5.Zones == nil:
		t.Errorf("m5.Zones is nil")
	case len(types) == len(catalog.Load().Types):
		t.Errorf("len(types) is %v, want another value than %v", len(types), len(catalog.Load().Types))
	}
	w.sim.Clear(id)
	check(t, p.Prepare(t.Context()))
	if onDemand, _ = p.prices.Updated(); onDemand.IsZero() {
		t.Error("on-demand prices have not been updated")
	}
}

// TestPrepareWithoutCache checks that Prepare reads no objects from the manager's cache, which is not started yet, and
// has the prices of Windows for a class that runs it.
func TestPrepareWithoutCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newVirtualWorld(t, quick(), "m5.large")
		class := w.class(t, "default")
		class.Spec.AMISelectorTerms[0].Alias = "windows2022@latest"
		check(t, w.api.Update(t.Context(), class))
		p := w.provider(t, func(o *Options) {
			o.Client = interceptor.NewClient(w.api, interceptor.Funcs{
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
					return &cache.ErrCacheNotStarted{}
				},
			})
		})
		check(t, p.Prepare(t.Context()))
		if onDemand, _ := p.windows.Own.Updated(); onDemand.IsZero() {
			t.Error("the prices of Windows have not been read")
		}
	})
}

// withoutPrices returns a client of the price list that fails for an operating system.
func withoutPrices(client *pricing.Client, system string) *pricing.Client {
	refuse := func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
		middleware.InitializeOutput, middleware.Metadata, error) {
		filters := in.Parameters.(*pricing.GetProductsInput).Filters
		if slices.ContainsFunc(filters, func(f pricingtypes.Filter) bool { return *f.Value == system }) {
			return middleware.InitializeOutput{}, middleware.Metadata{}, errors.New("no prices of " + system)
		}
		return next.HandleInitialize(ctx, in)
	}
	return pricing.New(client.Options(), func(o *pricing.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("refuse", refuse), middleware.Before)
		})
	})
}

// TestPricesFailAlone checks that prices of Linux and of Windows do not hold back each other.
func TestPricesFailAlone(t *testing.T) {
	for _, system := range []string{"Linux", "Windows"} {
		synctest.Test(t, func(t *testing.T) {
			w := newVirtualWorld(t, quick(), "m5.large")
			class := w.class(t, "default")
			class.Spec.AMISelectorTerms[0].Alias = "windows2022@latest"
			check(t, w.api.Update(t.Context(), class))
			var changed atomic.Int32
			p := w.provider(t, func(o *Options) {
				o.Clients.Pricing = withoutPrices(o.Clients.Pricing, system)
				o.Changed = func() { changed.Add(1) }
			})
			if err := p.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "no prices of "+system) {
				t.Errorf("without prices of %s: error %v", system, err)
			}
			linux, _ := p.prices.Updated()
			windows, _ := p.windows.Own.Updated()
			if got, want := [2]bool{linux.IsZero(), windows.IsZero()}, [2]bool{system == "Linux", system == "Windows"}; got != want {
				t.Errorf("without prices of %s, Linux and Windows are missing: %v, want %v", system, got, want)
			}
			if n := changed.Load(); n != 4 {
				t.Errorf("without prices of %s, the catalogs are read again %d times, want 4: for types, other prices, and spot prices twice",
					system, n)
			}
		})
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
