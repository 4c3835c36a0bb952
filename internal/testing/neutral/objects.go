package neutral

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
)

// objectChanges add objects that concern nothing, and change names and the order of objects.
func objectChanges() []Change {
	return []Change{
		{Name: "PDB that blocks nothing", edit: permissive},
		{Name: "DaemonSet on no node", edit: always(func(in *Input) {
			in.add(agent("elsewhere", amount{500, 1024, 1}, map[string]string{"example.org/none": "true"}))
		})},
		{Name: "overlay that matches nothing", edit: overlay("+10%", labelFamily, none)},
		{Name: "overlay that adds nothing", edit: overlay("+0%", corev1.LabelOSStable, "linux")},
		{Name: "far LimitRange", edit: always(func(in *Input) {
			l := &corev1.LimitRange{TypeMeta: kind("v1", "LimitRange"), ObjectMeta: named("far")}
			l.Spec.Limits = []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
				Max: corev1.ResourceList{"cpu": resource.MustParse("500")}}}
			in.add(l)
		})},
		{Name: "names of pools", edit: always(renamePools)},
		{Name: "names of apps and nodes", edit: always(renameRest)},
		{Name: "order of objects", edit: always(func(in *Input) { slices.Reverse(in.Objects) })},
		{Name: "order of instance types", edit: always(func(in *Input) {
			slices.Reverse(in.Types)
			for i := range in.Types {
				slices.Reverse(in.Types[i].Offerings)
			}
		})},
		{Name: "annotations of pools and nodes", edit: always(func(in *Input) {
			for _, o := range in.Objects {
				switch o.(type) {
				case *karpv1.NodePool, *corev1.Node:
					o.SetAnnotations(map[string]string{"example.org/commit": "1e98701"})
				}
			}
		})},
	}
}

// permissive gives each app without a budget one that lets all of its pods go.
func permissive(in *Input) bool {
	has := map[string]bool{}
	for _, b := range of[*policyv1.PodDisruptionBudget](in) {
		has[b.Name] = true
	}
	changed := false
	for _, t := range in.templates() {
		if has[t.app] {
			continue
		}
		has[t.app], changed = true, true
		in.add((&app{name: t.app}).budget(intstr.FromString("100%")))
	}
	return changed
}

// overlay changes the prices of types with a label.
func overlay(adjustment, key, value string) func(*Input) bool {
	return always(func(in *Input) {
		o := &karpv1alpha1.NodeOverlay{TypeMeta: kind(karpv1alpha1.GroupVersion.String(), karpv1alpha1.Kind)}
		o.Name, o.Spec.PriceAdjustment = "overlay", &adjustment
		o.Spec.Requirements = []karpv1alpha1.Requirement{{Key: key, Operator: "In", Values: []string{value}}}
		in.add(o)
	})
}

// prioritized gives all pods one priority class: none is before another, as without.
func prioritized(in *Input) bool {
	class := &schedulingv1.PriorityClass{TypeMeta: kind("scheduling.k8s.io/v1", "PriorityClass"), Value: 1000}
	class.Name = "usual"
	in.add(class)
	for _, t := range in.templates() {
		t.spec.PriorityClassName, t.spec.Priority = "usual", ptr.To(int32(1000))
	}
	return true
}

// renamePools gives the pools names in the opposite order.
func renamePools(in *Input) {
	for i, p := range of[*karpv1.NodePool](in) {
		was := p.Name
		p.Name = string(rune('z'-i%26)) + "-" + was
		for _, n := range of[*corev1.Node](in) {
			if n.Labels[karpv1.LabelNodePool] == was {
				n.Labels[karpv1.LabelNodePool] = p.Name
			}
		}
	}
}

// renameRest gives Deployments, pods and nodes names in the opposite order.
func renameRest(in *Input) {
	for i, o := range slices.Backward(in.Objects) {
		prefix := string(rune('a'+(len(in.Objects)-i)%26)) + "-"
		switch o := o.(type) {
		case *karpv1.NodePool:
			continue
		case *corev1.Node:
			for _, p := range of[*corev1.Pod](in) {
				if p.Spec.NodeName == o.Name {
					p.Spec.NodeName = prefix + o.Name
				}
			}
			o.Labels[corev1.LabelHostname] = prefix + o.Name
		}
		o.SetName(prefix + o.GetName())
	}
}
