package overlay_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/overlay"
)

const reservationKey = "example.com/reservation"

// typ returns a type of a family with one on-demand and one spot offering in each of two zones. Spot costs half.
func typ(name, family string, usd float64) cloud.InstanceType {
	t := cloud.InstanceType{
		Name:         name,
		Requirements: []cloud.Requirement{{Key: "example.com/family", Operator: "In", Values: []string{family}}},
		Capacity:     map[string]int64{"cpu": 4000, "memory": 16 << 30, "pods": 110},
		Overhead:     map[string]int64{"memory": 1 << 30},
	}
	for _, zone := range []string{"a", "b"} {
		t.Offerings = append(t.Offerings, cloud.Offering{Zone: zone, CapacityType: "on-demand", Price: usd, Available: true},
			cloud.Offering{Zone: zone, CapacityType: "spot", Price: usd / 2, Available: true})
	}
	return t
}

func pool(name string, labels map[string]string) overlay.Pool {
	return overlay.Pool{Name: name, Labels: labels, Types: []cloud.InstanceType{typ("c1", "c", 1.02), typ("m1", "m", 1.02), typ("m2", "m", 2.04)}}
}

// overlays reads "NAME: {weight: 3, ...}" of several overlays.
func overlays(t *testing.T, text string) []*karpv1alpha1.NodeOverlay {
	t.Helper()
	specs := map[string]karpv1alpha1.NodeOverlaySpec{}
	if err := yaml.UnmarshalStrict([]byte(text), &specs); err != nil {
		t.Fatal(err)
	}
	var list []*karpv1alpha1.NodeOverlay
	for name, spec := range specs {
		o := &karpv1alpha1.NodeOverlay{Spec: spec}
		if o.Name = name; strings.HasPrefix(name, "stack") {
			o.Annotations = map[string]string{karpv1.AnnotationStack: "true"}
		}
		list = append(list, o)
	}
	return list
}

func resolve(t *testing.T, text string, pools ...overlay.Pool) *overlay.Outcome {
	t.Helper()
	return overlay.New(overlays(t, text), karpv1.CoreRules(), reservationKey).Resolve(pools)
}

// changed returns the changes that have an effect: offering or type, and the new price or amount.
func changed(out *overlay.Outcome, p overlay.Pool) map[string]float64 {
	types, _ := out.Apply(p)
	got := map[string]float64{}
	for i, t := range types {
		for k, o := range t.Offerings {
			if o.Price != p.Types[i].Offerings[k].Price {
				got[t.Name+"/"+o.Zone+"/"+o.CapacityType] = o.Price
			}
		}
		for name, amount := range t.Capacity {
			if amount != p.Types[i].Capacity[name] {
				got[t.Name+" "+name] = float64(amount)
			}
		}
	}
	return got
}

const (
	m1Spot = "requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m1]}, {key: karpenter.sh/capacity-type, operator: In, values: [spot]}]"
	m1InA  = "requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m1]}, {key: topology.kubernetes.io/zone, operator: In, values: [a]}, " +
		"{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]"
	familyM = "requirements: [{key: example.com/family, operator: In, values: [m]}]"
)

