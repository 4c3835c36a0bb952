package disruption_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/testing/golden"
)

// TestScenarios reads testdata/*.txtar. A file begins with a sentence that states what it shows; "world" has lines of
//
//	type NAME cpu=N price=USD [spot=USD] [zone=Z]..., in zone z without
//	pool NAME [policy=P] [after=D] [budget=N|N%[:REASON][:inactive]]... [payback=D] [move-price=USD]
//	     [cpu-limit=N] [node-limit=N] [max-spot-share=N] [zone=Z] [min-zones=N] [min-capacity-types=N] [min-types=N]
//	node NAME pool=P type=T [spot] [notready] [bought=D] [zone=Z], launched D ago by a consolidation
//	pod NAME node=N cpu=N [cost=N] [protected=D] [daemon] [terminating] [spread], over zones with a maxSkew of 1,
//	     [near], in the zone of other pods with near, [zone=Z],
//	     [was=N], the cpu that its successor requests
//	pdb NAME allowed=N        for all pods
//
// that are run twice, the second time shuffled; "plan" is the proposal and the reasons that keep the other nodes.
func TestScenarios(t *testing.T) { golden.Each(t, play) }

func play(t *testing.T, file *golden.File) {
	f := worldOf(t, string(file.Section("world")))
	snap := f.snapshot(nil)
	got := planned(snap, disruption.Propose(snap, usual))
	again := f.snapshot(rand.New(rand.NewPCG(1, 1)))
	if diff := cmp.Diff(got, planned(again, disruption.Propose(again, usual))); diff != "" {
		t.Errorf("the order of the lines changes the result:\n%s", diff)
	}
	file.Check(t, "plan", got)
}

// planned returns a proposal as text.
func planned(snap *model.Snapshot, p disruption.Proposal) string {
	var b strings.Builder
	for _, c := range p.Commands {
		var names []string
		for _, candidate := range c.Candidates {
			names = append(names, candidate.Node)
		}
		fmt.Fprintf(&b, "%s %s because %s: saves %s an hour, moves %d pods\n", c.Decision(), strings.Join(names, ", "), c.Reason, explain.Money(c.Worth.Saving), c.Worth.Pods)
		for _, s := range c.Assignments {
			fmt.Fprintf(&b, "  onto %s: %s\n", s.Node, strings.Join(keysOf(s.Pods), ", "))
		}
		for i := range c.Replacements {
			var types []string
			for _, o := range c.Replacements[i].Options {
				types = append(types, o.Type+"/"+o.CapacityType)
			}
			fmt.Fprintf(&b, "  onto a new %s: %s\n", strings.Join(types, " or "), strings.Join(keysOf(c.Replacements[i].Pods), ", "))
		}
	}
	for _, k := range p.Kept {
		fmt.Fprintf(&b, "keep %s: %s\n", k.Node, explain.Verdict(snap, k.Verdict))
	}
	if !p.Next.IsZero() {
		fmt.Fprintf(&b, "next in %s\n", p.Next.Sub(noon))
	}
	return b.String()
}

// said holds the words of a line: flags, and values by key.
type said map[string][]string

func wordsOf(words []string) said {
	s := said{}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		s[key] = append(s[key], value)
	}
	return s
}

func (s said) has(key string) bool { return len(s[key]) > 0 }

func (s said) text(key string) string {
	if !s.has(key) {
		return ""
	}
	return s[key][0]
}

func (s said) number(t *testing.T, key string) float64 {
	if !s.has(key) {
		return 0
	}
	x, err := strconv.ParseFloat(s[key][0], 64)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return x
}

func (s said) span(t *testing.T, key string) time.Duration {
	if !s.has(key) {
		return 0
	}
	return duration(t, s[key][0])
}

func worldOf(t *testing.T, text string) *fleet {
	f, c := &fleet{}, &model.Catalog{WellKnown: map[string]bool{model.LabelZone: true, model.LabelCapacityType: true, model.LabelType: true, model.LabelPool: true}}
	for _, line := range linesOf(text) {
		words := strings.Fields(line)
		name, has := words[1], wordsOf(words[2:])
		switch words[0] {
		case "type":
			c.Types = append(c.Types, typeOf(t, name, has))
		case "pool":
			f.pools = append(f.pools, poolOf(t, line, name, has))
		case "node":
			f.nodes = append(f.nodes, nodeOf(t, name, has, c))
		case "pod":
			f.pods = append(f.pods, podOf(t, name, has))
		case "pdb":
			f.pdbs = append(f.pdbs, model.PDBSpec{UID: name, Namespace: "default", Name: name, Allowed: int64(has.number(t, "allowed")), Healthy: true,
				Selector: model.Selector{Namespaces: []string{"default"}}})
		default:
			t.Fatalf("unknown line: %s", line)
		}
	}
	for i := range f.pools {
		f.pools[i].Catalog = c
	}
	return f
}

func typeOf(t *testing.T, name string, has said) model.InstanceType {
	cpu := int64(1000 * has.number(t, "cpu"))
	amounts := []quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "pods", Value: 110}}
	k := model.InstanceType{Name: name, Capacity: amounts, Allocatable: amounts, Requirements: []label.Requirement{in(model.LabelType, name)}}
	zones := has["zone"]
	if len(zones) == 0 {
		zones = []string{"z"}
	}
	offer := func(zone, capacityType, price string) {
		k.Offerings = append(k.Offerings,
			model.Offering{Zone: zone, CapacityType: capacityType, Price: int64(model.Nano * has.number(t, price)), Available: true})
	}
	for _, zone := range zones {
		offer(zone, "on-demand", "price")
		if has.has("spot") {
			offer(zone, "spot", "spot")
		}
	}
	return k
}

