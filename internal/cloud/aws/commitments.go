package aws

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/commitment"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/upkeep"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
)

// commitmentsEvery is the time between two readings of the account's commitments. AWS applies them to whole hours.
const commitmentsEvery = time.Hour

// commitments follows what the account has committed to EC2, on every replica, so that a new leader does not plan without.
type commitments struct {
	p      *Provider
	reader commitment.Reader

	mu sync.Mutex
	// last has what each call answered last, said are the rules that were passed on last.
	last commitment.Facts
	said []pricerule.Rule
}

func newCommitments(p *Provider) *commitments {
	c := &commitments{p: p, reader: commitment.Reader{API: p.opts.Clients.EC2, Calls: p.sources.Calls, Cluster: p.opts.Cluster,
		Region: p.opts.Region, Now: p.opts.Clock.Now}}
	if !p.opts.IsolatedVPC && p.opts.Clients.Plans != nil {
		c.reader.Plans = p.opts.Clients.Plans
	}
	return c
}

// refresh reads the commitments, and passes their rules on. After an error, those of the last answer stay until they end.
func (c *commitments) refresh(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	c.last, err = c.reader.Read(ctx, c.last)
	c.say()
	return err
}

// follow makes the rules again, without a call: types and prices change, and purchases end.
func (c *commitments) follow(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.say()
	return nil
}

// say passes the rules on if they have changed. The caller holds the lock.
func (c *commitments) say() {
	if rules := c.last.Rules(c.types(), c.p.opts.Clock.Now()); !reflect.DeepEqual(rules, c.said) {
		c.said = rules
		c.p.opts.Commitments(rules)
	}
}

// types returns the instance types of the region with their prices.
func (c *commitments) types() []commitment.Type {
	var types []commitment.Type
	for _, t := range c.p.catalogs.types() {
		usd, _ := c.p.prices.OnDemand(t.Name)
		types = append(types, commitment.Type{Name: t.Name, VCPUs: t.VCPUs, USD: usd})
	}
	return types
}

// rounds returns the loop that refreshes.
func (c *commitments) rounds(log logr.Logger) *upkeep.Rounds {
	return &upkeep.Rounds{Clock: c.p.opts.Clock, List: []upkeep.Round{{Name: "commitments", Period: commitmentsEvery, Do: c.refresh},
		{Name: "rules of commitments", Period: time.Minute, Do: c.follow}},
		Failed: logChanges(log, "some commitments are not known; those that are known hold until their end, and it is tried again",
			"commitments are read again")}
}
