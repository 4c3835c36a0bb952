package v1

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// testRules are the core rules together with those of a provider.
func testRules() LabelRules {
	return CoreRules().With(LabelRules{
		WellKnown:         []string{"cloud.example.com/size"},
		RestrictedDomains: []string{"cloud.example.com"},
		Aliases:           map[string]string{"old.example.com/zone": corev1.LabelTopologyZone},
	})
}

func fields(errs field.ErrorList) []string {
	var names []string
	for _, err := range errs {
		names = append(names, err.Field)
	}
	return names
}

// validationCase is a case of Validate.
type validationCase struct {
	name     string
	template string   // YAML of spec.template
	want     []string // fields with an error, below spec.template
}

func (v validationCase) run(t *testing.T) {
	pool := &NodePool{}
	if err := yaml.UnmarshalStrict([]byte(v.template), &pool.Spec.Template); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range v.want {
		want = append(want, "spec.template."+name)
	}
	errs := Validate(pool, testRules())
	if diff := cmp.Diff(want, fields(errs)); diff != "" {
		t.Errorf("fields with errors (-want +got):\n%s%v", diff, errs)
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []validationCase{
		{"nothing said", `{}`, nil},
		{"every error is reported", `{metadata: {labels: {karpenter.sh/other: a}}, spec: {taints: [{effect: x}], requirements: [{key: a, operator: In}]}}`,
			[]string{"metadata.labels[karpenter.sh/other]", "spec.taints[0].key", "spec.taints[0].effect", "spec.requirements[0].values"}},
	} {
		t.Run(test.name, test.run)
	}
}

func TestValidateLabels(t *testing.T) {
	for _, test := range []validationCase{
		{"good labels", `metadata: {labels: {team: a, example.com/tier: "", topology.kubernetes.io/zone: z, karpenter.sh/capacity-type: spot, cloud.example.com/size: big, kubernetes.io/role: x}}`, nil},
		{"pool label", `metadata: {labels: {karpenter.sh/nodepool: a}}`, []string{"metadata.labels[karpenter.sh/nodepool]"}},
		{"label of our domain", `metadata: {labels: {karpenter.sh/other: a}}`, []string{"metadata.labels[karpenter.sh/other]"}},
		{"label of a sub-domain of ours", `metadata: {labels: {sub.karpenter.sh/other: a}}`, []string{"metadata.labels[sub.karpenter.sh/other]"}},
		{"label of a domain that only ends like ours", `metadata: {labels: {foo-karpenter.sh/other: a}}`, nil},
		{"label of the provider's domain", `metadata: {labels: {cloud.example.com/other: a}}`,
			[]string{"metadata.labels[cloud.example.com/other]"}},
		{"hostname", `metadata: {labels: {kubernetes.io/hostname: a}}`, []string{"metadata.labels[kubernetes.io/hostname]"}},
		{"label key", `metadata: {labels: {"a b": c}}`, []string{"metadata.labels[a b]"}},
		{"label value", `metadata: {labels: {a: "b c"}}`, []string{"metadata.labels[a]"}},
	} {
		t.Run(test.name, test.run)
	}
}

func TestValidateTaints(t *testing.T) {
	for _, test := range []validationCase{
		{"good taints", `spec: {taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoExecute}, {key: example.com/b, value: c}], startupTaints: [{key: b, value: c, effect: PreferNoSchedule}]}`, nil},
		{"taint without a key", `spec: {taints: [{effect: NoSchedule}]}`, []string{"spec.taints[0].key"}},
		{"taint key", `spec: {startupTaints: [{key: "a b", effect: NoSchedule}]}`, []string{"spec.startupTaints[0].key"}},
		{"taint value", `spec: {taints: [{key: a, value: "b c", effect: NoSchedule}]}`, []string{"spec.taints[0].value"}},
		{"taint effect", `spec: {taints: [{key: a, effect: Sometimes}]}`, []string{"spec.taints[0].effect"}},
		{"taint twice in a list", `spec: {taints: [{key: a, effect: NoSchedule}, {key: a, value: b, effect: NoSchedule}]}`,
			[]string{"spec.taints[1]"}},
		{"taints that are ours", `spec: {taints: [{key: karpenter.sh/disrupted, effect: NoSchedule}], startupTaints: [{key: karpenter.sh/unregistered, effect: NoExecute}]}`,
			[]string{"spec.taints[0].key", "spec.startupTaints[0].key"}},
		{"taint in both lists", `spec: {taints: [{key: a, effect: NoSchedule}], startupTaints: [{key: b, effect: NoSchedule}, {key: a, effect: NoSchedule}]}`, []string{"spec.startupTaints[1]"}},
	} {
		t.Run(test.name, test.run)
	}
}

func TestValidateRequirements(t *testing.T) {
	for _, test := range []validationCase{
		{"good requirements", `spec: {requirements: [
			{key: topology.kubernetes.io/zone, operator: In, values: [a, b], minValues: 2},
			{key: failure-domain.beta.kubernetes.io/region, operator: NotIn, values: []},
			{key: old.example.com/zone, operator: Exists},
			{key: cloud.example.com/size, operator: Gt, values: ["0"]},
			{key: a, operator: Lte, values: ["5"]},
			{key: b, operator: DoesNotExist}]}`, nil},
		{"requirement on the pool label", `spec: {requirements: [{key: karpenter.sh/nodepool, operator: Exists}]}`,
			[]string{"spec.requirements[0].key"}},
		{"requirement on a restricted key", `spec: {requirements: [{key: karpenter.sh/other, operator: Exists}]}`,
			[]string{"spec.requirements[0].key"}},
		{"requirement on hostname", `spec: {requirements: [{key: kubernetes.io/hostname, operator: Exists}]}`,
			[]string{"spec.requirements[0].key"}},
		{"requirement key", `spec: {requirements: [{key: "", operator: Exists}]}`, []string{"spec.requirements[0].key"}},
		{"requirement operator", `spec: {requirements: [{key: a, operator: Near}]}`, []string{"spec.requirements[0].operator"}},
		{"requirement values", `spec: {requirements: [{key: a, operator: NotIn, values: [b, "c d"]}]}`,
			[]string{"spec.requirements[0].values[1]"}},
		{"In without values", `spec: {requirements: [{key: a, operator: In}]}`, []string{"spec.requirements[0].values"}},
		{"In with fewer values than minValues", `spec: {requirements: [{key: a, operator: In, values: [b], minValues: 2}]}`,
			[]string{"spec.requirements[0].minValues"}},
		{"Gt without a value", `spec: {requirements: [{key: a, operator: Gt}]}`, []string{"spec.requirements[0].values"}},
		{"Lt with two values", `spec: {requirements: [{key: a, operator: Lt, values: ["1", "2"]}]}`, []string{"spec.requirements[0].values"}},
		{"Gte with a word", `spec: {requirements: [{key: a, operator: Gte, values: [five]}]}`, []string{"spec.requirements[0].values[0]"}},
		{"Lte with a number out of range", `spec: {requirements: [{key: a, operator: Lte, values: ["99999999999999999999"]}]}`,
			[]string{"spec.requirements[0].values[0]"}},
		{"some capacity types known", `spec: {requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot, other]}]}`, nil},
		{"capacity types excluded", `spec: {requirements: [{key: karpenter.sh/capacity-type, operator: NotIn, values: [other]}]}`, nil},
		{"no capacity type known", `spec: {requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [other]}]}`,
			[]string{"spec.requirements[0].values"}},
		{"fewer known capacity types than minValues",
			`spec: {requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot, other, spot], minValues: 2}]}`,
			[]string{"spec.requirements[0].minValues"}},
		{"one capacity type and minValues of two", `spec: {requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot], minValues: 2}]}`, []string{"spec.requirements[0].minValues"}},
	} {
		t.Run(test.name, test.run)
	}
}

// Errors that the API server would report for each claim are reported for the pool, where they are visible.
func TestValidatePoolAsAWhole(t *testing.T) {
	requirements := func(n int, more ...Requirement) []Requirement {
		for i := range n {
			more = append(more, Requirement{Key: fmt.Sprintf("example.com/key-%d", i), Operator: OperatorExists})
		}
		return more
	}
	for _, test := range []struct {
		name   string
		change func(*NodePool)
		want   []string
	}{
		{"longest names", func(p *NodePool) {
			p.Name, p.Spec.Template.Spec.NodeClassRef.Name = strings.Repeat("a", 63), strings.Repeat("b", 63)
		}, nil},
		{"names too long for a label", func(p *NodePool) {
			p.Name, p.Spec.Template.Spec.NodeClassRef.Name = strings.Repeat("a", 64), strings.Repeat("b", 64)
		}, []string{"metadata.name", "spec.template.spec.nodeClassRef.name"}},
		{"limits", func(p *NodePool) {
			p.Spec.Limits = corev1.ResourceList{"cpu": resource.MustParse("0"), "memory": resource.MustParse("1Gi"),
				"nodes": resource.MustParse("-1"), "gpu": resource.MustParse("-1m")}
		}, []string{"spec.limits[gpu]", "spec.limits[nodes]"}},
		{"as many requirements as a claim may have", func(p *NodePool) { p.Spec.Template.Spec.Requirements = requirements(96) }, nil},
		{"one more", func(p *NodePool) { p.Spec.Template.Spec.Requirements = requirements(97) }, []string{"spec.template.spec.requirements"}},
		{"some on labels that a claim has anyway, or that say nothing", func(p *NodePool) {
			p.Spec.Template.Spec.Requirements = requirements(96,
				Requirement{Key: "beta.kubernetes.io/instance-type", Operator: OperatorExists},
				Requirement{Key: LabelCapacityType, Operator: OperatorExists},
				Requirement{Key: "example.com/key-0", Operator: OperatorNotIn, Values: []string{"a"}},
				Requirement{Key: "example.com/none", Operator: OperatorDoesNotExist})
		}, nil},
		{"labels become requirements", func(p *NodePool) {
			p.Spec.Template.Spec.Requirements = requirements(96)
			p.Spec.Template.ObjectMeta.Labels = map[string]string{"team": "a"}
		}, []string{"spec.template.spec.requirements"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			pool := &NodePool{}
			test.change(pool)
			errs := Validate(pool, testRules())
			if diff := cmp.Diff(test.want, fields(errs)); diff != "" {
				t.Errorf("fields with errors (-want +got):\n%s%v", diff, errs)
			}
		})
	}
}

// Users see this message in the pool's condition.
func TestValidateMessage(t *testing.T) {
	pool := &NodePool{}
	pool.Spec.Template.Spec.Requirements = []Requirement{
		{Key: "cloud.example.com/color", Operator: OperatorExists},
		{Key: LabelCapacityType, Operator: OperatorIn, Values: []string{"cheap"}},
	}
	got := Validate(pool, testRules()).ToAggregate().Error()
	want := `[spec.template.spec.requirements[0].key: Invalid value: "cloud.example.com/color": labels of the domain cloud.example.com are set by karpenter; use a domain of your own or one of cloud.example.com/size, ` +
		`spec.template.spec.requirements[1].values: Invalid value: ["cheap"]: must include at least one of on-demand, reserved, spot]`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestValidateRequirementsOfPods(t *testing.T) {
	path := field.NewPath("spec", "nodeSelector")
	requirements := []Requirement{
		RequirementOf(corev1.NodeSelectorRequirement{Key: LabelNodePool, Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}),
		RequirementOf(corev1.NodeSelectorRequirement{Key: "karpenter.sh/other", Operator: corev1.NodeSelectorOpExists}),
		RequirementOf(corev1.NodeSelectorRequirement{Key: "a", Operator: corev1.NodeSelectorOpGt, Values: []string{"x"}}),
	}
	want := []string{"spec.nodeSelector[1].key", "spec.nodeSelector[2].values[0]"}
	if diff := cmp.Diff(want, fields(ValidateRequirements(path, requirements, CoreRules()))); diff != "" {
		t.Errorf("fields with errors (-want +got):\n%s", diff)
	}
}

func TestLabelRules(t *testing.T) {
	core := CoreRules()
	more := LabelRules{
		WellKnown:    []string{"a", LabelCapacityType},
		Aliases:      map[string]string{"beta.kubernetes.io/arch": "a"},
		ValueAliases: map[string]map[string]string{"a": {"x": "y"}},
	}
	union := core.With(more)
	union.Aliases["changed"] = "b"
	union.ValueAliases["a"]["changed"] = "b"
	union.WellKnown[0] = "changed"
	if diff := cmp.Diff(CoreRules(), core); diff != "" {
		t.Errorf("With changed its receiver (-want +got):\n%s", diff)
	}
	switch {
	case len(more.ValueAliases["a"]) != 1:
		t.Errorf(`len(more.ValueAliases["a"]) is %v, want 1, With changed its argument to %+v`, len(more.ValueAliases["a"]), more)
	case len(more.Aliases) != 1:
		t.Errorf("len(more.Aliases) is %v, want 1, With changed its argument to %+v", len(more.Aliases), more)
	case more.WellKnown[0] != "a":
		t.Errorf(`more.WellKnown[0] is %v, want "a"`, more.WellKnown[0])
	}
	for key, want := range map[string]string{
		"failure-domain.beta.kubernetes.io/zone":   "topology.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
		"beta.kubernetes.io/arch":                  "kubernetes.io/arch",
		"beta.kubernetes.io/os":                    "kubernetes.io/os",
		"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
		"example.com/other":                        "example.com/other",
	} {
		if got := core.Key(key); got != want {
			t.Errorf("today's name of %s: got %s, want %s", key, got, want)
		}
	}
	if got := union.Key("beta.kubernetes.io/arch"); got != "a" {
		t.Errorf("an alias of the provider: got %s, want a", got)
	}
	switch {
	case union.Value("a", "x") != "y":
		t.Errorf(`values: want x of a to become y by the provider's rule, and nothing else: union.Value("a", "x") is %v, want "y"`,
			union.Value("a", "x"))
	case union.Value("a", "z") != "z":
		t.Errorf(`values: want x of a to become y by the provider's rule, and nothing else: union.Value("a", "z") is %v, want "z"`,
			union.Value("a", "z"))
	case core.Value("a", "x") != "x":
		t.Errorf(`values: want x of a to become y by the provider's rule, and nothing else: core.Value("a", "x") is %v, want "x"`,
			core.Value("a", "x"))
	}
	want := []string{
		"karpenter.sh/nodepool", "karpenter.sh/capacity-type", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
		"node.kubernetes.io/instance-type",
		"kubernetes.io/arch", "kubernetes.io/os", "node.kubernetes.io/windows-build",
	}
	if diff := cmp.Diff(want, core.WellKnown); diff != "" {
		t.Errorf("well-known labels (-want +got):\n%s", diff)
	}
}

func TestValidateEconomics(t *testing.T) {
	money := map[string]bool{"0": false, "0.005": false, "1e-3": false, "": true, "-1": true, "NaN": true, "Inf": true,
		"much": true, "1e10": true}
	for name, texts := range map[string]map[string]bool{
		"node-overhead-price": money, "move-price": money, "min-saving": money,
		"max-spot-share": {"1": false, "25": false, "25%": false, "100": false, "0": true, "101": true, "-5": true,
			"12.5": true, "half": true, "": true, "%": true},
		"rebalance": {"replace": false, "Replace": true, "true": true, "": true},
		"min-stay":  {"0s": false, "5m": false, "8761h": true, "-1s": true, "Never": true},
		"payback":   {"0s": false, "90m": false, "8760h": false, "8761h": true, "-1s": true, "": true, "Never": true, "5": true},
	} {
		for text, wrong := range texts {
			pool := &NodePool{}
			pool.Annotations = map[string]string{OwnAnnotationPrefix + name: text}
			errs := Validate(pool, testRules())
			switch {
			case (len(errs) > 0) != wrong:
				t.Errorf("(len(errs) > 0) is %v, want %v, %q, %v", (len(errs) > 0), wrong, text, errs)
			case wrong && errs[0].Field != "metadata.annotations[karpenter-go.github.io/"+name+"]":
				t.Errorf(`wrong && errs[0].Field != "metadata.annotations[karpenter-go.github.io/"+name+"]", %s, %q, %v, want an error: %t`,
					name, text, errs, wrong)
			}
		}
	}
}

// TestNearestLabels checks that a message lists the labels that resemble the unknown one, and not all of a domain.
func TestNearestLabels(t *testing.T) {
	rules := LabelRules{RestrictedDomains: []string{"a.example.com"}}
	for _, name := range []string{"instance-category", "instance-cpu", "instance-cpu-maker", "instance-family", "instance-memory", "zone-id"} {
		rules.WellKnown = append(rules.WellKnown, "a.example.com/"+name)
	}
	want := "labels of the domain a.example.com are set by karpenter; use a domain of your own or one of its 6 labels, such as " +
		"a.example.com/instance-family, a.example.com/instance-memory, a.example.com/instance-cpu, a.example.com/instance-category"
	if diff := cmp.Diff(want, rules.Restriction("a.example.com/instance-famly")); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}
