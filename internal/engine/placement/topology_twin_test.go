package placement_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// The reference implementation ("twin") of the counters: it counts pods, one by one, by the rules of Kubernetes, with
// labels as strings.

// stand is a node for the twin: its labels are settled.
type stand struct {
	name   string
	labels map[string]string
	taints []model.Taint
	pods   []model.PodSpec
}

// stands returns the nodes of the world with the pods that are bound to them. Open labels of a claim in flight are
// settled by its labels in settled.
func (w world) stands(settled map[string]map[string]string) []stand {
	var all []stand
	for _, n := range w.nodes {
		s := stand{name: n.Name, labels: n.Labels, taints: n.Taints}
		if labels, open := settled[n.Name]; open {
			s.labels = labels
		}
		if n.Stage < model.Initialized {
			s.labels = initialized(s.labels)
		}
		for _, p := range w.pods {
			if p.State == model.Bound && p.Node == n.Name {
				s.pods = append(s.pods, p)
			}
		}
		all = append(all, s)
	}
	return all
}

// initialized returns the labels of a node once it is initialized.
func initialized(labels map[string]string) map[string]string {
	labels = maps.Clone(labels)
	labels[model.LabelRegistered], labels[model.LabelInitialized] = "true", "true"
	return labels
}

func (s *stand) has(key string) bool { _, has := s.labels[key]; return has }

// meets reports whether one of the alternatives is satisfied. No alternatives are always satisfied.
func (s *stand) meets(alternatives [][]label.Requirement) bool {
	return len(alternatives) == 0 || slices.ContainsFunc(alternatives, func(reqs []label.Requirement) bool {
		return !slices.ContainsFunc(reqs, func(r label.Requirement) bool {
			text, there := s.labels[r.Key]
			return !satisfied(r, text, there)
		})
	})
}

// chosen reports whether the selector selects the pod.
func chosen(s *model.Selector, p *model.PodSpec) bool {
	if s.Nothing || !s.AllNamespaces && !slices.Contains(s.Namespaces, p.Namespace) {
		return false
	}
	return !slices.ContainsFunc(s.Requirements, func(r label.Requirement) bool {
		text, there := p.Labels[r.Key]
		return !satisfied(r, text, there)
	})
}

// recount is what a rule reads: pods by value of the key, and by node; and the values of the nodes that count.
type recount struct {
	byValue map[string]int
	byNode  map[string]int
	values  map[string]bool
}

func count(stands []stand, key string, node func(*stand) bool, pod func(*model.PodSpec) bool) recount {
	r := recount{map[string]int{}, map[string]int{}, map[string]bool{}}
	for i := range stands {
		s := &stands[i]
		if !node(s) {
			continue
		}
		if s.has(key) {
			r.values[s.labels[key]] = true
		}
		for k := range s.pods {
			if !pod(&s.pods[k]) {
				continue
			}
			r.byNode[s.name]++
			if s.has(key) {
				r.byValue[s.labels[key]]++
			}
		}
	}
	return r
}

// recountSpread counts for a topology spread constraint (kube-scheduler, PodTopologySpread).
func recountSpread(stands []stand, p *model.PodSpec, c *model.Spread) recount {
	hard := slices.DeleteFunc(slices.Clone(p.Spread), func(o model.Spread) bool { return o.Soft })
	node := func(s *stand) bool {
		// For a single constraint, nodes without its key are in no domain anyway.
		if len(hard) > 1 && slices.ContainsFunc(hard, func(o model.Spread) bool { return !s.has(o.Key) }) {
			return false
		}
		return (c.IgnoreAffinity || s.meets(p.Alternatives)) && (!c.HonorTaints || tolerates(s.taints, p.Tolerations))
	}
	return count(stands, c.Key, node, func(q *model.PodSpec) bool {
		return !q.Terminating && q.Namespace == p.Namespace && len(c.Selector.Requirements) > 0 && chosen(&c.Selector, q)
	})
}

func everyNode(*stand) bool { return true }

// recountTerm counts for a term of pod affinity or anti-affinity (kube-scheduler, InterPodAffinity): required affinity
// counts the pods that all terms select.
func recountTerm(stands []stand, p *model.PodSpec, t *model.Term) recount {
	terms := []model.Term{*t}
	if !t.Anti && t.Weight == 0 && !t.Together {
		terms = slices.DeleteFunc(slices.Clone(p.Terms), func(o model.Term) bool { return o.Anti || o.Weight > 0 || o.Together })
	}
	return count(stands, t.Key, everyNode, func(q *model.PodSpec) bool {
		return !slices.ContainsFunc(terms, func(o model.Term) bool { return !chosen(&o.Selector, q) })
	})
}

