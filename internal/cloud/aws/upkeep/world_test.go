package upkeep

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/pricing"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awstest"
)

// world is a simulated AWS that does not throttle, and the data that is read from it.
type world struct {
	*awstest.World
	sources *discovery.Sources
	book    *instance.Prices
	prices  *Prices
	types   *Types
}

func within(t *testing.T, sim awssim.Options, test func(ctx context.Context, w *world)) {
	t.Helper()
	sim.Limits = map[string]awssim.Limit{}
	awstest.Run(t, sim, func(ctx context.Context, aws *awstest.World) {
		w := &world{World: aws}
		w.wire()
		test(ctx, w)
	})
}

func (w *world) wire() {
	region, list := w.Config.Region, w.Config.Copy()
	sources, err := discovery.New(discovery.Clients{EC2: w.EC2, SSM: w.SSM, EKS: w.EKS, IAM: w.IAM}, discovery.Kubernetes{FromEKS: true},
		discovery.Options{Cluster: awstest.Cluster, Region: region, Observe: w.Observe})
	w.Must(err)
	w.sources = sources
	w.types = NewTypes(w.EC2, sources.Calls, catalog.Load())
	w.book = instance.NewPrices(region, catalog.Load())
	list.Region = PricingRegion(region)
	w.prices = &Prices{EC2: w.EC2, Pricing: pricing.NewFromConfig(list), Calls: sources.Calls, Book: w.book, Region: region, Now: time.Now}
}

// fail throttles an action until the returned function is called.
func (w *world) fail(action string) func() {
	id, err := w.AWS.Inject(awssim.Fault{Kind: awssim.FaultFail, Action: action, Code: "RequestLimitExceeded", Status: 503})
	w.Must(err)
	return func() { w.AWS.Clear(id) }
}
