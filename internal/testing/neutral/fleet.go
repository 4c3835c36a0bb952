package neutral

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// machine is a node of a fleet while pods are drawn.
type machine struct {
	zone string
	node *corev1.Node
	free amount
}

// Fleet returns 3 to 10 nodes of which pods request about half.
func Fleet(seed int) *Input {
	d := newDraw("fleet", seed)
	var machines []*machine
	for i := range 3 + d.IntN(8) {
		machines = append(machines, d.machine(i))
	}
	placed := d.place(machines)
	for _, m := range machines {
		d.in.add(m.node)
	}
	for _, a := range d.apps {
		d.spread(a, placed[a.name])
		for i, m := range placed[a.name] {
			d.in.add(a.pod(i, m.node.Name))
		}
	}
	return d.finish()
}

// machine draws a node of 2 to 16 processors, with the pod of the DaemonSet.
func (d *draw) machine(number int) *machine {
	p := pick(d.Rand, d.pools)
	var types []*InstanceType
	var offerings []Offering
	for i := range d.in.Types {
		t := &d.in.Types[i]
		for _, o := range t.Offerings {
			if p.sells(t, o) && t.Labels[labelCPU] != "32" {
				types, offerings = append(types, t), append(offerings, o)
			}
		}
	}
	i := d.IntN(len(types))
	m := &machine{offerings[i].Zone, node(fmt.Sprintf("node-%02d", number), p, types[i], offerings[i]), types[i].allocatable()}
	if d.agent {
		m.free = m.free.less(agentSize)
		pod := (&app{name: "agent", size: agentSize}).pod(number, m.node.Name)
		pod.Labels, pod.OwnerReferences = map[string]string{"agent": "agent"}, owner("DaemonSet", "agent")
		pod.Spec.Tolerations = tolerant
		d.in.add(pod)
	}
	return m
}

// place puts pods on random nodes that hold them, until they request about half of the processors. It returns the node
// of each pod, by app.
func (d *draw) place(machines []*machine) map[string][]*machine {
	total := 0
	for _, m := range machines {
		total += m.free.cpu
	}
	placed := map[string][]*machine{}
	for left := float64(total) * between(d.Rand, 0.35, 0.65); left > 0; {
		a := pick(d.Rand, d.apps)
		fit := slices.DeleteFunc(slices.Clone(machines), func(m *machine) bool { return !m.free.holds(a.size) })
		if len(fit) == 0 {
			break
		}
		m := pick(d.Rand, fit)
		m.free = m.free.less(a.size)
		placed[a.name] = append(placed[a.name], m)
		left -= float64(a.size.cpu)
	}
	return placed
}

// spread gives some apps a spread over zones that their pods satisfy.
func (d *draw) spread(a *app, on []*machine) {
	if !d.chance(5) {
		return
	}
	count := map[string]int{}
	for _, m := range on {
		count[m.zone]++
	}
	least, most := len(on), 0
	for _, zone := range zones {
		least, most = min(least, count[zone]), max(most, count[zone])
	}
	unsatisfiable := pick(d.Rand, []corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway})
	a.spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{zonal(max(1, most-least), a.name, unsatisfiable)}
}
