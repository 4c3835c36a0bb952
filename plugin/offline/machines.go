package offline

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// machinesOf returns the claims and nodes by provider ID, excluding those without one.
func (o *objects) machinesOf() map[string]*convert.Machine {
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
func (o *completion) claimNodes() {
	machines, named := o.machinesOf(), map[string]bool{}
	for _, c := range o.claims {
		named[c.object.Name] = true
	}
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
		claim := claimOf(node)
		for named[claim.Name] {
			claim.Name += "-assumed"
		}
		o.claims = append(o.claims, sourced[*karpv1.NodeClaim]{claim, n.origin, n.live})
	}
}

// assumed reports whether the claim is one of claimNodes.
func assumed(claim *karpv1.NodeClaim) bool { return strings.HasPrefix(string(claim.UID), assumedUID) }

// assumedUID precedes the UID of the node.
const assumedUID = "claim/"

// claimOf returns the claim of a node that has been initialized since its creation.
func claimOf(node *corev1.Node) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: node.Name, UID: assumedUID + node.UID, Labels: node.Labels, CreationTimestamp: node.CreationTimestamp}}
	claim.Status.ProviderID, claim.Status.NodeName = node.Spec.ProviderID, node.Name
	for _, kind := range []string{karpv1.ConditionLaunched, karpv1.ConditionRegistered, karpv1.ConditionInitialized} {
		claim.StatusConditions().SetTrue(kind)
	}
	for i := range claim.Status.Conditions {
		claim.Status.Conditions[i].LastTransitionTime = node.CreationTimestamp
	}
	return claim
}
