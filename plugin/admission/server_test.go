package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const pool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    metadata: {labels: {team: a}}
    spec:
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
`

const class = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {a: b}}]
  securityGroupSelectorTerms: [{id: sg-0123456789abcdef0}]
`

const overlay = `apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: a}
spec: {requirements: [{key: a, operator: In, values: [b]}], price: "1"}
`

// refused lists mistakes: what is replaced in a valid object, and the expected refusal, as a field and part of the
// problem.
var refused = []struct {
	name, object string
	replace      []string // old and new
	want         [][2]string
}{
	{"pool", pool, nil, nil},
	{"class", class, nil, nil},
	{"simulated class", "apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: default}\nspec: {}\n", nil, nil},
	{"overlay", overlay, nil, nil},
	{"key of an overlay", overlay, []string{"key: a", "key: a b"}, [][2]string{{"spec.requirements[0].key", `is "a b", want`}}},
	{"restricted key of an overlay", overlay, []string{"key: a", "key: karpenter.sh/registered"},
		[][2]string{{"spec.requirements[0].key", "the domain karpenter.sh"}}},
	{"value of an overlay", overlay, []string{"values: [b]", "values: [b c]"}, [][2]string{{"spec.requirements[0].values[0]",
		`is "b c", want`}}},
	{"status is not looked at", pool + "status: 5\n", nil, nil},
	{"null is as if it were not there", pool + "  weight: null\n", nil, nil},
	{"no kind of ours", pool, []string{"kind: NodePool", "kind: NodePools"}, [][2]string{{"apiVersion", "karpenter.sh/v1 has no kind NodePools"}}},

	{"name with capitals", pool, []string{"{name: default}\nspec", "{name: Bad_Name}\nspec"}, [][2]string{{"metadata.name", `is "Bad_Name": a lowercase RFC 1123 subdomain must consist of`}}},
	{"name that is a number", pool, []string{"{name: default}\nspec", "{name: 5}\nspec"}, [][2]string{{"metadata.name", "is of type integer, want a text: put it in quotes"}}},
	{"no metadata", pool, []string{"metadata: {name: default}\nspec", "spec"}, [][2]string{{"metadata.name", "is required"}}},
	{"metadata that is a text", pool, []string{"metadata: {name: default}\nspec", "metadata: default\nspec"}, [][2]string{{"metadata", "is of type string, want an object"}, {"metadata.name", "is required"}}},
	{"no name", pool, []string{"{name: default}\nspec", "{labels: {a: b}}\nspec"}, [][2]string{{"metadata.name", "is required"}}},
	{"name that the server makes", pool, []string{"{name: default}\nspec", "{generateName: a-}\nspec"}, nil},
	{"name that the server cannot make", pool, []string{"{name: default}\nspec", "{generateName: A-}\nspec"},
		[][2]string{{"metadata.name", `is "A-s6vf8"`}}},
	{"schedule", pool + "  disruption: {budgets: [{nodes: '1', schedule: never, duration: 1h}]}\n", nil, [][2]string{{"spec.disruption.budgets[0].schedule", `is "never", want a cron schedule such as 0 9 * * mon-fri, or @daily`}}},
	{"namespace, which a server drops", pool, []string{"{name: default}\nspec", "{name: default, namespace: a}\nspec"}, nil},
	{"namespace that no namespace is called", pool, []string{"{name: default}\nspec", "{name: default, namespace: Bad_Name}\nspec"}, nil},
	{"namespace that is a number", pool, []string{"{name: default}\nspec", "{name: default, namespace: 5}\nspec"},
		[][2]string{{"metadata.namespace", "want a text"}}},
	{"metadata that a server replaces", pool, []string{"{name: default}\nspec",
		"{name: default, creationTimestamp: null, generation: -1, managedFields: [{operation: Guess}]}\nspec"}, nil},
	{"label that is a number", pool, []string{"{name: default}\nspec", "{name: default, labels: {a: 5}}\nspec"},
		[][2]string{{"metadata.labels", "want strings only: put it in quotes"}}},
	{"label that no label may be", pool, []string{"{name: default}\nspec", "{name: default, labels: {a: b c}}\nspec"}, [][2]string{{"metadata.labels", `is "b c"`}}},
	{"unknown field of metadata", pool, []string{"{name: default}\nspec", "{name: default, lables: {a: b}}\nspec"}, [][2]string{{"metadata.lables", "unknown field"}}},

	{"no spec", "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\n", nil, [][2]string{{"spec", "is required"}}},
	{"spec is null", "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: 5}\nspec: null\n", nil, [][2]string{{"metadata.name", "want a text"}, {"spec", "is required"}}},
	{"unknown field", pool + "  replicasMax: 5\n", nil, [][2]string{{"spec.replicasMax", "unknown field; kubectl apply rejects it"}}},
	{"type", pool + "  limits: [a]\n", nil, [][2]string{{"spec.limits", "is of type array, want an object"}}},
	{"amount", pool + "  limits: {cpu: ten}\n", nil, [][2]string{{"spec.limits.cpu", `is "ten", want a quantity such as`}}},
	{"too much", pool + "  weight: 500\n", nil, [][2]string{{"spec.weight", "is 500, want 100 or less"}}},
	{"too little", pool + "  weight: 0\n", nil, [][2]string{{"spec.weight", "is 0, want 1 or more"}}},
	{"pattern", pool, []string{"      requirements", "      expireAfter: soon\n      requirements"},
		[][2]string{{"spec.template.spec.expireAfter", `is "soon", want a duration such as 30s, 5m or 1h30m, or Never`}}},
	{"signs are shown as written", pool + "  limits: {cpu: <<AZ>>&b}\n", nil,
		[][2]string{{"spec.limits.cpu", `is "<<AZ>>&b", want a quantity`}}},
	{"choice", pool + "  disruption: {consolidationPolicy: Sometimes, consolidateAfter: 1m}\n", nil, [][2]string{{"spec.disruption.consolidationPolicy", `is "Sometimes", want `}}},
	{"missing field", pool, []string{"kind: EC2NodeClass, ", ""}, [][2]string{{"spec.template.spec.nodeClassRef.kind", "is required"}}},

	{"old label", pool, []string{"{team: a}", "{team: a, karpenter.sh/provisioner-name: x}"}, [][2]string{{"spec.template.metadata.labels[karpenter.sh/provisioner-name]", "a label of the domain karpenter.sh cannot be set"}}},
	{"host label", pool, []string{"{team: a}", "{kubernetes.io/hostname: a}"}, [][2]string{{"spec.template.metadata.labels[kubernetes.io/hostname]", "is set by the kubelet"}}},
	{"host requirement", pool, []string{"key: kubernetes.io/arch", "key: kubernetes.io/hostname"}, [][2]string{{"spec.template.spec.requirements[0].key", "the label kubernetes.io/hostname cannot be required"}}},
	{"unknown label of a cloud", pool, []string{"key: kubernetes.io/arch", "key: karpenter.k8s.aws/instance-famly"},
		[][2]string{{"spec.template.spec.requirements[0].key", "names can be required, such as instance-family, "}}},
	{"unknown label of a cloud that is set", pool, []string{"{team: a}", "{karpenter.k8s.aws/instance-szie: a}"},
		[][2]string{{"spec.template.metadata.labels[karpenter.k8s.aws/instance-szie]", "names can be set, such as instance-size, "}}},
	{"In without values", pool, []string{"[amd64]", "[]"}, [][2]string{{"spec.template.spec.requirements[0]", "operator In needs at least one value"}}},
	{"Gt with two values", pool, []string{"[{key: k", "[{key: a, operator: Exists}, {key: b, operator: Gt, values: ['1', '2']}, {key: k"}, [][2]string{{"spec.template.spec.requirements[1]", "need exactly one value, an integer"}}},
	{"two at a time", pool + "  weight: 500\n", []string{"[amd64]", "[]"}, [][2]string{{"spec.template.spec.requirements[0]", "operator In needs"}, {"spec.weight", "want 100 or less"}}},
	{"rule of the whole", pool + "  disruption: {consolidationPolicy: WhenEmpty}\n", nil, nil}, // consolidateAfter has a default
	{"time that is too long", pool, []string{"      requirements", "      terminationGracePeriod: 99999999h\n      requirements"}, [][2]string{{"spec.template.spec.terminationGracePeriod", "must be shorter than 292 years"}}},

	{"class without images", class, []string{"  amiSelectorTerms: [{alias: al2023@latest}]\n", ""}, [][2]string{{"spec.amiSelectorTerms", "is required"}}},
	{"id of a group", class, []string{"sg-0123456789abcdef0", "my-group"}, [][2]string{{"spec.securityGroupSelectorTerms[0].id", "want an id such as sg-"}}},
	{"term that names an id and tags", class, []string{"{id: sg-", "{tags: {a: b}, id: sg-"}, [][2]string{{"spec.securityGroupSelectorTerms[0]", "id"}}},
}

