package overlay

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
)

// withRules applies a price file beside NodeOverlays to two types of two capacity types, and returns prices and
// commitments by offering.
func withRules(t *testing.T, file string, overlays ...*karpv1alpha1.NodeOverlay) map[string]cloud.Offering {
	t.Helper()
	rules, err := pricerule.Parse("prices.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	set, err := New(overlays, karpv1.CoreRules(), "").WithRules(rules)
	if err != nil {
		t.Fatal(err)
	}
	p := Pool{Name: "default"}
	for _, name := range []string{"m7g.large", "m7i.large"} {
		p.Types = append(p.Types, cloud.InstanceType{Name: name, Offerings: []cloud.Offering{
			{Zone: "us-east-1a", CapacityType: "on-demand", Price: 0.1, Available: true},
			{Zone: "us-east-1a", CapacityType: "spot", Price: 0.04, Available: true}}})
	}
	types, _ := set.Resolve([]Pool{p}).Apply(p)
	got := map[string]cloud.Offering{}
	for i := range types {
		for k := range types[i].Offerings {
			got[types[i].Name+" "+types[i].Offerings[k].CapacityType] = types[i].Offerings[k]
		}
	}
	return got
}

func TestRules(t *testing.T) {
	price := "0.07"
	overlay := &karpv1alpha1.NodeOverlay{}
	overlay.Name = "all"
	overlay.Spec.Price = &price
	got := withRules(t, `
rules:
- {name: first, families: [m7g], factor: 0.5, upTo: {vCPUs: 8}}
- {name: second, capacityTypes: [on-demand], factor: 0.9, upTo: {usdPerHour: 2}}
- {name: contract, families: [m7g], factor: 0.75}
- {name: never, families: [m7g], factor: 0.1}
`, overlay)
	first := cloud.Commitment{Name: "first", Rank: 0, Price: 0.05, VCPUs: 8}
	second := cloud.Commitment{Name: "second", Rank: 1, Price: 0.09, USD: 2}
	offering := func(capacityType string, price float64, of ...cloud.Commitment) cloud.Offering {
		return cloud.Offering{Zone: "us-east-1a", CapacityType: capacityType, Price: price, Available: true, Commitments: of}
	}
	want := map[string]cloud.Offering{
		"m7g.large on-demand": offering("on-demand", 0.1*0.75, first, second),
		"m7g.large spot":      offering("spot", 0.04*0.75),
		"m7i.large on-demand": offering("on-demand", 0.07, second),
		"m7i.large spot":      offering("spot", 0.07),
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })); diff != "" {
		t.Errorf("offerings (-want +got):\n%s", diff)
	}
}

// TestRuleThatMatchesNothing: the types are the very same slice, so that plans are the same.
func TestRuleThatMatchesNothing(t *testing.T) {
	rules, err := pricerule.Parse("p",
		[]byte(`rules: [{name: a, families: [x9], factor: 0.5, upTo: {vCPUs: 8}}, {name: b, families: [x9], price: 1}]`))
	if err != nil {
		t.Fatal(err)
	}
	set, err := New(nil, karpv1.CoreRules(), "").WithRules(rules)
	if err != nil {
		t.Fatal(err)
	}
	p := Pool{Name: "default", Types: []cloud.InstanceType{{Name: "m7g.large", Offerings: []cloud.Offering{{CapacityType: "on-demand"}}}}}
	if types, _ := set.Resolve([]Pool{p}).Apply(p); &types[0] != &p.Types[0] {
		t.Error("the types were copied")
	}
}

