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
	// Refusal is the pause of a pool after the API server refused one of its claims (1 min).
	Refusal time.Duration
	// Arrival sets Snapshot.Arrival: how long an empty node is kept for pods that were moved to it; 0 leaves the
	// default to the readers of the snapshot.
	Arrival time.Duration
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		at    *time.Duration
		value time.Duration
	}{
		{&o.WriteVisible, 5 * time.Second}, {&o.Catalog, 5 * time.Minute},
		{&o.CatalogTimeout, 30 * time.Second}, {&o.CatalogRetry, time.Second},
		{&o.Refusal, time.Minute},
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
	// SetAside is called with the number of ignored objects of a kind whenever it changes. It is called with the
	// store locked and must return at once. It may be nil.
	SetAside func(kind string, count int)
	// Departed is called for pods that have ended or are being preempted, possibly more than once per pod. It is
	// called with the store locked and must return at once. It may be nil.
	Departed func(model.Departure)
	// DefaultSpread is the topology spread of pods without constraints (convert.ParseSchedulerConfig). If it is
	// empty, Services and controllers are not watched.
	DefaultSpread []corev1.TopologySpreadConstraint
	// Overlays says that NodeOverlays apply to the catalogs. Without it they are not watched.
	Overlays bool
	// Replicas says that snapshots contain virtual pods for those that workloads ask for and have not created yet. Without
	// it Jobs are not watched, and ReplicaSets and StatefulSets only for default spread.
	Replicas bool
	// Protection defines which annotations protect pods and nodes.
	Protection karpv1.ProtectionRules
	// Pods says for which pods no node is launched.
	Pods    convert.PodRules
	Log     logr.Logger
	Options Options
}

// Store mirrors the API. Its methods are safe for concurrent use.
type Store struct {
	live       client.Reader
	log        logr.Logger
	options    Options
	vocabulary *convert.Vocabulary
	catalogs   *catalogs
	// recheck triggers the live reads at once.
	recheck chan struct{}

	mutex sync.Mutex
	// watched holds the kinds that the informers watch.
	watched []kind
	// synced holds the informers' handlers, one for each kind after Watch was called.
	synced  []toolscache.ResourceEventHandlerRegistration
	builder *model.Builder
	objects [kinds]map[types.NamespacedName]*entry
	// writes holds the entries with an own write.
	writes map[ref]*entry
	// gone holds UIDs that were deleted recently: a late Wrote must not restore them.
	gone     map[types.UID]time.Time
	machines machines
	pools    map[string]*pool
	quotas   map[string]model.QuotaSpec
	daemons  map[types.NamespacedName]model.DaemonSpec
	// daemonsAside are the DaemonSets that the last snapshot does not consider.
	daemonsAside []model.AsideDaemon
	// daemonPods holds the requests of the pods of DaemonSets.
	daemonPods   convert.DaemonPods
	departed     func(model.Departure)
	pdbs         map[types.NamespacedName]model.PDBSpec
	rejected     rejected
	dependencies dependencies
	// virtual holds the virtual pods by the UID of their owner.
	virtual       map[string]*virtual
	replicas      replicas
	created       map[types.UID]*creation
	subscriptions []subscription
	// at is the time of the last snapshot.
	at time.Time
}

// NewStore returns an empty store. Watch fills it and Start maintains it.
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
		pools: map[string]*pool{}, quotas: map[string]model.QuotaSpec{}, daemons: map[types.NamespacedName]model.DaemonSpec{},
		pdbs: map[types.NamespacedName]model.PDBSpec{}, rejected: newRejected(config.SetAside), virtual: map[string]*virtual{},
		created: map[types.UID]*creation{},
	}
	s.vocabulary.Pods = config.Pods
	s.vocabulary.Protection, s.departed = config.Protection, config.Departed
	for k := range s.objects {
		s.objects[k] = map[types.NamespacedName]*entry{}
	}
	for k := range kinds {
		if config.watches(k) {
			s.watched = append(s.watched, k)
		}
	}
	s.replicas = newReplicas(config.Replicas)
	s.newDependencies(config.DefaultSpread)
	s.catalogs = newCatalogs(config.Provider, s)
	if config.Overlays {
		s.catalogs.overlays = newOverlays(s.catalogs, config.Provider.Declared().ReservationKey)
	}
	return s, nil
}

// watches reports whether objects of the kind are watched.
func (c *Config) watches(k kind) bool {
	switch k {
	case services, controllers:
		return len(c.DefaultSpread) > 0
	case replicaSets, statefulSets:
		return len(c.DefaultSpread) > 0 || c.Replicas
	case jobs:
		return c.Replicas
	case nodeOverlays:
		return c.Overlays
	}
	return true
}

// Vocabulary returns the meaning of labels: the core's and the provider's.
func (s *Store) Vocabulary() *convert.Vocabulary { return s.vocabulary }

// Snapshot returns the state at now. It first updates budgets with a schedule, refusals, and the requests of daemon
// pods that are gone.
func (s *Store) Snapshot(now time.Time) *model.Snapshot {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now = now.UTC().Round(0)
	s.at = now
	for name, p := range s.pools {
		if p.scheduled || !p.refusal.until.IsZero() {
			s.syncPool(name)
		}
	}
	s.expireDaemonPods(now)
	s.planReplicas(now)
	snap := s.builder.Snapshot(now)
	snap.Arrival = s.options.Arrival
	s.recordDaemons(snap.DaemonsAside)
	return snap
}

// Saw records an object that the watch showed. The store keeps it; callers must not change it afterwards.
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

// Gone records an object that the watch showed to be deleted.
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

// apply updates the rest of the store after a change of an entry.
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
	case nodeOverlays:
		s.catalogs.overlays.ask()
	case capacityQuotas:
		s.applyQuota(at.key.Name, e)
	case csiNodes:
		s.applyDrivers(at.key.Name, s.csiNode(at.key.Name))
		s.syncGroups(s.machines.nodes[at.key.Name], s.machines.claims[at.key.Name])
	default:
		s.applyDependency(at, e)
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

// now returns the current state of an object, nil if there is none.
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
