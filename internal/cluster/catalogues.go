package cluster

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// catalogues reads every pool's catalogue from the provider: when the pool appears or its spec changes, on request,
// and periodically; a goroutine per pool, so that one slow answer keeps nobody else waiting. Equal answers are one
// *model.Catalogue, for the same pool and across pools.
type catalogues struct {
	provider cloud.Provider
	store    *Store

	mutex sync.Mutex
	// ctx is nil until the store is started.
	ctx   context.Context
	feeds map[string]*feed
	// stocks are the last good answers, by pool.
	stocks map[string]stock
}

// feed is the reading of one pool's catalogue.
type feed struct {
	again chan struct{}
	stop  context.CancelFunc
}

// stock is a provider's answer and what became of it.
type stock struct {
	types     []cloud.InstanceType
	catalogue *model.Catalogue
}

func newCatalogues(provider cloud.Provider, store *Store) *catalogues {
	return &catalogues{provider: provider, store: store, feeds: map[string]*feed{}, stocks: map[string]stock{}}
}

// start begins to read.
func (c *catalogues) start(ctx context.Context) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.ctx = ctx
	for name, f := range c.feeds {
		c.run(name, f)
	}
}

// want asks for the catalogue of a pool to be read now, and from now on.
func (c *catalogues) want(pool string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	f := c.feeds[pool]
	if f == nil {
		f = &feed{again: make(chan struct{}, 1), stop: func() {}}
		c.feeds[pool] = f
		if c.ctx != nil {
			c.run(pool, f)
		}
		return
	}
	f.ask()
}

func (f *feed) ask() {
	select {
	case f.again <- struct{}{}:
	default:
	}
}

// drop ends the reading for a pool.
func (c *catalogues) drop(pool string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if f := c.feeds[pool]; f != nil {
		f.stop()
		delete(c.feeds, pool)
		delete(c.stocks, pool)
	}
}

func (c *catalogues) run(pool string, f *feed) {
	ctx, stop := context.WithCancel(c.ctx)
	f.stop = stop
	go c.follow(ctx, pool, f)
}

// follow reads the catalogue again and again until the context ends.
func (c *catalogues) follow(ctx context.Context, name string, f *feed) {
	options := c.store.options
	retry := options.CatalogueRetry
	for ctx.Err() == nil {
		pause := options.Catalogue
		if err := c.read(ctx, name); err != nil {
			pause, retry = retry, min(2*retry, options.Catalogue)
		} else {
			retry = options.CatalogueRetry
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-f.again:
		}
		timer.Stop()
	}
}

// read reads the catalogue once and hands it to the store.
func (c *catalogues) read(ctx context.Context, name string) error {
	pool := c.store.Pool(name)
	if pool == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.store.options.CatalogueTimeout)
	defer cancel()
	types, err := c.provider.Catalogue(ctx, pool.DeepCopy())
	if err != nil {
		c.store.log.Error(err, "reading the catalogue of instance types", "nodepool", name)
		c.store.stock(pool, nil, "reading the catalogue of instance types: "+err.Error())
		return err
	}
	c.store.stock(pool, c.catalogue(name, types), "the cloud provider has no instance type for the pool")
	return nil
}

// catalogue converts an answer, or finds what an equal one became.
func (c *catalogues) catalogue(pool string, types []cloud.InstanceType) *model.Catalogue {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found := stock{types: types}
	if same := c.stocks[pool]; same.catalogue != nil && reflect.DeepEqual(same.types, types) {
		found.catalogue = same.catalogue
	}
	for _, other := range c.stocks {
		if found.catalogue != nil {
			break
		}
		if reflect.DeepEqual(other.types, types) {
			found.catalogue = other.catalogue
		}
	}
	if found.catalogue == nil {
		var refused []model.Rejection
		found.catalogue, refused = convert.Catalogue(types, c.store.vocabulary)
		for _, r := range refused {
			c.store.log.Info("an instance type is left out", "nodepool", pool, "field", r.Field, "reason", r.Reason)
		}
	}
	if _, followed := c.feeds[pool]; followed {
		c.stocks[pool] = found
	}
	return found.catalogue
}

// RefreshCatalogues has the catalogues of the named pools, of all without a name, read again at once. It does not
// wait for them. It is for the moment when a launch found no capacity.
func (s *Store) RefreshCatalogues(names ...string) {
	c := s.catalogues
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(names) == 0 {
		for _, f := range c.feeds {
			f.ask()
		}
	}
	for _, name := range names {
		if f := c.feeds[name]; f != nil {
			f.ask()
		}
	}
}
