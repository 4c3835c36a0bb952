package world

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// owner is a controller of pods: it keeps their number.
type owner struct {
	template *corev1.Pod
	replicas int
	pods     map[types.UID]*corev1.Pod
}

// templateOf returns what the controller of a pod makes others from.
func templateOf(pod *corev1.Pod) *corev1.Pod {
	p := pod.DeepCopy()
	p.ObjectMeta = metav1.ObjectMeta{Namespace: p.Namespace, Labels: p.Labels, Annotations: p.Annotations, OwnerReferences: p.OwnerReferences}
	p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	return p
}

// Scale sets the number of pods of the template's controller.
func (w *World) Scale(template *corev1.Pod, replicas int) {
	o := w.ownerOf(template)
	if w.ask(template, replicas) {
		w.Clock.in(w.between(0, 20*time.Second), func() { w.scale(o, template, replicas) }) // its controller is slow
		return
	}
	w.scale(o, template, replicas)
}

func (w *World) scale(o *owner, template *corev1.Pod, replicas int) {
	o.template, o.replicas = template, replicas
	there := o.deletable()
	for _, p := range there[:max(0, len(there)-replicas)] {
		w.api.delete(p, nil)
	}
	w.fill(o)
}

// fill creates the missing pods of a controller.
func (w *World) fill(o *owner) {
	for range o.replicas - len(o.deletable()) {
		w.made++
		p := o.template.DeepCopy()
		p.Name = fmt.Sprintf("%s-%d", p.OwnerReferences[0].Name, w.made)
		w.api.create(p)
	}
}

// ownerOf returns the controller of a pod.
func (w *World) ownerOf(pod *corev1.Pod) *owner {
	uid := pod.OwnerReferences[0].UID
	if w.owners[uid] == nil {
		w.owners[uid] = &owner{pods: map[types.UID]*corev1.Pod{}}
	}
	return w.owners[uid]
}

// owned is called with each change of a pod.
func (w *World) owned(before, after client.Object) {
	pod, is := cmp.Or[any](after, before).(*corev1.Pod)
	if !is || len(pod.OwnerReferences) == 0 {
		return
	}
	o := w.ownerOf(pod)
	if after == nil {
		delete(o.pods, pod.UID)
		return
	}
	o.pods[pod.UID] = pod
	if o.template == nil { // there from the start
		o.template = templateOf(pod)
	}
	if !w.begun {
		o.replicas = len(o.pods)
	} else if !pod.DeletionTimestamp.IsZero() && before.GetDeletionTimestamp().IsZero() {
		w.Clock.in(0, func() { w.fill(o) })
	}
}

// Count returns the number of pods of a controller, and of those that are on a node.
func (w *World) Count(uid string) (all, bound int) {
	o := w.owners[types.UID(uid)]
	if o == nil {
		return 0, 0
	}
	for _, p := range o.deletable() {
		all++
		bound += min(1, len(p.Spec.NodeName))
	}
	return all, bound
}

// deletable returns the pods of a controller that are not being deleted, in the order in which a ReplicaSet deletes
// them: pending ones first, then those that share their node with most others of the controller, then the newest.
func (o *owner) deletable() []*corev1.Pod {
	var all []*corev1.Pod
	rank := map[string]int{}
	for _, p := range o.pods {
		if p.DeletionTimestamp.IsZero() {
			all = append(all, p)
			rank[p.Spec.NodeName]++
		}
	}
	bound := func(p *corev1.Pod) int { return min(1, len(p.Spec.NodeName)) }
	slices.SortFunc(all, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(bound(a), bound(b)), cmp.Compare(rank[b.Spec.NodeName], rank[a.Spec.NodeName]),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	return all
}
