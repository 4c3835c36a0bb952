package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/upkeep"
)

// preparing is the maximum duration of the first refresh. Data that does not arrive in time arrives with a later round.
const preparing = 20 * time.Second

// Prepare refreshes instance types, prices, zonal shifts and commitments once, so that the first plan does not use the
// embedded types and prices, nor a zone that traffic is shifted away from. If it returns an error, those that are known stay in use
// until a later round succeeds.
func (p *Provider) Prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, preparing)
	defer cancel()
	parts := p.refreshed(ctrl.LoggerFrom(ctx))
	first := []func(context.Context) error{parts.Types, parts.OnDemand, parts.Spot, parts.WindowsOnDemand, parts.WindowsSpot}
	if p.shifts != nil {
		first = append(first, p.shifts.refresh)
	}
	if p.commitments != nil {
		first = append(first, p.commitments.refresh)
	}
	errs := make([]error, len(first))
	var all sync.WaitGroup
	for i, refresh := range first {
		all.Go(func() { errs[i] = refresh(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// rounds returns the upkeep rounds, which refresh the provider's data and clean up its resources.
func (p *Provider) rounds(log logr.Logger) *upkeep.Rounds {
	parts := p.refreshed(log)
	parts.RefreshImages, parts.AdoptTemplates, parts.SweepTemplates = p.sources.Images.Refresh, p.launcher.AdoptTemplates,
		p.launcher.SweepTemplates
	parts.ForgetMemory = p.forgetMemory
	if !p.opts.IsolatedVPC {
		parts.Profiles = &upkeep.Profiles{Client: p.opts.Live, Unused: p.sources.Profiles.Collect, Deleted: func(names []string) {
			log.Info("deleted unused instance profiles", "names", names)
		}}
	}
	return &upkeep.Rounds{List: upkeep.Standard(parts), Clock: p.opts.Clock, Failed: func(round string, err error) {
		if err != nil {
			log.Error(err, "a periodic task failed; it is retried", "round", round)
			return
		}
		log.Info("a periodic task succeeded again", "round", round)
	}}
}

// refreshed returns the parts that refresh types and prices.
func (p *Provider) refreshed(log logr.Logger) upkeep.Parts {
	types := upkeep.NewTypes(p.opts.Clients.EC2, p.sources.Calls, catalog.Load())
	prices := &upkeep.Prices{EC2: p.opts.Clients.EC2, Calls: p.sources.Calls, Book: p.prices, Region: p.opts.Region, Now: p.opts.Clock.Now,
		Rejected: func(kind string, merged instance.Merged) {
			log.Info("ignored implausible prices", "kind", kind, "count", merged.RejectedCount, "some", merged.Rejected)
		}}
	if !p.opts.IsolatedVPC && p.opts.Clients.Pricing != nil {
		prices.Pricing = p.opts.Clients.Pricing
	}
	windows := *prices
	windows.Windows, windows.Book = true, p.windows.Own
	return upkeep.Parts{
		Types:    then(types.Refresh, func() { p.SetTypes(types.Current()) }),
		OnDemand: then(prices.RefreshOnDemand, p.Refreshed), WindowsOnDemand: p.forWindows(then(windows.RefreshOnDemand, p.Refreshed)),
		Spot: then(prices.RefreshSpot, p.Refreshed), WindowsSpot: p.forWindows(then(windows.RefreshSpot, p.Refreshed)),
	}
}

// forWindows calls do if nodes of a class run Windows.
func (p *Provider) forWindows(do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		var classes awsv1.EC2NodeClassList
		if err := p.opts.Live.List(ctx, &classes); err != nil { // Prepare runs before the cache does
			return fmt.Errorf("listing the node classes: %w", err)
		}
		if slices.ContainsFunc(classes.Items, func(c awsv1.EC2NodeClass) bool { return c.Family().Windows() }) {
			return do(ctx)
		}
		return nil
	}
}

// then calls follow after do has succeeded.
func then(do func(context.Context) error, follow func()) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := do(ctx); err != nil {
			return err
		}
		follow()
		return nil
	}
}

// tag adds tags to an instance of this provider.
func (p *Provider) tag(ctx context.Context, id string, tags map[string]string) error {
	if _, ours := instanceOf(id); !ours {
		return notFound(id)
	}
	return p.launcher.Tag(ctx, id, tags)
}
