package state

import (
	"reflect"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
)

// pool is the state of a pool in the store.
type pool struct {
	object *karpv1.NodePool
	// scheduled says that a budget changes with time.
	scheduled bool
	// catalog is the last catalog that was read, nil if there is none; why is the reason. class is the class that it was
	// read for.
	catalog *model.Catalog
	why     string
	class   karpv1.NodeClassReference
	// refused pauses launches because the API server refused a claim.
	refused pause.Pause
	// synced is the spec in the builder, nil if there is none.
	synced *model.PoolSpec
}

// poolSet holds the pools.
type poolSet struct {
	*base
	pools map[string]*pool
}

// advance updates budgets with a schedule, and refusals.
func (s *poolSet) advance() {
	for name, p := range s.pools {
		if p.scheduled || !p.refused.Until.IsZero() {
			s.sync(name)
		}
	}
}

func (s *poolSet) apply(name string, e *entry) {
	object, _ := e.object.(*karpv1.NodePool)
	p := s.pools[name]
	if object == nil {
		if p != nil {
			delete(s.pools, name)
			s.builder.DeletePool(name)
			s.notify(PoolsChanged | PoolSpecsChanged)
		}
		return
	}
	if p == nil || p.object.UID != object.UID {
		s.pools[name] = &pool{why: "the catalog of instance types has not been read yet"}
		p = s.pools[name]
	}
	news := p.object == nil || !SameSpec(p.object, object)
	p.object, p.scheduled = object, convert.Scheduled(object)
	if news {
		p.refused = pause.Pause{}
		s.notify(PoolSpecsChanged)
	}
	s.sync(name)
}

// SameSpec reports whether both are the same pool with the same spec, so that they have the same catalog. The kubelet
// settings in the annotation affect the catalog, but are not part of the generation.
func SameSpec(a, b *karpv1.NodePool) bool {
	return a.UID == b.UID && a.Generation == b.Generation &&
		a.Annotations[karpv1.AnnotationKubelet] == b.Annotations[karpv1.AnnotationKubelet]
}

// sync updates the pool in the builder if it changed. Encoding a pool is expensive, and its status changes often.
func (s *poolSet) sync(name string) {
	p := s.pools[name]
	spec := convert.Pool(p.object, s.vocabulary)
	spec.Budgets, spec.BudgetError = convert.Budgets(p.object, s.at)
	p.block(&spec, s.at)
	convert.AddCatalog(&spec, p.catalog, p.why)
	if p.synced != nil && samePool(*p.synced, spec) {
		return
	}
	p.synced = &spec
	s.builder.UpsertPool(spec)
	s.notify(PoolsChanged)
}

// samePool compares catalogs by identity: the same pointer means the same content.
func samePool(a, b model.PoolSpec) bool {
	if a.Catalog != b.Catalog {
		return false
	}
	a.Catalog, b.Catalog = nil, nil
	return reflect.DeepEqual(a, b)
}

// setTypes records the result of reading a pool's catalog. The last catalog outlasts failures, but not a change of the
// pool's class: as long as the types of the new class are not known, there are none.
func (s *poolSet) setTypes(object *karpv1.NodePool, catalog *model.Catalog, why string) {
	p := s.pools[object.Name]
	if p == nil || p.object.UID != object.UID {
		return
	}
	p.why = why
	if class := object.Spec.Template.Spec.NodeClassRef; catalog != nil || class != p.class {
		p.catalog, p.class = catalog, class
	}
	s.sync(object.Name)
}

// refuse records that the API server refuses a claim of the pool.
func (s *poolSet) refuse(name, uid, why string) {
	p := s.pools[name]
	if p == nil || string(p.object.UID) != uid || p.refused.Active(s.at) {
		return
	}
	p.refused = p.refused.Fail(s.at, s.at, 0, why)
	s.sync(name)
}

// block blocks a pool that is not blocked otherwise, during the pause.
func (p *pool) block(spec *model.PoolSpec, now time.Time) {
	if spec.Blocked == nil && p.refused.Active(now) {
		spec.Blocked = &model.Rejection{Field: "spec.template", Reason: "the API server refused a claim of the pool: " + p.refused.Why}
	}
}

// TypesProblem returns why a pool has no instance types; it says nothing about a pool that has some.
func (s *State) TypesProblem(pool string) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if p := s.pools.pools[pool]; p != nil {
		return p.why
	}
	return ""
}

// OfferPrices adds a catalog from which claims without a pool get their prices if no pool has them.
func (s *State) OfferPrices(catalog *model.Catalog) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.builder.OfferPrices(catalog)
}

// Exclude records why the API server would refuse a pool of files to which other objects may refer.
func (s *State) Exclude(pool string, why model.Rejection) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.builder.UpsertPool(model.PoolSpec{Name: pool, UID: "refused/" + pool, ConsolidateAfter: -1,
		Policy: string(karpv1.ConsolidateWhenEmptyOrUnderutilized), Blocked: &why, Refused: &why})
}
