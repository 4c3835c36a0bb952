package convert

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Node merges a node and its claim; either may be nil, but not both. Properties that the node does not have yet are
// taken from the claim:
//
//	stage         labels, taints                     capacity, allocatable
//	Launching     claim                              none: they follow from the requirements
//	Launched      claim                              claim status; node, gaps filled from claim status
//	Registered    node, startup and ephemeral        node, gaps filled from claim status
//	              taints left out
//	Initialized   node                               node
//
// A node without a claim is Initialized from the beginning. A claim that was registered and has no node any more is
// Deleting: its machine cannot run pods. A Launching claim is rejected if its requirements are invalid; later they
// are not needed.
func Node(node *corev1.Node, claim *karpv1.NodeClaim, v *Vocabulary) (model.NodeSpec, *model.Rejection) {
	if claim == nil {
		return unmanaged(node, v.Protection), nil
	}
	spec := model.NodeSpec{
		Name: claim.Name, UID: string(claim.UID), ProviderID: claim.Status.ProviderID,
		Claim: claim.Name, ClaimUID: string(claim.UID), Pool: claim.Labels[karpv1.LabelNodePool],
		Stage: stageOf(node, claim), Created: utc(claim.CreationTimestamp), LastPodEvent: utc(claim.Status.LastPodEventTime),
		Labels: claim.Labels, DoNotDisrupt: v.Protection.Node(claim.Annotations),
		Command:          claim.Annotations[karpv1.AnnotationCommand],
		DisruptionReason: conditionTrue(claim, karpv1.ConditionDisruptionReason),
		Requests:         amounts(claim.Spec.Resources.Requests, up),
		Terminating:      conditionTrue(claim, karpv1.ConditionInstanceTerminating),
	}
	spec.Deleting, spec.DeletingSince = claim.DeletionTimestamp != nil || spec.Terminating, deletedAt(claim, node)
	spec.Taints = taints(claim.Spec.Taints)
	addLife(&spec, claim)
	switch {
	case spec.Stage == model.Launching:
		reqs, refused := v.api("spec.requirements", claim.Spec.Requirements)
		if refused != nil {
			return model.NodeSpec{}, refused
		}
		spec.Requirements = slices.Concat(reqs, v.labels(claim.Labels))
	case node == nil:
		spec.Capacity, spec.Allocatable = amounts(claim.Status.Capacity, down), amounts(claim.Status.Allocatable, down)
		spec.Deleting = spec.Deleting || conditionTrue(claim, karpv1.ConditionRegistered)
	default:
		mergeNode(&spec, node, claim, v.Protection)
	}
	return spec, nil
}

// deletedAt returns the earlier deletion timestamp of the claim and its node, which may be nil; zero without one.
func deletedAt(claim *karpv1.NodeClaim, node *corev1.Node) time.Time {
	var at time.Time
	if claim.DeletionTimestamp != nil {
		at = utc(*claim.DeletionTimestamp)
	}
	if node != nil && node.DeletionTimestamp != nil && (at.IsZero() || node.DeletionTimestamp.Time.Before(at)) {
		at = utc(*node.DeletionTimestamp)
	}
	return at
}

// addLife sets why the claim was created and when it ends.
func addLife(spec *model.NodeSpec, claim *karpv1.NodeClaim) {
	spec.LaunchedFor = model.ParsePodRefs(claim.Annotations[karpv1.AnnotationPods])
	bought := claim.Annotations[karpv1.AnnotationBoughtBy]
	spec.Replacement = bought == strings.ToLower(string(karpv1.DisruptionUnderutilized))
	spec.Renewal = bought == strings.ToLower(string(karpv1.DisruptionDrifted))
	if at, err := time.Parse(time.RFC3339, claim.Annotations[karpv1.AnnotationConsolidated]); err == nil {
		spec.ConsolidatedAt = at.UTC()
	}
	if at, err := time.Parse(time.RFC3339, claim.Annotations[karpv1.AnnotationExpecting]); err == nil {
		spec.PodsSentAt = at.UTC()
	}
	for i := range claim.Status.Conditions {
		if c := &claim.Status.Conditions[i]; c.Type == karpv1.ConditionDrifted && c.Status == metav1.ConditionTrue {
			spec.Drifted, spec.DriftedSince = cmp.Or(c.Reason, karpv1.ConditionDrifted), utc(c.LastTransitionTime)
		}
	}
	if !claim.Spec.ExpireAfter.IsNever() && !claim.CreationTimestamp.IsZero() {
		spec.ExpiresAt = utc(claim.CreationTimestamp).Add(*claim.Spec.ExpireAfter.Duration)
	}
	spec.DrainBounded = claim.Spec.TerminationGracePeriod != nil
	if at, _ := claim.DrainEnds(); !at.IsZero() {
		spec.DrainEnds = at.UTC()
	}
}

// stageOf returns the stage of the claim. The node's labels count in addition to the claim's conditions, because the
// node is written first.
func stageOf(node *corev1.Node, claim *karpv1.NodeClaim) model.Stage {
	switch {
	case node == nil && claim.Status.ProviderID == "" && !conditionTrue(claim, karpv1.ConditionLaunched):
		return model.Launching
	case node == nil:
		return model.Launched
	case node.Labels[karpv1.LabelInitialized] == "true" || conditionTrue(claim, karpv1.ConditionInitialized):
		return model.Initialized
	case Registered(node) || conditionTrue(claim, karpv1.ConditionRegistered):
		return model.Registered
	}
	return model.Launched
}

