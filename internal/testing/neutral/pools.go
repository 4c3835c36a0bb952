package neutral

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// poolChanges add pools that the pods cannot use or do not need, or split a pool into pools of its weight.
func poolChanges() []Change {
	return []Change{
		{Name: "1 idle pool", edit: idle(1, 0)},
		{Name: "3 idle pools", edit: idle(3, 0)},
		{Name: "10 idle pools", edit: idle(10, 0)},
		{Name: "46 idle pools", edit: idle(46, 0)},
		{Name: "5 idle pools of the highest weight", edit: idle(5, 100)},
		{Name: "pool that sells nothing", edit: always(func(in *Input) {
			p := in.open()[0].DeepCopy()
			p.Name = "nothing"
			require(p, required(labelFamily, "In", "none"))
			in.add(p)
		})},
		{Name: "twin pools", edit: twins(1)},
		{Name: "four times the pools", edit: twins(3)},
		{Name: "pool split by architecture", edit: splitBy(corev1.LabelArchStable)},
		{Name: "pool split by zone", edit: splitBy(corev1.LabelTopologyZone, zones...)},
		{Name: "pool split by capacity type", edit: splitBy(karpv1.LabelCapacityType)},
		{Name: "pool split by family", edit: splitBy(labelFamily, "c1", "m1", "r1", "c1g", "m1g", "r1g")},
		{Name: "taint that all pods tolerate", edit: always(tainted)},
		{Name: "requirements that exclude nothing", edit: always(func(in *Input) {
			for _, p := range of[*karpv1.NodePool](in) {
				require(p, required(corev1.LabelTopologyZone, "In", zones...))
				require(p, required(corev1.LabelInstanceTypeStable, "NotIn", "none.2"))
			}
		})},
	}
}

// require adds a requirement unless the pool has one on the label.
func require(p *karpv1.NodePool, r karpv1.Requirement) {
	spec := &p.Spec.Template.Spec
	if !slices.ContainsFunc(spec.Requirements, func(other karpv1.Requirement) bool { return other.Key == r.Key }) {
		spec.Requirements = append(spec.Requirements, r)
	}
}

// idle adds pools of other teams, whose taint no pod tolerates.
func idle(count int, weight int32) func(*Input) bool {
	return always(func(in *Input) {
		like := in.open()[0]
		for i := range count {
			p := like.DeepCopy()
			p.Name = fmt.Sprintf("idle-%d", i)
			p.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "owner", Value: p.Name, Effect: corev1.TaintEffectNoSchedule}}
			if weight > 0 {
				p.Spec.Weight = ptr.To(weight)
			}
			in.add(p)
		}
	})
}

// twins adds pools that differ from the pools of the pods in their names only.
func twins(each int) func(*Input) bool {
	return always(func(in *Input) {
		for _, p := range in.open() {
			for i := range each {
				twin := p.DeepCopy()
				twin.Name = fmt.Sprintf("%s-twin-%d", p.Name, i)
				in.add(twin)
			}
		}
	})
}

// splitBy replaces each pool of the pods by one for each value of a label: the pool's values, or the given ones. Nodes
// belong to the pool of their value.
func splitBy(key string, values ...string) func(*Input) bool {
	return func(in *Input) bool {
		changed := false
		for _, p := range in.open() {
			requirements := p.Spec.Template.Spec.Requirements
			i := slices.IndexFunc(requirements, func(r karpv1.Requirement) bool { return r.Key == key })
			its := values
			if i >= 0 {
				its = requirements[i].Values
			}
			if len(its) < 2 {
				continue
			}
			for _, value := range its[1:] {
				part := p.DeepCopy()
				part.Name += "-" + value
				only(part, key, value)
				in.add(part)
			}
			for _, n := range of[*corev1.Node](in) {
				if n.Labels[karpv1.LabelNodePool] == p.Name && n.Labels[key] != its[0] {
					n.Labels[karpv1.LabelNodePool] += "-" + n.Labels[key]
				}
			}
			only(p, key, its[0])
			changed = true
		}
		return changed
	}
}

// only restricts a label of a pool to a value.
func only(p *karpv1.NodePool, key, value string) {
	spec := &p.Spec.Template.Spec
	spec.Requirements = append(slices.DeleteFunc(slices.Clone(spec.Requirements), func(r karpv1.Requirement) bool { return r.Key == key }),
		required(key, "In", value))
}

// tainted gives the pools of the pods and their nodes a taint, and all pods a toleration of it.
func tainted(in *Input) {
	taint := corev1.Taint{Key: "example.org/known", Value: "true", Effect: corev1.TaintEffectNoSchedule}
	open := map[string]bool{}
	for _, p := range in.open() {
		p.Spec.Template.Spec.Taints, open[p.Name] = []corev1.Taint{taint}, true
	}
	for _, n := range of[*corev1.Node](in) {
		if open[n.Labels[karpv1.LabelNodePool]] {
			n.Spec.Taints = append(n.Spec.Taints, taint)
		}
	}
	for _, t := range in.templates() {
		t.spec.Tolerations = append(t.spec.Tolerations, corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists})
	}
}

// valueChanges ask for at least one value of what any node has.
func valueChanges() []Change {
	var all []Change
	for _, c := range []struct{ name, key string }{
		{"zone", corev1.LabelTopologyZone}, {"capacity type", karpv1.LabelCapacityType}, {"family", labelFamily},
		{"instance type", corev1.LabelInstanceTypeStable}, {"architecture", corev1.LabelArchStable},
	} {
		all = append(all, Change{Name: "minValues 1 of " + c.name, edit: always(func(in *Input) {
			for _, p := range in.open() {
				require(p, required(c.key, "Exists"))
				for i := range p.Spec.Template.Spec.Requirements {
					if r := &p.Spec.Template.Spec.Requirements[i]; r.Key == c.key {
						r.MinValues = ptr.To(1)
					}
				}
			}
		})})
	}
	return all
}
