package workload

import "strconv"

func inflate(s spec) *Set {
	pods := newPodList("inflate", s.seed)
	for range s.count {
		pods.add(podShape{cpu: 100, memory: 256, labels: object{"app": "inflate"}, owner: "inflate-rs"})
	}
	return &Set{types: catalog(s.typesOr(400), 1, false), pools: openPool, pods: pods.items}
}

// diverse has five classes of equal size. The label that a pod's constraint selects is drawn independently of the
// pod's own label.
func diverse(s spec) *Set {
	r, pods, class := newRandom("diverse", s.count, s.seed), newPodList("diverse", s.seed), s.count/5
	letter := func() object { return object{"my-label": pick(r, letters)} }
	for range s.count - 4*class {
		cpu, memory := someSize(r)
		pods.add(podShape{cpu: cpu, memory: memory, labels: letter()})
	}
	for _, key := range []string{LabelZone, LabelHost} {
		for range class {
			cpu, memory := someSize(r)
			own := letter()
			pods.add(podShape{cpu: cpu, memory: memory, labels: own, spec: object{"topologySpreadConstraints": []object{spread(key, letter(), 1)}}})
		}
	}
	for range class {
		own := object{"my-affinity": pick(r, letters)}
		cpu, memory := someSize(r)
		pods.add(podShape{cpu: cpu, memory: memory, labels: own, spec: podAffinity("podAffinity", LabelZone, own)})
	}
	for range class {
		own := object{"app": "nginx"}
		cpu, memory := someSize(r)
		pods.add(podShape{cpu: cpu, memory: memory, labels: own, spec: podAffinity("podAntiAffinity", LabelHost, own)})
	}
	return &Set{types: catalog(s.typesOr(400), 1, false), pools: openPool, pods: pods.items}
}

func spreads(s spec) *Set {
	return deployments(s, "spread", s.partsOr(s.count/50), func(own object) object {
		return object{"topologySpreadConstraints": []object{spread(LabelZone, own, 1), spread(LabelHost, own, 1)}}
	})
}

func antiAffinity(s spec) *Set {
	return deployments(s, "anti", s.partsOr(s.count/40), func(own object) object {
		return podAffinity("podAntiAffinity", LabelHost, own)
	})
}

// deployments returns count Deployments of equal size, whose pods have the constraint among themselves.
func deployments(s spec, name string, count int, constraint func(own object) object) *Set {
	r, pods := newRandom(name, s.count, s.seed), newPodList(name, s.seed)
	for d := range count {
		deployment := "dep-" + strconv.Itoa(d)
		own := object{"app": deployment}
		cpu, memory := someSize(r)
		for range s.count / count {
			pods.add(podShape{cpu: cpu, memory: memory, labels: own, owner: deployment, spec: constraint(own)})
		}
	}
	return &Set{types: catalog(s.typesOr(400), 1, false), pools: openPool, pods: pods.items}
}
