package world

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// domain is the value of a topology key.
type domain struct{ key, value string }

// rules holds the effect of other pods on one pod, computed once: domains in which it must not be, and lists of
// domains of each of which it must be in one. Every hard spread constraint and affinity term is such a list.
type rules struct {
	shut map[domain]bool
	open []allowed
}

type allowed struct {
	key    string
	values map[string]bool
}

func (r *rules) admit(h *host) bool {
	for d := range r.shut {
		if value, known := h.Labels[d.key]; known && value == d.value {
			return false
		}
	}
	return !slices.ContainsFunc(r.open, func(a allowed) bool { return !a.values[h.Labels[a.key]] })
}

func rulesOf(hosts []*host, p *corev1.Pod) *rules {
	r := &rules{shut: map[domain]bool{}}
	for i := range p.Spec.TopologySpreadConstraints {
		if s := &p.Spec.TopologySpreadConstraints[i]; s.WhenUnsatisfiable == corev1.DoNotSchedule {
			r.open = append(r.open, evenly(s, countsOf(hosts, p.Namespace, s.TopologyKey, s.LabelSelector)))
		}
	}
	near, far := required(p)
	for _, t := range near {
		a := allowed{t.TopologyKey, map[string]bool{}}
		for value, n := range countsOf(hosts, p.Namespace, t.TopologyKey, t.LabelSelector) {
			if n > 0 {
				a.values[value] = true
			}
		}
		if len(a.values) > 0 || !selects(t.LabelSelector, p) {
			r.open = append(r.open, a)
		}
	}
	for _, t := range far {
		for value, n := range countsOf(hosts, p.Namespace, t.TopologyKey, t.LabelSelector) {
			if n > 0 {
				r.shut[domain{t.TopologyKey, value}] = true
			}
		}
	}
	r.shutBy(hosts, p)
	return r
}

// required returns the required terms of affinity and of anti-affinity.
func required(p *corev1.Pod) (near, far []corev1.PodAffinityTerm) {
	a := p.Spec.Affinity
	if a != nil && a.PodAffinity != nil {
		near = a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if a != nil && a.PodAntiAffinity != nil {
		far = a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return near, far
}

// shutBy records the domains in which other pods' anti-affinity excludes the pod.
func (r *rules) shutBy(hosts []*host, p *corev1.Pod) {
	for _, h := range hosts {
		for _, q := range h.pods {
			if q.Spec.Affinity == nil || q.Namespace != p.Namespace {
				continue
			}
			_, far := required(q.Pod)
			for i := range far {
				if value, known := h.Labels[far[i].TopologyKey]; known && selects(far[i].LabelSelector, p) {
					r.shut[domain{far[i].TopologyKey, value}] = true
				}
			}
		}
	}
}

// countsOf returns the number of selected pods of the namespace by domain.
func countsOf(hosts []*host, namespace, key string, selector *metav1.LabelSelector) map[string]int {
	counts := map[string]int{}
	for _, h := range hosts {
		value, known := h.Labels[key]
		if !known {
			continue
		}
		n := 0
		for _, q := range h.pods {
			if q.Namespace == namespace && q.DeletionTimestamp.IsZero() && selects(selector, q.Pod) {
				n++
			}
		}
		counts[value] += n
	}
	return counts
}

// evenly returns the domains in which one more pod keeps the skew.
func evenly(s *corev1.TopologySpreadConstraint, counts map[string]int) allowed {
	least := math.MaxInt
	for _, n := range counts {
		least = min(least, n)
	}
	if s.MinDomains != nil && int(*s.MinDomains) > len(counts) {
		least = 0
	}
	a := allowed{s.TopologyKey, map[string]bool{}}
	for value, n := range counts {
		if n+1-least <= int(s.MaxSkew) {
			a.values[value] = true
		}
	}
	return a
}
