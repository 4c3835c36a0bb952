package cluster

import (
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Options are the store's times. Zero values are replaced by those in brackets.
type Options struct {
	// WriteVisible is after which time a live read decides about an own write that the watch has not shown (5 s).
	WriteVisible time.Duration
	// Catalogue is the period in which each pool's catalogue is read again (5 min).
	Catalogue time.Duration
	// CatalogueTimeout bounds one reading (30 s).
	CatalogueTimeout time.Duration
	// CatalogueRetry is the pause after a reading that went wrong; it doubles up to Catalogue (1 s).
	CatalogueRetry time.Duration
	// Refusal is for how long a pool is left alone after the API server refused one of its claims (1 min).
	Refusal time.Duration
	// Arrival is what snapshots say about how long an empty node is kept for pods that were sent to it; 0 leaves it to who
	// reads them.
	Arrival time.Duration
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		at    *time.Duration
		value time.Duration
	}{
		{&o.WriteVisible, 5 * time.Second}, {&o.Catalogue, 5 * time.Minute},
		{&o.CatalogueTimeout, 30 * time.Second}, {&o.CatalogueRetry, time.Second},
		{&o.Refusal, time.Minute},
	} {
		if *d.at <= 0 {
			*d.at = d.value
		}
	}
	return o
}

// Config is what a Store needs.
type Config struct {
	Provider cloud.Provider
	// Scheme knows the provider's node classes.
	Scheme *runtime.Scheme
	// Live reads from the API, past any cache.
	Live client.Reader
	// SetAside is told how many objects of a kind are set aside whenever that changes. It is called with the store
	// locked and must return at once. It may be nil.
	SetAside func(kind string, count int)
	// Departed is told of pods that have ended or are being preempted, perhaps more than once. It is called with the store
	// locked and must return at once. It may be nil.
	Departed func(model.Departure)
	// DefaultSpread is the topology spread of pods that state none (convert.ParseSchedulerConfig). Without any, Services
	// and controllers are not watched.
	DefaultSpread []corev1.TopologySpreadConstraint
	// Protection says which annotations protect pods.
	Protection karpv1.ProtectionRules
	Log        logr.Logger
	Options    Options
}

// Store is the mirror. Its methods may be called from any goroutine.
type Store struct {
	live       client.Reader
	log        logr.Logger
	options    Options
	vocabulary *convert.Vocabulary
	catalogues *catalogues
	// recheck asks for the live reads at once.
	recheck chan struct{}

	// watched are the kinds that the informers show.
	watched []kind

	mutex sync.Mutex
	// synced are the informers' handlers, one for each kind once Watch has been called.
	synced  []toolscache.ResourceEventHandlerRegistration
	builder *model.Builder
	objects [kinds]map[types.NamespacedName]*entry
	// writes are the entries with an own write.
	writes map[ref]*entry
	// gone are UIDs that were deleted lately: a late Wrote must not bring them back.
	gone     map[types.UID]time.Time
	machines machines
	pools    map[string]*pool
	daemons  map[types.NamespacedName]model.DaemonSpec
	// daemonPods is what the pods of DaemonSets request.
	daemonPods convert.DaemonPods
	departed   func(model.Departure)
	pdbs       map[types.NamespacedName]model.PDBSpec
	aside      aside
	around     around
	wakes      []wake
	// at is the time of the last snapshot.
	at time.Time
}

// NewStore returns an empty store. Watch feeds it and Start keeps it right.
func NewStore(config Config) (*Store, error) {
	var classes []schema.GroupKind
	for _, class := range config.Provider.NodeClasses() {
		gvk, err := apiutil.GVKForObject(class, config.Scheme)
		if err != nil {
			return nil, fmt.Errorf("looking up the node class %T of provider %s: %w", class, config.Provider.Name(), err)
		}
		classes = append(classes, gvk.GroupKind())
	}
	s := &Store{
		live: config.Live, log: config.Log, options: config.Options.withDefaults(),
		vocabulary: convert.NewVocabulary(config.Provider.Declared(), classes...),
		recheck:    make(chan struct{}, 1), builder: model.NewBuilder(),
		writes: map[ref]*entry{}, gone: map[types.UID]time.Time{}, machines: newMachines(),
		pools: map[string]*pool{}, daemons: map[types.NamespacedName]model.DaemonSpec{},
		pdbs: map[types.NamespacedName]model.PDBSpec{}, aside: newAside(config.SetAside),
	}
	s.vocabulary.Protection, s.departed = config.Protection, config.Departed
	for k := range s.objects {
		s.objects[k] = map[types.NamespacedName]*entry{}
	}
	for k := range kinds {
		if k < services || len(config.DefaultSpread) > 0 {
			s.watched = append(s.watched, k)
		}
	}
	s.newAround(config.DefaultSpread)
	s.catalogues = newCatalogues(config.Provider, s)
	return s, nil
}