// recountCarriers counts the pods whose required anti-affinity by the key excludes the pod, by the selector of the
// mark.
func recountCarriers(stands []stand, p *model.PodSpec, m *model.Mark) recount {
	return count(stands, m.Key, everyNode, func(q *model.PodSpec) bool {
		return slices.ContainsFunc(q.Terms, func(t model.Term) bool {
			return t.Anti && t.Weight == 0 && t.Key == m.Key && chosen(&t.Selector, p) && cmp.Equal(t.Selector, m.Selector)
		})
	})
}

// rulesRead calls see for each hard rule of each group of the world with the counts of the run and of the twin.
func (w world) rulesRead(stands []stand, see func(what string, ours placement.Domains, twin recount, spread bool)) {
	specs := map[string]*model.PodSpec{}
	for i := range w.pods {
		specs[w.pods[i].UID] = &w.pods[i]
	}
	snap := w.snapshot(nil)
	for _, g := range snap.Groups {
		p := specs[g.Pods[0].UID]
		if len(p.Alternatives) > 0 && len(g.Affinity) == 0 {
			continue // its requirements contradict each other: it fits nowhere, and has no counts
		}
		for i := range g.Spread {
			if !g.Spread[i].Soft {
				see(fmt.Sprintf("spread %d of %s", i, p.Name), placement.SpreadDomains(snap, g, i), recountSpread(stands, p, &g.Spread[i]), true)
			}
		}
		for i := range g.Terms {
			see(fmt.Sprintf("term %d of %s", i, p.Name), placement.TermDomains(snap, g, i), recountTerm(stands, p, &g.Terms[i]), false)
		}
		for _, mark := range g.BlockedBy {
			// Only the presence of pods matters: a pod that carries a term twice may count twice.
			ours, twin := placement.CarrierDomains(snap, g, mark), recountCarriers(stands, p, &snap.Marks[mark])
			for _, counts := range []map[string]int{ours.Most, ours.Sure, ours.Hosts, twin.byValue, twin.byNode} {
				for at := range counts {
					counts[at] = 1
				}
			}
			see(fmt.Sprintf("carriers that keep %s away", p.Name), ours, twin, false)
		}
	}
}

// sameCounts compares the counters with the twin where everything is settled, and returns how many pods were counted.
func (w world) sameCounts(t *testing.T) int {
	t.Helper()
	counted := 0
	w.rulesRead(w.stands(nil), func(what string, ours placement.Domains, twin recount, spread bool) {
		if ours.Key == model.LabelHostname {
			counted += sum(twin.byNode)
			if !spread && !maps.Equal(ours.Hosts, twin.byNode) {
				t.Errorf("%s, by host: counted %v, the twin %v", what, ours.Hosts, twin.byNode)
			}
			return
		}
		counted += sum(twin.byValue)
		if !maps.Equal(ours.Most, twin.byValue) {
			t.Errorf("%s, by %s: at most %v; the twin %v", what, ours.Key, ours.Most, twin.byValue)
		}
		if !maps.Equal(ours.Sure, twin.byValue) {
			t.Errorf("%s, by %s: surely %v; the twin %v", what, ours.Key, ours.Sure, twin.byValue)
		}
		if ours.Elsewhere != 0 {
			t.Errorf("%s, by %s: %d elsewhere; the twin 0", what, ours.Key, ours.Elsewhere)
		}
		if spread {
			if !maps.Equal(ours.Possible, twin.values) {
				t.Errorf("%s, by %s: possible domains %v; the twin %v", what, ours.Key, ours.Possible, twin.values)
			}
			if !maps.Equal(ours.Certain, twin.values) {
				t.Errorf("%s, by %s: certain domains %v; the twin %v", what, ours.Key, ours.Certain, twin.values)
			}
		}
	})
	return counted
}

// aroundCounts compares the counters with the twin where nodes are open: certain counts are lower bounds, possible ones
// upper bounds.
func (w world) aroundCounts(t *testing.T, settled map[string]map[string]string) {
	t.Helper()
	w.rulesRead(w.stands(settled), func(what string, ours placement.Domains, twin recount, spread bool) {
		if ours.Key == model.LabelHostname {
			return
		}
		for value, n := range twin.byValue {
			if ours.Most[value] < n {
				t.Errorf("%s, by %s=%s: at most %d, the twin %d", what, ours.Key, value, ours.Most[value], n)
			}
		}
		for value, n := range ours.Sure {
			if twin.byValue[value] < n {
				t.Errorf("%s, by %s=%s: surely %d, the twin %d", what, ours.Key, value, n, twin.byValue[value])
			}
		}
		for value := range twin.values {
			if spread && !ours.Possible[value] {
				t.Errorf("%s, by %s=%s: no domain, but for the twin", what, ours.Key, value)
			}
		}
		for value := range ours.Certain {
			if spread && !twin.values[value] {
				t.Errorf("%s, by %s=%s: certainly a domain, but not for the twin", what, ours.Key, value)
			}
		}
	})
}

