package convert

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
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

// Twin is an object with the provider ID of another object's machine, or one that does not count for another reason.
type Twin struct {
	Object metav1.Object
	Why    model.Rejection
}

// Beside is what the representation of a machine depends on besides its objects.
type Beside struct {
	// CSINode returns the CSINode of a node; nil if there is none.
	CSINode func(node string) *storagev1.CSINode
	// Taken reports whether there is a node of that name that is not the node of the claim of that name.
	Taken func(name string) bool
}

// Represent returns what stands for the machine in the model, and the objects that do not count or lack something.
func (m *Machine) Represent(v *Vocabulary, beside Beside) (specs []model.NodeSpec, refused []Twin) {
	claim, node := m.Claim(), m.Node()
	if claim == nil {
		return m.unclaimed(v, beside)
	}
	claims, nodes := m.Twins()
	refused = append(claims, nodes...)
	if node == nil && beside.Taken(claim.Name) {
		return nil, append(refused, Twin{claim, *refuse("metadata.name",
			"a node of that name exists that is not the claim's; delete one of them")})
	}
	spec, why := Node(node, claim, v)
	if why != nil {
		return nil, append(refused, Twin{claim, *why})
	}
	if node != nil {
		AddAttachLimits(&spec, beside.CSINode(node.Name))
	}
	return []model.NodeSpec{spec}, refused
}

// unclaimed represents nodes without a claim. Each counts, because pods may run on it.
func (m *Machine) unclaimed(v *Vocabulary, beside Beside) (specs []model.NodeSpec, refused []Twin) {
	seen := Machine{Nodes: slices.DeleteFunc(slices.Clone(m.Nodes), func(n *corev1.Node) bool { return !Visible(n) })}
	slices.SortFunc(seen.Nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, node := range seen.Nodes {
		spec, _ := Node(node, nil, v)
		AddAttachLimits(&spec, beside.CSINode(node.Name))
		specs = append(specs, spec)
		// The node is managed, but its claim cannot be found.
		if node.Spec.ProviderID == "" && node.Labels[karpv1.LabelNodePool] != "" {
			refused = append(refused, Twin{node, *refuse("spec.providerID",
				"is empty, so its claim is unknown; pods may run on it, and it is never removed")})
		}
	}
	_, doubles := seen.Twins()
	for _, double := range doubles {
		double.Why.Reason += "; they have no claim: pods may run on both, and neither is removed"
		refused = append(refused, double)
	}
	return specs, refused
}

// Visible returns false for a node whose claim does not know it yet.
func Visible(node *corev1.Node) bool {
	return node.Labels[karpv1.LabelNodePool] == "" || Registered(node)
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
