package cluster

import (
	"reflect"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// pool is what the store knows of a pool.
type pool struct {
	object *karpv1.NodePool
	// scheduled: a budget changes with the time.
	scheduled bool
	// catalogue is the last that was read, nil if none was; why says so.
	catalogue *model.Catalogue
	why       string
	refusal   refusal
	// told is as the builder knows it, nil if it does not.
	told *model.PoolSpec
}

func (s *Store) applyPool(name string, e *entry) {
	object, _ := e.now().(*karpv1.NodePool)
	p := s.pools[name]
	if object == nil {
		if p != nil {
			delete(s.pools, name)
			s.builder.DeletePool(name)
			s.catalogues.drop(name)
			s.wake(PoolsChanged)
		}
		return
	}
	if p == nil || p.object.UID != object.UID {
		s.pools[name] = &pool{why: "the catalogue of instance types has not been read yet"}
		p = s.pools[name]
	}
	// Kubelet settings of its own are part of what a pool asks for, and no part of its generation.
	news := p.object == nil || p.object.Generation != object.Generation ||
		p.object.Annotations[karpv1.AnnotationKubelet] != object.Annotations[karpv1.AnnotationKubelet]
	p.object, p.scheduled = object, convert.Scheduled(object)
	if news {
		p.refusal = refusal{}
	}
	class := object.Spec.Template.Spec.NodeClassRef
	if news && s.vocabulary.Owns(class.Group, class.Kind) {
		s.catalogues.want(name)
	}
	s.tellPool(name)
}

// tellPool tells the builder of the pool, if there is news. Encoding a pool anew is not cheap, and its status changes
// often.
func (s *Store) tellPool(name string) {
	p := s.pools[name]
	spec := convert.Pool(p.object, s.vocabulary)
	spec.Budgets, spec.BudgetError = convert.Budgets(p.object, s.at)
	p.refusal.block(&spec, s.at)
	convert.AddCatalogue(&spec, p.catalogue, p.why)
	if p.told != nil && samePool(*p.told, spec) {
		return
	}
	p.told = &spec
	s.builder.UpsertPool(spec)
	s.wake(PoolsChanged)
}

// samePool compares catalogues by identity: the same pointer means the same content.
func samePool(a, b model.PoolSpec) bool {
	if a.Catalogue != b.Catalogue {
		return false
	}
	a.Catalogue, b.Catalogue = nil, nil
	return reflect.DeepEqual(a, b)
}

// stock takes the outcome of reading a pool's catalogue: the catalogue, or why there is none. After a good reading a
// bad one changes nothing.
func (s *Store) stock(object *karpv1.NodePool, catalogue *model.Catalogue, why string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	p := s.pools[object.Name]
	if p == nil || p.object.UID != object.UID {
		return
	}
	p.why = why
	if catalogue != nil {
		p.catalogue = catalogue
	}
	s.tellPool(object.Name)
}
