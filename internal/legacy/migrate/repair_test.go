package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// poolWith returns a valid pool, to which tests add mistakes.
func poolWith(version, spec, template string) string {
	return "apiVersion: karpenter.sh/" + version + "\nkind: NodePool\nmetadata:\n  name: a\nspec:\n" + indent(spec,
		"  ") + "  template:\n    spec:\n" + indent(template, "      ") +
		"      nodeClassRef:\n        group: karpenter.k8s.aws\n        kind: EC2NodeClass\n        name: default\n"
}

func indent(text, by string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(by + strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}

// run migrates one text and parses the output.
func run(t *testing.T, text string) (*document, Result) {
	t.Helper()
	result := Run([]File{{Name: "in", Text: []byte(text)}}, Options{})
	d := split(File{Name: "out", Text: result.Manifests})[0]
	if err := d.parse(); err != nil {
		t.Fatal(err)
	}
	return d, result
}

// none is an empty list of requirements.
const none = "requirements: []\n"

// poolRepairs contains mistakes in NodePools, and their results.
var poolRepairs = []struct {
	name, version, spec, template string
	path, want                    string // as flow JSON
	outcome                       Outcome
}{
	{"requirements beside the template", "v1", "requirements: [{key: a, operator: Exists}]", "", "template.spec.requirements",
		`[{"key":"a","operator":"Exists"}]`, Repaired},
	{"requirements in both places", "v1", "requirements: [{key: a, operator: Exists}]", "requirements: [{key: b, operator: Exists}]",
		"template.spec.requirements", `[{"key":"b","operator":"Exists"},{"key":"a","operator":"Exists"}]`, Repaired},
	{"labels in the template's spec", "v1", "", "labels: {a: b}\n" + none, "template.metadata.labels", `{"a":"b"}`, Repaired},
	{"taints beside the template", "v1", "taints: [{key: a, effect: NoSchedule}]", none, "template.spec.taints",
		`[{"effect":"NoSchedule","key":"a"}]`, Repaired},
	{"limits in the template", "v1", "", "limits: {cpu: 5}\n" + none, "limits", `{"cpu":5}`, Repaired},
	{"limits.resources", "v1", "limits: {resources: {cpu: 5}}", none, "limits", `{"cpu":5}`, Repaired},
	{"weight in the template", "v1", "", "weight: 5\n" + none, "weight", `5`, Repaired},
	{"a truth value of older YAML", "v1", "", "labels: {a: yes}\n" + none, "template.metadata.labels", `{"a":"yes"}`, Repaired},
	{"a weight in quotes", "v1", `weight: "5"`, none, "weight", `5`, Repaired},
	{"seconds", "v1", "", "expireAfter: 2592000\n" + none, "template.spec.expireAfter", `"720h"`, Repaired},
	{"seconds that are no minutes", "v1", "", "expireAfter: 90\n" + none, "template.spec.expireAfter", `"90s"`, Repaired},
	{"days", "v1", "", "expireAfter: 30d\n" + none, "template.spec.expireAfter", `"720h"`, Repaired},
	{"weeks", "v1", "", "expireAfter: 2w\n" + none, "template.spec.expireAfter", `"336h"`, Repaired},
	{"never in small letters", "v1", "", "expireAfter: never\n" + none, "template.spec.expireAfter", `"Never"`, Repaired},
	{"no time at all", "v1", "", "expireAfter: soon\n" + none, "template.spec.expireAfter", `"soon"`, Impossible},
	{"expireAfter where v1beta1 had it", "v1", "disruption: {expireAfter: 24h}", none, "template.spec.expireAfter", `"24h"`, Repaired},
	{"expireAfter where v1 has it, in v1beta1", "v1beta1", "", "expireAfter: 24h\n" + none, "template.spec.expireAfter", `"24h"`, Repaired},
	{"expireAfter beside the template", "v1", "expireAfter: 24h", none, "template.spec.expireAfter", `"24h"`, Repaired},
	{"ttlSecondsUntilExpired", "v1", "ttlSecondsUntilExpired: 3600", none, "template.spec.expireAfter", `"1h"`, Repaired},
	{"ttlSecondsUntilExpired in v1beta1", "v1beta1", "ttlSecondsUntilExpired: 3600", none, "template.spec.expireAfter", `"1h"`, Repaired},
	{"ttlSecondsAfterEmpty", "v1", "ttlSecondsAfterEmpty: 30", none, "disruption",
		`{"consolidateAfter":"30s","consolidationPolicy":"WhenEmpty"}`, Repaired},
	{"consolidation", "v1", "consolidation: {enabled: true}", none, "disruption", `{"consolidationPolicy":"WhenEmptyOrUnderutilized"}`,
		Repaired},
	{"consolidation that is off", "v1", "consolidation: {enabled: false}", none, "disruption",
		`{"consolidateAfter":"Never","consolidationPolicy":"WhenEmpty"}`, Repaired},
	{"consolidation in v1beta1", "v1beta1", "consolidation: {enabled: true}", none, "disruption.consolidationPolicy",
		`"WhenEmptyOrUnderutilized"`, Repaired},
	{"the older policy", "v1", "disruption: {consolidationPolicy: WhenUnderutilized}", none, "disruption.consolidationPolicy",
		`"WhenEmptyOrUnderutilized"`, Repaired},
	{"the newer policy in v1beta1", "v1beta1", "disruption: {consolidationPolicy: WhenEmptyOrUnderutilized}", none,
		"disruption.consolidationPolicy", `"WhenEmptyOrUnderutilized"`, Repaired},
	{"the policy beside disruption", "v1", "consolidationPolicy: WhenEmpty\nconsolidateAfter: 1m", none, "disruption",
		`{"consolidateAfter":"1m","consolidationPolicy":"WhenEmpty"}`, Repaired},
	{"values that are no list", "v1", "", "requirements: [{key: a, operator: In, values: b}]", "template.spec.requirements",
		`[{"key":"a","operator":"In","values":["b"]}]`, Repaired},
	{"values that are numbers", "v1", "", "requirements: [{key: a, operator: Gt, values: [2]}]", "template.spec.requirements",
		`[{"key":"a","operator":"Gt","values":["2"]}]`, Repaired},
	{"value for values", "v1", "", "requirements: [{key: a, operator: In, value: b}]", "template.spec.requirements",
		`[{"key":"a","operator":"In","values":["b"]}]`, Repaired},
	{"an operator in small letters", "v1", "", "requirements: [{key: a, operator: notin, values: [b]}]",
		"template.spec.requirements", `[{"key":"a","operator":"NotIn","values":["b"]}]`, Repaired},
	{"no operator", "v1", "", "requirements: [{key: a, values: [b]}]", "template.spec.requirements",
		`[{"key":"a","operator":"In","values":["b"]}]`, Repaired},
	{"a capacity type", "v1", "", "requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on_demand, Spot]}]",
		"template.spec.requirements", `[{"key":"karpenter.sh/capacity-type","operator":"In","values":["on-demand","spot"]}]`, Repaired},
	{"an old label", "v1", "", "requirements: [{key: karpenter.k8s.aws/instance.cpu, operator: In, values: [\"4\"]}]",
		"template.spec.requirements", `[{"key":"karpenter.k8s.aws/instance-cpu","operator":"In","values":["4"]}]`, Changed},
	{"a label that is gone", "v1", "", "requirements: [{key: karpenter.k8s.aws/instance-pods, operator: Exists}]",
		"template.spec.requirements", `[{"key":"karpenter.k8s.aws/instance-pods","operator":"Exists"}]`, Impossible},
	{"no requirements", "v1", "", "", "template.spec.requirements", `[]`, Repaired},
	{"a taint's value", "v1", "", "taints: [{key: a, value: true, effect: NoSchedule}]\n" + none, "template.spec.taints",
		`[{"effect":"NoSchedule","key":"a","value":"true"}]`, Repaired},
	{"a taint without effect", "v1", "", "taints: [{key: a}]\n" + none, "template.spec.taints", `[{"key":"a"}]`, Impossible},
	{"a budget's number", "v1", "disruption: {budgets: [{nodes: 5}]}", none, "disruption.budgets", `[{"nodes":"5"}]`, Repaired},
	{"a budget without duration", "v1", "disruption: {budgets: [{nodes: \"0\", schedule: 0 8 * * sun}]}", none,
		"disruption.budgets", `[{"nodes":"0"}]`, Repaired},
	{"a budget of days", "v1", "disruption: {budgets: [{nodes: \"0\", schedule: 0 8 * * sun, duration: 1d}]}",
		none, "disruption.budgets", `[{"duration":"24h","nodes":"0","schedule":"0 8 * * sun"}]`, Repaired},
	{"a budget of seconds", "v1", "disruption: {budgets: [{nodes: \"0\", schedule: 0 8 * * sun, duration: 90s}]}",
		none, "disruption.budgets", `[{"duration":"2m","nodes":"0","schedule":"0 8 * * sun"}]`, Repaired},
	{"a schedule that wraps around", "v1", "disruption: {budgets: [{nodes: \"0\", schedule: 0 8 * * sat-sun, duration: 1h}]}",
		none, "disruption.budgets", `[{"duration":"1h","nodes":"0","schedule":"0 8 * * sat-sun"}]`, Impossible},
	{"a budget in place of the list", "v1", "disruption: {budgets: {nodes: \"0\"}}", none, "disruption.budgets", `[{"nodes":"0"}]`, Repaired},
	{"a reason in small letters", "v1", "disruption: {budgets: [{nodes: \"0\", reasons: [empty]}]}", none,
		"disruption.budgets", `[{"nodes":"0","reasons":["Empty"]}]`, Repaired},
	{"an amount", "v1", "limits: {memory: 100GB}", none, "limits", `{"memory":"100G"}`, Repaired},
	{"no amount", "v1", "limits: {memory: much}", none, "limits", `{"memory":"much"}`, Impossible},
}

func TestPoolRepairs(t *testing.T) {
	for _, test := range poolRepairs {
		t.Run(test.name, func(t *testing.T) {
			d, result := run(t, poolWith(test.version, test.spec, test.template))
			got, want := at(d.root, strings.Split("spec."+test.path, ".")...), &document{text: test.want}
			if err := want.parse(); err != nil {
				t.Fatal(err)
			}
			if !same(want.root, got) {
				t.Errorf("%s: got\n%s\nwant %s", test.path, result.Manifests, test.want)
			}
			if result.Report.Count(test.outcome) == 0 {
				t.Errorf("the report does not contain %s:\n%s", test.outcome, result.Report.Text())
			}
			again := Run([]File{{Name: "again", Text: result.Manifests}}, Options{})
			if again.Changed {
				t.Errorf("migrated again it changes:\n%s", again.Report.Text())
			}
		})
	}
}

func TestReferenceRepairs(t *testing.T) {
	const want = "      nodeClassRef:\n"
	for _, test := range []struct{ name, version, reference string }{
		{"of v1beta1", "v1beta1", "{apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: a}"},
		{"of v1beta1 without version", "v1beta1", "{name: a}"},
		{"of v1beta1 in v1", "v1", "{apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: a}"},
		{"name only", "v1", "{name: a}"},
		{"a text", "v1", "a"},
		{"a group with a version", "v1", "{group: karpenter.k8s.aws/v1, kind: EC2NodeClass, name: a}"},
		{"an AWSNodeTemplate", "v1", "{apiVersion: karpenter.k8s.aws/v1alpha1, kind: AWSNodeTemplate, name: a}"},
	} {
		d, result := run(t, "apiVersion: karpenter.sh/"+test.version+"\nkind: NodePool\nmetadata: {name: p}\nspec:\n  template:\n    spec:\n"+want+"        "+test.reference+"\n      requirements: []\n")
		reference := at(d.root, "spec", "template", "spec", "nodeClassRef")
		if diff := cmp.Diff(map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "a"}, plain(reference)); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", test.name, diff, result.Manifests)
		}
	}
}

