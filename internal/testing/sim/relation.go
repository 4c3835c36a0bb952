package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Related is the first seed of histories in which pods have constraints on each other, or disks. Smaller seeds have
// neither.
const Related = uint64(1) << 20

// relation holds the constraints of an app's pods on the pods of an app, by the label key; the zero value has none.
type relation struct {
	key string
	// skew is the maxSkew of a hard topology spread constraint over the app itself, 0 for none.
	skew int
	// near and apart are the apps of required affinity and anti-affinity terms, empty for none.
	near, apart string
}

func (r relation) String() string {
	switch {
	case r.skew > 0:
		return fmt.Sprintf("spread by %s, skew %d", r.key, r.skew)
	case r.near != "":
		return fmt.Sprintf("near %s by %s", r.near, r.key)
	case r.apart != "":
		return fmt.Sprintf("apart from %s by %s", r.apart, r.key)
	}
	return "for itself"
}

// relate adds relations to some apps, and disks to some. It uses its own random numbers, so that the rest of a world
// does not depend on it.
func (s *setting) relate(seed uint64) {
	if !related(seed) {
		return
	}
	rng := rand.New(rand.NewPCG(seed, 0x4e1a7ed))
	for i, a := range s.apps {
		zoneOrHost := []string{model.LabelZone, model.LabelHostname}[rng.IntN(2)]
		switch rng.IntN(8) {
		case 0, 1:
			a.pod.relation = relation{key: zoneOrHost, skew: 1 + rng.IntN(2)}
		case 2:
			a.pod.relation = relation{key: zoneOrHost, apart: a.name}
		case 3:
			a.pod.relation = relation{key: model.LabelZone, near: s.apps[rng.IntN(i+1)].name}
		}
		a.disks = rng.IntN(4) == 0
	}
}

// freeDisk returns the first disk of the app's replicas that no pod uses, "" if there is none. A disk is created in
// the zone of its first pod, and stays there.
func (a *app) freeDisk(used map[string]bool) string {
	for i := range a.replicas {
		if name := fmt.Sprintf("disk-%d-of-%s", i, a.name); !used[name] {
			return name
		}
	}
	return ""
}

// ofApp returns a selector for the pods of an app.
func ofApp(name string) model.Selector {
	return model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{{Key: labelApp, Operator: label.In, Values: []string{name}}}}
}

// relate adds the pod's constraints on other pods, and the zone of its disk, to its spec.
func (p *pod) relate(spec *model.PodSpec) {
	r := p.relation
	switch {
	case r.skew > 0:
		spec.Spread = []model.Spread{{Key: r.key, MaxSkew: r.skew, Selector: ofApp(p.app)}}
	case r.near != "":
		spec.Terms = []model.Term{{Key: r.key, Selector: ofApp(r.near)}}
	case r.apart != "":
		spec.Terms = []model.Term{{Key: r.key, Anti: true, Selector: ofApp(r.apart)}}
	}
	if p.disk == "" {
		return
	}
	spec.Controller.Kind = "StatefulSet"
	spec.Volumes = []model.Volume{{Claim: "default/" + p.disk, Driver: "disk"}}
	if p.zone != "" {
		spec.VolumeAlternatives = [][]label.Requirement{{{Key: model.LabelZone, Operator: label.In, Values: []string{p.zone}}}}
	}
}

// wants reports whether the pod and its disk accept the labels of a node.
func (p *pod) wants(labels map[string]string) bool {
	return accepts(p.alternatives, labels) && (p.zone == "" || labels[model.LabelZone] == p.zone)
}

// host is a node for the rules between pods: its labels and its pods.
type host struct {
	labels map[string]string
	pods   []*pod
}

// hosts returns the nodes with the pods that kube-scheduler counts there: bound pods and pods that are about to be
// bound.
func (w *world) hosts(nodes []*node, pods []*pod) map[string]*host {
	hosts := make(map[string]*host, len(nodes))
	for _, n := range nodes {
		hosts[n.name] = &host{labels: n.labels}
	}
	for _, p := range pods {
		name := p.node
		if name == "" {
			name = w.assumed[p.uid]
		}
		if h := hosts[name]; h != nil && !p.daemon {
			h.pods = append(h.pods, p)
		}
	}
	return hosts
}

// admits implements kube-scheduler's filters PodTopologySpread and InterPodAffinity for a pod on one of the hosts,
// which does not count it yet.
func admits(p *pod, on *host, hosts map[string]*host) bool {
	r := p.relation
	switch {
	case r.skew > 0 && !spreads(p, on, hosts):
		return false
	case r.near != "" && !isNear(p, on, hosts):
		return false
	}
	for _, h := range hosts {
		for _, q := range h.pods {
			if keptApart(p, q, on, h) || keptApart(q, p, h, on) {
				return false
			}
		}
	}
	return true
}

// keptApart reports whether the anti-affinity of p on one host forbids that the other pod is on the host where.
func keptApart(p, other *pod, on, where *host) bool {
	r := p.relation
	return r.apart != "" && other.app == r.apart && on.labels[r.key] != "" && on.labels[r.key] == where.labels[r.key]
}

// spreads reports whether the pod's spread constraint allows the host, over the nodes whose labels the pod accepts.
func spreads(p *pod, on *host, hosts map[string]*host) bool {
	r := p.relation
	counts := map[string]int{}
	for _, h := range hosts {
		domain := h.labels[r.key]
		if domain == "" || !accepts(p.alternatives, h.labels) {
			continue
		}
		counts[domain] += 0
		for _, q := range h.pods {
			if q.app == p.app && q.deleting.IsZero() {
				counts[domain]++
			}
		}
	}
	domain := on.labels[r.key]
	if domain == "" {
		return false
	}
	least := counts[domain]
	for _, n := range counts {
		least = min(least, n)
	}
	return counts[domain]+1-least <= r.skew
}

// isNear reports whether a pod that the affinity selects is in the domain. The first pod of an app with affinity to
// itself may be anywhere.
func isNear(p *pod, on *host, hosts map[string]*host) bool {
	r, anywhere := p.relation, false
	for _, h := range hosts {
		if slices.ContainsFunc(h.pods, func(q *pod) bool { return q.app == r.near }) {
			if h.labels[r.key] != "" {
				anywhere = true
			}
			if on.labels[r.key] != "" && h.labels[r.key] == on.labels[r.key] {
				return true
			}
		}
	}
	return !anywhere && r.near == p.app && on.labels[r.key] != ""
}

// welcome reports whether the rules between pods allow the pod on a new node with the labels.
func (w *world) welcome(p *pod, labels map[string]string) bool {
	if !w.related {
		return true
	}
	hosts := w.hosts(w.api.nodes(), w.api.pods())
	fresh := &host{labels: maps.Clone(labels)}
	fresh.labels[model.LabelHostname] = "fresh"
	hosts["fresh"] = fresh
	return admits(p, fresh, hosts)
}
