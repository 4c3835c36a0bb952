package audit

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// placement checks pods that are placed on an existing node or on a claim in flight.
func (j *judge) placement(p plan.Placement) {
	n := j.snap.Node(p.Node)
	switch {
	case n == nil:
		j.blame("node", p.Node, "is not in the snapshot")
		return
	case n.Deleting || n.Disrupted:
		j.blame("leaving", p.Node, "is leaving and gets %d pods", len(p.Pods))
	}
	for _, pod := range shapes(p.Pods) {
		if taint, no := untolerated(n.NodeSpec.Taints, pod.Tolerations); no {
			j.blame("taint", p.Node, "pod %s does not tolerate %s=%s:%s", pod.Key(), taint.Key, taint.Value, taint.Effect)
		}
	}
	if n.Stage == model.Launching {
		j.inFlight(n, p.Pods)
		return
	}
	j.holds(n, p.Pods, amountsOf(n.NodeSpec.Allocatable), named(n), p.Node)
}

// named is the labeling of a node that has a machine: its labels and, once it is registered, its name.
func named(n *model.Node) labeling {
	labels := exact(n.NodeSpec.Labels)
	return func(key string) []value {
		if key == model.FieldName && n.Stage >= model.Registered {
			return just(n.Name)
		}
		if n.Stage < model.Initialized && (key == model.LabelRegistered || key == model.LabelInitialized) {
			return just("true")
		}
		return labels(key)
	}
}

// exact is the labeling of a node with fixed labels.
func exact(labels map[string]string) labeling {
	return func(key string) []value {
		if text, ok := labels[key]; ok {
			return just(text)
		}
		for spelling, text := range labels {
			if canonical(spelling) == key {
				return just(text)
			}
		}
		return absent
	}
}

// inFlight checks pods on a claim that is not launched, for every outcome of the claim. If the claim has no outcome,
// only its requests are known.
func (j *judge) inFlight(n *model.Node, pods []*model.Pod) {
	p, outcomes := j.inFlightOutcomes(n)
	for _, o := range outcomes {
		if !j.holds(n, pods, amountsOf(o.kind.Allocatable), o.values, n.Name+" as "+o.String()) {
			return
		}
	}
	if len(outcomes) == 0 {
		none := outcome{p, &model.InstanceType{}, &model.Offering{}}
		j.holds(n, pods, amountsOf(n.NodeSpec.Requests), none.withoutType, n.Name+" without an offering")
	}
}

// inFlightOutcomes returns the promise of a claim in flight and its outcomes.
func (j *judge) inFlightOutcomes(n *model.Node) (*promise, []outcome) {
	var catalog *model.Catalog
	if pool := j.snap.Pool(n.Pool); pool != nil {
		catalog = pool.PoolSpec.Catalog
	}
	if catalog == nil {
		catalog = &model.Catalog{}
	}
	p := j.promise(n.NodeSpec.Requirements, n.NodeSpec.Labels, n.NodeSpec.Requests, catalog)
	return p, p.outcomes()
}

// withoutType is the labeling of a claim without a known type.
func (o outcome) withoutType(key string) []value {
	if key == model.LabelHostname {
		return o.words.unknown(key)
	}
	if key == model.LabelRegistered || key == model.LabelInitialized {
		return just("true")
	}
	if text, ok := o.labels[key]; ok {
		return just(text)
	}
	if says(o.requirements, key) {
		return allowed(o.requirements, key, o.words.everything(key))
	}
	return absent
}

// holds checks labels and resources. It stops at the first problem, because the outcomes of a claim fail alike.
func (j *judge) holds(n *model.Node, pods []*model.Pod, allocatable amounts, labels labeling, as string) bool {
	for _, pod := range shapes(pods) {
		if !admits(pod, labels) {
			j.blame("labels", as, "pod %s requires %v, its volumes %v", pod.Key(), pod.Alternatives, pod.VolumeAlternatives)
			return false
		}
	}
	used := j.uses(n)
	if n.Stage != model.Initialized {
		there := map[string]bool{}
		for _, pod := range n.Pods {
			there[pod.Controller.UID] = true
		}
		used.add(j.daemonsFor(n.NodeSpec.Taints, labels, there))
	}
	used.add(volumes(n.Pods))
	asked := j.requests(pods)
	for name, all := range volumes(slices.Concat(n.Pods, pods)) {
		asked[name] += all - volumes(n.Pods)[name]
	}
	for name := range asked {
		if _, said := allocatable[name]; !said && model.IsVolumeResource(name) {
			continue
		}
		if asked[name] > 0 && asked[name]+used[name] > allocatable[name] {
			j.blame("resources", as, "has %d of %s, %d of it used, and is to get %d", allocatable[name], name, used[name], asked[name])
			return false
		}
	}
	return true
}
