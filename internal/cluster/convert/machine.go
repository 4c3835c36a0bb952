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

// Machine holds the claims and nodes with one provider ID, usually one of each. Of several claims, the one that owns
// a node of the machine counts, else the oldest. Of several nodes, the one that this claim names counts, else the
// oldest. So the order of events does not matter, and an edited provider ID does not take a machine from its claim.
type Machine struct {
	Claims []*karpv1.NodeClaim
	Nodes  []*corev1.Node
}

// Claim returns the machine's claim; nil if there is none.
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

// Node returns the node of the machine's claim, or the oldest node without a claim; nil if there is none.
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

// Twins returns the other claims and nodes, by age, and why they do not count.
func (m *Machine) Twins() (claims, nodes []Twin) {
	return twins(m.Claims, m.Claim(), "status.providerID", "claim"), twins(m.Nodes, m.Node(), "spec.providerID", "node")
}

// Twin is an object with the provider ID of another object's machine.
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

// eldest returns the oldest object, or the zero value if there is none.
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
