package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

// TestPriceRules follows rules from a store without NodeOverlays into plans and launches, and out again.
func TestPriceRules(t *testing.T) {
	provider := &shop{types: map[string][]cloud.InstanceType{"": oneType("small", 1)}}
	s := newStore(t, Config{Provider: provider, PriceRules: true, Options: Options{Catalog: time.Hour}})
	s.Saw(objecttest.Pool(t, "a", "uid-a", "1"))
	run(t, s)
	eventually(t, "the catalog is read", func() bool { return catalogOf(s, "a") != nil })
	raw := catalogOf(s, "a").Types[0].Offerings
	set := func(text string) error {
		t.Helper()
		rules, err := pricerule.Parse("p", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return s.SetPriceRules(rules)
	}
	if err := set("rules: [{name: half, factor: 0.5}]"); err != nil {
		t.Fatal(err)
	}
	if got := catalogOf(s, "a").Types[0].Offerings[0].Price; got != raw[0].Price/2 {
		t.Errorf("the price is %d, want half of %d", got, raw[0].Price)
	}
	if launched := s.Overlaid("a", provider.types[""]); launched[0].Offerings[0].Price != provider.types[""][0].Offerings[0].Price/2 {
		t.Errorf("a launch has %+v, want half of the price", launched[0].Offerings[0])
	}
	if err := set(`rules: [{name: bad, factor: 0.1, requirements: [{key: "a b", operator: Exists}]}]`); err == nil ||
		!strings.Contains(err.Error(), "rules[0].requirements[0].key") {
		t.Errorf("error %v", err)
	}
	if got := catalogOf(s, "a").Types[0].Offerings[0].Price; got != raw[0].Price/2 {
		t.Errorf("after an invalid rule the price is %d", got)
	}
	if err := set("rules: [{name: plan, factor: 0.25, upTo: {vCPUs: 4}}]"); err != nil {
		t.Fatal(err)
	}
	committed := 0
	for _, o := range catalogOf(s, "a").Types[0].Offerings {
		if o.Units > 0 && o.Limit == 4000 && o.Price == raw[0].Price/4 {
			committed++
		}
	}
	if snap := s.Snapshot(time.Now()); committed == 0 || len(snap.Commitments) != 1 || snap.Commitments[0].Left() != 4000 {
		t.Errorf("%d committed offerings of %+v, commitments %+v", committed, catalogOf(s, "a").Types[0].Offerings, snap.Commitments)
	}
	if err := set("rules: [{name: plan, prices: {small: 2, large: 3}, upTo: {usdPerHour: 4, paid: true}}]"); err != nil {
		t.Fatal(err)
	}
	paid := 0
	for _, o := range catalogOf(s, "a").Types[0].Offerings {
		if o.Units > 0 && o.Limit == 4*model.Nano && o.Price == 2*model.Nano/pricerule.PaidScale && o.PerPrice == pricerule.PaidScale &&
			o.Units >= 2*model.Nano && o.Units <= 5*model.Nano/2 {
			paid++
		}
	}
	if paid != committed {
		t.Errorf("%d offerings of a paid commitment of %+v, want %d", paid, catalogOf(s, "a").Types[0].Offerings, committed)
	}
	if err := set("rules: [{name: other, prices: {large: 3}}]"); err != nil {
		t.Fatal(err)
	}
	if got := catalogOf(s, "a").Types[0].Offerings[0].Price; got != raw[0].Price {
		t.Errorf("a rule with prices of another type makes the price %d, want %d", got, raw[0].Price)
	}
	if err := set("rules: []"); err != nil {
		t.Fatal(err)
	}
	if now := catalogOf(s, "a").Types[0].Offerings; len(now) != len(raw) || now[0].Price != raw[0].Price || now[0].Price == 0 ||
		now[0].Price > 1000*model.Nano {
		t.Errorf("without rules, the offerings are %+v, want %+v", now, raw)
	}
}

// TestPriceRuleProblems: a rule without effect is logged once, when the catalog of each pool is known.
func TestPriceRuleProblems(t *testing.T) {
	lines := make(chan string, 100)
	log := funcr.New(func(_, line string) {
		if strings.Contains(line, "price rule") {
			lines <- line
		}
	}, funcr.Options{})
	provider := &shop{types: map[string][]cloud.InstanceType{"": oneType("small", 1)}}
	s := newStore(t, Config{Provider: provider, PriceRules: true, Log: log, Options: Options{Catalog: time.Hour}})
	set := func(text string) {
		t.Helper()
		rules, err := pricerule.Parse("p", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, pricerule.Rule{Name: "ri", Families: []string{"none"}, Price: new(float64(len(lines) + 1)), OfCloud: true})
		if err := s.SetPriceRules(rules); err != nil {
			t.Fatal(err)
		}
	}
	set("rules: [{name: misspelled, families: [smal], factor: 0.5}, {name: half, factor: 0.5}]")
	s.Saw(objecttest.Pool(t, "a", "uid-a", "1"))
	if len(lines) > 0 {
		t.Fatalf("logged %q before a catalog is known", <-lines)
	}
	run(t, s)
	const want = `"msg"="a price rule has no effect: no instance type matches families smal" "rule"="misspelled"`
	if line := <-lines; !strings.HasSuffix(line, want) {
		t.Errorf("logged %s, want %s", line, want)
	}
	lines <- "of the test, so that the provider's rule changes"
	set("rules: [{name: misspelled, families: [smal], factor: 0.5}, {name: half, factor: 0.6}]")
	<-lines
	set("rules: [{name: half, factor: 0.5}]")
	if len(lines) > 0 {
		t.Errorf("logged again: %s", <-lines)
	}
	set("rules: [{name: misspelled, sizes: [smal], factor: 0.5}]")
	if len(lines) != 1 {
		t.Fatalf("%d lines after another mistake, want 1", len(lines))
	}
}
