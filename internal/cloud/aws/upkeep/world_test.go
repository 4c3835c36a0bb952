package upkeep

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/awssim"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
)

// world is a simulated AWS and the unmodified SDK, joined in memory on a virtual clock. The SDK does not retry, so that
// each refusal is seen.
type world struct {
	*testing.T
	aws     *awssim.Cloud
	ec2     *ec2.Client
	iam     *iam.Client
	sources *discovery.Sources
	book    *instance.Prices
	prices  *Prices
	types   *Types
	calls   []discovery.Call
}

func within(t *testing.T, sim awssim.Options, test func(ctx context.Context, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim.Limits = map[string]awssim.Limit{}
		simulated, err := awssim.New(sim)
		if err != nil {
			t.Fatal(err)
		}
		w := &world{T: t, aws: simulated}
		ctx, cancel := context.WithCancel(t.Context())
		pipe, served := awssim.NewPipe(), make(chan error)
		go func() { served <- simulated.Serve(ctx, pipe) }()
		transport := pipe.HTTPClient()
		defer func() {
			transport.CloseIdleConnections()
			cancel()
			if err := <-served; err != nil {
				t.Errorf("serving: %v", err)
			}
		}()
		cfg := aws.Config{Region: "us-east-1", HTTPClient: transport, BaseEndpoint: aws.String(awssim.Endpoint),
			Credentials: credentials.NewStaticCredentialsProvider("AKIDTEST", "secret", ""), Retryer: func() aws.Retryer { return aws.NopRetryer{} }}
		if sim.Region != "" {
			cfg.Region = sim.Region
		}
		w.wire(cfg)
		test(ctx, w)
	})
}

func (w *world) wire(cfg aws.Config) {
	w.ec2, w.iam = ec2.NewFromConfig(cfg), iam.NewFromConfig(cfg)
	sources, err := discovery.New(discovery.Clients{EC2: w.ec2, SSM: ssm.NewFromConfig(cfg), EKS: eks.NewFromConfig(cfg), IAM: w.iam}, discovery.Kubernetes{FromEKS: true},
		discovery.Options{Cluster: "sandbox", Region: cfg.Region, Observe: func(c discovery.Call) { w.calls = append(w.calls, c) }})
	w.must(err)
	w.sources = sources
	w.types = NewTypes(w.ec2, sources.Calls, catalog.Load())
	w.book = instance.NewPrices(cfg.Region, catalog.Load())
	list := cfg.Copy()
	list.Region = PricingRegion(cfg.Region)
	w.prices = &Prices{EC2: w.ec2, Pricing: pricing.NewFromConfig(list), Calls: sources.Calls, Book: w.book, Region: cfg.Region, Now: time.Now}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// asked is how often an operation was called since the last time that anything was asked.
func (w *world) asked(operation string) int {
	n := 0
	for _, call := range w.calls {
		if call.Operation == operation {
			n++
		}
	}
	w.calls = nil
	return n
}

// fail has an action throttled until the function that is returned is called.
func (w *world) fail(action string) func() {
	id, err := w.aws.Inject(awssim.Fault{Kind: awssim.FaultFail, Action: action, Code: "RequestLimitExceeded", Status: 503})
	w.must(err)
	return func() { w.aws.Clear(id) }
}
