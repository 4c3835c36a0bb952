package world

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// Kubelets report, and end the pods that are deleted, unless they are silent or their machine is gone. The node lifecycle
// controller of Kubernetes observes that.

const (
	// silenceAfter is how long a kubelet may be silent before its node's condition Ready becomes Unknown
	// (node-monitor-grace-period).
	silenceAfter = 40 * time.Second
	// lostAfter is how long the pods of an unreachable node are kept, according to their default toleration.
	lostAfter = 5 * time.Minute
	// illCondition is the node condition that requires repair, besides Ready.
	illCondition = "HardwareBroken"
)

var unreachable = corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}

// RepairPolicies implements cloud.Repairer.
func (p *provider) RepairPolicies() []cloud.RepairPolicy {
	return []cloud.RepairPolicy{
		{ConditionType: illCondition, ConditionStatus: string(corev1.ConditionTrue), Toleration: 5 * time.Minute},
		{ConditionType: string(corev1.NodeReady), ConditionStatus: string(corev1.ConditionUnknown), Toleration: 10 * time.Minute},
	}
}

// speaks reports whether the machine's kubelet reports.
func (m *machine) speaks() bool { return m.gone.IsZero() && m.muted.IsZero() }

// silentSince returns when it last reported.
func (m *machine) silentSince() time.Time {
	if m.muted.IsZero() || !m.gone.IsZero() && m.gone.Before(m.muted) {
		return m.gone
	}
	return m.muted
}

// machine returns the machine with the ID, also one that is gone.
func (p *provider) machine(id string) *machine {
	if m := p.machines[id]; m != nil {
		return m
	}
	return p.ended[id]
}

// end ends a machine and its cost.
func (p *provider) end(m *machine) {
	if !m.gone.IsZero() {
		return
	}
	delete(p.machines, m.ProviderID)
	m.gone = p.world.Clock.now
	p.ended[m.ProviderID] = m
	if h := p.world.kube.hosts[m.node]; h != nil && len(h.Finalizers) == 0 {
		p.world.api.remove(h.Node) // the cloud's node controller
	}
	p.world.silent(m)
}

// silent lets the consequences of a silence begin.
func (w *World) silent(m *machine) {
	since := m.silentSince()
	still := func(do func(*host)) func() {
		return func() {
			if h := w.kube.hosts[m.node]; h != nil && h.Spec.ProviderID == m.ProviderID && !m.speaks() && m.silentSince().Equal(since) {
				do(h)
			}
		}
	}
	w.Clock.in(silenceAfter, still(func(h *host) { w.ready(h, corev1.ConditionUnknown) }))
	w.Clock.in(lostAfter, still(func(h *host) {
		for _, p := range slices.Clone(h.pods) {
			w.api.delete(p.Pod, nil)
		}
	}))
}

// ready sets the condition Ready of a node, its taint, and the condition Ready of its pods.
func (w *World) ready(h *host, is corev1.ConditionStatus) {
	edit(w.api, h.Node, func(n *corev1.Node) {
		n.Status.Conditions = withCondition(n.Status.Conditions, corev1.NodeReady, is, w.api.seconds().Time)
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&unreachable) })
		if is == corev1.ConditionUnknown {
			n.Spec.Taints = append(n.Spec.Taints, unreachable)
		}
	})
	pods := corev1.ConditionTrue
	if is == corev1.ConditionUnknown {
		pods = corev1.ConditionFalse
	}
	for _, p := range slices.Clone(h.pods) {
		edit(w.api, p.Pod, func(p *corev1.Pod) { w.kube.condition(p, corev1.PodReady, pods, "") })
	}
}

func withCondition(all []corev1.NodeCondition, of corev1.NodeConditionType, is corev1.ConditionStatus, at time.Time) []corev1.NodeCondition {
	all = slices.DeleteFunc(slices.Clone(all), func(c corev1.NodeCondition) bool { return c.Type == of })
	c := corev1.NodeCondition{Type: of, Status: is}
	c.LastTransitionTime.Time = at
	return append(all, c)
}