func poolOf(t *testing.T, line, name string, has said) model.PoolSpec {
	p := pool(t, name, map[string]string{"policy": has.text("policy"), "after": has.span(t, "after").String(), "budget": joined(has["budget"])})
	p.Requirements = []label.Requirement{in(model.LabelPool, name)}
	if has.has("zone") {
		p.Requirements = append(p.Requirements, in(model.LabelZone, has["zone"]...))
	}
	words := map[string]string{
		"min-zones": model.LabelZone, "min-capacity-types": model.LabelCapacityType, "min-types": model.LabelType,
	}
	for word, key := range words {
		if has.has(word) {
			p.Requirements = append(p.Requirements, label.Requirement{Key: key, Operator: label.Exists,
				MinValues: int(has.number(t, word))})
		}
	}
	p.MaxSpotShare = int64(has.number(t, "max-spot-share"))
	p.NodePrice, p.Payback = -1, has.span(t, "payback")
	if has.has("move-price") {
		if p.MovePrice = int64(model.Nano * has.number(t, "move-price")); p.MovePrice == 0 {
			p.MovePrice = -1
		}
	}
	if has.has("cpu-limit") {
		p.Limits = []quantity.Amount{{Name: "cpu", Value: int64(1000 * has.number(t, "cpu-limit"))}}
	}
	if has.has("node-limit") {
		p.Limits = append(p.Limits, quantity.Amount{Name: model.ResourceNodes, Value: int64(has.number(t, "node-limit"))})
	}
	if p.Policy == "" {
		t.Fatalf("no policy: %s", line)
	}
	return p
}

// joined returns several values of a key in the form that pool expects.
func joined(values []string) string {
	text := ""
	for _, v := range values {
		text += "," + v
	}
	return text
}

func nodeOf(t *testing.T, name string, has said, c *model.Catalog) model.NodeSpec {
	n := node(t, name, map[string]string{"pool": has.text("pool"), "type": has.text("type")})
	n.Ready, n.Created = !has.has("notready"), n.InitializedAt
	n.Labels[model.LabelCapacityType] = "on-demand"
	if has.has("spot") {
		n.Labels[model.LabelCapacityType] = "spot"
	}
	if has.has("zone") {
		n.Labels[model.LabelZone] = has.text("zone")
	}
	if n.Replacement = has.has("bought"); n.Replacement {
		n.InitializedAt = noon.Add(-has.span(t, "bought"))
	}
	at := slices.IndexFunc(c.Types, func(k model.InstanceType) bool { return k.Name == has.text("type") })
	if at < 0 {
		t.Fatalf("node %s: no type %q before it", name, has.text("type"))
	}
	n.Capacity, n.Allocatable = c.Types[at].Capacity, c.Types[at].Allocatable
	return n
}

func podOf(t *testing.T, name string, has said) model.PodSpec {
	p := model.PodSpec{UID: "uid-" + name, Namespace: "default", Name: name, State: model.Bound, Node: has.text("node"), Ready: true, EvictionCost: 1000,
		Daemon: has.has("daemon"), Terminating: has.has("terminating"), Reschedulable: !has.has("daemon") && !has.has("terminating"),
		Requests: []quantity.Amount{{Name: "cpu", Value: int64(1000 * has.number(t, "cpu"))}, {Name: "pods", Value: 1}}}
	if has.has("was") {
		p.Successor = []quantity.Amount{{Name: "cpu", Value: int64(1000 * has.number(t, "was"))}, {Name: "pods", Value: 1}}
	}
	if has.has("cost") {
		p.EvictionCost = int64(1000 * has.number(t, "cost"))
	}
	if has.has("protected") {
		p.ProtectedUntil = noon.Add(has.span(t, "protected"))
	}
	if has.has("zone") {
		p.Alternatives = [][]label.Requirement{{in(model.LabelZone, has.text("zone"))}}
	}
	if has.has("spread") {
		p.Labels = map[string]string{"app": "spread"}
		p.Spread = []model.Spread{{Key: model.LabelZone, MaxSkew: 1,
			Selector: model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{in("app", "spread")}}}}
	}
	if has.has("near") {
		p.Labels = map[string]string{"app": "near"}
		p.Terms = []model.Term{{Key: model.LabelZone,
			Selector: model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{in("app", "near")}}}}
	}
	return p
}

// TestBalancedScore checks the arithmetic of the policy Balanced: a pool of ten nodes that costs 10, one of which has
// eight pods with the default eviction cost. The other nodes have a pod with a cost of 10 each, 90 in total.
func TestBalancedScore(t *testing.T) {
	for _, c := range []struct {
		replacement string
		want        bool
	}{{"0.5", true}, {"0.6", false}} {
		text := "type now cpu=8 price=1\ntype next cpu=8 price=" + c.replacement + "\npool p policy=Balanced move-price=0\nnode n0 pool=p type=now\n"
		for k := range 8 {
			text += fmt.Sprintf("pod p0-%d node=n0 cpu=1\n", k)
		}
		for i := 1; i < 10; i++ {
			// A node counts 1 plus the eviction cost of its pods: eight pods make 9, and ten such nodes 90.
			text += fmt.Sprintf("node n%d pool=p type=now\npod p%d node=n%d cpu=8 cost=8 protected=1h\n", i, i, i)
		}
		snap := worldOf(t, text).snapshot(nil)
		p := disruption.Propose(snap, usual)
		if got := len(p.Commands) == 1 && p.Commands[0].Reason == plan.Underutilized; got != c.want {
			t.Errorf("replaced for %s: approved %v, want %v:\n%s", c.replacement, got, c.want, planned(snap, p))
		}
	}
}
