package cluster

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
)

// catalogs reads the catalog of every pool from the provider: when the pool is created or its spec changes, on
// request, and periodically. Each pool has its own goroutine, so that a slow reply does not delay other pools. Equal
// catalogs become one *model.Catalog, for the same pool and across pools.
type catalogs struct {
	provider cloud.Provider
	store    *Store
	// changed receives when the pools or their specs have changed.
	changed <-chan struct{}

	// mutex guards the fields below. It is taken before the state's lock.
	mutex sync.Mutex
	// ctx is nil until the store is started.
	ctx   context.Context
	feeds map[string]*feed
	// stocks holds the last valid catalogs, by pool.
	stocks map[string]stock
	// overlays is nil if NodeOverlays do not apply.
	overlays *overlays
}

// feed reads the catalog of one pool.
type feed struct {
	// pool is the one that was last seen.
	pool  *karpv1.NodePool
	again chan struct{}
	stop  context.CancelFunc
	// waiting channels are closed when a reading that began after they were added has ended; guarded by the lock of
	// catalogs.
	waiting []chan struct{}
}

// stock is a provider's reply, with the changes of NodeOverlays, and its conversion.
type stock struct {
	types   []cloud.InstanceType
	catalog *model.Catalog
}

func newCatalogs(provider cloud.Provider, store *Store) *catalogs {
	return &catalogs{provider: provider, store: store, changed: store.Subscribe(state.PoolSpecsChanged),
		feeds: map[string]*feed{}, stocks: map[string]stock{}}
}

// run reads catalogs until the context ends.
func (c *catalogs) run(ctx context.Context) {
	if c.overlays != nil {
		go c.overlays.follow(ctx)
	}
	for {
		c.mutex.Lock()
		c.ctx = ctx
		c.sync()
		c.mutex.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
		}
	}
}

// sync makes the feeds agree with the pools. The caller holds the lock.
func (c *catalogs) sync() {
	there := map[string]bool{}
	for _, pool := range c.store.Pools() {
		there[pool.Name] = true
		f, class := c.feeds[pool.Name], pool.Spec.Template.Spec.NodeClassRef
		switch {
		case !c.store.Vocabulary().Owns(class.Group, class.Kind):
		case f == nil:
			f = &feed{pool: pool, again: make(chan struct{}, 1)}
			c.feeds[pool.Name] = f
			var ctx context.Context
			ctx, f.stop = context.WithCancel(c.ctx)
			go c.follow(ctx, pool.Name, f)
		case !state.SameSpec(f.pool, pool):
			f.pool = pool
			f.ask()
		}
	}
	for name, f := range c.feeds {
		if !there[name] {
			f.stop()
			for _, done := range f.waiting {
				close(done)
			}
			delete(c.feeds, name)
			delete(c.stocks, name)
		}
	}
}

func (f *feed) ask() {
	select {
	case f.again <- struct{}{}:
	default:
	}
}

// follow reads the catalog periodically until the context ends.
func (c *catalogs) follow(ctx context.Context, name string, f *feed) {
	options := c.store.options
	failures := 0
	for ctx.Err() == nil {
		rest := options.Catalog
		waiting := c.taken(f)
		err := c.read(ctx, name)
		for _, done := range waiting {
			close(done)
		}
		if err == nil {
			failures = 0
		} else {
			failures++
			rest = pause.Length(options.CatalogRetry, options.Catalog, failures)
		}
		timer := time.NewTimer(rest)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-f.again:
		}
		timer.Stop()
	}
}

// taken returns the channels that wait for the reading that is about to begin.
func (c *catalogs) taken(f *feed) []chan struct{} {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	waiting := f.waiting
	f.waiting = nil
	return waiting
}

// read reads the catalog once and passes it to the store.
func (c *catalogs) read(ctx context.Context, name string) error {
	pool := c.store.Pool(name)
	if pool == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.store.options.CatalogTimeout)
	defer cancel()
	types, err := c.provider.Catalog(ctx, pool.DeepCopy())
	why := noTypes
	if none := new(cloud.NoTypesError); errors.As(err, &none) {
		types, why, err = nil, none.Error(), nil
	}
	if err != nil {
		c.complain(name, err)
		c.setTypes(pool, nil, "reading the catalog of instance types: "+err.Error())
		return err
	}
	if c.overlays != nil {
		c.overlays.setReply(reply{pool, types, why})
		return nil
	}
	c.setTypes(pool, c.catalog(name, types), why)
	return nil
}

