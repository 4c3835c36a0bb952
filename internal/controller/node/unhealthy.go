package node

import (
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// unhealthyCondition describes the unhealthy condition of a node and until when it is tolerated. The zero value means
// healthy. Values are comparable with ==.
type unhealthyCondition struct {
	condition      corev1.NodeConditionType
	status         corev1.ConditionStatus
	toleratedUntil time.Time
}

func (i unhealthyCondition) found() bool { return i.condition != "" }

// unhealthy returns the unhealthy condition, among those that the policies name, whose toleration ends first.
func unhealthy(node *corev1.Node, policies []cloud.RepairPolicy) unhealthyCondition {
	var worst unhealthyCondition
	for _, policy := range policies {
		for i := range node.Status.Conditions {
			c := &node.Status.Conditions[i]
			if string(c.Type) != policy.ConditionType || string(c.Status) != policy.ConditionStatus {
				continue
			}
			due := c.LastTransitionTime.UTC().Add(policy.Toleration)
			if !worst.found() || due.Before(worst.toleratedUntil) {
				worst = unhealthyCondition{condition: c.Type, status: c.Status, toleratedUntil: due}
			}
		}
	}
	return worst
}

// countUnhealthy returns the number of unhealthy nodes, tolerated or not.
func countUnhealthy(nodes []corev1.Node, policies []cloud.RepairPolicy) int {
	count := 0
	for i := range nodes {
		if unhealthy(&nodes[i], policies).found() {
			count++
		}
	}
	return count
}

// policiesOf returns the policies of the provider as the rules of a pool change them.
func policiesOf(provider []cloud.RepairPolicy, rules karpv1.RepairRules) []cloud.RepairPolicy {
	if len(rules.Conditions) == 0 {
		return provider
	}
	list := slices.Clone(provider)
	for _, c := range rules.Conditions {
		list = slices.DeleteFunc(list, func(p cloud.RepairPolicy) bool { return p.ConditionType == c.Type && p.ConditionStatus == c.Status })
		if !c.Never {
			list = append(list, cloud.RepairPolicy{ConditionType: c.Type, ConditionStatus: c.Status, Toleration: c.Toleration})
		}
	}
	return list
}

// snake converts a CamelCase word to snake case: KernelDeadlock becomes kernel_deadlock, GPUReady becomes gpu_ready.
func snake(word string) string {
	var text strings.Builder
	runes := []rune(word)
	for i, r := range runes {
		begins := i > 0 && unicode.IsUpper(r) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if begins && runes[i-1] != '_' {
			text.WriteByte('_')
		}
		text.WriteRune(unicode.ToLower(r))
	}
	return text.String()
}
