package crds_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

const goodPool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: good}
spec:
  template:
    spec:
      requirements: []
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
`

// Rules that NodePool and NodeClaim share, as changes of a requirement or a taint.
var requirementRules = []schemaRule{
	{"key is required", `{key: a, operator: Exists}`, `{operator: Exists}`, "key: Required"},
	{"key is at most 316 bytes long", `{key: ` + strings.Repeat("a", 316) + `, operator: Exists}`,
		`{key: ` + strings.Repeat("a", 317) + `, operator: Exists}`, "Too long"},
	{"key is a qualified name", `{key: example.com/a.b-c_D, operator: Exists}`, `{key: "example.com/a b", operator: Exists}`, "key"},
	{"key of one slash at most", `{key: example.com/a, operator: Exists}`, `{key: example.com/a/b, operator: Exists}`, "key"},
	{"capacity type may be required, other labels of the domain not", `{key: karpenter.sh/capacity-type, operator: Exists}`,
		`{key: karpenter.sh/initialized, operator: Exists}`, "domain karpenter.sh"},
	{"the restricted domain is a suffix", `{key: karpenter.sh.example.com/x, operator: Exists}`,
		`{key: foo-karpenter.sh/x, operator: Exists}`, "domain karpenter.sh"},
	{"a key may be called like the domain after the slash", `{key: example.com/karpenter.sh, operator: Exists}`,
		`{key: sub.karpenter.sh/x, operator: Exists}`, "domain karpenter.sh"},
	{"a key without a slash is its own domain", `{key: karpenter, operator: Exists}`, `{key: karpenter.sh, operator: Exists}`,
		"domain karpenter.sh"},
	{"hostname cannot be required", `{key: kubernetes.io/os, operator: Exists}`, `{key: kubernetes.io/hostname, operator: Exists}`,
		"hostname"},
	{"kwok's own keys only", `{key: karpenter.kwok.sh/instance-cpu, operator: Exists}`,
		`{key: karpenter.kwok.sh/instance-gpu, operator: Exists}`, "karpenter.kwok.sh"},
	{"kwok's node class may be required", `{key: karpenter.kwok.sh/kwoknodeclass, operator: Exists}`,
		`{key: sub.karpenter.kwok.sh/kwoknodeclass, operator: Exists}`, "karpenter.kwok.sh"},
	{"aws's own keys only", `{key: karpenter.k8s.aws/instance-cpu, operator: Exists}`,
		`{key: karpenter.k8s.aws/instance-cpus, operator: Exists}`, "karpenter.k8s.aws"},
	{"aws's node class may be required", `{key: karpenter.k8s.aws/ec2nodeclass, operator: Exists}`,
		`{key: sub.karpenter.k8s.aws/ec2nodeclass, operator: Exists}`, "karpenter.k8s.aws"},
	{"operator is required", `{key: a, operator: Exists}`, `{key: a}`, "operator: Required"},
	{"operator NotIn", `{key: a, operator: NotIn, values: [b]}`, `{key: a, operator: notin, values: [b]}`, "Unsupported value"},
	{"operator DoesNotExist", `{key: a, operator: DoesNotExist}`, `{key: a, operator: Missing}`, "Unsupported value"},
	{"operator In needs values", `{key: a, operator: In, values: [b]}`, `{key: a, operator: In}`, "at least one value"},
	{"operator In needs a value in the list", `{key: a, operator: In, values: [""]}`, `{key: a, operator: In, values: []}`,
		"at least one value"},
	{"each value is at most 63 bytes long", `{key: a, operator: In, values: [` + strings.Repeat("a", 63) + `]}`,
		`{key: a, operator: In, values: [` + strings.Repeat("a", 64) + `]}`, "values[0]: Too long"},
	{"each value is a label value", `{key: a, operator: In, values: [b, c.d_e-F]}`, `{key: a, operator: In, values: [b, "c d"]}`, "values[1]"},
	{"Gt takes one integer", `{key: a, operator: Gt, values: ["0"]}`, `{key: a, operator: Gt, values: ["1", "2"]}`, "exactly one value"},
	{"Lt takes a value", `{key: a, operator: Lt, values: ["9223372036854775807"]}`, `{key: a, operator: Lt}`, "exactly one value"},
	{"Gte takes an integer", `{key: a, operator: Gte, values: ["5"]}`, `{key: a, operator: Gte, values: [five]}`, "exactly one value"},
	{"Lte takes no fraction", `{key: a, operator: Lte, values: ["5"]}`, `{key: a, operator: Lte, values: ["5.5"]}`, "exactly one value"},
	{"bounds are at least zero", `{key: a, operator: Gt, values: ["00"]}`, `{key: a, operator: Gt, values: ["-1"]}`, "requirements"},
	{"bounds are in the range of an integer", `{key: a, operator: Gt, values: ["1"]}`,
		`{key: a, operator: Gt, values: ["99999999999999999999"]}`, "requirements"},
	{"minValues is at least 1", `{key: a, operator: Exists, minValues: 1}`, `{key: a, operator: Exists, minValues: 0}`, "minValues"},
	{"minValues is at most 50", `{key: a, operator: Exists, minValues: 50}`, `{key: a, operator: Exists, minValues: 51}`, "minValues"},
	{"In has as many values as minValues", `{key: a, operator: In, values: [b, c], minValues: 2}`,
		`{key: a, operator: In, values: [b], minValues: 2}`, "minValues"},
}

var taintRules = []schemaRule{
	{"key is required", `{key: a, effect: NoSchedule}`, `{effect: NoSchedule}`, "key: Required"},
	{"key is not empty", `{key: a, effect: NoSchedule}`, `{key: "", effect: NoSchedule}`, "key"},
	{"key is a qualified name", `{key: example.com/a, effect: NoSchedule}`, `{key: "a b", effect: NoSchedule}`, "key"},
	{"value is a label value", `{key: a, value: "", effect: NoSchedule}`, `{key: a, value: "b c", effect: NoSchedule}`, "value"},
	{"effect is required", `{key: a, effect: PreferNoSchedule}`, `{key: a}`, "effect: Required"},
	{"effect is a known one", `{key: a, effect: NoExecute}`, `{key: a, effect: Sometimes}`, "Unsupported value"},
	{"timeAdded is a time", `{key: a, effect: NoSchedule, timeAdded: "2026-01-02T03:04:05Z"}`,
		`{key: a, effect: NoSchedule, timeAdded: yesterday}`, "timeAdded"},
}

var nodeClassRefRules = []schemaRule{
	{"group is required", `{}`, `{group: null}`, "group: Required"},
	{"group is not empty", `{group: a}`, `{group: ""}`, "group must not be empty"},
	{"group has no version", `{group: a.b}`, `{group: a.b/v1}`, "group"},
	{"kind is required", `{}`, `{kind: null}`, "kind: Required"},
	{"kind is not empty", `{kind: A}`, `{kind: ""}`, "kind must not be empty"},
	{"name is required", `{}`, `{name: null}`, "name: Required"},
	{"name is not empty", `{name: a}`, `{name: ""}`, "name must not be empty"},
}

func repeat(text string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(text+",", n), ",") + "]"
}

func manyLabels(n int) string {
	var labels []string
	for i := range n {
		labels = append(labels, "l"+strings.Repeat("x", i)+": v")
	}
	return strings.Join(labels, ", ")
}

var poolRules = []schemaRule{
	{"spec is required", `{}`, `spec: null`, "spec: Required"},
	{"template is required", `{}`, `spec: {template: null}`, "template: Required"},
	{"template.spec is required", `{}`, `spec: {template: {spec: null}}`, "spec.template.spec: Required"},
	{"nodeClassRef is required", `{}`, `spec: {template: {spec: {nodeClassRef: null}}}`, "nodeClassRef: Required"},
	{"requirements is required, and may be empty", `{}`, `spec: {template: {spec: {requirements: null}}}`, "requirements: Required"},
	{"at most 100 requirements", poolSpec(`requirements: ` + repeat(`{key: a, operator: Exists}`, 100)),
		poolSpec(`requirements: ` + repeat(`{key: a, operator: Exists}`, 101)), "Too many"},
	{"the pool's own label cannot be required", poolSpec(`requirements: [{key: karpenter.sh/capacity-type, operator: Exists}]`),
		poolSpec(`requirements: [{key: karpenter.sh/nodepool, operator: Exists}]`), "karpenter.sh/nodepool"},
	{"terminationGracePeriod is a duration", poolSpec(`terminationGracePeriod: 1h2m3s`), poolSpec(`terminationGracePeriod: Never`),
		"terminationGracePeriod"},
	{"terminationGracePeriod is in whole seconds", poolSpec(`terminationGracePeriod: 0s`), poolSpec(`terminationGracePeriod: 1.5s`),
		"terminationGracePeriod"},
	{"terminationGracePeriod is below 292 years", poolSpec(`terminationGracePeriod: 2562000h`),
		poolSpec(`terminationGracePeriod: 2563000h`), "terminationGracePeriod"},
	{"expireAfter is a duration", poolSpec(`expireAfter: 72h30m`), poolSpec(`expireAfter: 3d`), "expireAfter"},
	{"expireAfter may be Never", poolSpec(`expireAfter: Never`), poolSpec(`expireAfter: never`), "expireAfter"},

	{"at most 100 labels", poolLabels(manyLabels(100)), poolLabels(manyLabels(101)), "labels: Too many"},
	{"a label's value is at most 63 bytes long", poolLabels(`a: ` + strings.Repeat("b", 63)),
		poolLabels(`a: ` + strings.Repeat("b", 64)), "Too long"},
	{"a label's value is a label value", poolLabels(`a: ""`), poolLabels(`a: "b c"`), "labels.a"},
	{"labels of the domain karpenter.sh are ours", poolLabels(`karpenter.sh/capacity-type: spot`),
		poolLabels(`karpenter.sh/registered: "true"`), "domain karpenter.sh"},
	{"labels of sub-domains of karpenter.sh are ours", poolLabels(`example.com/karpenter.sh: a`),
		poolLabels(`sub.karpenter.sh/a: b`), "domain karpenter.sh"},
	{"the pool's own label cannot be set", poolLabels(`example.com/nodepool: a`), poolLabels(`karpenter.sh/nodepool: a`), "set by karpenter"},
	{"of aws's labels only those that machines have", poolLabels(`karpenter.k8s.aws/instance-family: c6gn`),
		poolLabels(`karpenter.k8s.aws/team: a`), "karpenter.k8s.aws"},
	{"hostname cannot be set", poolLabels(`kubernetes.io/os: linux`), poolLabels(`kubernetes.io/hostname: a`), "hostname"},
	{"annotations are free", `spec: {template: {metadata: {annotations: {karpenter.sh/do-not-disrupt: "true"}}}}`,
		`spec: {template: {metadata: {annotations: {a: [b]}}}}`, "annotations"},

	{"weight is at least 1", `spec: {weight: 1}`, `spec: {weight: 0}`, "weight"},
	{"weight is at most 100", `spec: {weight: 100}`, `spec: {weight: 101}`, "weight"},
	{"replicas is at least 0", `spec: {replicas: 0}`, `spec: {replicas: -1}`, "replicas"},
	{"limits are quantities", `spec: {limits: {cpu: 100, memory: 10Gi, nodes: "5", example.com/gpu: 1}}`,
		`spec: {limits: {cpu: many}}`, "limits"},
	{"limits of a static pool name nodes only", `spec: {replicas: 1, limits: {nodes: 5}}`, `spec: {replicas: 1, limits: {cpu: 5}}`,
		"limits may only name nodes"},
	{"limits of a static pool name nothing beside nodes", `spec: {replicas: 1, limits: {}}`,
		`spec: {replicas: 1, limits: {nodes: 5, cpu: 5}}`, "limits may only name nodes"},
	{"a static pool has no weight", `spec: {replicas: 1}`, `spec: {replicas: 1, weight: 10}`, "weight must not be set"},

	{"consolidateAfter is a duration", poolDisruption(`consolidateAfter: 1m30s`), poolDisruption(`consolidateAfter: soon`),
		"consolidateAfter"},
	{"consolidateAfter may be Never", poolDisruption(`consolidateAfter: Never`), poolDisruption(`consolidateAfter: ""`), "consolidateAfter"},
	{"consolidationPolicy WhenEmpty", poolDisruption(`consolidationPolicy: WhenEmpty`),
		poolDisruption(`consolidationPolicy: WhenUnderutilized`), "Unsupported value"},
	{"consolidationPolicy Balanced", poolDisruption(`consolidationPolicy: Balanced`), poolDisruption(`consolidationPolicy: ""`),
		"Unsupported value"},
	{"at most 50 budgets", poolDisruption(`budgets: ` + repeat(`{nodes: "1"}`, 50)),
		poolDisruption(`budgets: ` + repeat(`{nodes: "1"}`, 51)), "Too many"},
	{"budget: nodes is a percentage up to 100", budget(`nodes: 100%`), budget(`nodes: 101%`), "nodes"},
	{"budget: nodes is a number", budget(`nodes: "1000"`), budget(`nodes: "-1"`), "nodes"},
	{"budget: reasons are known ones", budget(`reasons: [Underutilized, Empty, Drifted]`), budget(`reasons: [Expired]`), "Unsupported value"},
	{"budget: reasons are a set", budget(`reasons: [Empty]`), budget(`reasons: [Empty, Empty]`), "Duplicate"},
	{"budget: reasons are at most 50", budget(`reasons: [Empty]`), budget(`reasons: ` + repeat("Empty", 51)), "Too many"},
	{"budget: schedule needs a duration", budget(`schedule: "0 9 * * 1-5", duration: 8h`), budget(`schedule: "0 9 * * 1-5"`),
		"schedule and duration"},
	{"budget: duration needs a schedule", budget(`schedule: "@daily", duration: 30m`), budget(`duration: 30m`), "schedule and duration"},
	{"budget: schedule has five fields", budget(`schedule: "* * * * *", duration: 1h`), budget(`schedule: "* * * *", duration: 1h`),
		"schedule"},
	{"budget: schedule has hours that there are", budget(`schedule: "59 23 31 DEC sun-6", duration: 1h`),
		budget(`schedule: "61 25 * * *", duration: 1h`), "schedule"},
	{"budget: schedule has steps and lists", budget(`schedule: "*/5 0-12/2,22 1,15 ? mon-fri", duration: 1h`),
		budget(`schedule: "*/0 * * * *", duration: 1h`), "schedule"},
	{"budget: schedule has a known name", budget(`schedule: "@midnight", duration: 1h`), budget(`schedule: "@every 1h", duration: 1h`),
		"schedule"},
	{"budget: duration has no seconds", budget(`schedule: "@daily", duration: 1h30m0s`), budget(`schedule: "@daily", duration: 90s`),
		"duration"},
	{"budget: duration has hours first", budget(`schedule: "@daily", duration: 8h30m`), budget(`schedule: "@daily", duration: 30m8h`),
		"duration"},
	{"budget: duration is below 292 years", budget(`schedule: "@daily", duration: 2562000h`),
		budget(`schedule: "@daily", duration: 2563000h`), "duration"},
}

func poolSpec(fields string) string { return "spec: {template: {spec: {" + fields + "}}}" }
func poolLabels(fields string) string {
	return "spec: {template: {metadata: {labels: {" + fields + "}}}}"
}
func poolDisruption(fields string) string { return "spec: {disruption: {" + fields + "}}" }
func budget(fields string) string         { return poolDisruption("budgets: [{" + fields + "}]") }

func testNodePoolSchema(t *testing.T, s *server) {
	rules := poolRules
	for _, r := range requirementRules {
		rules = append(rules, schemaRule{"requirement: " + r.name, poolSpec("requirements: [" + r.pass + "]"),
			poolSpec("requirements: [" + r.fail + "]"), r.want})
	}
	for _, list := range []string{"taints", "startupTaints"} {
		for _, r := range taintRules {
			rules = append(rules, schemaRule{list + ": " + r.name, poolSpec(list + ": [" + r.pass + "]"),
				poolSpec(list + ": [" + r.fail + "]"), r.want})
		}
	}
	for _, r := range nodeClassRefRules {
		rules = append(rules, schemaRule{"nodeClassRef: " + r.name, poolSpec("nodeClassRef: " + r.pass),
			poolSpec("nodeClassRef: " + r.fail), r.want})
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { r.check(t, s, goodPool) })
	}
}

func testNodePoolImmutability(t *testing.T, s *server) {
	for _, r := range []updateRule{
		{"replicas cannot be added", `{}`, `spec: {weight: 5}`, `spec: {replicas: 1}`, "replicas cannot be added"},
		{"replicas cannot be removed, but changed", `spec: {replicas: 1}`, `spec: {replicas: 2}`, `spec: {replicas: null}`,
			"replicas cannot be added"},
		{"group of the node class cannot change, name can", `{}`, poolSpec(`nodeClassRef: {name: other}`),
			poolSpec(`nodeClassRef: {group: other}`), "nodeClassRef.group cannot change"},
		{"kind of the node class cannot change", `{}`, poolSpec(`expireAfter: 5h`), poolSpec(`nodeClassRef: {kind: Other}`),
			"nodeClassRef.kind cannot change"},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, s, goodPool) })
	}
}

func testNodePoolDefaults(t *testing.T, s *server) {
	for _, test := range []struct {
		name, change, want string
	}{
		{"nothing said", `{}`, `