// TestRulesOfUnpriced: a rule that names the types opens offerings without a price. One that does not leaves them to
// NodeOverlays.
func TestRulesOfUnpriced(t *testing.T) {
	price, named := "3", &karpv1alpha1.NodeOverlay{}
	named.Name, named.Spec.Price = "named", &price
	named.Spec.Requirements = []karpv1alpha1.Requirement{
		{Key: "node.kubernetes.io/instance-type", Operator: karpv1.OperatorIn, Values: []string{"m1"}}}
	for _, test := range []struct {
		rule          string
		alone, beside float64 // the price, without and with the NodeOverlay; 0 if it is not available
	}{
		{"prices: {m1: 2}", 2, 2},
		{"price: 2, instanceTypes: [m1, z9]", 2, 2},
		{"price: 2, instanceTypes: ['m*']", 0, 3},
		{"price: 2", 0, 3},
		{"factor: 0.5", 0, 3},
		{"prices: {m1: 2}, upTo: {vCPUs: 8}", 0, 3},
	} {
		rules, err := pricerule.Parse("p", []byte("rules: [{name: r, "+test.rule+"}]"))
		if err != nil {
			t.Fatal(err)
		}
		for _, overlays := range [][]*karpv1alpha1.NodeOverlay{nil, {named}} {
			want := test.alone
			if overlays != nil {
				want = test.beside
			}
			set, err := New(overlays, karpv1.CoreRules(), "").WithRules(rules)
			if err != nil {
				t.Fatal(err)
			}
			raw := []cloud.Offering{{Zone: "a", CapacityType: "on-demand", Unpriced: true}}
			p := Pool{Name: "p", Types: []cloud.InstanceType{{Name: "m1", Offerings: raw}}}
			types, _ := set.Resolve([]Pool{p}).Apply(p)
			o := types[0].Offerings[0]
			if o.Price != want || o.Available != (want > 0) || o.Unpriced != (want == 0) {
				t.Errorf("%s beside %d overlays: %+v, want price %v", test.rule, len(overlays), o, want)
			}
		}
	}
}

func TestRuleWithInvalidRequirement(t *testing.T) {
	rules, err := pricerule.Parse("p", []byte(`rules: [{name: a, factor: 1, requirements: [{key: "a b", operator: Exists}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(nil, karpv1.CoreRules(), "").WithRules(rules)
	if err == nil || !strings.HasPrefix(err.Error(), `rules[0].requirements[0].key: "a b" is not a label key`) {
		t.Errorf("error %v", err)
	}
}

// TestRuleProblems: what of a rule matches nothing, or is hidden, is named; rules of the provider are left out.
func TestRuleProblems(t *testing.T) {
	rules, err := pricerule.Parse("p", []byte(`
rules:
- {name: misspelled, families: [m7gg], factor: 0.5, upTo: {vCPUs: 8}}
- {name: half, families: [m7g, c7gg], regions: [us-east-1, eu-west-1], factor: 0.5, upTo: {vCPUs: 8}}
- {name: far, zones: [eu-west-1a], factor: 0.5}
- {name: together, families: [m7g], instanceTypes: [m7i.*], factor: 0.5}
- {name: table, prices: {m7gg.large: 1}}
- {name: good, families: [m7g], prices: {m7g.large: 0.1, m7g.huge: 2}}
- {name: hidden, instanceTypes: [m7g.large], factor: 0.9}
- {name: partly, sizes: [large], factor: 0.9}
- {name: ri-m7gg, families: [m7gg], factor: 0.9}
- {name: many, families: [a, b, c, d, e], factor: 0.9}
`))
	if err != nil {
		t.Fatal(err)
	}
	rules[8].OfCloud = true
	set, err := New(nil, karpv1.CoreRules(), "").WithRules(rules)
	if err != nil {
		t.Fatal(err)
	}
	p := Pool{Name: "default"}
	for _, name := range []string{"m7g.large", "m7i.large"} {
		p.Types = append(p.Types, cloud.InstanceType{Name: name, Offerings: []cloud.Offering{
			{Zone: "us-east-1a", CapacityType: "on-demand", Price: 0.1, Available: true}}})
	}
	got := map[string]string{}
	for _, r := range set.Resolve([]Pool{p}).RuleProblems() {
		got[r.Name] = r.Message
	}
	want := map[string]string{
		"misspelled": "has no effect: no instance type matches families m7gg",
		"half":       "matches nothing by families c7gg: no instance type has that",
		"far":        "has no effect: no instance type matches zones eu-west-1a",
		"together":   "has no effect: no offering matches all of its fields and has a price",
		"table":      "has no effect: no instance type matches prices m7gg.large",
		"hidden":     "has no effect: an earlier rule sets the price of all that it matches",
		"many":       "has no effect: no instance type matches families a, families b, families c and 2 more",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if list := set.Resolve(nil).RuleProblems(); len(list) > 0 {
		t.Errorf("without a catalog: %v", list)
	}
}
