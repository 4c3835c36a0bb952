package cluster

import (
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Options holds the store's time settings. Zero values are replaced by the defaults in parentheses.
type Options struct {
	// WriteVisible is the time after which a live read decides about an own write that the watch has not shown (5 s).
	WriteVisible time.Duration
	// Catalog is the period in which each pool's catalog is read again (5 min).
	Catalog time.Duration
	// CatalogTimeout limits the duration of one reading (30 s).
	CatalogTimeout time.Duration
	// CatalogRetry is the pause after a failed reading; it doubles up to Catalog (1 s).
	CatalogRetry time.Duration
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		at    *time.Duration
		value time.Duration
	}{
		{&o.WriteVisible, 5 * time.Second}, {&o.Catalog, 5 * time.Minute},
		{&o.CatalogTimeout, 30 * time.Second}, {&o.CatalogRetry, time.Second},
	} {
		if *d.at <= 0 {
			*d.at = d.value
		}
	}
	return o
}

// Config holds the dependencies of a Store.
type Config struct {
	Provider cloud.Provider
	// Scheme contains the provider's node classes.
	Scheme *runtime.Scheme
	// Live reads from the API without a cache.
	Live client.Reader
	// Rejected is called with the number of rejected objects of a kind whenever it changes. Departed is called for pods
	// that have ended or are being preempted, possibly more than once per pod, and for nodes whose removal has begun. Both
	// must return at once and not call the store. They may be nil.
	Rejected func(kind string, count int)
	Departed func(model.Departure)
	// PriceRules says that the prices of the provider are changed by SetPriceRules.
	PriceRules bool
	// State is what the meaning of objects depends on. NewStore adds what the provider declares.
	State   state.Config
	Log     logr.Logger
	Options Options
}

// Store keeps a State up to date. Its methods are safe for concurrent use.
type Store struct {
	// View reads objects, including this controller's own writes.
	*state.View
	state *state.State
	// classes are the kinds of the provider's node classes.
	classes  []schema.GroupKind
	live     client.Reader
	log      logr.Logger
	options  Options
	news     news
	catalogs *catalogs
	// foresight are the kinds that only virtual pods of workloads need.
	foresight []state.Kind
	// recheck triggers the live reads at once.
	recheck chan struct{}

	// mutex guards the fields below. It is taken before the state's lock.
	mutex sync.Mutex
	// watched holds the kinds that the informers watch.
	watched []state.Kind
	// synced holds the informers' handlers, one for each kind after Watch was called.
	synced []toolscache.ResourceEventHandlerRegistration
	// writes holds the objects with an own write.
	writes map[state.Ref]*entry
	// gone holds UIDs that were deleted recently: a late Wrote must not restore them.
	gone map[types.UID]time.Time
}

// NewStore returns an empty store. Watch fills it and Start maintains it.
func NewStore(config Config) (*Store, error) {
	config.State.Declared, config.State.Classes = config.Provider.Declared(), nil
	for _, class := range config.Provider.NodeClasses() {
		gvk, err := apiutil.GVKForObject(class, config.Scheme)
		if err != nil {
			return nil, fmt.Errorf("looking up the node class %T of provider %s: %w", class, config.Provider.Name(), err)
		}
		config.State.Classes = append(config.State.Classes, gvk.GroupKind())
	}
	objects := state.New(config.State)
	s := &Store{
		View: objects.View, state: objects, classes: config.State.Classes, live: config.Live, log: config.Log, options: config.Options.withDefaults(),
		news:    news{state: objects, rejected: config.Rejected, departed: config.Departed, log: config.Log},
		recheck: make(chan struct{}, 1), watched: config.State.Kinds(), foresight: config.State.Foresight(),
		writes: map[state.Ref]*entry{}, gone: map[types.UID]time.Time{},
	}
	s.catalogs = newCatalogs(config.Provider, s)
	if config.State.Overlays || config.PriceRules {
		s.catalogs.overlays = newOverlays(s.catalogs, config.State.Declared.ReservationKey)
	}
	return s, nil
}

// Snapshot returns the state at now.
func (s *Store) Snapshot(now time.Time) *model.Snapshot {
	s.news.publish() // departures, before they are in a snapshot
	defer s.news.publish()
	return s.state.Snapshot(now)
}

// Saw records an object that the watch showed. The store keeps it; callers must not change it afterwards.
func (s *Store) Saw(obj client.Object) {
	at, ok := state.RefOf(obj)
	if !ok {
		return
	}
	defer s.news.publish()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	e := s.writes[at]
	if e == nil {
		s.replaced(s.state.Saw(obj), obj)
		return
	}
	s.replaced(e.seen, obj)
	e.see(obj)
	s.apply(at, e)
}

// replaced records that an object has taken the place of another one of its name.
func (s *Store) replaced(before, obj client.Object) {
	if before != nil && before.GetUID() != obj.GetUID() {
		s.gone[before.GetUID()] = time.Now()
	}
}

// Gone records an object that the watch showed to be deleted.
func (s *Store) Gone(obj client.Object) {
	at, ok := state.RefOf(obj)
	if !ok {
		return
	}
	defer s.news.publish()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.gone[obj.GetUID()] = time.Now()
	e := s.entry(at)
	e.lose(obj.GetUID())
	s.apply(at, e)
}

// SetVirtual is State.SetVirtual.
func (s *Store) SetVirtual(kind, owner, fingerprint string, make func() []*corev1.Pod) *model.Rejection {
	defer s.news.publish()
	return s.state.SetVirtual(kind, owner, fingerprint, make)
}

// Awaited is State.Awaited.
func (s *Store) Awaited(now time.Time, within time.Duration) bool {
	return s.state.Awaited(now, within)
}

// Nominate is State.Nominate.
func (s *Store) Nominate(node string, until time.Time) {
	defer s.news.publish()
	s.state.Nominate(node, until)
}

// Refuse is State.Refuse.
func (s *Store) Refuse(pool, uid, why string) {
	defer s.news.publish()
	s.state.Refuse(pool, uid, why)
}

// Subscribe returns a channel with a buffer of one that receives an element when a change of that kind has occurred
// since the last read. It is for one reader, and lives as long as the store.
func (s *Store) Subscribe(of state.Change) <-chan struct{} { return s.news.subscribe(of) }
