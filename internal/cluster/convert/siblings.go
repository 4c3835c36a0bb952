package convert

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// siblings caches the conversions of constraints.
//
// Representation: pods of one controller usually have identical constraints. The constraints of a controller's last
// pod are kept with their conversion, and the next pod with the same constraints shares the result, which is never
// modified. Invariant: a shared result equals a new conversion; constraints that depend on the pod's own labels are
// never shared. Cost: one comparison, no allocation; mostSiblings controllers are remembered.
type siblings struct {
	spread map[sibling]spreadOf
}

// sibling identifies pods that may share a conversion.
type sibling struct {
	namespace  string
	controller types.UID
}

type spreadOf struct {
	constraints []corev1.TopologySpreadConstraint
	list        []model.Spread
}

const mostSiblings = 4096

func siblingOf(pod *corev1.Pod) sibling {
	s := sibling{namespace: pod.Namespace}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		s.controller = owner.UID
	}
	return s
}

// spreads returns the conversion of the same constraints of a sibling; nil if there is none.
func (s *siblings) spreads(pod *corev1.Pod, constraints []corev1.TopologySpreadConstraint) []model.Spread {
	known := s.spread[siblingOf(pod)]
	if len(known.constraints) != len(constraints) {
		return nil
	}
	for i := range constraints {
		if !sameConstraint(&known.constraints[i], &constraints[i]) {
			return nil
		}
	}
	return known.list
}

func (s *siblings) remember(pod *corev1.Pod, constraints []corev1.TopologySpreadConstraint, list []model.Spread) {
	if s.spread == nil || len(s.spread) >= mostSiblings {
		s.spread = map[sibling]spreadOf{}
	}
	s.spread[siblingOf(pod)] = spreadOf{constraints, list}
}

// sameConstraint reports whether the constraints are equivalent for pods of one namespace, whatever their labels.
func sameConstraint(a, b *corev1.TopologySpreadConstraint) bool {
	return a.MaxSkew == b.MaxSkew && a.TopologyKey == b.TopologyKey && a.WhenUnsatisfiable == b.WhenUnsatisfiable &&
		len(a.MatchLabelKeys)+len(b.MatchLabelKeys) == 0 && same(a.MinDomains, b.MinDomains) &&
		same(a.NodeAffinityPolicy, b.NodeAffinityPolicy) && same(a.NodeTaintsPolicy, b.NodeTaintsPolicy) &&
		sameSelector(a.LabelSelector, b.LabelSelector)
}

func same[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func sameSelector(a, b *metav1.LabelSelector) bool {
	if a == nil || b == nil {
		return a == b
	}
	return maps.Equal(a.MatchLabels, b.MatchLabels) && slices.EqualFunc(a.MatchExpressions, b.MatchExpressions,
		func(x, y metav1.LabelSelectorRequirement) bool {
			return x.Key == y.Key && x.Operator == y.Operator && slices.Equal(x.Values, y.Values)
		})
}
