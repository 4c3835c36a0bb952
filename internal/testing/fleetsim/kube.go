package fleetsim

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// A simulation of kube-scheduler for drains, written from the Kubernetes documentation. It uses the engine's records,
// labels and quantities, and none of its decisions. It filters by resources, taints, node affinity, hard topology spread
// and required pod (anti-)affinity, scores by NodeResourcesFit (LeastAllocated) and NodeResourcesBalancedAllocation, and
// breaks ties at random, here by a hash of the seed.

// host is a node in the view of kube-scheduler.
type host struct {
	*model.NodeSpec
	room map[string]int64
	used map[string]int64
	pods []*model.PodSpec
	// price of its machine, nano-USD per hour.
	price int64
}

func newHost(n *model.NodeSpec) *host {
	h := &host{NodeSpec: n, room: map[string]int64{}, used: map[string]int64{}}
	for _, a := range n.Allocatable {
		h.room[a.Name] += a.Value
	}
	return h
}

func (h *host) add(p *model.PodSpec) {
	h.pods = append(h.pods, p)
	for _, a := range p.Requests {
		h.used[a.Name] += a.Value
	}
}

func (h *host) remove(p *model.PodSpec) {
	h.pods = slices.DeleteFunc(h.pods, func(q *model.PodSpec) bool { return q.UID == p.UID })
	for _, a := range p.Requests {
		h.used[a.Name] -= a.Value
	}
}

// choose returns the node to which kube-scheduler binds the pod, nil for none: the nominated node if it passes. Pods
// that are nominated to a node count as if they were bound to it.
func choose(seed uint64, hosts []*host, p *model.PodSpec, promised map[string][]*model.PodSpec) *host {
	var best *host
	most, tie := -1.0, uint64(0)
	rules := rulesOf(hosts, p)
	for _, h := range hosts {
		if !h.takes(p, promised[h.Name]) || !rules.admit(h) {
			continue
		}
		if h.Name == p.Nominated {
			return h
		}
		score, ticket := h.score(p), draw(seed, p.UID, h.Name)
		if score > most || score == most && ticket > tie {
			best, most, tie = h, score, ticket
		}
	}
	return best
}

func draw(seed uint64, words ...string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	_, _ = h.Write([]byte(strings.Join(words, "/")))
	return h.Sum64()
}

// takes checks the filters that depend on the node alone.
func (h *host) takes(p *model.PodSpec, promised []*model.PodSpec) bool {
	if h.Stage < model.Registered || !h.Ready || h.Disrupted || h.Deleting {
		return false
	}
	for _, a := range p.Requests {
		need := a.Value + h.used[a.Name]
		for _, other := range promised {
			if other.UID != p.UID {
				need += amount(other.Requests, a.Name)
			}
		}
		if need > h.room[a.Name] {
			return false
		}
	}
	if _, no := model.Untolerated(h.Taints, p.Tolerations); no {
		return false
	}
	return len(p.Alternatives) == 0 || slices.ContainsFunc(p.Alternatives, func(all []label.Requirement) bool {
		return !slices.ContainsFunc(all, func(r label.Requirement) bool { return !has(h.Labels, r) })
	})
}

func amount(list []quantity.Amount, name string) int64 {
	var sum int64
	for _, a := range list {
		if a.Name == name {
			sum += a.Value
		}
	}
	return sum
}

func has(labels map[string]string, r label.Requirement) bool {
	value, there := labels[r.Key]
	switch r.Operator {
	case label.In:
		return there && slices.Contains(r.Values, value)
	case label.NotIn:
		return !there || !slices.Contains(r.Values, value)
	case label.Exists:
		return there
	case label.DoesNotExist:
		return !there
	}
	return false // bounds: no workload here has them
}

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

func rulesOf(hosts []*host, p *model.PodSpec) *rules {
	r := &rules{shut: map[domain]bool{}}
	for i := range p.Spread {
		if s := &p.Spread[i]; !s.Soft {
			r.open = append(r.open, evenly(s, countsOf(hosts, s.Key, &s.Selector)))
		}
	}
	for i := range p.Terms {
		t := &p.Terms[i]
		if !t.Required() {
			continue
		}
		counts := countsOf(hosts, t.Key, &t.Selector)
		near := allowed{t.Key, map[string]bool{}}
		for value, n := range counts {
			if n > 0 {
				near.values[value] = true
				r.shut[domain{t.Key, value}] = r.shut[domain{t.Key, value}] || t.Anti
			}
		}
		switch {
		case t.Anti:
		case len(near.values) > 0 || !t.Selector.Selects(p.Namespace, p.Labels):
			r.open = append(r.open, near)
		}
	}
	r.shutBy(hosts, p)
	for d, shut := range r.shut {
		if !shut {
			delete(r.shut, d)
		}
	}
	return r
}

// shutBy records the domains in which other pods' anti-affinity excludes the pod.
func (r *rules) shutBy(hosts []*host, p *model.PodSpec) {
	for _, h := range hosts {
		for _, q := range h.pods {
			for i := range q.Terms {
				t := &q.Terms[i]
				if value, known := h.Labels[t.Key]; known && t.Required() && t.Anti && t.Selector.Selects(p.Namespace, p.Labels) {
					r.shut[domain{t.Key, value}] = true
				}
			}
		}
	}
}

// countsOf returns the number of selected pods by domain.
func countsOf(hosts []*host, key string, selector *model.Selector) map[string]int {
	counts := map[string]int{}
	for _, h := range hosts {
		value, known := h.Labels[key]
		if !known {
			continue
		}
		n := 0
		for _, q := range h.pods {
			if selector.Selects(q.Namespace, q.Labels) {
				n++
			}
		}
		counts[value] += n
	}
	return counts
}

// evenly returns the domains in which one more pod keeps the skew.
func evenly(s *model.Spread, counts map[string]int) allowed {
	least := math.MaxInt
	for _, n := range counts {
		least = min(least, n)
	}
	if s.MinDomains > len(counts) {
		least = 0
	}
	a := allowed{s.Key, map[string]bool{}}
	for value, n := range counts {
		if n+1-least <= s.MaxSkew {
			a.values[value] = true
		}
	}
	return a
}

// score returns LeastAllocated plus BalancedAllocation, 0 to 200.
func (h *host) score(p *model.PodSpec) float64 {
	var parts [2]float64
	for i, name := range []string{"cpu", "memory"} {
		parts[i] = min(1, float64(h.used[name]+amount(p.Requests, name))/float64(max(1, h.room[name])))
	}
	free := 100 - 50*(parts[0]+parts[1])
	return math.Floor(free) + math.Floor(100*(1-math.Abs(parts[0]-parts[1])/2))
}

// inDrainOrder returns the order in which a drain evicts the pods: the largest first, by the larger of their shares
// of the node's cpu and memory.
func (h *host) inDrainOrder(seed uint64) []*model.PodSpec {
	size := func(p *model.PodSpec) float64 {
		part := func(name string) float64 { return float64(amount(p.Requests, name)) / float64(max(1, h.room[name])) }
		return max(part("cpu"), part("memory"))
	}
	list := slices.Clone(h.pods)
	slices.SortFunc(list, func(a, b *model.PodSpec) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(draw(seed, a.UID), draw(seed, b.UID)), strings.Compare(a.UID, b.UID))
	})
	return list
}
