package pricerule

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/cloud"
)

func TestParseErrors(t *testing.T) {
	for _, test := range []struct{ name, file, want string }{
		{"unknown field", "rules: [{name: a, factr: 1}]", `p.yaml: rules[0]: unknown field "factr"; ` +
			`want name, instanceTypes, families, sizes, capacityTypes, regions, zones, requirements, factor, price, prices, upTo`},
		{"wrong type", "rules: [{name: a, families: m7g}]", `p.yaml: rules[0]: families: a string; want a list`},
		{"text for a number", "rules: [{name: a, factor: '0.5'}]", `p.yaml: rules[0]: factor: a string; want a number, such as 0.72`},
		{"field twice", "rules:\n- name: a\n  factor: 1\n  factor: 1\n",
			`p.yaml: line 4: key "factor" already set in map; want each field once`},
		{"no list", "prices: []", `p.yaml: unknown field "prices"; want rules`},
		{"rules that are no list", "rules: {a: 1}", `p.yaml: rules: an object; want a list`},
		{"a list as the file", "[{name: a, factor: 1}]", `p.yaml: an array; want fields and their values`},
		{"a text as a rule", "rules: [a]", `p.yaml: rules[0]: a string; want fields and their values`},
		{"rules in another case", "Rules: [{name: a, factor: 1}]", `p.yaml: unknown field "Rules"; want rules`},
		{"a field in another case", "rules: [{name: a, factor: 1, UpTo: {vCPUs: 8}}]", `p.yaml: rules[0]: unknown field "UpTo"; ` +
			`want name, instanceTypes, families, sizes, capacityTypes, regions, zones, requirements, factor, price, prices, upTo`},
		{"a field within another", "rules: [{name: a, factor: 1, upTo: {vcpus: 8}}]",
			`p.yaml: rules[0]: unknown field "upTo.vcpus"; want vCPUs, usdPerHour, paid`},
		{"a field of a requirement", "rules: [{name: a, factor: 1, requirements: [{kee: k, operator: Exists}]}]",
			`p.yaml: rules[0]: unknown field "requirements[0].kee"; want key, operator, values`},
		{"text for a switch", "rules: [{name: a, factor: 1, upTo: {vCPUs: 8, paid: 'true'}}]",
			`p.yaml: rules[0]: upTo.paid: a string; want true or false`},
		{"empty prices", "rules: [{name: a, prices: {}}]",
			`p.yaml: rules[0].prices: none; want USD per hour by instance type, such as {m7g.large: 0.05}`},
		{"two documents", "rules: [{name: a, factor: 1}]\n---\nrules: [{name: b, factor: 1}]\n",
			`p.yaml: line 2: a second YAML document; want one, with all rules in its list`},
		{"no name", "rules: [{factor: 1}]", `p.yaml: rules[0].name: ""; want lower case letters, digits and hyphens, such as savings-plan`},
		{"same name", "rules: [{name: a, factor: 1}, {name: a, factor: 1}]",
			`p.yaml: rules[1].name: "a" is the name of rules[0]; want another one`},
		{"no price", "rules: [{name: a, factor: 1}, {name: b}]",
			`p.yaml: rules[1]: neither factor nor price nor prices; want one of them, such as factor: 0.72`},
		{"both", "rules: [{name: a, factor: 1, price: 2}]", `p.yaml: rules[0].price: 2 beside factor 1; want one of them`},
		{"price and prices", "rules: [{name: a, price: 1, prices: {m7g.large: 1}}]",
			`p.yaml: rules[0].prices: beside factor or price; want one of them`},
		{"free type", "rules: [{name: a, prices: {m7g.large: 0}}]",
			`p.yaml: rules[0].prices[m7g.large]: 0; want more than 0, and 1000 USD per hour at most`},
		{"percent", "rules: [{name: a, factor: 72}]",
			`p.yaml: rules[0].factor: 72; want more than 0, and 10 at most, the part of the price that is paid`},
		{"negative", "rules: [{name: a, price: -0.1}]", `p.yaml: rules[0].price: -0.1; want more than 0, and 1000 USD per hour at most`},
		{"pattern", "rules: [{name: a, factor: 1, families: ['m[']}]",
			`p.yaml: rules[0].families[0]: "m["; want a name or a pattern with * and ?, such as m7g.* for instanceTypes`},
		{"capacity type", "rules: [{name: a, factor: 1, capacityTypes: [ondemand]}]",
			`p.yaml: rules[0].capacityTypes[0]: "ondemand"; want one of on-demand, spot, reserved`},
		{"region", "rules: [{name: a, factor: 1, regions: [us-*]}]",
			`p.yaml: rules[0].regions[0]: "us-*"; want the name of a region, such as us-east-1 (zones may be patterns)`},
		{"operator", "rules: [{name: a, factor: 1, requirements: [{key: k, operator: Bar, values: [m6g]}]}]",
			`p.yaml: rules[0].requirements[0].operator: "Bar"; want one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte`},
		{"no values", "rules: [{name: a, factor: 1, requirements: [{key: k, operator: In}]}]",
			`p.yaml: rules[0].requirements[0].values: none; want one or more for In`},
		{"values of Exists", "rules: [{name: a, factor: 1, requirements: [{key: k, operator: Exists, values: [a]}]}]",
			`p.yaml: rules[0].requirements[0].values: ["a"]; want none for Exists`},
		{"no integer", "rules: [{name: a, factor: 1, requirements: [{key: k, operator: Gt, values: [a]}]}]",
			`p.yaml: rules[0].requirements[0].values: ["a"]; want one integer, zero or greater, for Gt`},
		{"two limits", "rules: [{name: a, factor: 1, upTo: {vCPUs: 1, usdPerHour: 1}}]",
			`p.yaml: rules[0].upTo: vCPUs 1 and usdPerHour 1; want one of them, above 0`},
		{"no limit", "rules: [{name: a, factor: 1, upTo: {}}]", `p.yaml: rules[0].upTo: vCPUs 0 and usdPerHour 0; want one of them, above 0`},
		{"negative limit", "rules: [{name: a, factor: 1, upTo: {vCPUs: -4}}]",
			`p.yaml: rules[0].upTo.vCPUs: -4; want more than 0, and 10000000 at most`},
		{"spot commitment", "rules: [{name: a, factor: 1, capacityTypes: [spot], upTo: {vCPUs: 4}}]",
			`p.yaml: rules[0].capacityTypes: ["spot"] with upTo; want on-demand alone, what a commitment pays for`},
		{"free factor", "rules: [{name: a, factor: 0}]",
			`p.yaml: rules[0].factor: 0; want more than 0: free machines have no order; a commitment that is paid anyway has upTo.paid`},
		{"free", "rules: [{name: a, price: 0}]", `p.yaml: rules[0].price: 0; want more than 0, and 1000 USD per hour at most`},
		{"not a number", "rules: [{name: a, factor: 1}, {name: b, factor: .nan}]", `p.yaml: rules[1].factor: .nan; want a finite number`},
		{"a mark", "rules: [{name: a, factor: 1, ofCloud: true}]",
			`p.yaml: rules[0].ofCloud: true; want none: it marks rules that the provider states`},
		{"infinite", "rules:\n- {name: a, factor: 1, upTo: {vCPUs: -.Inf}}\n", `p.yaml: rules[0].upTo.vCPUs: -.Inf; want a finite number`},
		{"too many", "rules: [" + strings.Repeat("{name: a, factor: 1},", MaxRules+1) + "]", "p.yaml: rules: 1001; want 1000 at most"},
	} {
		_, err := Parse("p.yaml", []byte(test.file))
		if err == nil {
			t.Errorf("%s: no error", test.name)
			continue
		}
		if diff := cmp.Diff(test.want, err.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestParseSeparators: separators without a second document are accepted.
func TestParseSeparators(t *testing.T) {
	rules, err := Parse("p.yaml", []byte("# prices\n---\nrules: [{name: a, factor: 1}]\n---\n# the end\n"))
	if err != nil || len(rules) != 1 {
		t.Errorf("%d rules, error %v; want 1", len(rules), err)
	}
}

func TestMatches(t *testing.T) {
	rules, err := Parse("p.yaml", []byte(`
rules:
- {name: family, families: [m7g, c7*], factor: 0.5}
- {name: size, sizes: ["*xlarge"], zones: ["us-east-1?"], factor: 0.5}
- {name: region, regions: [us-east-1], capacityTypes: [spot], factor: 0.5}
- {name: limited, instanceTypes: ["m7g.*"], factor: 0.5, upTo: {vCPUs: 8}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ typeName, zone, capacityType, want string }{
		{"m7g.large", "us-east-1a", "on-demand", "family limited"},
		{"m7gd.large", "us-east-1a", "on-demand", ""},
		{"c7i-flex.xlarge", "us-east-1a", "spot", "family size region"},
		{"m7g.large", "us-east-1a", "spot", "family region"},
		{"r7g.large", "us-east-10a", "spot", ""},
		{"r7g.large", "us-east-1-bos-1a", "spot", "region"},
		{"r7g.2xlarge", "us-east-1b", "on-demand", "size"},
	} {
		var got []string
		for i := range rules {
			if rules[i].Matches(test.typeName, &cloud.Offering{Zone: test.zone, CapacityType: test.capacityType}) {
				got = append(got, rules[i].Name)
			}
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s in %s as %s: %q, want %q", test.typeName, test.zone, test.capacityType, text, test.want)
		}
	}
}
