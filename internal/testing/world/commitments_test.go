package world_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/testing/world"
)

// committable are types of two families with equal sizes, on demand; b costs a quarter more than a.
func committable() []cloud.InstanceType {
	var all []cloud.InstanceType
	for _, name := range []string{"a.2", "a.4", "b.2", "b.4"} {
		cpus := int64(name[2] - '0')
		price := float64(cpus) * 0.04
		if name[0] == 'b' {
			price *= 1.25
		}
		all = append(all, cloud.InstanceType{Name: name, Capacity: map[string]int64{"cpu": cpus * 1000, "memory": cpus << 32, "pods": 50},
			Requirements: []cloud.Requirement{{Key: corev1.LabelInstanceTypeStable, Operator: "In", Values: []string{name}}},
			Offerings:    []cloud.Offering{{Zone: "a", CapacityType: karpv1.CapacityTypeOnDemand, Price: price, Available: true}}})
	}
	return all
}

func rulesOf(t *testing.T, text string) []pricerule.Rule {
	t.Helper()
	rules, err := pricerule.Parse("prices.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// commitmentEnds are the rules for a fleet of ten machines before and after a commitment ends, and the machines that are
// launched for it.
var commitmentEnds = []struct {
	name, before, after string
	launches            int
	price               float64 // of the fleet at the end, USD per hour
}{
	{"all of it", "rules: [{name: plan, families: [b], factor: 0.5, upTo: {vCPUs: 40}}]", "rules: []", 10, 10 * 0.16},
	{"half of it", "rules: [{name: plan, families: [b], factor: 0.5, upTo: {vCPUs: 40}}]",
		"rules: [{name: plan, families: [b], factor: 0.5, upTo: {vCPUs: 20}}]", 5, 5*0.1 + 5*0.16},
	{"what is paid", "rules: [{name: plan, families: [b], factor: 1, upTo: {vCPUs: 40, paid: true}}]", "rules: []", 10, 10 * 0.16},
	{"another begins", "rules: [{name: plan, families: [b], factor: 0.5, upTo: {usdPerHour: 10}}]",
		"rules: [{name: next, families: [a], factor: 0.5, upTo: {usdPerHour: 10}}]", 10, 10 * 0.08},
	{"it is not worth a move", "rules: [{name: plan, families: [a], factor: 0.5, upTo: {vCPUs: 40}}]", "rules: []", 0, 10 * 0.16},
}

// TestCommitmentEnds lets a commitment end under a fleet, in a process that goes on and in one that has just started: the
// machines have the usual prices at once, each is replaced once at most, within the budget, and then nothing is launched.
func TestCommitmentEnds(t *testing.T) {
	for _, test := range commitmentEnds {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", test.name, restarts), func(t *testing.T) {
				p := pool()
				p.Spec.Template.Spec.Requirements = nil
				p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "10%"}}
				w := start(t, world.Config{Seed: 1, Now: noon, Types: committable(), Objects: []client.Object{p}, Judge: true,
					PriceRules: rulesOf(t, test.before)})
				w.Scale(podOf("app", 3000), 10)
				advance(t, w, time.Hour)
				if n := len(w.Snapshot().Nodes); n != 10 || w.Tally.Bought != 10 {
					t.Fatalf("%d nodes, %d launched; want 10", n, w.Tally.Bought)
				}
				before := w.Snapshot().Nodes
				if err := w.SetPriceRules(rulesOf(t, test.after)); err != nil {
					t.Fatal(err)
				}
				if restarts {
					w.Crash(1)
				}
				seen := map[string]bool{}
				for range 8 * 12 {
					advance(t, w, 5*time.Minute)
					atUsualPrices(t, w)
					for _, n := range w.Snapshot().Nodes {
						seen[n.Name] = true
					}
					if leaving := len(w.Snapshot().Nodes) - 10; leaving > 1 {
						t.Fatalf("%d machines are replaced at a time; the budget is one", leaving)
					}
				}
				for _, n := range before {
					delete(seen, n.Name)
				}
				price := 0.0
				for _, n := range w.Snapshot().Nodes {
					price += float64(n.Price) / model.Nano
				}
				if len(seen) != test.launches || price < test.price-1e-6 || price > test.price+1e-6 {
					t.Errorf("%d machines were launched, and the fleet costs %.4f; want %d and %.4f", len(seen), price, test.launches, test.price)
				}
			})
		}
	}
}

// TestCommitmentEndsInFlight ends a commitment while the machines that were bought with it are being launched.
func TestCommitmentEndsInFlight(t *testing.T) {
	p := pool()
	p.Spec.Template.Spec.Requirements = nil
	w := start(t, world.Config{Seed: 1, Now: noon, Types: committable(), Objects: []client.Object{p}, Judge: true,
		PriceRules: rulesOf(t, "rules: [{name: plan, families: [b], factor: 0.5, upTo: {vCPUs: 40}}]")})
	w.Scale(podOf("app", 3000), 4)
	for range 30 {
		if advance(t, w, time.Second); len(w.Snapshot().Nodes) == 4 {
			break
		}
	}
	if n := len(w.Snapshot().Nodes); n != 4 {
		t.Fatalf("%d claims, want 4", n)
	}
	if i := slices.IndexFunc(w.Snapshot().Nodes, func(n *model.Node) bool { return n.LeastPrice() != model.Nano/10 }); i >= 0 {
		t.Fatalf("%s costs %d, want half of 0.2 USD", w.Snapshot().Nodes[i].Name, w.Snapshot().Nodes[i].LeastPrice())
	}
	if err := w.SetPriceRules(rulesOf(t, "rules: []")); err != nil {
		t.Fatal(err)
	}
	atUsualPrices(t, w)
	advance(t, w, 5*time.Minute)
	atUsualPrices(t, w)
	if w.Tally.Bought != 4 {
		t.Errorf("%d machines were launched for the pods, want 4", w.Tally.Bought)
	}
}

// atUsualPrices checks that no machine has a price that no rule gives: each is that of the type, or of a commitment that
// covers it.
func atUsualPrices(t *testing.T, w *world.World) {
	t.Helper()
	snap := w.Snapshot()
	committed := int64(0)
	for _, c := range snap.Commitments {
		committed += c.Used
	}
	for _, n := range snap.Nodes {
		list := map[string]int64{"a.2": 8, "a.4": 16, "b.2": 10, "b.4": 20}[n.LeastType()] * model.Nano / 100
		if list > 0 && n.LeastPrice() != list && committed == 0 {
			t.Fatalf("%s: node %s costs %d, and no commitment is used; want %d", snap.Now.Format(time.TimeOnly), n.Name, n.LeastPrice(), list)
		}
	}
}

func advance(t *testing.T, w *world.World, d time.Duration) {
	t.Helper()
	w.Advance(d)
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
}