// Registered reports whether the node is labeled as registered.
func Registered(node *corev1.Node) bool { return node.Labels[karpv1.LabelRegistered] == "true" }

func mergeNode(spec *model.NodeSpec, node *corev1.Node, claim *karpv1.NodeClaim, rules karpv1.ProtectionRules) {
	spec.Name, spec.UID = node.Name, string(node.UID)
	spec.Ready, spec.Disrupted = karpv1.NodeReady(node), disrupted(node)
	spec.Deleting = spec.Deleting || node.DeletionTimestamp != nil
	spec.Capacity, spec.Allocatable = amounts(node.Status.Capacity, down), amounts(node.Status.Allocatable, down)
	if spec.Stage < model.Initialized {
		spec.Capacity = fillGaps(spec.Capacity, claim.Status.Capacity)
		spec.Allocatable = fillGaps(spec.Allocatable, claim.Status.Allocatable)
	} else {
		spec.InitializedAt = utc(conditionTime(claim, karpv1.ConditionInitialized))
		if spec.InitializedAt.IsZero() {
			spec.InitializedAt = utc(node.CreationTimestamp)
		}
	}
	if spec.Stage >= model.Registered {
		spec.Labels = node.Labels
		spec.DoNotDisrupt = rules.Node(node.Annotations)
		spec.Taints = taints(permanent(node, claim, spec.Stage))
	}
	if spec.Pool == "" {
		spec.Pool = spec.Labels[karpv1.LabelNodePool]
	}
}

// permanent returns the taints that affect planning: until a node is initialized, taints that are removed automatically
// are ignored.
func permanent(node *corev1.Node, claim *karpv1.NodeClaim, stage model.Stage) []corev1.Taint {
	all := nodeTaints(node)
	if stage >= model.Initialized {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(t corev1.Taint) bool {
		return karpv1.KnownEphemeralTaint(t) ||
			slices.ContainsFunc(claim.Spec.StartupTaints, func(startup corev1.Taint) bool { return startup.MatchTaint(&t) })
	})
}

// nodeTaints returns the node's taints, and that of a cordoned node before the node controller has set it.
func nodeTaints(node *corev1.Node) []corev1.Taint {
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	has := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&cordon) })
	if !node.Spec.Unschedulable || has {
		return node.Spec.Taints
	}
	return slices.Concat(node.Spec.Taints, []corev1.Taint{cordon})
}

func unmanaged(node *corev1.Node, rules karpv1.ProtectionRules) model.NodeSpec {
	created := utc(node.CreationTimestamp)
	return model.NodeSpec{
		Name: node.Name, UID: string(node.UID), ProviderID: node.Spec.ProviderID, Pool: node.Labels[karpv1.LabelNodePool],
		Stage: model.Initialized, Created: created, InitializedAt: created,
		Labels: node.Labels, Taints: taints(nodeTaints(node)),
		Capacity: amounts(node.Status.Capacity, down), Allocatable: amounts(node.Status.Allocatable, down),
		Ready: karpv1.NodeReady(node), Deleting: node.DeletionTimestamp != nil, Disrupted: disrupted(node),
		DoNotDisrupt: rules.Node(node.Annotations),
	}
}

// fillGaps adds the missing amounts; amounts never contains zeros.
func fillGaps(have []quantity.Amount, from corev1.ResourceList) []quantity.Amount {
	for _, a := range amounts(from, down) {
		if _, found := slices.BinarySearchFunc(have, a, compareAmounts); !found {
			have = append(have, a)
			slices.SortFunc(have, compareAmounts)
		}
	}
	return have
}

// taints converts taints, by key and effect. It omits unknown effects, which repel no pod.
func taints(from []corev1.Taint) []model.Taint {
	if len(from) == 0 {
		return nil
	}
	to := make([]model.Taint, 0, len(from))
	for i := range from {
		if effect, known := effectOf(from[i].Effect); known {
			to = append(to, model.Taint{Key: from[i].Key, Value: from[i].Value, Effect: effect})
		}
	}
	slices.SortFunc(to, compareTaints)
	return to
}

func disrupted(node *corev1.Node) bool {
	taint := karpv1.DisruptedTaint()
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) })
}

func conditionTrue(claim *karpv1.NodeClaim, conditionType string) bool {
	for i := range claim.Status.Conditions {
		if c := &claim.Status.Conditions[i]; c.Type == conditionType {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

// conditionTime returns when the condition became true, or the zero time if it is not true.
func conditionTime(claim *karpv1.NodeClaim, conditionType string) metav1.Time {
	for i := range claim.Status.Conditions {
		if c := &claim.Status.Conditions[i]; c.Type == conditionType && c.Status == metav1.ConditionTrue {
			return c.LastTransitionTime
		}
	}
	return metav1.Time{}
}

func compareTaints(a, b model.Taint) int {
	return cmp.Or(strings.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect), strings.Compare(a.Value, b.Value))
}
