package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// virtual holds the virtual pods of one owner in the builder, by UID, and the fingerprint of their source.
type virtual struct {
	fingerprint string
	specs       map[string]model.PodSpec
	refused     *model.Rejection
}

// SetVirtual replaces the virtual pods of an owner by the pods that make returns; nil removes them. An equal fingerprint
// means that nothing has changed: make is not called then. It returns why the pods cannot be placed anywhere, nil if they
// can: then there are none of them. The pods are of the given kind (model.PodSpec.Virtual).
func (s *Store) SetVirtual(kind, owner, fingerprint string, make func() []*corev1.Pod) *model.Rejection {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	before := s.virtual[owner]
	if before == nil && make == nil {
		return nil
	}
	if before != nil && make != nil && before.fingerprint == fingerprint {
		return before.refused
	}
	now := &virtual{fingerprint: fingerprint, specs: map[string]model.PodSpec{}}
	if make != nil {
		now.convert(s, kind, before, make())
	}
	if before != nil {
		for uid := range before.specs {
			if _, stays := now.specs[uid]; !stays {
				s.builder.DeletePod(uid)
			}
		}
	}
	for _, spec := range now.specs {
		s.builder.UpsertPod(spec)
	}
	if delete(s.virtual, owner); make != nil {
		s.virtual[owner] = now
	}
	s.notify(PodsPending | PodsMoved)
	return now.refused
}

// convert converts the pods. A pod that existed before is still where the last plan had it.
func (v *virtual) convert(s *Store, kind string, before *virtual, pods []*corev1.Pod) {
	for _, pod := range pods {
		spec, disposition, _ := s.convertPod(pod)
		if disposition != convert.Pending {
			continue
		}
		if spec.Rejected != nil {
			v.refused, v.specs = spec.Rejected, nil
			return
		}
		spec.Virtual, spec.EvictionCost = kind, 0
		if before != nil {
			spec.Nominated = before.specs[spec.UID].Nominated
		}
		v.specs[spec.UID] = spec
	}
}

// Seat records on which node the last plan has each of the virtual pods, by UID. Pods that are not in it have no node.
func (s *Store) Seat(nodes map[string]string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, v := range s.virtual {
		for uid, spec := range v.specs {
			if spec.Nominated != nodes[uid] {
				spec.Nominated = nodes[uid]
				v.specs[uid] = spec
				s.builder.UpsertPod(spec)
			}
		}
	}
}

// Notify tells subscribers of a change that the store does not see itself.
func (s *Store) Notify(change Change) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.notify(change)
}