// Vocabulary is what labels mean here: the core's and the provider's.
func (s *Store) Vocabulary() *convert.Vocabulary { return s.vocabulary }

// Snapshot is the world at now. Budgets with a schedule, refusals, and what daemon pods that have gone requested, are brought
// up to date first.
func (s *Store) Snapshot(now time.Time) *model.Snapshot {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now = now.UTC().Round(0)
	s.at = now
	for name, p := range s.pools {
		if p.scheduled || !p.refusal.until.IsZero() {
			s.tellPool(name)
		}
	}
	s.expireDaemonPods(now)
	snap := s.builder.Snapshot(now)
	snap.Arrival = s.options.Arrival
	return snap
}

// Saw takes an object that the watch showed. The store keeps it; it must not be changed afterwards.
func (s *Store) Saw(obj client.Object) {
	k, ok := kindOf(obj)
	if !ok {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	at := ref{k, client.ObjectKeyFromObject(obj)}
	e := s.entry(at)
	if e.seen != nil && e.seen.GetUID() != obj.GetUID() {
		s.gone[e.seen.GetUID()] = time.Now()
	}
	e.see(obj)
	s.apply(at, e)
}

// Gone takes an object that the watch showed to be deleted.
func (s *Store) Gone(obj client.Object) {
	k, ok := kindOf(obj)
	if !ok {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	at := ref{k, client.ObjectKeyFromObject(obj)}
	s.gone[obj.GetUID()] = time.Now()
	e := s.entry(at)
	e.lose(obj.GetUID())
	s.apply(at, e)
}

func (s *Store) entry(at ref) *entry {
	e := s.objects[at.kind][at.key]
	if e == nil {
		e = &entry{}
		s.objects[at.kind][at.key] = e
	}
	return e
}

// apply makes the rest of the store follow an entry that changed.
func (s *Store) apply(at ref, e *entry) {
	switch at.kind {
	case pods:
		s.applyPod(at.key, e)
	case nodes:
		s.applyNode(at.key.Name)
	case claims:
		s.applyClaim(at.key.Name)
	case pools:
		s.applyPool(at.key.Name, e)
	case daemons:
		s.applyDaemon(at.key, e)
	case pdbs:
		s.applyPDB(at.key, e)
	case csiNodes:
		s.tellUnits(s.machines.nodes[at.key.Name], s.machines.claims[at.key.Name])
	default:
		s.applyAround(at, e)
	}
	if e.own != nil {
		s.writes[at] = e
	} else {
		delete(s.writes, at)
	}
	if e.empty() {
		delete(s.objects[at.kind], at.key)
	}
}

// now is the present state of an object, nil when there is none.
func (s *Store) now(at ref) client.Object {
	if e := s.objects[at.kind][at.key]; e != nil {
		return e.now()
	}
	return nil
}

func timestamp(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

func (s *Store) node(name string) *nodeObject {
	node, _ := s.now(ref{nodes, types.NamespacedName{Name: name}}).(*nodeObject)
	return node
}

func (s *Store) csiNode(name string) *storagev1.CSINode {
	node, _ := s.now(ref{csiNodes, types.NamespacedName{Name: name}}).(*storagev1.CSINode)
	return node
}

func (s *Store) claim(name string) *karpv1.NodeClaim {
	claim, _ := s.now(ref{claims, types.NamespacedName{Name: name}}).(*karpv1.NodeClaim)
	return claim
}