// TestPoolsOfKwok verifies that the class is of another group, and has no kubelet settings.
func TestPoolsOfKwok(t *testing.T) {
	for _, reference := range []string{"{apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, name: a}",
		"{kind: KWOKNodeClass, name: a}"} {
		d, result := run(t, "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: p}\nspec:\n  template:\n    spec:\n      requirements: []\n      kubelet: {maxPods: 5}\n      nodeClassRef: "+reference+"\n")
		spec := at(d.root, "spec", "template", "spec")
		if diff := cmp.Diff(map[string]any{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "a"},
			plain(at(spec, "nodeClassRef"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reference, diff)
		}
		if strings.Contains(string(result.Manifests), "maxPods") || !strings.Contains(result.Report.Text(), "only an EC2NodeClass") {
			t.Errorf("%s: printed\n%s\n%s", reference, result.Manifests, result.Report.Text())
		}
	}
}

func TestVersionRepairs(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"apiVersion: karpenter.sh/v1alpha5\nkind: NodePool\nmetadata: {name: a}\nspec: {template: {spec: {requirements: [], nodeClassRef: {name: a}}}}\n", "karpenter.sh/v1"},
		{"apiVersion: karpenter.sh/v1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec: {role: a, amiSelectorTerms: [{alias: al2023@latest}], subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}]}\n", "karpenter.k8s.aws/v1"},
		{"apiVersion: karpenter.k8s.aws/v1beta1\nkind: AWSNodeTemplate\nmetadata: {name: a}\nspec: {instanceProfile: a, subnetSelector: {a: b}, securityGroupSelector: {a: b}}\n", "karpenter.k8s.aws/v1"},
	} {
		d, result := run(t, test.text)
		if got := text(at(d.root, "apiVersion")); got != test.want || result.Report.Count(Repaired) == 0 {
			t.Errorf("%s\nbecame %s, want %s\n%s", test.text, got, test.want, result.Report.Text())
		}
	}
}