// mute makes kubelets silent for a while, like a network partition; their machines run.
func (w *World) mute(which, much int) {
	for _, h := range w.some(which) {
		m := w.provider.machine(h.Spec.ProviderID)
		if !m.speaks() {
			continue
		}
		w.log("-- " + h.Name + " falls silent")
		m.muted = w.Clock.now
		w.silent(m)
		w.Clock.in(time.Duration(10+much%900)*time.Second, func() { w.unmute(m) })
	}
}

// unmute makes a kubelet report again. It ends the pods that were deleted meanwhile.
func (w *World) unmute(m *machine) {
	if m.muted.IsZero() {
		return
	}
	m.muted, m.heard = time.Time{}, w.Clock.now
	h := w.kube.hosts[m.node]
	if !m.gone.IsZero() || h == nil {
		return
	}
	w.log("-- " + m.node + " reports again")
	w.ready(h, corev1.ConditionTrue)
	for _, p := range slices.Clone(h.pods) {
		if !p.DeletionTimestamp.IsZero() {
			w.api.remove(p.Pod)
		}
	}
}

// sicken gives nodes a condition that requires repair, for a while.
func (w *World) sicken(which, much int) {
	for _, h := range w.some(which) {
		w.log("-- " + h.Name + " has a condition that calls for repair")
		w.ill(h, corev1.ConditionTrue)
		w.Clock.in(time.Duration(30+much%1200)*time.Second, func() { w.cure(h.Name) })
	}
}

func (w *World) ill(h *host, is corev1.ConditionStatus) {
	edit(w.api, h.Node, func(n *corev1.Node) {
		n.Status.Conditions = withCondition(n.Status.Conditions, illCondition, is, w.api.seconds().Time)
	})
}

func (w *World) cure(node string) {
	h := w.kube.hosts[node]
	if h == nil || !slices.ContainsFunc(h.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == illCondition && c.Status == corev1.ConditionTrue
	}) {
		return
	}
	w.log("-- " + node + " is well again")
	w.ill(h, corev1.ConditionFalse)
}

// perish ends many machines.
func (w *World) perish(which int) {
	for _, h := range w.some(which) {
		w.log("-- the machine of " + h.Name + " is gone")
		w.provider.end(w.provider.machine(h.Spec.ProviderID))
	}
}

// some returns registered nodes: a few, half or all of them.
func (w *World) some(which int) []*host {
	chosen := lie{salt: uint64(which), share: []int{20, 50, 100}[which%3]}
	return slices.DeleteFunc(w.kube.sorted(), func(h *host) bool {
		return h.Labels[karpv1.LabelRegistered] != "true" || !h.DeletionTimestamp.IsZero() || !chosen.about(h.Name)
	})
}

// renewed returns when the kubelet of a node last renewed its Lease, zero for a node that is not there. Kubelets renew
// every 10 seconds.
func (w *World) renewed(node string) time.Time {
	h := w.kube.hosts[node]
	if h == nil {
		return time.Time{}
	}
	m := w.provider.machine(h.Spec.ProviderID)
	if m.speaks() {
		return w.Clock.now.Add(-5 * time.Second)
	}
	return m.silentSince()
}

// doubt draws a wrong reply of the cloud, or nodes that seem or are unhealthy.
func (w *World) doubt(what, which, much int) {
	switch what % 6 {
	case 0, 1, 2:
		w.provider.lie(which, much)
	case 3:
		w.mute(which, much)
	case 4:
		w.sicken(which, much)
	case 5:
		w.perish(which)
	}
}

// settleDoubts ends all wrong replies, silences and conditions.
func (w *World) settleDoubts() {
	w.provider.truth()
	for _, h := range w.kube.sorted() {
		w.cure(h.Name)
	}
	for _, m := range w.provider.known() {
		w.unmute(m)
	}
}