// setTypes passes what was read to the state.
func (c *catalogs) setTypes(pool *karpv1.NodePool, catalog *model.Catalog, why string) {
	c.store.state.SetTypes(pool, catalog, why)
	c.store.news.publish()
}

// noTypes is why a pool with an empty catalog launches nothing.
const noTypes = "the cloud provider has no instance type for the pool"

// complain logs why a catalog cannot be read. A node class that is not ready is not an error, because each class is
// not ready for a moment after its creation or the start of the controller. Its condition and that of the NodePool
// state the reason, and the catalog is read again.
func (c *catalogs) complain(pool string, err error) {
	if unready := new(cloud.NodeClassNotReadyError); errors.As(err, &unready) {
		c.store.log.Info("no instance types until the node class is ready", "nodepool", pool, "reason", unready.Error())
		return
	}
	c.store.log.Error(err, "reading the catalog of instance types", "nodepool", pool)
}

// catalog converts a reply, or returns the conversion of an equal one.
func (c *catalogs) catalog(pool string, types []cloud.InstanceType) *model.Catalog {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found := stock{types: types}
	if same := c.stocks[pool]; same.catalog != nil && reflect.DeepEqual(same.types, types) {
		found.catalog = same.catalog
	}
	for _, other := range c.stocks {
		if found.catalog != nil {
			break
		}
		if reflect.DeepEqual(other.types, types) {
			found.catalog = other.catalog
		}
	}
	if found.catalog == nil {
		var refused []model.Rejection
		found.catalog, refused = convert.Catalog(types, c.store.Vocabulary())
		for _, r := range refused {
			c.store.log.Info("an instance type is left out", "nodepool", pool, "field", r.Field, "reason", r.Reason)
		}
	}
	if _, followed := c.feeds[pool]; followed {
		c.stocks[pool] = found
	}
	return found.catalog
}

// Sale returns what the provider offers each of its pools, as it was last read: without the changes of NodeOverlays.
func (s *Store) Sale() *capture.PriceList {
	c := s.catalogs
	list := &capture.PriceList{Declared: c.provider.Declared(), NodeClasses: s.classes, Catalogs: []capture.PriceListEntry{}}
	for _, pool := range s.Pools() {
		class := pool.Spec.Template.Spec.NodeClassRef
		if !s.Vocabulary().Owns(class.Group, class.Kind) {
			continue
		}
		entry := capture.PriceListEntry{Types: c.replied(pool.Name)}
		if len(entry.Types) == 0 {
			entry.Reason = s.state.TypesProblem(pool.Name)
		}
		same := slices.IndexFunc(list.Catalogs, func(other capture.PriceListEntry) bool {
			return other.Reason == entry.Reason && reflect.DeepEqual(other.Types, entry.Types)
		})
		if same < 0 {
			same = len(list.Catalogs)
			list.Catalogs = append(list.Catalogs, entry)
		}
		list.Catalogs[same].Pools = append(list.Catalogs[same].Pools, pool.Name)
	}
	return list
}

// replied returns the provider's last valid reply for a pool.
func (c *catalogs) replied(pool string) []cloud.InstanceType {
	if o := c.overlays; o != nil {
		o.resolving.Lock()
		defer o.resolving.Unlock()
		return o.replies[pool].types
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.stocks[pool].types
}

// RefreshCatalogs reads the catalogs of the named pools again at once, or of all pools without names. It returns
// when all readings have ended, successfully or not, or when the context ends. Concurrent callers share the next
// reading. It is used when a launch found no capacity.
func (s *Store) RefreshCatalogs(ctx context.Context, names ...string) {
	for _, done := range s.catalogs.ask(names) {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
}

// ask requests readings and returns channels that are closed when each has ended. It returns nil before the store is
// started.
func (c *catalogs) ask(names []string) []<-chan struct{} {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.ctx == nil {
		return nil
	}
	c.sync()
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
