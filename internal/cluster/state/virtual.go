package state

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// virtual holds the virtual pods of one owner in the builder, by UID, and the fingerprint of their source. on are the
// objects that their conversion depends on.
type virtual struct {
	fingerprint, kind string
	pods              []*corev1.Pod
	on                map[Ref]bool
	specs             map[string]model.PodSpec
	refused           *model.Rejection
}

// SetVirtual replaces the virtual pods of an owner by the pods that make returns; nil removes them. An equal fingerprint
// means that nothing has changed: make is not called then. It returns why the pods cannot be placed anywhere, nil if they
// can: then there are none of them. The pods are of the given kind (model.PodSpec.Virtual).
func (s *State) SetVirtual(kind, owner, fingerprint string, make func() []*corev1.Pod) *model.Rejection {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	before := s.virtual[owner]
	if before == nil && make == nil {
		return nil
	}
	if before != nil && make != nil && before.fingerprint == fingerprint {
		return before.refused
	}
	if make == nil {
		return s.convertVirtual(owner, nil, before)
	}
	return s.convertVirtual(owner, &virtual{fingerprint: fingerprint, kind: kind, pods: make()}, before)
}

// convertVirtual replaces the virtual pods of an owner by others; nil stands for none.
func (s *State) convertVirtual(owner string, now, before *virtual) (refused *model.Rejection) {
	specs := map[string]model.PodSpec{}
	if now != nil {
		now.convert(s, before)
		specs, refused = now.specs, now.refused
	}
	if before != nil {
		for uid := range before.specs {
			if _, stays := specs[uid]; !stays {
				s.builder.DeletePod(uid)
			}
		}
	}
	for _, spec := range specs {
		s.builder.UpsertPod(spec)
	}
	if delete(s.virtual, owner); now != nil {
		s.virtual[owner] = now
	}
	s.notify(PodsPending | PodsMoved)
	return refused
}

// reconvertVirtual converts the virtual pods again whose conversion depends on an object.
func (s *State) reconvertVirtual(at Ref) {
	for owner, v := range s.virtual {
		if v.on[at] {
			s.convertVirtual(owner, &virtual{fingerprint: v.fingerprint, kind: v.kind, pods: v.pods}, v)
		}
	}
}

// convert converts the pods as the API server would store them. A pod that existed before is still where the last plan
// had it.
func (v *virtual) convert(s *State, before *virtual) {
	v.specs, v.on = map[string]model.PodSpec{}, map[Ref]bool{}
	for _, pod := range v.pods {
		pod = pod.DeepCopy()
		v.on[rangesOf(pod.Namespace)] = true
		if class := pod.Spec.RuntimeClassName; class != nil {
			v.on[Ref{RuntimeClasses, types.NamespacedName{Name: *class}}] = true
		}
		convert.Admit(pod, s.dependencies.Admission)
		spec, disposition, on := s.convertPod(pod)
		for _, at := range on {
			v.on[at] = true
		}
		if disposition != convert.Pending {
			continue
		}
		if spec.Rejected != nil {
			v.refused, v.specs = spec.Rejected, nil
			return
		}
		spec.Virtual, spec.EvictionCost = v.kind, 0
		if before != nil {
			spec.Nominated = before.specs[spec.UID].Nominated
		}
		v.specs[spec.UID] = spec
	}
}

// rangesOf stands for all LimitRanges of a namespace.
func rangesOf(namespace string) Ref {
	return Ref{LimitRanges, types.NamespacedName{Namespace: namespace}}
}

// Seat records on which node the last plan has each of the virtual pods, by UID. Pods that are not in it have no node.
func (s *State) Seat(nodes map[string]string) {
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
