package offline

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// machinesOf returns the claims and nodes by provider ID, excluding those without one.
func (o *Manifests) machinesOf() map[string]*convert.Machine {
	machines := make(map[string]*convert.Machine, len(o.nodes))
	at := func(id string) *convert.Machine {
		m := machines[id]
		if m == nil {
			m = &convert.Machine{}
			machines[id] = m
		}
		return m
	}
	for _, c := range o.claims {
		if id := c.object.Status.ProviderID; id != "" {
			m := at(id)
			m.Claims = append(m.Claims, c.object)
		}
	}
	for _, n := range o.nodes {
		if id := n.object.Spec.ProviderID; id != "" {
			m := at(id)
			m.Nodes = append(m.Nodes, n.object)
		}
	}
	return machines
}

// claimNodes creates an initialized claim for each node of a file that belongs to a pool and has no claim. Of two
// nodes of one machine it uses the one that counts.
func (o *Manifests) claimNodes() {
	machines := o.machinesOf()
	for _, n := range o.nodes {
		node := n.object
		if n.live || node.Labels[karpv1.LabelNodePool] == "" {
			continue
		}
		if id := node.Spec.ProviderID; id == "" {
			node.Spec.ProviderID = "simulated:///" + node.Name
		} else if m := machines[id]; m.Claim() != nil || m.Node() != node {
			continue
		}
		o.claims = append(o.claims, sourced[*karpv1.NodeClaim]{claimOf(node), n.origin, n.live})
	}
}

// claimOf returns the claim of a node that has been initialized since its creation.
func claimOf(node *corev1.Node) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: node.Name, UID: "claim/" + node.UID, Labels: node.Labels, CreationTimestamp: node.CreationTimestamp}}
	claim.Status.ProviderID, claim.Status.NodeName = node.Spec.ProviderID, node.Name
	for _, kind := range []string{karpv1.ConditionLaunched, karpv1.ConditionRegistered, karpv1.ConditionInitialized} {
		claim.StatusConditions().SetTrue(kind)
	}
	for i := range claim.Status.Conditions {
		claim.Status.Conditions[i].LastTransitionTime = node.CreationTimestamp
	}
	return claim
}

// joinMachines finds the node of each claim. Like the controller, it excludes claims and nodes that show the machine
// of another one. Nodes of a machine without a claim are kept, because pods may run on them.
func (w *InputSet) joinMachines() {
	machines, out := w.machinesOf(), map[metav1.Object]convert.Twin{}
	w.nodeOf = make(map[string]*corev1.Node, len(w.nodes))
	for id, m := range machines {
		if node := m.Node(); node != nil {
			w.nodeOf[id] = node
		}
		if m.Claim() == nil || len(m.Claims) == 1 && len(m.Nodes) < 2 {
			continue
		}
		claims, nodes := m.Twins()
		for _, t := range append(claims, nodes...) {
			out[t.Object] = t
		}
	}
	if len(out) > 0 {
		w.claims = without(w, w.claims, out)
		w.nodes = without(w, w.nodes, out)
	}
}

// without removes the given objects and reports why.
func without[T metav1.Object](w *InputSet, list []sourced[T], out map[metav1.Object]convert.Twin) []sourced[T] {
	kept := list[:0:0]
	for _, f := range list {
		if t, twin := out[f.object]; twin {
			w.problem(fmt.Errorf("%s: %s: %s", f.origin, t.Why.Field, t.Why.Reason))
			continue
		}
		kept = append(kept, f)
	}
	return kept
}

// machines returns all machines in the order of their claims and nodes, the origins of these, and the names of nodes that
// no claim without a node may have.
func (w *InputSet) machines() (list []*convert.Machine, origins map[metav1.Object]string, taken map[string]bool) {
	origins, taken = map[metav1.Object]string{}, map[string]bool{}
	byID, listed := w.machinesOf(), map[*convert.Machine]bool{}
	at := func(id string, alone convert.Machine) {
		m := byID[id]
		if m == nil {
			m = &alone
		}
		if !listed[m] {
			listed[m] = true
			list = append(list, m)
		}
	}
	for _, c := range w.claims {
		origins[c.object] = c.origin
		at(c.object.Status.ProviderID, convert.Machine{Claims: []*karpv1.NodeClaim{c.object}})
	}
	for _, n := range w.nodes {
		origins[n.object] = n.origin
		m := byID[n.object.Spec.ProviderID]
		taken[n.object.Name] = convert.Visible(n.object) || m != nil && len(m.Claims) > 0
		at(n.object.Spec.ProviderID, convert.Machine{Nodes: []*corev1.Node{n.object}})
	}
	return list, origins, taken
}
