package neutral

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// podChanges are fields of pods that do not restrict where they run, or what they use.
func podChanges() []Change {
	return []Change{
		{Name: "toleration of nothing", edit: eachTemplate(func(t template) bool { return t.tolerate("none") })},
		{Name: "each app its toleration of nothing", edit: eachTemplate(func(t template) bool { return t.tolerate(t.app) })},
		{Name: "each pod its toleration of nothing", edit: eachPodTolerates},
		{Name: "labels and annotations of pods", edit: eachTemplate(func(t template) bool {
			t.meta.Labels["app.kubernetes.io/version"], t.meta.Labels["example.org/of"] = "1e98701", t.app
			t.meta.Annotations = map[string]string{"example.org/commit": "1e98701", "prometheus.io/scrape": "true"}
			return true
		})},
		{Name: "smaller init container", edit: eachTemplate(func(t template) bool {
			init := corev1.Container{Name: "init", Image: "example.org/init"}
			init.Resources.Requests = scaled(t.spec, 0.5)
			t.spec.InitContainers = []corev1.Container{init}
			return true
		})},
		{Name: "two containers of half the size", edit: eachTemplate(func(t template) bool {
			half := scaled(t.spec, 0.5)
			t.spec.Containers[0].Resources.Requests = half
			second := *t.spec.Containers[0].DeepCopy()
			second.Name = "second"
			t.spec.Containers = append(t.spec.Containers, second)
			return true
		})},
		{Name: "limits of containers", edit: eachTemplate(func(t template) bool {
			t.spec.Containers[0].Resources.Limits = scaled(t.spec, 3)
			return true
		})},
		{Name: "selector that every node matches", edit: eachTemplate(func(t template) bool {
			t.spec.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"}
			return true
		})},
		{Name: "preference that every node matches", edit: with(corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1,
				Preference: corev1.NodeSelectorTerm{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelOSStable, Operator: "In",
						Values: []string{"linux"}}}}}}}})},
		{Name: "one of two terms that every node matches", edit: with(corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelOSStable, Operator: "In",
					Values: []string{"linux"}}}},
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: "Exists"}}}}}}})},
		{Name: "priority class of equal value", edit: prioritized},
		{Name: "grace period and scheduler's name", edit: eachTemplate(func(t template) bool {
			t.spec.TerminationGracePeriodSeconds, t.spec.SchedulerName = ptr.To(int64(60)), corev1.DefaultSchedulerName
			return true
		})},
		{Name: "Deployments split in two", edit: split},
	}
}

func (t template) tolerate(key string) bool {
	t.spec.Tolerations = append(t.spec.Tolerations, corev1.Toleration{Key: "example.org/" + key, Operator: corev1.TolerationOpExists})
	return true
}

// eachPodTolerates gives each pod a toleration of its own. Pending pods become Deployments of one pod.
func eachPodTolerates(in *Input) bool {
	for _, d := range of[*appsv1.Deployment](in) {
		for i := *d.Spec.Replicas - 1; i > 0; i-- {
			part := splitOff(in, d, 1)
			part.Name = fmt.Sprintf("%s-%d", d.Name, i)
			part.Spec.Template.Labels["part"], part.Spec.Selector.MatchLabels["part"] = part.Name, part.Name
		}
	}
	for i, t := range in.templates() {
		t.tolerate(fmt.Sprintf("pod-%d", i))
	}
	return true
}

// scaled returns the requests of the first container times a factor, rounded up.
func scaled(spec *corev1.PodSpec, factor float64) corev1.ResourceList {
	requests := corev1.ResourceList{}
	for name, q := range spec.Containers[0].Resources.Requests {
		if name == corev1.ResourceCPU {
			requests[name] = *resource.NewMilliQuantity(int64(float64(q.MilliValue())*factor), resource.DecimalSI)
			continue
		}
		requests[name] = *resource.NewQuantity(int64(float64(q.Value())*factor), resource.BinarySI)
	}
	return requests
}

// split divides each app into two of the same shape and labels.
func split(in *Input) bool {
	changed := false
	for _, d := range of[*appsv1.Deployment](in) {
		if *d.Spec.Replicas > 1 {
			splitOff(in, d, *d.Spec.Replicas/2)
			changed = true
		}
	}
	for i, p := range of[*corev1.Pod](in) {
		if i%2 == 0 && p.Labels[labelApp] != "" {
			p.OwnerReferences[0].Name += "-part"
			p.OwnerReferences[0].UID = types.UID("uid-" + strings.TrimPrefix(p.OwnerReferences[0].Name, "uid-"))
			changed = true
		}
	}
	return changed
}