// TestSelectorsOfClasses verifies that selectors in the form of AWSNodeTemplates have the same meaning on an
// EC2NodeClass.
func TestSelectorsOfClasses(t *testing.T) {
	for _, test := range []struct{ name, field, terms, want string }{
		{"tags", "subnetSelector: {a: b, c: d}", "subnetSelectorTerms", `[{"tags":{"a":"b","c":"d"}}]`},
		{"several values", "subnetSelector: {a: \"b, c\", d: e}", "subnetSelectorTerms",
			`[{"tags":{"a":"b","d":"e"}},{"tags":{"a":"c","d":"e"}}]`},
		{"ids, and tags beside them", "securityGroupSelector: {aws-ids: \"sg-1,sg-2\", a: b}", "securityGroupSelectorTerms",
			`[{"id":"sg-1"},{"id":"sg-2"}]`},
		{"names and owners of images", "amiSelector: {\"aws::name\": \"x,y\", \"aws::owners\": \"self,123456789012\"}", "amiSelectorTerms",
			`[{"name":"x","owner":"self"},{"name":"y","owner":"self"},{"name":"x","owner":"123456789012"},{"name":"y","owner":"123456789012"}]`},
		{"ids of images", "amiSelector: {\"aws::ids\": \"ami-2,ami-1\"}", "amiSelectorTerms", `[{"id":"ami-1"},{"id":"ami-2"}]`},
		{"terms under the name of a selector", "subnetSelector: [{id: subnet-1}]", "subnetSelectorTerms", `[{"id":"subnet-1"}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, result := run(t, "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec:\n  amiFamily: AL2\n  # why\n  "+test.field+"\n")
			want := &document{text: test.want}
			if err := want.parse(); err != nil {
				t.Fatal(err)
			}
			if got := at(d.root, "spec", test.terms); !same(want.root, got) {
				t.Errorf("got\n%s\nwant %s", result.Manifests, test.want)
			}
			if result.Report.Count(Repaired) == 0 || !strings.Contains(string(result.Manifests), "# why") {
				t.Errorf("got\n%s\n%s", result.Manifests, result.Report.Text())
			}
		})
	}
}

func TestImagesOfTheVersion(t *testing.T) {
	const class = "apiVersion: karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec:\n  amiFamily: AL2\n  role: a\n  subnetSelectorTerms: [{id: subnet-1}]\n  securityGroupSelectorTerms: [{id: sg-1}]\n"
	for minor, want := range map[int]string{0: "al2@latest", 32: "al2@latest", 33: "al2023@latest"} {
		result := Run([]File{{Name: "in", Text: []byte(class)}}, Options{KubernetesMinor: minor})
		if !strings.Contains(string(result.Manifests), "alias: "+want+"\n") {
			t.Errorf("for 1.%d: got\n%s, want %s", minor, result.Manifests, want)
		}
	}
}

// TestQuotes verifies that kubectl reads the output as the intended texts.
func TestQuotes(t *testing.T) {
	_, result := run(t, "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\nspec:\n  providerRef: {name: a}\n  labels: {a: \"on\", b: \"12:30\", c: \"5\", d: e}\n")
	for _, want := range []string{`a: "on"`, `b: "12:30"`, `c: "5"`, `d: e`} {
		if !strings.Contains(string(result.Manifests), want) {
			t.Errorf("got\n%s, want it to contain %s", result.Manifests, want)
		}
	}
}

// TestKubeletWithoutItsClass verifies that the settings and their comments stay in the pool if the class is not in
// the input.
func TestKubeletWithoutItsClass(t *testing.T) {
	d, result := run(t, poolWith("v1beta1", "", "requirements: []\nkubelet:\n  # few addresses\n  maxPods: 58\n"))
	annotation := text(at(d.root, "metadata", "annotations", "compatibility.karpenter.sh/v1beta1-kubelet-conversion"))
	switch {
	case annotation != `{"maxPods":58}`:
		t.Errorf("annotation is %v, want `{\"maxPods\":58}`", annotation)
	case at(d.root, "spec", "template", "spec", "kubelet") != nil:
		t.Errorf(`at(d.root, "spec", "template", "spec", "kubelet") is %v, want nil`, at(d.root, "spec", "template", "spec", "kubelet"))
	case !strings.Contains(string(result.Manifests), "# few addresses"):
		t.Errorf("string(result.Manifests) lacks \"# few addresses\", got\n%s", result.Manifests)
	}
	if again := Run([]File{{Name: "again", Text: result.Manifests}}, Options{}); again.Changed {
		t.Errorf("migrated again it changes:\n%s", again.Manifests)
	}
}

// TestMovedKubeletIsExplained verifies that the report describes the effect on running nodes if the output is
// applied.
func TestMovedKubeletIsExplained(t *testing.T) {
	const class = "---\napiVersion: karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec:\n  amiFamily: AL2\n  role: a\n  subnetSelectorTerms: [{id: subnet-1}]\n  securityGroupSelectorTerms: [{id: sg-1}]\n"
	for kubelet, want := range map[string]int{"kubelet: {maxPods: 58}\n": 2, "": 0} {
		result := Run([]File{{Name: "in", Text: []byte(poolWith("v1beta1", "", "requirements: []\n"+kubelet) + class)}}, Options{})
		if got := strings.Count(result.Report.Text(), "applied to a running cluster"); got != want {
			t.Errorf("%q: reported %d times, want %d (for the pool and for the class):\n%s", kubelet, got, want, result.Report.Text())
		}
	}
}

// TestContradiction verifies that a pod that selects a pool by both names, with different values, which could not run
// anywhere, is reported.
func TestContradiction(t *testing.T) {
	_, result := run(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  nodeSelector: {karpenter.sh/provisioner-name: a, karpenter.sh/nodepool: b}\n  containers: []\n")
	switch {
	case result.Report.Count(Impossible) != 1:
		t.Errorf("result.Report.Count(Impossible) is %v, want 1\n%s", result.Report.Count(Impossible), result.Report.Text())
	case strings.Contains(string(result.Manifests), "provisioner-name"):
		t.Errorf("string(result.Manifests) contains \"provisioner-name\", printed\n%s\n%s", result.Manifests, result.Report.Text())
	case strings.Count(string(result.Manifests), "karpenter.sh/nodepool: b") != 1:
		t.Errorf("strings.Count(string(result.Manifests), \"karpenter.sh/nodepool: b\") is %v, want 1, printed\n%s\n%s",
			strings.Count(string(result.Manifests), "karpenter.sh/nodepool: b"), result.Manifests, result.Report.Text())
	}
}

// TestOneObjectTwice verifies that objects that would overwrite each other when they are applied are reported, with
// both places.
func TestOneObjectTwice(t *testing.T) {
	const provisioner = "---\napiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: a}\nspec: {providerRef: {name: default}}\n"
	result := Run([]File{{Name: "in", Text: []byte(poolWith("v1beta1", "", "requirements: []\n") + provisioner)}}, Options{})
	const want = "NodePool a is printed twice, also for NodePool a (in: document 1)"
	if report := result.Report.Text(); !strings.Contains(report, want) || result.Report.Count(Impossible) != 1 {
		t.Errorf("the report is\n%s, want %q", report, want)
	}
}

func TestWorkloads(t *testing.T) {
	pod := func(kind, before, spec string) string {
		return "apiVersion: apps/v1\nkind: " + kind + "\nmetadata:\n  name: a\nspec:\n" + before + "  template:\n    metadata:\n      labels: {app: a}\n    spec:\n" + indent(spec, "      ") + "      containers:\n        - name: c\n          image: i   # stays\n\n"
	}
	const selector = "  selector:\n    matchLabels: {app: a}\n"
	for _, test := range []struct{ name, in, want string }{
		{"nothing to do", pod("Deployment", selector, "nodeSelector: {a: b}\n"), pod("Deployment", selector, "nodeSelector: {a: b}\n")},
		{"a selector of nodes", pod("Deployment", selector, "nodeSelector: {karpenter.sh/provisioner-name: a}\n"),
			pod("Deployment", selector, "nodeSelector: {karpenter.sh/nodepool: a}\n")},
		{"both names of a label", pod("Deployment", selector,
			"nodeSelector:\n  karpenter.sh/nodepool: a\n  karpenter.sh/provisioner-name: a\n"),
			strings.Replace(pod("Deployment", selector, "nodeSelector:\n  karpenter.sh/nodepool: a\n"), "i   #", "i #", 1)},
		{"in quotes", pod("Deployment", selector, "nodeSelector: {\"karpenter.sh/provisioner-name\": a}\n"),
			pod("Deployment", selector, "nodeSelector: {\"karpenter.sh/nodepool\": a}\n")},
		{"a topology key", pod("Deployment", selector, "topologySpreadConstraints:\n  - topologyKey: node.k8s.aws/capacity-type # even\n"),
			pod("Deployment", selector, "topologySpreadConstraints:\n  - topologyKey: karpenter.sh/capacity-type # even\n")},
		{"no selector", pod("Deployment", "", ""), pod("Deployment", "  selector:\n    matchLabels:\n      app: a\n", "")},
		{"a toleration of the taint of leaving nodes",
			pod("DaemonSet", selector, "tolerations:\n  - key: karpenter.sh/disruption\n    operator: Exists\n"),
			pod("DaemonSet", selector, "tolerations:\n  - key: karpenter.sh/disrupted\n    operator: Exists\n")},
		{"a number in a selector", pod("Deployment", selector, "nodeSelector: {karpenter.sh/provisioner-name: 5}\n"),
			pod("Deployment", selector, "nodeSelector: {karpenter.sh/nodepool: \"5\"}\n")},
	} {
		result := Run([]File{{Name: "in", Text: []byte(test.in)}}, Options{})
		if diff := cmp.Diff(strings.TrimRight(test.want, "\n")+"\n", string(result.Manifests)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if result.Changed != (test.in != test.want) {
			t.Errorf("%s: changed is %t", test.name, result.Changed)
		}
	}
}

// TestProtection verifies that annotations of pods and of nodes have no meaning on the other kind, and get none.
func TestProtection(t *testing.T) {
	const evict, consolidate, disrupt = "karpenter.sh/do-not-evict", "karpenter.sh/do-not-consolidate", "karpenter.sh/do-not-disrupt"
	pod := func(annotation string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations:\n    " + annotation + ": \"true\"\nspec:\n  containers: []\n"
	}
	pool := func(annotation string) string {
		return strings.Replace(poolWith("v1", "", "requirements: []\n"), "  template:\n",
			"  template:\n    metadata:\n      annotations:\n        "+annotation+": \"true\"\n", 1)
	}
	for _, test := range []struct{ name, in, want string }{
		{"a pod that is not to be evicted", pod(evict), pod(disrupt)},
		{"a pod with what nodes have", pod(consolidate), pod(consolidate)},
		{"nodes that are not to be consolidated", pool(consolidate), pool(disrupt)},
		{"nodes with what pods have", pool(evict), pool(evict)},
	} {
		if diff := cmp.Diff(test.want, string(Run([]File{{Name: "in", Text: []byte(test.in)}}, Options{}).Manifests)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestSafeToEvict(t *testing.T) {
	const in = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations:\n    cluster-autoscaler.kubernetes.io/safe-to-evict: \"false\"\nspec:\n  containers: []\n"
	const want = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations:\n    karpenter.sh/do-not-disrupt: \"true\"\n    cluster-autoscaler.kubernetes.io/safe-to-evict: \"false\"\nspec:\n  containers: []\n"
	const scaler = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: scaler}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: \"registry.k8s.io/autoscaling/cluster-autoscaler:v1.30.0\"}]}}}\n"
	for _, test := range []struct {
		name, in, want string
		options        Options
	}{
		{"not requested", in, in, Options{}},
		{"asked for", in, want, Options{HonorSafeToEvict: true}},
		{"with a Cluster Autoscaler", in + scaler, want + scaler, Options{}},
	} {
		got := string(Run([]File{{Name: "in", Text: []byte(test.in)}}, test.options).Manifests)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestStrangeInput verifies that unusual input causes no failure, and that unknown content is passed through.
func TestStrangeInput(t *testing.T) {
	for _, test := range []struct {
		name, in   string
		impossible int
	}{
		{"nothing", "", 0},
		{"comments", "# a\n---\n# b\n", 0},
		{"a template", "apiVersion: v1\nkind: {{ .Values.kind }}\nmetadata: {name: {{ .Release.Name }}}\n", 1},
		{"a text", "hello\n", 1},
		{"a list", "- a\n- b\n", 1},
		{"an unknown kind", "apiVersion: example.com/v1\nkind: Thing\nspec: {template: {spec: {}}}\n", 0},
		{"tabs", "\tkind: a\n", 1},
		{"a bomb", "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + bomb("abcdefghij"), 1},
		{"a field twice", "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nspec: {}\nspec: {}\n", 1},
		{"an alias of what it is in", "a: &a {b: *a, c: *a}\n", 1},
	} {
		result := Run([]File{{Name: "in", Text: []byte(test.in)}}, Options{})
		switch {
		case result.Changed:
			t.Errorf("%s: result.Changed is true\n%s", test.name, result.Report.Text())
		case strings.TrimSpace(string(result.Manifests)) != strings.TrimSpace(test.in):
			t.Errorf("%s: strings.TrimSpace(string(result.Manifests)) is %v, want %v, printed %q\n%s", test.name,
				strings.TrimSpace(string(result.Manifests)), strings.TrimSpace(test.in), result.Manifests, result.Report.Text())
		case result.Report.Count(Impossible) != test.impossible:
			t.Errorf("%s: result.Report.Count(Impossible) is %v, want %v\n%s", test.name, result.Report.Count(Impossible),
				test.impossible, result.Report.Text())
		}
	}
}

// bomb returns a line for each letter except the first, each ten times the one before it.
func bomb(letters string) string {
	var b strings.Builder
	for i := 1; i < len(letters); i++ {
		last := "*" + letters[i-1:i]
		b.WriteString(letters[i:i+1] + ": &" + letters[i:i+1] + " [" + strings.Repeat(last+", ", 9) + last + "]\n")
	}
	return b.String()
}

func TestAliases(t *testing.T) {
	const in = "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: a}\nx: &r\n  key: karpenter.sh/capacity-type\n  operator: In\nspec:\n  template:\n    spec:\n      nodeClassRef: {name: a}\n      requirements:\n        - <<: *r\n          values: [spot]\n"
	d, result := run(t, in)
	got := plain(at(d.root, "spec", "template", "spec", "requirements"))
	want := []any{map[string]any{"key": "karpenter.sh/capacity-type", "operator": "In", "values": []any{"spot"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, result.Manifests)
	}
}

func FuzzRun(f *testing.F) {
	for _, spec := range []string{poolWith("v1", "taints: {a: b}", ""), poolWith("v1beta1", "limits: [a]", "kubelet: 5"),
		"apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nspec: {tags: [a], subnetSelectorTerms: {tags: 5}, blockDeviceMappings: [5]}\n",
		"apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nspec: {provider: 5, limits: {resources: [1]}, requirements: {a: b}}\n",
		"apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: a}\nmanagedNodeGroups: [{name: 5, taints: a, labels: [b]}]\n",
		"settings: {aws: [a], featureGates: 5}\nclusterName: {a: b}\n", "kind: List\nitems: [5, {kind: List, items: []}]\n"} {
		f.Add([]byte(spec))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 1<<16 {
			return
		}
		once := Run([]File{{Name: "in", Text: in}}, Options{})
		if again := Run([]File{{Name: "in", Text: in}}, Options{}); string(again.Manifests) != string(once.Manifests) {
			t.Errorf("the second result differs:\n%s\n%s", once.Manifests, again.Manifests)
		}
	})
}
