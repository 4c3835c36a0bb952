package state

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
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
	// Selection says which pools and claims are this controller's.
	Selection karpv1.Selection
	// Arrival sets Snapshot.Arrival: how long an empty node is kept for pods that were moved to it; 0 leaves the
	// default to the readers of the snapshot.
	Arrival time.Duration
}

// Kinds returns the kinds whose objects have an effect. Services and controllers have one only with default spread.
func (c *Config) Kinds() []Kind {
	var needed []Kind
	for _, k := range Kinds() {
		if c.needs(k) {
			needed = append(needed, k)
		}
	}
	return needed
}

// Foresight returns the kinds that only the virtual pods of workloads need.
func (c *Config) Foresight() []Kind {
	without := *c
	without.Replicas = false
	return slices.DeleteFunc(c.Kinds(), without.needs)
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

// base is what the parts of a State share.
type base struct {
	*View
	config  Config
	news    News
	builder *model.Builder
	// at is the time of the last snapshot or Advance.
	at time.Time
}

// State holds objects and their conversion. Its methods are safe for concurrent use: they take the lock, and those of its
// parts need it.
type State struct {
	*base
	machines *machines
	pools    *poolSet
	quotas   *quotas
	pdbs     *pdbs
	pods     *podSet
	daemons  *daemonSets
	replicas *replicas
	virtuals *virtuals
}

// New returns a state without objects.
func New(config Config) *State {
	vocabulary := convert.NewVocabulary(config.Declared, config.Classes...)
	vocabulary.Pods, vocabulary.Protection, vocabulary.Selection = config.Pods, config.Protection, config.Selection
	b := &base{View: newView(vocabulary), config: config, builder: model.NewBuilder()}
	d := newDependencies(b)
	s := &State{
		base: b, machines: newMachines(b), pools: &poolSet{b, map[string]*pool{}}, quotas: &quotas{b, map[string]model.QuotaSpec{}},
		pdbs: &pdbs{b, map[types.NamespacedName]model.PDBSpec{}}, replicas: newReplicas(d),
		daemons:  &daemonSets{dependencies: d, specs: map[types.NamespacedName]model.DaemonSpec{}},
		virtuals: &virtuals{d, map[string]*virtual{}},
	}
	s.pods = &podSet{dependencies: d, daemons: s.daemons, replicas: s.replicas, virtuals: s.virtuals,
		created: map[types.UID]*creation{}, delayed: map[types.NamespacedName]time.Time{}}
	return s
}

// Expect makes room for pods in a state without any, so that it does not grow pod by pod.
func (s *State) Expect(pods int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.objects[Pods] = make(map[types.NamespacedName]*entry, pods)
	s.builder.Expect(pods)
}

// Snapshot returns the state at now.
func (s *State) Snapshot(now time.Time) *model.Snapshot {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.advance(now)
	s.replicas.plan(s.at)
	snap := s.builder.Snapshot(s.at)
	snap.Arrival = s.config.Arrival
	s.daemons.setAside(snap.DaemonsAside)
	return snap
}

// Advance applies what changes by time alone. Snapshot does the same; Advance is for News.Wake.
func (s *State) Advance(now time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.advance(now)
}

func (s *State) advance(now time.Time) {
	s.at = now.UTC().Round(0)
	s.pools.advance()
	s.daemons.expire(s.at)
	s.machines.forget(s.at)
	s.pods.release()
}

// SetTypes records the result of reading a pool's catalog: the catalog, or the reason why there is none. A failure does
// not replace an earlier catalog, and a catalog that was read for a pool that is gone is ignored.
func (s *State) SetTypes(pool *karpv1.NodePool, catalog *model.Catalog, why string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.pools.setTypes(pool, catalog, why)
}

// Refuse records that the API server refuses a claim of the pool, and would refuse it again. No node is launched from the
// pool until the pause has ended, so that its pods use another pool. A change of the pool ends the pause.
func (s *State) Refuse(pool, uid, why string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.pools.refuse(pool, uid, why)
}

// Nominate records that pods are nominated to a node, or to a claim without one, until the given time: the node must
// not be disrupted before. A later end that was recorded earlier is kept.
func (s *State) Nominate(node string, until time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.machines.nominate(node, until)
}

// Awaited reports whether a workload has asked for pods within the last duration, has none to copy, and its controller has
// not reported that it cannot create them. Nothing is planned for it until the first exists.
func (s *State) Awaited(now time.Time, within time.Duration) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.replicas.awaited(now, within)
}

// SetVirtual replaces the virtual pods of an owner by the pods that make returns; nil removes them. An equal fingerprint
// means that nothing has changed: make is not called then. It returns why the pods cannot be placed anywhere, nil if they
// can: then there are none of them. The pods are of the given kind (model.PodSpec.Virtual). make is called without the
// lock, so the calls for one owner must come one after another.
func (s *State) SetVirtual(kind, owner, fingerprint string, make func() []*corev1.Pod) *model.Rejection {
	s.mutex.Lock()
	before := s.virtuals.owners[owner]
	s.mutex.Unlock()
	var now *virtual
	switch {
	case before == nil && make == nil:
		return nil
	case before != nil && make != nil && before.fingerprint == fingerprint:
		return before.refused
	case make != nil:
		now = &virtual{fingerprint: fingerprint, kind: kind, pods: make()}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.virtuals.replace(owner, now, s.virtuals.owners[owner])
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
		s.pods.apply(at.Key, e)
	case Nodes:
		s.pods.applyHost(at.Key.Name, s.node(at.Key.Name))
		s.machines.applyNode(at.Key.Name)
	case Claims:
		s.machines.applyClaim(at.Key.Name)
	case Pools:
		s.pools.apply(at.Key.Name, e)
	case Daemons:
		s.daemons.apply(at.Key, e)
	case PDBs:
		s.pdbs.apply(at.Key, e)
	case NodeOverlays:
		s.notify(OverlaysChanged)
	case CapacityQuotas:
		s.quotas.apply(at.Key.Name, e)
	case CSINodes:
		s.pods.applyDrivers(at.Key.Name, s.csiNode(at.Key.Name))
		s.machines.syncGroups(s.machines.nodes[at.Key.Name], s.machines.claims[at.Key.Name])
	default:
		s.pods.applyDependency(at, e)
	}
}
