package main

import (
	"slices"
	"sync"

	"github.com/go-logr/logr"

	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
)

// priceRules joins the rules of the price file with those that the provider makes of the account's commitments. The file
// comes first, and its rules replace those of the provider that have the same name.
type priceRules struct {
	mu          sync.Mutex
	file, cloud []pricerule.Rule
	// apply is nil until there is a store.
	apply func([]pricerule.Rule) error
	log   logr.Logger
	// awaited says that no valid price file was read yet, although there should be one.
	awaited bool
}

// awaitFile says that there is a price file.
func (p *priceRules) awaitFile() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.awaited = true
}

// known reports whether the user's prices are known: without them, savings would be those of other prices.
func (p *priceRules) known() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.awaited
}

// start passes the rules on from now. Rules of the provider may be known already.
func (p *priceRules) start(apply func([]pricerule.Rule) error, log logr.Logger) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.apply, p.log = apply, log
	return p.apply(p.all())
}

// ofFile replaces the rules of the file. Invalid ones are an error, and the earlier ones stay.
func (p *priceRules) ofFile(rules []pricerule.Rule) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.file
	p.file = rules
	err := p.apply(p.all())
	if err != nil {
		p.file = before
		return err
	}
	p.awaited = false
	return nil
}

// ofCloud replaces the rules of the provider.
func (p *priceRules) ofCloud(rules []pricerule.Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cloud = rules
	if p.apply == nil {
		return
	}
	if err := p.apply(p.all()); err != nil {
		p.log.Error(err, "the rules of the account's commitments are not used")
	}
}

// all returns all rules, as many as a file may have.
func (p *priceRules) all() []pricerule.Rule {
	all := slices.Clone(p.file)
	for _, r := range p.cloud {
		if len(all) < pricerule.MaxRules && !slices.ContainsFunc(p.file, func(f pricerule.Rule) bool { return f.Name == r.Name }) {
			r.OfCloud = true
			all = append(all, r)
		}
	}
	return all
}
