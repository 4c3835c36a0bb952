package neutral

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// none is the label of no pod.
const none = "none"

// wide is a maxSkew that no input reaches.
const wide = 1000

// zoneChanges are rules by zone that never bind: because of their maxSkew, or because they select no pod.
func zoneChanges() []Change {
	hard, soft := corev1.DoNotSchedule, corev1.ScheduleAnyway
	return append([]Change{
		{Name: "zone spread, maxSkew 1000", edit: spreading(corev1.LabelTopologyZone, hard, wide)},
		{Name: "soft zone spread, maxSkew 1000", edit: spreading(corev1.LabelTopologyZone, soft, wide)},
		{Name: "zone spread, maxSkew of all pods", edit: spreading(corev1.LabelTopologyZone, hard, 0)},
		{Name: "zone spread, maxSkew 2 of up to 2 pods", edit: spreading(corev1.LabelTopologyZone, hard, 2)},
		{Name: "zone spread, maxSkew 5 of up to 5 pods", edit: spreading(corev1.LabelTopologyZone, hard, 5)},
		{Name: "soft zone spread, maxSkew 5 of up to 5 pods", edit: spreading(corev1.LabelTopologyZone, soft, 5)},
		{Name: "zone spread of no pod", edit: spreadingNone(corev1.LabelTopologyZone, hard)},
		{Name: "soft zone spread of no pod", edit: spreadingNone(corev1.LabelTopologyZone, soft)},
	}, termChanges("zone", corev1.LabelTopologyZone)...)
}

// hostChanges are the same by hostname, and a host port.
func hostChanges() []Change {
	hard, soft := corev1.DoNotSchedule, corev1.ScheduleAnyway
	return append([]Change{
		{Name: "hostname spread, maxSkew 1000", edit: spreading(corev1.LabelHostname, hard, wide)},
		{Name: "soft hostname spread, maxSkew 1000", edit: spreading(corev1.LabelHostname, soft, wide)},
		{Name: "hostname spread of no pod", edit: spreadingNone(corev1.LabelHostname, hard)},
		{Name: "host port on one pod", edit: hostPort},
	}, termChanges("hostname", corev1.LabelHostname)...)
}

// termChanges are terms about pods that do not exist.
func termChanges(name, key string) []Change {
	term := corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{labelApp: none}}}
	wish := corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: term}
	return []Change{
		{Name: name + " anti-affinity to no pod", edit: with(corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}})},
		{Name: "preferred " + name + " anti-affinity to no pod", edit: with(corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{wish}}})},
		{Name: "preferred " + name + " affinity to no pod", edit: with(corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{wish}}})},
	}
}

// with gives all pods an affinity; inputs have none.
func with(affinity corev1.Affinity) func(*Input) bool {
	return eachTemplate(func(t template) bool {
		t.spec.Affinity = affinity.DeepCopy()
		return true
	})
}

// spreading spreads the pods of each app with a maxSkew, 0 for their number. It changes the apps that have no more pods
// than that: the skew of theirs cannot exceed it.
func spreading(key string, unsatisfiable corev1.UnsatisfiableConstraintAction, skew int) func(*Input) bool {
	return eachTemplate(func(t template) bool {
		most := skew
		if most == 0 {
			most = t.pods
		}
		return t.pods <= most && t.constrain(key, unsatisfiable, most, t.app)
	})
}

// spreadingNone spreads pods that do not exist.
func spreadingNone(key string, unsatisfiable corev1.UnsatisfiableConstraintAction) func(*Input) bool {
	return eachTemplate(func(t template) bool { return t.constrain(key, unsatisfiable, 1, none) })
}

// constrain adds a spread, unless there is one by the key: the API server refuses two of a kind.
func (t template) constrain(key string, unsatisfiable corev1.UnsatisfiableConstraintAction, skew int, app string) bool {
	same := func(c corev1.TopologySpreadConstraint) bool { return c.TopologyKey == key }
	if slices.ContainsFunc(t.spec.TopologySpreadConstraints, same) {
		return false
	}
	c := zonal(skew, app, unsatisfiable)
	c.TopologyKey = key
	t.spec.TopologySpreadConstraints = append(t.spec.TopologySpreadConstraints, c)
	return true
}

// hostPort gives one pod a host port. If all Deployments have several, one of their pods gets a Deployment of its own.
func hostPort(in *Input) bool {
	deployments := of[*appsv1.Deployment](in)
	if i := slices.IndexFunc(deployments, func(d *appsv1.Deployment) bool { return *d.Spec.Replicas > 1 }); i >= 0 {
		one := splitOff(in, deployments[i], 1)
		setPort(&one.Spec.Template.Spec)
		return true
	}
	templates := in.templates()
	setPort(templates[0].spec)
	return true
}

func setPort(spec *corev1.PodSpec) {
	spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 9100, HostPort: 9100}}
}

// splitOff moves replicas to another Deployment whose pods have the same labels.
func splitOff(in *Input, d *appsv1.Deployment, replicas int32) *appsv1.Deployment {
	part := d.DeepCopy()
	part.UID = ""
	part.Name += fmt.Sprintf("-part-%d", replicas)
	*part.Spec.Replicas = replicas
	*d.Spec.Replicas -= replicas
	// The selectors of two Deployments must differ, their pods' label app must not.
	part.Spec.Template.Labels["part"], part.Spec.Selector.MatchLabels["part"] = part.Name, part.Name
	in.add(part)
	return part
}
