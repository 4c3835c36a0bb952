package cluster

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
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
	// waiting are closed when a reading that began after they were added has ended; the lock of catalogues is held.
	waiting []chan struct{}
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
		for _, done := range f.waiting {
			close(done)
		}
		f.waiting = nil
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
		waiting := c.taken(f)
		err := c.read(ctx, name)
		for _, done := range waiting {
			close(done)
		}
		if err != nil {
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

// taken are those who wait for the reading that is about to begin.
func (c *catalogues) taken(f *feed) []chan struct{} {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	waiting := f.waiting
	f.waiting = nil
	return waiting
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
		c.complain(name, err)
		c.store.stock(pool, nil, "reading the catalogue of instance types: "+err.Error())
		return err
	}
	c.store.stock(pool, c.catalogue(name, types), "the cloud provider has no instance type for the pool")
	return nil
}

// complain logs why a catalogue cannot be read. A node class that is not ready, as each is for a moment when it is new or the
// controller starts, is no failure: its condition and that of the NodePool say why, and the catalogue is read again.
func (c *catalogues) complain(pool string, err error) {
	if unready := new(cloud.NodeClassNotReadyError); errors.As(err, &unready) {
		c.store.log.Info("no instance types until the node class is ready", "nodepool", pool, "reason", unready.Error())
		return
	}
	c.store.log.Error(err, "reading the catalogue of instance types", "nodepool", pool)
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

// RefreshCatalogues has the catalogues of the named pools, of all without a name, read again at once and returns when
// they have been, well or not, or when the context ends. Whoever asks meanwhile shares the next reading. It is for the
// moment when a launch found no capacity.
func (s *Store) RefreshCatalogues(ctx context.Context, names ...string) {
	for _, done := range s.catalogues.ask(names) {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// ask asks for readings and returns what is closed when each has ended. Nobody reads before the store is started.
func (c *catalogues) ask(names []string) []<-chan struct{} {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.ctx == nil {
		return nil
	}
	if len(names) == 0 {
		names = slices.Collect(maps.Keys(c.feeds))
	}
	var all []<-chan struct{}
	for _, name := range names {
		if f := c.feeds[name]; f != nil {
			done := make(chan struct{})
			f.waiting = append(f.waiting, done)
			f.ask()
			all = append(all, done)
		}
	}
	return all
}