// TestCreate compares field and text of the refusals of objects.
func TestCreate(t *testing.T) {
	server, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range refused {
		t.Run(test.name, func(t *testing.T) {
			text := strings.NewReplacer(test.replace...).Replace(test.object)
			if len(test.replace) > 0 && text == test.object {
				t.Fatalf("%q is not in the object", test.replace[0])
			}
			var object map[string]any
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Fatal(err)
			}
			before, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			refusals, err := server.Create(object)
			if err != nil {
				t.Fatal(err)
			}
			if len(refusals) != len(test.want) {
				t.Fatalf("refused is %q, want %q", refusals, test.want)
			}
			for i, want := range test.want {
				if refusals[i].Field != want[0] || !strings.Contains(refusals[i].Problem, want[1]) {
					t.Errorf("refused is %q, want field and part of the problem %q", refusals[i], want)
				}
			}
			after, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(before), string(after)); diff != "" {
				t.Errorf("Create changed the object (-before +after):\n%s", diff)
			}
		})
	}
}

// TestForms verifies that every pattern that has words is a pattern of the definitions.
func TestForms(t *testing.T) {
	paths, err := filepath.Glob("../../api/crds/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no definitions (%v)", err)
	}
	var all strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for pattern := range forms {
		if !strings.Contains(all.String(), "pattern: "+pattern+"\n") {
			t.Errorf("no definition has the pattern %s", pattern)
		}
	}
}

