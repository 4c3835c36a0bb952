package convert

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Machine is the claims and nodes that show one provider ID. Usually that is one of each. Of more claims, the one that owns a
// node of the machine counts, else the eldest; of more nodes, the one that this claim names, else the eldest. So it does not
// matter in which order they were seen, and a provider ID that was edited does not take a machine from its claim.
type Machine struct {
	Claims []*karpv1.NodeClaim
	Nodes  []*corev1.Node
}

// Claim is the machine's claim; nil if there is none.
func (m *Machine) Claim() *karpv1.NodeClaim {
	if len(m.Claims) < 2 {
		return eldest(m.Claims)
	}
	owners := slices.DeleteFunc(slices.Clone(m.Claims), func(claim *karpv1.NodeClaim) bool {
		return !slices.ContainsFunc(m.Nodes, func(node *corev1.Node) bool { return karpv1.OwnsNode(claim, node) })
	})
	if len(owners) > 0 {
		return eldest(owners)
	}
	return eldest(m.Claims)
}

// Node is the node of the machine's claim, without a claim the eldest; nil if there is none.
func (m *Machine) Node() *corev1.Node {
	if claim := m.Claim(); claim != nil {
		for _, node := range m.Nodes {
			if node.Name == claim.Status.NodeName {
				return node
			}
		}
	}
	return eldest(m.Nodes)
}

// Twins are the other claims and nodes, by age, and why they do not count.
func (m *Machine) Twins() (claims, nodes []Twin) {
	return twins(m.Claims, m.Claim(), "status.providerID", "claim"), twins(m.Nodes, m.Node(), "spec.providerID", "node")
}

// Twin is an object that shows the machine of another.
type Twin struct {
	Object metav1.Object
	Why    model.Rejection
}

func twins[T metav1.Object](all []T, counts T, field, kind string) []Twin {
	var list []Twin
	for _, o := range all {
		if o.GetName() != counts.GetName() {
			list = append(list, Twin{o, *refuse(field, "%s %s has the same; a machine has one %s", kind, counts.GetName(), kind)})
		}
	}
	slices.SortFunc(list, func(a, b Twin) int { return compareAge(a.Object, b.Object) })
	return list
}

// eldest is the zero value for none.
func eldest[T metav1.Object](all []T) (first T) {
	for i, o := range all {
		if i == 0 || compareAge(o, first) < 0 {
			first = o
		}
	}
	return first
}

func compareAge(a, b metav1.Object) int {
	created := a.GetCreationTimestamp()
	return cmp.Or(created.Compare(b.GetCreationTimestamp().Time), strings.Compare(a.GetName(), b.GetName()))
}