disruption: {consolidateAfter: 0s, consolidationPolicy: WhenEmptyOrUnderutilized, budgets: [{nodes: 10%}]}
template: {spec: {expireAfter: 720h, requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}`},
		{"disruption without fields", `spec: {disruption: {}}`, `
disruption: {consolidateAfter: 0s, consolidationPolicy: WhenEmptyOrUnderutilized, budgets: [{nodes: 10%}]}
template: {spec: {expireAfter: 720h, requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}`},
		{"an empty list of budgets stays, a budget gets its nodes, texts of durations stay", `
spec: {disruption: {consolidateAfter: 90s, budgets: []}, template: {spec: {expireAfter: 60m}}}`, `
disruption: {consolidateAfter: 90s, consolidationPolicy: WhenEmptyOrUnderutilized, budgets: []}
template: {spec: {expireAfter: 60m, requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}`},
		{"a budget without nodes", budget(`reasons: [Drifted]`), `
disruption: {consolidateAfter: 0s, consolidationPolicy: WhenEmptyOrUnderutilized, budgets: [{nodes: 10%, reasons: [Drifted]}]}
template: {spec: {expireAfter: 720h, requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			pool := merged(t, goodPool, test.change)
			if err := s.Create(t.Context(), pool, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(t, test.want), pool.Object["spec"]); diff != "" {
				t.Errorf("stored spec (-want +got):\n%s", diff)
			}
		})
	}
}

// Decoding an object into the Go types and writing it back must not change it.
func testNodePoolRoundTrip(t *testing.T, s *server) {
	stored := s.create(t, goodPool, `
metadata: {name: round-trip}
spec:
  weight: 7
  limits: {cpu: 1k, nodes: "3"}
  disruption: {consolidateAfter: 90s, budgets: []}
  template:
    metadata: {labels: {a: b}, annotations: {c: d}}
    spec:
      expireAfter: 1h60m
      taints: [{key: a, value: b, effect: NoExecute}]
      requirements: [{key: a, operator: In, values: [b, c], minValues: 2}]`)
	pool := &karpv1.NodePool{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(stored), pool); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	after := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodePool"}}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(stored), after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stored.Object["spec"], after.Object["spec"]); diff != "" {
		t.Errorf("spec after a round trip (-before +after):\n%s", diff)
	}
	if stored.GetGeneration() != after.GetGeneration() {
		t.Errorf("generation changed from %d to %d", stored.GetGeneration(), after.GetGeneration())
	}
}