// TestStoredVersion verifies in which version an object is stored: versions of one schema need no conversion, and those that
// a webhook converts stay as they are.
func TestStoredVersion(t *testing.T) {
	server, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ text, want string }{
		{"{apiVersion: autoscaling.x-k8s.io/v1alpha1, kind: CapacityQuota, metadata: {name: a}, spec: {limits: {resources: {cpu: 3}}}}",
			"autoscaling.x-k8s.io/v1beta1"},
		{"{apiVersion: autoscaling.x-k8s.io/v1alpha1, kind: CapacityBuffer, metadata: {name: a, namespace: b}, spec: {podTemplateRef: " +
			"{name: a}, replicas: 2}}",
			"autoscaling.x-k8s.io/v1beta1"},
		{"{apiVersion: karpenter.sh/v1alpha5, kind: Provisioner, metadata: {name: a}}", "karpenter.sh/v1alpha5"},
		{strings.Replace(pool, "karpenter.sh/v1\n", "karpenter.sh/v1beta1\n", 1), "karpenter.sh/v1beta1"},
	} {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(test.text), &object); err != nil {
			t.Fatal(err)
		}
		stored, _, err := server.Admit(object)
		if err != nil || stored["apiVersion"] != test.want {
			t.Errorf("%v is stored as %v (error %v), want %s", object["apiVersion"], stored["apiVersion"], err, test.want)
		}
	}
}
