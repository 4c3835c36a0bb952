package cluster

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/overlay"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
)

// overlays applies NodeOverlays to the catalogs of all pools, because conflicts are a property of all pools together.
// Each change of an overlay, and each new reply of the provider, is followed by one resolution:
//
//	raw replies of all pools --overlay.Resolve--> Outcome --Apply--> catalog of each pool
//	                                                 |
//	                                                 +--> launches, the annotations of claims, conditions
type overlays struct {
	catalogs    *catalogs
	reservation string
	// changed receives when NodeOverlays or pools have changed.
	changed <-chan struct{}
	// absent holds the informers while the API server does not serve NodeOverlays. It is set before the start.
	absent cache.Informers

	// resolving is held during a resolution. It is taken before all other locks.
	resolving sync.Mutex
	replies   map[string]reply
	// objects are the overlays of the last resolution, and rules those of the price file.
	objects []*karpv1alpha1.NodeOverlay
	rules   []pricerule.Rule
	// noted says that it was logged what of the rules has no effect, and problems what was logged last.
	noted    bool
	problems []overlay.Report

	// mutex guards the result of the last resolution, and what was derived from it. It is taken before the state's lock.
	mutex   sync.Mutex
	outcome *overlay.Outcome
	marks   map[string]overlay.Marks
	applied map[string]appliedTypes
}

// reply is a provider's reply for a pool.
type reply struct {
	pool  *karpv1.NodePool
	types []cloud.InstanceType
	// why is the reason if there are no types.
	why string
}

// appliedTypes is the last result for a pool's launches.
type appliedTypes struct {
	pool    *karpv1.NodePool
	outcome *overlay.Outcome
	from    []cloud.InstanceType
	types   []cloud.InstanceType
}

// overlaySearch is the pause between two checks whether the API server serves NodeOverlays.
const overlaySearch = 5 * time.Minute

func newOverlays(c *catalogs, reservation string) *overlays {
	changed := c.store.Subscribe(state.OverlaysChanged | state.PoolSpecsChanged)
	return &overlays{catalogs: c, reservation: reservation, changed: changed, replies: map[string]reply{}, applied: map[string]appliedTypes{}}
}

// follow resolves after each change until the context ends.
func (o *overlays) follow(ctx context.Context) {
	var search <-chan time.Time
	if o.absent != nil {
		o.catalogs.store.log.Info("the API server does not serve NodeOverlays; they are looked for every 5 minutes")
		ticker := time.NewTicker(overlaySearch)
		defer ticker.Stop()
		search = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-search:
			if o.catalogs.store.watch(ctx, o.absent, state.NodeOverlays) == nil {
				search = nil
			}
		case <-o.changed:
			o.resolving.Lock()
			if o.prune() || !o.current() {
				o.resolve()
			}
			o.resolving.Unlock()
		}
	}
}

// setReply records a reply. If nothing is new, the catalogs stay as they are.
func (o *overlays) setReply(r reply) {
	o.resolving.Lock()
	defer o.resolving.Unlock()
	name := r.pool.Name
	before, known := o.replies[name]
	if known && before.pool.UID == r.pool.UID && before.pool.Generation == r.pool.Generation && reflect.DeepEqual(before.types, r.types) {
		r.types = before.types
	} else {
		known = false
	}
	o.replies[name] = r
	if known && o.current() {
		o.convert(name)
		return
	}
	o.resolve()
}

// current reports whether the last resolution was of today's overlays. Their status does not matter.
func (o *overlays) current() bool {
	return slices.EqualFunc(o.objects, o.catalogs.store.Overlays(), func(a, b *karpv1alpha1.NodeOverlay) bool {
		return a.UID == b.UID && a.Generation == b.Generation && a.Annotations[karpv1.AnnotationStack] == b.Annotations[karpv1.AnnotationStack]
	})
}

// prune forgets the pools that are gone, and reports whether there were any.
func (o *overlays) prune() bool {
	before := len(o.replies)
	maps.DeleteFunc(o.replies, func(name string, _ reply) bool { return o.catalogs.store.Pool(name) == nil })
	return len(o.replies) < before
}

// resolve applies the overlays to all pools.
func (o *overlays) resolve() {
	c := o.catalogs
	o.prune()
	o.objects = c.store.Overlays()
	var pools []overlay.Pool
	for _, name := range slices.Sorted(maps.Keys(o.replies)) {
		pools = append(pools, o.replies[name].overlaid())
	}
	outcome := o.set(o.objects).Resolve(pools)
	o.mutex.Lock()
	o.outcome, o.marks = outcome, map[string]overlay.Marks{}
	o.mutex.Unlock()
	for _, p := range pools {
		o.convert(p.Name)
	}
	c.store.news.notify(state.OverlaysResolved)
	o.noteRules(outcome)
}