func testNodePoolScale(t *testing.T, s *server) {
	static := s.create(t, goodPool, `{metadata: {name: static}, spec: {replicas: 2}}`)
	pool := &karpv1.NodePool{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(static), pool); err != nil {
		t.Fatal(err)
	}
	pool.Status.Nodes = 1
	pool.StatusConditions().SetTrue(karpv1.ConditionValidationSucceeded)
	if err := s.Status().Update(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	scale := &autoscalingv1.Scale{}
	if err := s.SubResource("scale").Get(t.Context(), pool, scale); err != nil {
		t.Fatal(err)
	}
	switch {
	case scale.Spec.Replicas != 2:
		t.Errorf("scale.Spec.Replicas is %v, want 2", scale.Spec.Replicas)
	case scale.Status.Replicas != 1:
		t.Errorf("scale.Status.Replicas is %v, want 1", scale.Status.Replicas)
	case scale.Status.Selector != "":
		t.Errorf(`scale.Status.Selector is %v, want ""`, scale.Status.Selector)
	}
	scale.Spec.Replicas = 5
	if err := s.SubResource("scale").Update(t.Context(), pool, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(static), pool); err != nil {
		t.Fatal(err)
	}
	if *pool.Spec.Replicas != 5 {
		t.Errorf("replicas after scaling: got %d, want 5", *pool.Spec.Replicas)
	}
}

func testNodePoolStatus(t *testing.T, s *server) {
	stored := s.create(t, goodPool, `{metadata: {name: status}, status: {nodes: 9}}`)
	if err := s.patchStatus(t, stored, `{nodes: 3, resources: {cpu: "4", nodes: 3}, nodeClassObservedGeneration: 2}`); err != nil {
		t.Fatal(err)
	}
	pool := &karpv1.NodePool{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(stored), pool); err != nil {
		t.Fatal(err)
	}
	switch {
	case pool.Status.Nodes != 3:
		t.Errorf("pool.Status.Nodes is %v, want 3", pool.Status.Nodes)
	case pool.Status.Resources.Cpu().String() != "4":
		t.Errorf(`pool.Status.Resources.Cpu().String() is %v, want "4"`, pool.Status.Resources.Cpu().String())
	case pool.Status.NodeClassObservedGeneration != 2:
		t.Errorf("pool.Status.NodeClassObservedGeneration is %v, want 2", pool.Status.NodeClassObservedGeneration)
	}
	if err := s.patchStatus(t, stored, `{nodes: null}`); err != nil {
		t.Fatal(err)
	}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(stored), pool); err != nil {
		t.Fatal(err)
	}
	if pool.Status.Nodes != 0 || pool.Status.Resources.Cpu().String() != "4" {
		t.Errorf("status is %+v, want the default of 0 nodes and the CPU that was written", pool.Status)
	}
	good := `type: Ready, status: "True", message: "", lastTransitionTime: "2026-01-02T03:04:05Z"`
	wantInvalid(t, s.patchStatus(t, stored, `{conditions: [{`+good+`}]}`), "reason: Required")
	wantInvalid(t, s.patchStatus(t, stored, `{conditions: [{`+good+`, reason: ""}]}`), "reason")
	wantInvalid(t, s.patchStatus(t, stored, `{conditions: [{`+good+`, reason: A}, {`+good+`, reason: B}]}`), "Duplicate")
}
