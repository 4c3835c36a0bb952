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

// virtuals holds the virtual pods by the UID of their owner.
type virtuals struct {
	*dependencies
	owners map[string]*virtual
}

// replace replaces the virtual pods of an owner by others; nil stands for none.
func (v *virtuals) replace(owner string, now, before *virtual) (refused *model.Rejection) {
	specs := map[string]model.PodSpec{}
	if now != nil {
		now.convert(v.dependencies)
		specs, refused = now.specs, now.refused
	}
	if before != nil {
		for uid := range before.specs {
			if _, stays := specs[uid]; !stays {
				v.builder.DeletePod(uid)
			}
		}
	}
	for _, spec := range specs {
		v.builder.UpsertPod(spec)
	}
	if delete(v.owners, owner); now != nil {
		v.owners[owner] = now
	}
	v.notify(PodsPending | PodsMoved)
	return refused
}

// convertAgain converts the virtual pods again whose conversion depends on an object.
func (v *virtuals) convertAgain(at Ref) {
	for owner, before := range v.owners {
		if before.on[at] {
			v.replace(owner, &virtual{fingerprint: before.fingerprint, kind: before.kind, pods: before.pods}, before)
		}
	}
}

// convert converts the pods as the API server would store them.
func (v *virtual) convert(d *dependencies) {
	v.specs, v.on = map[string]model.PodSpec{}, map[Ref]bool{}
	for _, pod := range v.pods {
		pod = pod.DeepCopy()
		v.on[rangesOf(pod.Namespace)] = true
		if class := pod.Spec.RuntimeClassName; class != nil {
			v.on[Ref{RuntimeClasses, types.NamespacedName{Name: *class}}] = true
		}
		convert.Admit(pod, d.around.Admission)
		spec, disposition, on := d.convertPod(pod)
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
		v.specs[spec.UID] = spec
	}
}

// rangesOf stands for all LimitRanges of a namespace.
func rangesOf(namespace string) Ref {
	return Ref{LimitRanges, types.NamespacedName{Namespace: namespace}}
}