// noteRules logs what of the price rules has no effect, once after each change of the rules, when the catalogs of all pools
// are known.
func (o *overlays) noteRules(outcome *overlay.Outcome) {
	if o.noted || len(o.replies) == 0 || len(o.replies) < len(o.catalogs.store.Pools()) {
		return
	}
	before := o.problems
	o.noted, o.problems = true, outcome.RuleProblems()
	if slices.Equal(before, o.problems) { // the provider's rules have changed
		return
	}
	for _, r := range o.problems {
		o.catalogs.store.log.Info("a price rule "+r.Message, "rule", r.Name)
	}
}

func (o *overlays) set(objects []*karpv1alpha1.NodeOverlay) *overlay.Set {
	plain := overlay.New(objects, o.catalogs.store.Vocabulary().Rules, o.reservation)
	set, err := plain.WithRules(o.rules)
	if err != nil { // which SetPriceRules has excluded
		return plain
	}
	return set
}

// PriceRules returns the rules of the price file.
func (s *Store) PriceRules() []pricerule.Rule {
	o := s.catalogs.overlays
	if o == nil {
		return nil
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.rules
}

// SetPriceRules replaces the rules of the price file, which apply to all pools at once. Rules with an invalid requirement
// are an error, and the earlier rules stay. It must not be called without Config.PriceRules.
func (s *Store) SetPriceRules(rules []pricerule.Rule) error {
	o := s.catalogs.overlays
	if _, err := overlay.New(nil, s.Vocabulary().Rules, o.reservation).WithRules(rules); err != nil {
		return err
	}
	o.resolving.Lock()
	defer o.resolving.Unlock()
	o.mutex.Lock()
	same := reflect.DeepEqual(o.rules, rules)
	o.rules = rules
	o.mutex.Unlock()
	if !same {
		o.noted = false
		o.resolve()
	}
	return nil
}

func (r reply) overlaid() overlay.Pool {
	return overlay.Pool{Name: r.pool.Name, Labels: r.pool.Spec.Template.ObjectMeta.Labels, Types: r.types}
}

// convert passes the overlaid catalog of one pool to the store.
func (o *overlays) convert(name string) {
	r := o.replies[name]
	types, marks := o.outcome.Apply(r.overlaid())
	o.mutex.Lock()
	o.marks[name] = marks
	o.mutex.Unlock()
	o.catalogs.setTypes(r.pool, o.catalogs.catalog(name, types), r.why)
}

// OverlayReports returns what the NodeOverlays do, by name; nil if they do not apply or were not resolved yet.
func (s *Store) OverlayReports() []overlay.Report {
	o := s.catalogs.overlays
	if o == nil {
		return nil
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.outcome == nil {
		return nil
	}
	return o.outcome.Reports()
}

// Overlaid returns a provider's types with the prices and the capacity that the pool's plans are made with. Providers
// call it when they launch (cloud.Overlaid).
func (s *Store) Overlaid(pool string, types []cloud.InstanceType) []cloud.InstanceType {
	o, object := s.catalogs.overlays, s.Pool(pool)
	if o == nil || object == nil || len(types) == 0 {
		return types
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	outcome := o.outcome
	p := reply{pool: object, types: types}.overlaid()
	if outcome == nil { // a claim of an earlier process, before the first catalog is read
		outcome = o.set(s.Overlays()).Resolve([]overlay.Pool{p})
		overlaid, _ := outcome.Apply(p)
		return overlaid
	}
	last := o.applied[pool]
	if last.outcome == outcome && last.pool == object && len(last.from) == len(types) && &last.from[0] == &types[0] {
		return last.types
	}
	overlaid, _ := outcome.Apply(p)
	o.applied[pool] = appliedTypes{object, outcome, types, overlaid}
	return overlaid
}

// OverlaysOf reports whether overlays changed the price, or the capacity, of a type that the claim may become.
func (s *Store) OverlaysOf(claim *karpv1.NodeClaim) (price, capacity bool) {
	o, pool := s.catalogs.overlays, claim.Labels[karpv1.LabelNodePool]
	if o == nil {
		return false, false
	}
	o.mutex.Lock()
	marks := o.marks[pool]
	o.mutex.Unlock()
	if len(marks.Price)+len(marks.Capacity) == 0 {
		return false, false
	}
	s.catalogs.mutex.Lock()
	types := s.catalogs.stocks[pool].types
	s.catalogs.mutex.Unlock()
	need := cloud.NeedOf(claim)
	for i := range types {
		t := &types[i]
		if !marks.Price[t.Name] && !marks.Capacity[t.Name] || !need.AllowsType(t) ||
			!slices.ContainsFunc(t.Offerings, func(of cloud.Offering) bool { return need.AllowsOffering(&of) }) {
			continue
		}
		price, capacity = price || marks.Price[t.Name], capacity || marks.Capacity[t.Name]
	}
	return price, capacity
}