func sum(counts map[string]int) int {
	n := 0
	for _, c := range counts {
		n += c
	}
	return n
}

// settle chooses one of the types, zones and capacity types of a launched claim.
func (w world) settle(d dice, c plan.NewClaim) map[string]string {
	var pool model.PoolSpec
	for _, p := range w.pools {
		if p.Name == c.Pool {
			pool = p
		}
	}
	o := c.Options[d.IntN(len(c.Options))]
	labels := maps.Clone(inFlight(c, pool).Labels)
	for i := range pool.Catalog.Types {
		if kind := &pool.Catalog.Types[i]; kind.Name == o.Type {
			for _, r := range kind.Requirements {
				if r.Operator == label.In {
					labels[r.Key] = allowed(r, c.Requirements)
				}
			}
		}
	}
	labels[model.LabelZone], labels[model.LabelCapacityType], labels[model.LabelHostname] = o.Zone, o.CapacityType, c.Name
	for _, asked := range c.Requirements {
		if _, known := labels[asked.Key]; !known && !satisfied(asked, "", false) {
			labels[asked.Key] = anyAllowed(asked.Key, c.Requirements) // the type does not define the label
		}
	}
	return initialized(labels)
}

// allowed returns the first value of a type's label that a claim allows.
func allowed(r label.Requirement, asked []label.Requirement) string {
	for _, v := range r.Values {
		if !slices.ContainsFunc(asked, func(a label.Requirement) bool { return a.Key == r.Key && !satisfied(a, v, true) }) {
			return v
		}
	}
	return r.Values[0]
}

// anyAllowed returns a value of a label that a claim allows.
func anyAllowed(key string, asked []label.Requirement) string {
	values := []string{"some-word"}
	for _, a := range asked {
		for _, v := range a.Values {
			values = append(values, v)
			if n, err := strconv.Atoi(v); a.Key == key && err == nil {
				values = append(values, strconv.Itoa(n-1), strconv.Itoa(n+1))
			}
		}
	}
	return allowed(label.Requirement{Key: key, Values: values}, asked)
}

// countsOf compares the counters of one random world with the twin: as it is; with the claims of a plan in flight, for
// any outcome; and when they are nodes and their pods are bound.
func countsOf(t *testing.T, seed uint64, kind uint8) int {
	t.Helper()
	d := diceOf(seed, kind)
	w := d.world()
	counted := w.sameCounts(t)
	claims := placement.Schedule(w.snapshot(nil), placement.Options{}).Claims
	launching := w.launching(claims)
	// Some pods remain pending in both: their rules are read.
	launching.deployment(d, "app-late", 6)
	settled := map[string]map[string]string{}
	for _, c := range claims {
		settled[c.Name] = w.settle(d, c)
	}
	launching.aroundCounts(t, settled)
	counted += launching.registered(claims, settled).sameCounts(t)
	if t.Failed() {
		t.Fatalf("seed %d, kind %d", seed, kind)
	}
	return counted
}

// registered turns claims in flight into nodes, and binds the pods that they were launched for. Similar pods are added,
// whose rules count them.
func (w world) registered(claims []plan.NewClaim, settled map[string]map[string]string) world {
	w.nodes, w.pods = slices.Clone(w.nodes), slices.Clone(w.pods)
	nodeOf := map[string]string{}
	for _, c := range claims {
		for _, p := range c.Pods {
			nodeOf[p.UID] = c.Name
		}
	}
	for i := range w.nodes {
		n := &w.nodes[i]
		if labels, new := settled[n.Name]; new {
			n.Stage, n.Labels, n.LaunchedFor, n.Ready = model.Initialized, labels, nil, true
			n.Capacity, n.Allocatable = n.Requests, n.Requests
		}
	}
	for i := range w.pods {
		p := &w.pods[i]
		if node, placed := nodeOf[p.UID]; placed {
			again := *p
			again.UID, again.Name = "again-"+p.UID, "again-"+p.Name
			w.pods = append(w.pods, again)
			p = &w.pods[i]
			p.State, p.Node = model.Bound, node
		}
	}
	return w
}

// TestCountersAgainstTheTwin compares the counts that rules between pods read with a plain recount of the pods.
func TestCountersAgainstTheTwin(t *testing.T) {
	counted := 0
	for seed := range uint64(*worlds) {
		counted += countsOf(t, seed, foreign)
		counted += countsOf(t, seed, rich)
	}
	t.Logf("%d pods counted", counted)
	if counted < 10**worlds {
		t.Errorf("only %d pods were counted in %d worlds: the worlds are too empty", counted, 2**worlds)
	}
}

func FuzzCounters(f *testing.F) {
	f.Add(uint64(1<<41), uint8(1))
	f.Add(uint64(1<<41), uint8(2))
	f.Fuzz(func(t *testing.T, seed uint64, kind uint8) { countsOf(t, seed, 1+kind%2) })
}
