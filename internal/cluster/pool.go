package cluster

import (
	"reflect"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// pool is the state of a pool in the store.
type pool struct {
	object *karpv1.NodePool
	// scheduled says that a budget changes with time.
	scheduled bool
	// catalog is the last catalog that was read, nil if there is none; why is the reason.
	catalog *model.Catalog
	why     string
	refusal refusal
	// synced is the spec in the builder, nil if there is none.
	synced *model.PoolSpec
}

func (s *Store) applyPool(name string, e *entry) {
	object, _ := e.now().(*karpv1.NodePool)
	p := s.pools[name]
	if object == nil {
		if p != nil {
			delete(s.pools, name)
			s.builder.DeletePool(name)
			s.catalogs.drop(name)
			s.notify(PoolsChanged)
		}
		return
	}
	if p == nil || p.object.UID != object.UID {
		s.pools[name] = &pool{why: "the catalog of instance types has not been read yet"}
		p = s.pools[name]
	}
	// The kubelet settings in the annotation affect the catalog, but are not part of the generation.
	news := p.object == nil || p.object.Generation != object.Generation ||
		p.object.Annotations[karpv1.AnnotationKubelet] != object.Annotations[karpv1.AnnotationKubelet]
	p.object, p.scheduled = object, convert.Scheduled(object)
	if news {
		p.refusal = refusal{}
	}
	class := object.Spec.Template.Spec.NodeClassRef
	if news && s.vocabulary.Owns(class.Group, class.Kind) {
		s.catalogs.want(name)
	}
	s.syncPool(name)
}

// syncPool updates the pool in the builder if it changed. Encoding a pool is expensive, and its status changes often.
func (s *Store) syncPool(name string) {
	p := s.pools[name]
	spec := convert.Pool(p.object, s.vocabulary)
	spec.Budgets, spec.BudgetError = convert.Budgets(p.object, s.at)
	p.refusal.block(&spec, s.at)
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

// setTypes records the result of reading a pool's catalog: the catalog, or the reason why there is none. A failure does
// not replace an earlier catalog.
func (s *Store) setTypes(object *karpv1.NodePool, catalog *model.Catalog, why string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	p := s.pools[object.Name]
	if p == nil || p.object.UID != object.UID {
		return
	}
	p.why = why
	if catalog != nil {
		p.catalog = catalog
	}
	s.syncPool(object.Name)
}