func TestApply(t *testing.T) {
	for name, c := range map[string]struct {
		overlays string
		want     map[string]float64
	}{
		"OV-1 a price":               {"a: {" + m1InA + ", price: '13234.223'}", map[string]float64{"m1/a/on-demand": 13234.223}},
		"OV-2 an amount":             {"a: {" + m1InA + ", priceAdjustment: '+1000'}", map[string]float64{"m1/a/on-demand": 1001.02}},
		"OV-3 a percentage":          {"a: {" + m1InA + ", priceAdjustment: '-50%'}", map[string]float64{"m1/a/on-demand": 0.51}},
		"OV-4 at least zero":         {"a: {" + m1InA + ", priceAdjustment: '-2'}", map[string]float64{"m1/a/on-demand": 0}},
		"OV-5 free":                  {"a: {" + m1InA + ", priceAdjustment: '-100%'}", map[string]float64{"m1/a/on-demand": 0}},
		"OV-6 the weight decides":    {"a: {" + m1InA + ", price: '0.5', weight: 10}\nb: {" + m1InA + ", price: '0.3', weight: 5}", map[string]float64{"m1/a/on-demand": 0.5}},
		"OV-7 a conflict":            {"a: {" + m1InA + ", price: '0.5', weight: 10, capacity: {x/y: 1}}\nb: {" + m1InA + ", price: '0.3', weight: 10}", map[string]float64{"m1/a/on-demand": 0.3}},
		"OV-8 no conflict":           {"a: {" + m1InA + ", price: '0.5', weight: 10}\nb: {" + m1InA + ", capacity: {x/y: 2}, weight: 10}", map[string]float64{"m1/a/on-demand": 0.5, "m1 x/y": 2}},
		"OV-9 capacity":              {"a: {" + familyM + ", capacity: {smarter-devices/fuse: 1}}", map[string]float64{"m1 smarter-devices/fuse": 1, "m2 smarter-devices/fuse": 1}},
		"OV-10 a template's label":   {"a: {requirements: [{key: team, operator: In, values: [x]}, {key: example.com/family, operator: In, values: [c]}], capacity: {x/y: 1}}", map[string]float64{"c1 x/y": 1}},
		"another template's label":   {"a: {requirements: [{key: team, operator: In, values: [y]}], capacity: {x/y: 1}}", nil},
		"a name of the pool":         {"a: {requirements: [{key: karpenter.sh/nodepool, operator: In, values: [q]}], capacity: {x/y: 1}}", nil},
		"beyond the highest price":   {"a: {" + m1InA + ", priceAdjustment: '+9999999999999'}", nil},
		"up to the highest price":    {"a: {" + m1InA + ", priceAdjustment: '+999000'}", map[string]float64{"m1/a/on-demand": 999001.02}},
		"OV-12 an invalid key":       {"a: {requirements: [{key: " + strings.Repeat("k", 260) + ", operator: NotIn, values: [v]}], price: '1'}", nil},
		"a label that is not there":  {"a: {requirements: [{key: tier, operator: Exists}], capacity: {x/y: 1}}", nil},
		"NotIn of an absent label":   {"a: {requirements: [{key: tier, operator: NotIn, values: [gold]}, {key: example.com/family, operator: In, values: [c]}], capacity: {x/y: 1}}", map[string]float64{"c1 x/y": 1}},
		"capacity by one offering":   {"a: {" + m1Spot + ", capacity: {x/y: 1}}", map[string]float64{"m1 x/y": 1}},
		"a reservation":              {"a: {requirements: [{key: example.com/reservation, operator: Exists}], price: '0'}", nil},
		"no reservation":             {"a: {" + strings.TrimSuffix(m1InA, "]") + ", {key: example.com/reservation, operator: DoesNotExist}], price: '9'}", map[string]float64{"m1/a/on-demand": 9}},
		"an older name of a label":   {"a: {requirements: [{key: beta.kubernetes.io/instance-type, operator: In, values: [c1]}], capacity: {x/y: 1}}", map[string]float64{"c1 x/y": 1}},
		"resources of several merge": {"a: {" + m1Spot + ", capacity: {x/y: 1, x/z: 1}, weight: 2}\nb: {" + m1Spot + ", capacity: {x/y: 5, x/w: 5}}", map[string]float64{"m1 x/y": 1, "m1 x/z": 1, "m1 x/w": 5}},
		"stacked":                    {"a: {" + m1InA + ", price: '1', weight: 9}\nstack-b: {" + m1InA + ", priceAdjustment: '-10%', weight: 5}\nstack-c: {" + m1InA + ", priceAdjustment: '+0.1'}", map[string]float64{"m1/a/on-demand": 1}},
		"a third conflicts with the first": {"a: {" + m1Spot + ", capacity: {x/y: 3}}\nb: {" + m1Spot + ", capacity: {x/z: 2}}\nc: {" + m1Spot + ", capacity: {x/y: 1}}",
			map[string]float64{"m1 x/y": 1, "m1 x/z": 2}},
	} {
		p := pool("p", map[string]string{"team": "x"})
		before := pool("p", map[string]string{"team": "x"})
		got := changed(resolve(t, c.overlays, p), p)
		if len(got) == 0 {
			got = nil
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: changes (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(before, p); diff != "" {
			t.Errorf("%s: the provider's answer is modified (-before +after):\n%s", name, diff)
		}
	}
}

// TestUnpriced checks which overlays make offerings without a price available.
func TestUnpriced(t *testing.T) {
	const (
		m1      = "requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m1, z9]}]"
		notC1   = "requirements: [{key: node.kubernetes.io/instance-type, operator: NotIn, values: [c1]}]"
		m1Older = "requirements: [{key: beta.kubernetes.io/instance-type, operator: In, values: [m1]}]"
	)
	opened := map[string]float64{"m1/a/on-demand": 3, "m1/b/spot": 3}
	for name, c := range map[string]struct {
		overlays string
		want     map[string]float64 // prices of the offerings that were without and are available
		message  string             // of overlay a
	}{
		"a price by type":            {"a: {" + m1 + ", price: '3'}", opened, "price of 4 offerings of 1 types"},
		"an older name of the label": {"a: {" + m1Older + ", price: '3'}", opened, ""},
		"a price of zero":            {"a: {" + m1 + ", price: '0'}", map[string]float64{"m1/a/on-demand": 0, "m1/b/spot": 0}, ""},
		"more requirements":          {"a: {" + m1InA + ", price: '3'}", nil, "price of 1 offerings of 1 types"},
		"all but some types":         {"a: {" + notC1 + ", price: '3'}", nil, ""},
		"another label":              {"a: {" + familyM + ", price: '3'}", nil, ""},
		"an adjustment":              {"a: {" + m1 + ", priceAdjustment: '+3'}", nil, "price of 3 offerings of 1 types"},
		"capacity only":              {"a: {" + m1 + ", capacity: {x/y: 1}}", nil, "price of 0 offerings"},
		"an adjustment of larger weight": {"a: {" + m1 + ", price: '3'}\nb: {requirements: [], priceAdjustment: '-10%', weight: 5}",
			map[string]float64{"m1/a/on-demand": 3}, ""},
		"an adjustment of the weight": {"a: {" + m1InA + ", priceAdjustment: '-10%'}\nb: {" + m1 + ", price: '3'}", opened, ""},
		"an adjustment after it, stacked": {"a: {" + m1 + ", price: '3', weight: 5}\nstack-b: {" + m1InA + ", priceAdjustment: '-1'}",
			map[string]float64{"m1/a/on-demand": 2, "m1/b/spot": 3}, ""},
		"a price of larger weight": {"a: {" + m1 + ", price: '3'}\nb: {" + familyM + ", price: '4', weight: 5}", nil,
			`applies to nothing; overlays with precedence: ["b"]`},
	} {
		p := pool("p", nil)
		offerings := p.Types[1].Offerings // m1: a/on-demand has no price, and EC2 refuses b/on-demand, b/spot has an upper bound
		offerings[0].Price, offerings[0].Available, offerings[0].Unpriced = 0, false, true
		offerings[2].Available, offerings[2].Unpriced, offerings[2].RetryAt = false, true, time.Unix(60, 0)
		offerings[3].Available, offerings[3].Unpriced = false, true
		out := resolve(t, c.overlays, p)
		types, _ := out.Apply(p)
		var got map[string]float64
		for i, o := range types[1].Offerings {
			if o.Available && o.Unpriced {
				t.Errorf("%s: %+v is available without a price", name, o)
			}
			if o.Available && !offerings[i].Available {
				if got == nil {
					got = map[string]float64{}
				}
				got["m1/"+o.Zone+"/"+o.CapacityType] = o.Price
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: opened (-want +got):\n%s", name, diff)
		}
		if report := out.Reports()[0]; !strings.HasPrefix(report.Message, c.message) {
			t.Errorf("%s: report is %q, want %q", name, report.Message, c.message)
		}
	}
}

// TestHugePages checks that added huge pages reduce the memory for pods.
func TestHugePages(t *testing.T) {
	p := pool("p", nil)
	types, _ := resolve(t, "a: {"+m1Spot+", capacity: {hugepages-2Mi: 2Gi}}", p).Apply(p)
	if got, want := types[1].Allocatable()["memory"], int64(13<<30); got != want {
		t.Errorf("m1 has %d bytes of memory for pods, want %d", got, want)
	}
}

// TestShared checks that what does not change is not copied.
func TestShared(t *testing.T) {
	p, q := pool("p", map[string]string{"team": "x"}), pool("q", nil)
	out := resolve(t, "a: {requirements: [{key: team, operator: In, values: [x]}, {key: node.kubernetes.io/instance-type, operator: In, values: [m1]}], price: '1'}", p, q)
	if types, marks := out.Apply(q); &types[0] != &q.Types[0] || marks.Price != nil {
		t.Error("OV-10: pool q is copied, or marked")
	}
	types, marks := out.Apply(p)
	if &types[0].Offerings[0] != &p.Types[0].Offerings[0] {
		t.Error("the offerings of c1 are copied")
	}
	if diff := cmp.Diff(overlay.Marks{Price: map[string]bool{"m1": true}, Capacity: map[string]bool{}}, marks); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
}

// TestSharedByPools checks that pools with the same types share the changed ones, unless an overlay distinguishes them,
// and that each counts in the report.
func TestSharedByPools(t *testing.T) {
	types := pool("a", nil).Types
	named := func(name, team string) overlay.Pool {
		return overlay.Pool{Name: name, Labels: map[string]string{"team": team}, Types: types}
	}
	a, b, c := named("a", "red"), named("b", "blue"), named("c", "blue")
	same := func(out *overlay.Outcome, p, q overlay.Pool) bool {
		ofP, _ := out.Apply(p)
		ofQ, _ := out.Apply(q)
		return &ofP[0] == &ofQ[0]
	}
	all := resolve(t, "o: {"+m1Spot+", price: '1'}", a, b, c)
	if !same(all, a, b) || !same(all, b, c) {
		t.Error("pools that no overlay distinguishes do not share their types")
	}
	if got, want := all.Reports()[0].Message, "price of 2 offerings of 1 types, capacity of 0 types, in 3 of 3 pools"; got != want {
		t.Errorf("report is %q, want %q", got, want)
	}
	some := resolve(t, "o: {requirements: [{key: team, operator: In, values: [blue]}], price: '1'}", a, b, c)
	if same(some, a, b) || !same(some, b, c) {
		t.Error("want the types shared by the pools of one team only")
	}
	if got, want := some.Reports()[0].Message, " in 2 of 3 pools"; !strings.HasSuffix(got, want) {
		t.Errorf("report is %q, want %q", got, want)
	}
	if got, _ := some.Apply(a); &got[0] != &types[0] {
		t.Error("a pool without changes has other types")
	}
	if got, want := len(some.Changes(c)), len(some.Changes(b)); got != want || got == 0 {
		t.Errorf("pool c has %d changes, b %d", got, want)
	}
}

func TestReports(t *testing.T) {
	for name, c := range map[string]struct{ overlays, of, reason, message string }{
		"an effect": {"a: {" + familyM + ", priceAdjustment: '-1%', capacity: {x/y: 1}}", "a", "",
			"price of 8 offerings of 2 types, capacity of 2 types, in 2 of 2 pools"},
		"nothing": {"a: {requirements: [{key: example.com/family, operator: In, values: [z]}], price: '1'}", "a", "",
			"applies to nothing: no instance type of 2 pools matches"},
		"overruled": {"a: {" + m1Spot + ", price: '1', weight: 2}\nb: {" + m1Spot + ", price: '2'}", "b", "",
			`applies to nothing; overlays with precedence: ["a"]`},
		"partly overruled": {"a: {" + m1Spot + ", price: '1', weight: 2}\nb: {" + m1Spot + ", price: '2', capacity: {x/y: 1}}", "b", "",
			`price of 0 offerings of 0 types, capacity of 1 types, in 2 of 2 pools; overlays with precedence: ["a"]`},
		"OV-7 a conflict of prices": {"a: {" + m1Spot + ", price: '1', weight: 10}\nb: {" + m1Spot + ", price: '1', weight: 10}", "a", "Conflict",
			`conflicts with "b" (same weight 10) on price of m1/a/spot in pool "p", and 3 more`},
		"a conflict of resources": {"a: {" + m1Spot + ", capacity: {x/y: 1}}\nb: {" + m1Spot + ", capacity: {x/y: 1}}", "a", "Conflict",
			`conflicts with "b" (same weight 0) on x/y of m1 in pool "p", and 1 more`},
		"stacked of one weight": {"a: {" + m1Spot + ", price: '1'}\nstack-b: {" + m1Spot + ", priceAdjustment: '-1'}", "a", "Conflict",
			`conflicts with "stack-b" (same weight 0) on price of m1/a/spot in pool "p", and 3 more`},
		"OV-12 a long key": {"a: {requirements: [{key: " + strings.Repeat("k", 260) + ", operator: Exists}], price: '1'}", "a", "RuntimeValidation", "spec.requirements[0].key: "},
		"a restricted label": {"a: {requirements: [{key: karpenter.sh/registered, operator: Exists}], price: '1'}", "a", "RuntimeValidation",
			"spec.requirements[0].key: karpenter.sh/registered: labels of the domain karpenter.sh are set by karpenter"},
		"a price beyond all prices": {"a: {" + m1Spot + ", price: '1000001'}", "a", "RuntimeValidation",
			`spec.price: "1000001" is not a price; it is USD per hour, zero to 1000000`},
		"an amount that makes all prices equal": {"a: {" + m1Spot + ", priceAdjustment: '+100000000'}", "a", "RuntimeValidation",
			`spec.priceAdjustment: "+100000000" makes 1000 USD per hour more than 1000000, the highest price; all types would have it`},
		"a percentage that makes all prices equal": {"a: {" + m1Spot + ", priceAdjustment: '+99999999999999999999%'}", "a", "RuntimeValidation",
			`spec.priceAdjustment: "+99999999999999999999%" makes 1000 USD per hour more than 1000000`},
		"a large percentage": {"a: {" + m1Spot + ", priceAdjustment: '+99900%'}", "a", "", "price of 2 offerings of 1 types"},
		"a value": {"a: {requirements: [{key: a, operator: In, values: [b, 'c d']}], price: '1'}", "a", "RuntimeValidation",
			`spec.requirements[0].values[1]: "c d" is not a label value`},
		"a resource": {"a: {requirements: [], capacity: {a b: 1}}", "a", "RuntimeValidation",
			"spec.capacity[a b]: is not a resource name"},
		"cpu": {"a: {requirements: [], capacity: {cpu: 1}}", "a", "RuntimeValidation",
			"spec.capacity[cpu]: invalid resource restricted"},
		"negative": {"a: {requirements: [], capacity: {x/y: -1}}", "a", "RuntimeValidation", "spec.capacity[x/y]: is negative"},
		"invalid conflicts with none": {"b: {requirements: [{key: 'a b', operator: NotIn, values: [c]}], price: '1'}\na: {" + m1Spot + ", price: '1'}", "a", "",
			"price of 2 offerings of 1 types"},
	} {
		reports := resolve(t, c.overlays, pool("p", nil), pool("q", nil)).Reports()
		at := slices.IndexFunc(reports, func(r overlay.Report) bool { return r.Name == c.of })
		if at < 0 {
			t.Errorf("%s: no report of %s in %v", name, c.of, reports)
			continue
		}
		if r := reports[at]; r.Reason != c.reason || !strings.HasPrefix(r.Message, c.message) {
			t.Errorf("%s: report is %q %q, want %q %q", name, r.Reason, r.Message, c.reason, c.message)
		}
	}
}

// TestMissingCatalog is OV-11: a pool whose class is missing has no types, and does not stop overlays on others.
func TestMissingCatalog(t *testing.T) {
	p := pool("p", nil)
	if got := changed(resolve(t, "a: {"+m1InA+", price: '1'}", p, overlay.Pool{Name: "q"}), p); got["m1/a/on-demand"] != 1 {
		t.Errorf("changes are %v, want a price of 1", got)
	}
}

// TestChanges checks the rows of explain.
func TestChanges(t *testing.T) {
	p := pool("p", nil)
	got := resolve(t, "a: {"+m1InA+", price: '1', weight: 2}\nb: {"+m1InA+", price: '2', capacity: {x/y: 3}}", p).Changes(p)
	want := []overlay.Change{
		{Overlay: "a", Pool: "p", Type: "m1", Offering: "m1/a/on-demand", Raw: 1.02, Price: 1},
		{Overlay: "b", Pool: "p", Type: "m1", Offering: "m1/a/on-demand", Raw: 1.02, Price: 1, By: "a"},
		{Overlay: "b", Pool: "p", Type: "m1", Resource: "x/y", Amount: 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}
