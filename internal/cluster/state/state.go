package state

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Config holds what the meaning of objects depends on.
type Config struct {
	// Declared are the provider's labels, Classes the kinds of its node classes.
	Declared cloud.Declared
	Classes  []schema.GroupKind
	// DefaultSpread is the topology spread of pods without constraints (convert.ParseSchedulerConfig).
	DefaultSpread []corev1.TopologySpreadConstraint
	// Overlays says that NodeOverlays apply to the catalogs.
	Overlays bool
	// Replicas says that snapshots contain virtual pods for those that workloads ask for and have not created yet.
	Replicas bool
	// Protection defines which annotations protect pods and nodes.
	Protection karpv1.ProtectionRules
	// Pods says for which pods no node is launched.
	Pods convert.PodRules
	// Refusal is the pause of a pool after the API server refused one of its claims (1 min).
	Refusal time.Duration
	// Arrival sets Snapshot.Arrival: how long an empty node is kept for pods that were moved to it; 0 leaves the
	// default to the readers of the snapshot.
	Arrival time.Duration
}

// Kinds returns the kinds whose objects have an effect. Services and controllers have one only with default spread.
func (c *Config) Kinds() []Kind {
	var needed []Kind
	for k := range kinds {
		if c.needs(k) {
			needed = append(needed, k)
		}
	}
	return needed
}

func (c *Config) needs(k Kind) bool {
	switch k {
	case Services, Controllers:
		return len(c.DefaultSpread) > 0
	case ReplicaSets, StatefulSets:
		return len(c.DefaultSpread) > 0 || c.Replicas
	case Jobs:
		return c.Replicas
	case Deployments:
		return false
	case NodeOverlays:
		return c.Overlays
	}
	return true
}

// State holds objects and their conversion. Its methods are safe for concurrent use.
type State struct {
	*View
	config   Config
	news     News
	builder  *model.Builder
	machines machines
	pools    map[string]*pool
	quotas   map[string]model.QuotaSpec
	daemons  map[types.NamespacedName]model.DaemonSpec
	// daemonsAside are the DaemonSets that the last snapshot does not consider.
	daemonsAside []model.AsideDaemon
	// daemonPods holds the requests of the pods of DaemonSets.
	daemonPods   convert.DaemonPods
	pdbs         map[types.NamespacedName]model.PDBSpec
	dependencies dependencies
	// virtual holds the virtual pods by the UID of their owner.
	virtual  map[string]*virtual
	replicas replicas
	created  map[types.UID]*creation
	// delayed holds the pods for which no node may be launched before a time.
	delayed map[types.NamespacedName]time.Time
	// at is the time of the last snapshot or Advance.
	at time.Time
}

// New returns a state without objects.
func New(config Config) *State {
	vocabulary := convert.NewVocabulary(config.Declared, config.Classes...)
	vocabulary.Pods, vocabulary.Protection = config.Pods, config.Protection
	config.Refusal = cmp.Or(config.Refusal, time.Minute)
	s := &State{
		View: newView(vocabulary), config: config, builder: model.NewBuilder(), machines: newMachines(),
		pools: map[string]*pool{}, quotas: map[string]model.QuotaSpec{}, daemons: map[types.NamespacedName]model.DaemonSpec{},
		pdbs: map[types.NamespacedName]model.PDBSpec{}, virtual: map[string]*virtual{}, replicas: newReplicas(config.Replicas),
		created: map[types.UID]*creation{}, delayed: map[types.NamespacedName]time.Time{},
	}
	s.newDependencies(config.DefaultSpread)
	return s
}

// Snapshot returns the state at now.
func (s *State) Snapshot(now time.Time) *model.Snapshot {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.advance(now)
	s.planReplicas(s.at)
	snap := s.builder.Snapshot(s.at)
	snap.Arrival = s.config.Arrival
	s.recordDaemons(snap.DaemonsAside)
	return snap
}

// Advance applies what changes by time alone. Snapshot does the same; Advance is for News.Wake.
func (s *State) Advance(now time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.advance(now)
}

// advance updates budgets with a schedule, refusals, the requests of daemon pods that are gone, nominations, and pods
// with a delay.
func (s *State) advance(now time.Time) {
	s.at = now.UTC().Round(0)
	for name, p := range s.pools {
		if p.scheduled || !p.refusal.until.IsZero() {
			s.syncPool(name)
		}
	}
	s.expireDaemonPods(s.at)
	s.machines.forget(s.at)
	s.release()
}

// Saw records the current state of an object, and returns the one before, nil if there was none. The state keeps the
// object; callers must not change it afterwards.
func (s *State) Saw(obj Object) (before Object) {
	at, ok := RefOf(obj)
	if !ok {
		return nil
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	e := s.entry(at)
	before, e.object = e.object, obj
	s.apply(at, e)
	return before
}

// Gone records that there is no such object.
func (s *State) Gone(at Ref) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	e := s.objects[at.Kind][at.Key]
	if e == nil {
		return
	}
	e.object = nil
	s.apply(at, e)
	delete(s.objects[at.Kind], at.Key)
}

// apply updates the rest of the state after a change of an entry.
func (s *State) apply(at Ref, e *entry) {
	switch at.Kind {
	case Pods:
		s.applyPod(at.Key, e)
	case Nodes:
		s.applyNode(at.Key.Name)
	case Claims:
		s.applyClaim(at.Key.Name)
	case Pools:
		s.applyPool(at.Key.Name, e)
	case Daemons:
		s.applyDaemon(at.Key, e)
	case PDBs:
		s.applyPDB(at.Key, e)
	case NodeOverlays:
		s.notify(OverlaysChanged)
	case CapacityQuotas:
		s.applyQuota(at.Key.Name, e)
	case CSINodes:
		s.applyDrivers(at.Key.Name, s.csiNode(at.Key.Name))
		s.syncGroups(s.machines.nodes[at.Key.Name], s.machines.claims[at.Key.Name])
	default:
		s.applyDependency(at, e)
	}
}
