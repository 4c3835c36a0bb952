package fleetsim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Create creates a pending pod, or one that kube-scheduler binds at once.
func (l *Cluster) Create(p model.PodSpec) {
	p.Created, p.State, p.Node = l.Now, model.Pending, ""
	l.add(&p)
	if !l.place(&p) {
		l.waiting = append(l.waiting, &p)
		l.builder.UpsertPod(p)
	}
}

// Delete removes a pod, which no one creates again.
func (l *Cluster) Delete(uid string) {
	p := l.pods[uid]
	if p == nil {
		return
	}
	if p.Node != "" {
		h := l.hosts[p.Node]
		h.remove(p)
		l.noteEvent(h)
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(other *model.PodSpec) bool { return other.UID == uid })
	l.remove(p)
}

func (l *Cluster) add(p *model.PodSpec) {
	l.pods[p.UID] = p
	of := l.owned[p.Controller.UID]
	if of == nil {
		of = map[string]*model.PodSpec{}
		l.owned[p.Controller.UID] = of
	}
	of[p.UID] = p
}

func (l *Cluster) remove(p *model.PodSpec) {
	delete(l.pods, p.UID)
	delete(l.owned[p.Controller.UID], p.UID)
	l.builder.DeletePod(p.UID)
}

// Count returns the number of pods of a controller, and of those that are on a node.
func (l *Cluster) Count(controller string) (all, bound int) {
	for _, p := range l.owned[controller] {
		bound += min(1, len(p.Node))
	}
	return len(l.owned[controller]), bound
}

// deletable returns the pods of a controller, in the order in which a ReplicaSet deletes them: pending ones first, then those
// that share their node with most others of the controller, then the newest.
func (l *Cluster) deletable(controller string) []*model.PodSpec {
	var all []*model.PodSpec
	rank := map[string]int{}
	for _, p := range l.owned[controller] {
		all = append(all, p)
		rank[p.Node]++
	}
	bound := func(p *model.PodSpec) int { return min(1, len(p.Node)) }
	slices.SortFunc(all, func(a, b *model.PodSpec) int {
		return cmp.Or(cmp.Compare(bound(a), bound(b)), cmp.Compare(rank[b.Node], rank[a.Node]),
			b.Created.Compare(a.Created), cmp.Compare(a.UID, b.UID))
	})
	return all
}

// Scale sets the number of pods of the template's controller.
func (l *Cluster) Scale(template model.PodSpec, replicas int) {
	there := l.deletable(template.Controller.UID)
	for _, p := range there[:max(0, len(there)-replicas)] {
		l.Delete(p.UID)
	}
	for range replicas - len(there) {
		l.made++
		p := template
		p.UID, p.Name = fmt.Sprintf("%s-%d", p.Controller.UID, l.made), fmt.Sprintf("%s-%d", p.Controller.Name, l.made)
		l.Create(p)
	}
}

// Spot returns the names of the nodes of spot capacity that take pods, in order.
func (l *Cluster) Spot() []string {
	var names []string
	for _, h := range l.sorted() {
		if h.Stage == model.Initialized && !h.Deleting && h.Labels[model.LabelCapacityType] == "spot" {
			names = append(names, h.Name)
		}
	}
	return names
}

// Interrupt ends a node, as the notice of a spot interruption does: its claim is deleted, and it is drained.
func (l *Cluster) Interrupt(node string) {
	if h := l.hosts[node]; h != nil {
		delete(l.orders, node)
		l.edit(h.Claim, func(n *model.NodeSpec) { n.Deleting, n.Disrupted = true, true })
	}
}
