package neutral

import corev1 "k8s.io/api/core/v1"

// Purchase returns 3 to 40 pending pods of one to five Deployments, and no nodes.
func Purchase(seed int) *Input {
	d := newDraw("purchase", seed)
	replicas := make([]int32, len(d.apps))
	for range 3 + d.IntN(38) {
		replicas[d.IntN(len(replicas))]++
	}
	for i, a := range d.apps {
		for _, unsatisfiable := range []corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway} {
			if d.chance(8) {
				a.spec.TopologySpreadConstraints = append(a.spec.TopologySpreadConstraints, zonal(1, a.name, unsatisfiable))
			}
		}
		if replicas[i] > 0 {
			d.in.add(a.deployment(replicas[i]))
		}
	}
	return d.finish()
}
