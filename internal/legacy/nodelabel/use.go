package nodelabel

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/api/names"
)

// use is a field of a pod with an old name. Most pods have none, and the check then does not allocate.
type use struct {
	// field is the part of the pod's spec or metadata, such as spec.nodeSelector.
	field string
	old   string
	// today is the current name, empty if there is none. advice then says what to do.
	today, advice string
}

// usesOf returns the old label names in the pod's constraints on nodes.
func usesOf(spec *corev1.PodSpec) []use {
	var found []use
	for key := range spec.NodeSelector {
		found = see(found, "spec.nodeSelector", key)
	}
	if a := spec.Affinity; a != nil {
		found = inNodeAffinity(found, a.NodeAffinity)
		found = inPodAffinity(found, a)
	}
	for i := range spec.TopologySpreadConstraints {
		found = see(found, "spec.topologySpreadConstraints", spec.TopologySpreadConstraints[i].TopologyKey)
	}
	if len(found) > 1 {
		slices.SortFunc(found, func(a, b use) int { return strings.Compare(a.field+a.old, b.field+b.old) })
		found = slices.Compact(found)
	}
	return found
}

func inNodeAffinity(found []use, a *corev1.NodeAffinity) []use {
	if a == nil {
		return found
	}
	const field = "spec.affinity.nodeAffinity"
	if required := a.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		for i := range required.NodeSelectorTerms {
			found = inTerm(found, field, &required.NodeSelectorTerms[i])
		}
	}
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		found = inTerm(found, field, &a.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
	}
	return found
}

func inTerm(found []use, field string, term *corev1.NodeSelectorTerm) []use {
	for i := range term.MatchExpressions {
		found = see(found, field, term.MatchExpressions[i].Key)
	}
	return found
}

func inPodAffinity(found []use, a *corev1.Affinity) []use {
	if pods := a.PodAffinity; pods != nil {
		found = inPodTerms(found, "spec.affinity.podAffinity", pods.RequiredDuringSchedulingIgnoredDuringExecution, pods.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if pods := a.PodAntiAffinity; pods != nil {
		found = inPodTerms(found, "spec.affinity.podAntiAffinity", pods.RequiredDuringSchedulingIgnoredDuringExecution, pods.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return found
}

func inPodTerms(found []use, field string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) []use {
	for i := range required {
		found = see(found, field, required[i].TopologyKey)
	}
	for i := range preferred {
		found = see(found, field, preferred[i].PodAffinityTerm.TopologyKey)
	}
	return found
}

func see(found []use, field, key string) []use {
	if today, renamed := names.Label(key); renamed {
		return append(found, use{field: field, old: key, today: today})
	}
	if advice := names.Gone(key); advice != "" {
		return append(found, use{field: field, old: key, advice: advice})
	}
	return found
}

// annotated returns found with the old annotation of pods, if it is present and has an effect.
func annotated(found []use, annotations map[string]string) []use {
	if annotations[karpv1.AnnotationDoNotEvict] != "true" {
		return found
	}
	return append(found, use{field: "metadata.annotations", old: karpv1.AnnotationDoNotEvict, today: karpv1.AnnotationDoNotDisrupt})
}

// words returns the list of old names with their replacements.
func words(uses []use) string {
	lines := make([]string, len(uses))
	for i, u := range uses {
		if lines[i] = fmt.Sprintf("%s uses %s, which is now %s", u.field, u.old, u.today); u.today == "" {
			lines[i] = fmt.Sprintf("%s uses %s, which nodes no longer have: %s", u.field, u.old, u.advice)
		}
	}
	return strings.Join(lines, "; ")
}

// isUndefined reports whether a use cannot be honored.
func isUndefined(uses []use) bool {
	return slices.ContainsFunc(uses, func(u use) bool { return u.today == "" })
}
