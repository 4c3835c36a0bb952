package e2e

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Of pods with a spread constraint, no more are nominated to a node at a time than the constraint admits beside each
// other (crowd, in internal/engine/plan), and none while they may take the capacity of pods of lower priority (outrank).
// kube-scheduler binds the others to any node where they are admissible, and it reserves the capacity of a nominated pod
// for no pod of higher priority. A pod that loses its capacity to one of them needs another node. This file recognizes
// such launches: every pod of the launch lost its node in this way, and fits on it otherwise. Every other launch beyond
// the plan is a failure.

// assignment is the place of a pod in the plan. nominated reports whether kube-scheduler knows it.
type assignment struct {
	node      string
	nominated bool
}

// seating is the plan of a wave, and where the pods of the world are after kube-scheduler has bound them.
type seating struct {
	planned map[types.UID]assignment
	pods    []*corev1.Pod
	nodes   []*corev1.Node
}

// assignments returns the places of the planned pods that are not bound yet.
func (a *agreement) assignments() map[types.UID]assignment {
	nodes := map[string]string{}
	for _, claim := range a.ledger.claimsOf(a.name) {
		nodes[claim.object.Name] = claim.object.Status.NodeName
	}
	assigned := map[types.UID]assignment{}
	for _, pod := range a.waiting() {
		node, nominated := pod.Status.NominatedNodeName, true
		if node == "" {
			node, nominated = nodes[plannedClaim(a.ledger.saidOf(pod.UID))], false
		}
		if node != "" {
			assigned[pod.UID] = assignment{node, nominated}
		}
	}
	return assigned
}

// plannedClaim returns the claim that is named by the last event about a pod that is placed.
func plannedClaim(said []string) string {
	for _, text := range slices.Backward(said) {
		if strings.HasPrefix(text, placed+": ") {
			_, claim, _ := strings.Cut(text, "nodeclaim/")
			claim, _, _ = strings.Cut(claim, ",")
			return claim
		}
	}
	return ""
}

// claimsEver returns the claims that were ever created.
func (a *agreement) claimsEver() map[types.UID]bool {
	claims := map[types.UID]bool{}
	for _, claim := range a.ledger.claimsOf(a.name) {
		claims[claim.object.UID] = true
	}
	return claims
}

// checkSecondRound fails if claims were created since there were these, except for pods that were crowded out of their
// places in the plan. It counts the latter claims.
func (a *agreement) checkSecondRound(before map[types.UID]bool, planned map[types.UID]assignment) {
	a.t.Helper()
	s := seating{planned: planned, pods: a.ledger.podsOf(a.name), nodes: a.ledger.nodesOf(a.name)}
	for _, claim := range a.ledger.claimsOf(a.name) {
		if before[claim.object.UID] {
			continue
		}
		if why := s.notCrowdedOut(claim.object.Annotations[karpv1.AnnotationPods]); why != "" {
			a.t.Errorf("claim %s was created in a second round, after %d in the first: %s", claim.object.Name, len(before), why)
			continue
		}
		a.crowdedOut++
		a.t.Logf("claim %s was created in a second round, for pods that were crowded out", claim.object.Name)
	}
}

// notCrowdedOut returns why a launch for the pods, by their UIDs, is not due to pods that were crowded out, or an empty
// string.
func (s seating) notCrowdedOut(uids string) string {
	if uids == "" {
		return "it names no pods"
	}
	for uid := range strings.FieldsSeq(uids) {
		i := slices.IndexFunc(s.pods, func(p *corev1.Pod) bool { return string(p.UID) == uid })
		if i < 0 {
			return fmt.Sprintf("its pod %s is gone", uid)
		}
		if why := s.wrong(s.pods[i]); why != "" {
			return fmt.Sprintf("its pod %s %s", s.pods[i].Name, why)
		}
	}
	return ""
}

// wrong returns why a pod that left its place in the plan was not crowded out of it, or an empty string. The recursion
// ends, because priorities increase.
func (s seating) wrong(pod *corev1.Pod) string {
	own, known := s.planned[pod.UID]
	if !known {
		return "had no place in the plan"
	}
	if !own.nominated {
		return "was not nominated to " + own.node
	}
	i := slices.IndexFunc(s.nodes, func(n *corev1.Node) bool { return n.Name == own.node })
	if i < 0 {
		return fmt.Sprintf("had a place on %s, which is gone", own.node)
	}
	stay, all := []*corev1.Pod{pod}, []*corev1.Pod{pod}
	for _, other := range s.pods {
		if other.Spec.NodeName != own.node || other.UID == pod.UID {
			continue
		}
		all = append(all, other)
		if !s.crowds(other, pod) {
			stay = append(stay, other)
		}
	}
	switch {
	case !holds(s.nodes[i], stay):
		return fmt.Sprintf("does not fit on %s beside pods that may be there", own.node)
	case holds(s.nodes[i], all):
		return fmt.Sprintf("fits on %s, where it was planned", own.node)
	}
	return ""
}

// crowds reports whether a pod that is bound to the planned node of another may take its capacity there: a pod of
// higher priority from elsewhere, of a workload that cannot be nominated as a whole, or crowded out itself.
func (s seating) crowds(pod, other *corev1.Pod) bool {
	own, known := s.planned[pod.UID]
	return known && own.node != pod.Spec.NodeName && priorityOf(pod) > priorityOf(other) && (s.limited(pod) || s.wrong(pod) == "")
}

// limited reports whether the pod's spread constraint is the reason that not all pods of its workload are nominated:
// some are nominated to each of their nodes, or none at all, because the workload outranks others of the plan.
func (s seating) limited(pod *corev1.Pod) bool {
	if !slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.DoNotSchedule
	}) {
		return false
	}
	nominated, rest := map[string]bool{}, 0
	for _, other := range s.pods {
		own, known := s.planned[other.UID]
		if !known || other.Labels["app"] != pod.Labels["app"] {
			continue
		}
		nominated[own.node] = nominated[own.node] || own.nominated
		if !own.nominated {
			rest++
		}
	}
	each, any := true, false
	for _, some := range nominated {
		each, any = each && some, any || some
	}
	return rest > 0 && (each || !any)
}

func priorityOf(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// holds reports whether the node has the CPU, the memory and the number of pods that the pods take.
func holds(node *corev1.Node, pods []*corev1.Pod) bool {
	free := node.Status.Allocatable.DeepCopy()
	for _, pod := range pods {
		takes := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}
		for _, c := range pod.Spec.Containers {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				sum := takes[name]
				sum.Add(c.Resources.Requests[name])
				takes[name] = sum
			}
		}
		for name, taken := range takes {
			left := free[name]
			left.Sub(taken)
			free[name] = left
			if left.Sign() < 0 {
				return false
			}
		}
	}
	return true
}
