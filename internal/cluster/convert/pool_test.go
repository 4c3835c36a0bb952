package convert

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

const poolText = `
metadata: {name: pool, uid: p1}
spec:
  weight: 10
  limits: {cpu: "100", memory: 0, nodes: "5"}
  disruption:
    consolidateAfter: 30s
    budgets: [{nodes: 10%}, {nodes: "0", reasons: [Empty], schedule: "0 9 * * *", duration: 8h}]
  template:
    metadata:
      labels: {team: shop, old.example.com/zone: use1-az1}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      expireAfter: Never
      taints: [{key: team, value: shop, effect: NoSchedule}]
      startupTaints: [{key: agent, effect: NoExecute}]
      requirements:
      - {key: beta.kubernetes.io/os, operator: In, values: [linux]}
      - {key: example.com/size, operator: Gte, values: ["4"], minValues: 2}
status:
  conditions:
  - {type: Ready, status: "True", lastTransitionTime: "2026-11-20T09:00:00Z"}
`

func TestPool(t *testing.T) {
	pool := decode[karpv1.NodePool](t, poolText)
	got := Pool(pool, words())
	got.Budgets, got.BudgetError = Budgets(pool, time.Date(2026, 11, 20, 17, 1, 0, 0, time.UTC))
	want := model.PoolSpec{
		Name: "pool", UID: "p1", Weight: 10,
		Requirements: []label.Requirement{
			{Key: "kubernetes.io/os", Operator: label.In, Values: []string{"linux"}},
			{Key: "example.com/size", Operator: label.Gte, Values: []string{"4"}, MinValues: 2},
			{Key: "topology.kubernetes.io/zone", Operator: label.In, Values: []string{"us-east-1a"}},
			{Key: "team", Operator: label.In, Values: []string{"shop"}},
			{Key: "karpenter.kwok.sh/kwoknodeclass", Operator: label.In, Values: []string{"default"}},
			{Key: "karpenter.sh/nodepool", Operator: label.In, Values: []string{"pool"}},
		},
		Taints:           []model.Taint{{Key: "team", Value: "shop", Effect: model.NoSchedule}},
		Limits:           []quantity.Amount{{Name: "cpu", Value: 100_000}, {Name: "memory", Value: 0}, {Name: "nodes", Value: 5}},
		ConsolidateAfter: 30 * time.Second, Policy: "WhenEmptyOrUnderutilized",
		Budgets: []model.Budget{{IsPercent: true, Percent: 10}, {Reasons: []string{"Empty"}, Inactive: true,
			Changes: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestPoolBlocked(t *testing.T) {
	tests := []struct {
		name, old, new, field, reason string
		silent                        bool
	}{
		{"not blocked", "", "", "", "", false},
		{"not ready", `{type: Ready, status: "True",`, `{type: Ready, status: "False", reason: NodeClassNotFound, message: no such class,`,
			"status.conditions[Ready]", "NodeClassNotFound: no such class", false},
		{"not ready for its class", `{type: Ready, status: "True",`,
			`{type: NodeClassReady, status: "False", reason: NodeClassNotFound, message: there is no class x, lastTransitionTime: "2026-11-20T09:00:00Z"}
  - {type: Ready, status: "False", reason: UnhealthyDependents, message: NodeClassReady=False,`,
			"status.conditions[Ready]", "not ready: NodeClassReady is false: NodeClassNotFound: there is no class x", false},
		{"no condition", "type: Ready", "type: Other", "status.conditions[Ready]", "not been set yet", false},
		{"being deleted", "uid: p1", "uid: p1, deletionTimestamp: '2026-11-20T09:00:00Z'", "metadata.deletionTimestamp", "deleted", false},
		{"another provider's", "KWOKNodeClass", "EC2NodeClass", "spec.template.spec.nodeClassRef", "EC2NodeClass.karpenter.kwok.sh", true},
		{"a requirement that cannot be read", "operator: Gte", "operator: Near", "spec.template.spec.requirements[1].operator", "use In", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Pool(decode[karpv1.NodePool](t, strings.Replace(poolText, test.old, test.new, 1)), words()).Blocked
			if test.field == "" {
				if got != nil {
					t.Errorf("blocked: %+v", *got)
				}
				return
			}
			switch {
			case got == nil:
				t.Errorf("blocked: got is nil")
			case got.Field != test.field:
				t.Errorf("blocked: got.Field is %v, want %v", got.Field, test.field)
			case !strings.Contains(got.Reason, test.reason):
				t.Errorf("blocked: got.Reason lacks %q, %+v", test.reason, got)
			case got.Silent != test.silent:
				t.Errorf("blocked: got.Silent is %v, want %v", got.Silent, test.silent)
			}
		})
	}
}

// TestPoolElsewhere checks that pods are left to another controller for a pool of its from which it can launch nodes.
func TestPoolElsewhere(t *testing.T) {
	for _, test := range []struct {
		name, selector, old, new, field string
		elsewhere, silent               bool
	}{
		{"ours", "team=shop", "", "", "", false, false},
		{"ours, by its name", "karpenter.sh/nodepool=pool", "", "", "", false, false},
		{"another controller's", "team=bank", "", "", "spec.template.metadata.labels", true, true},
		{"it is not ready", "team=bank", `{type: Ready, status: "True",`, `{type: Ready, status: "False", reason: Other,`,
			"status.conditions[Ready]", false, true},
		{"a bad annotation", "team=bank", "uid: p1", "uid: p1, annotations: {karpenter-go.github.io/payback: long}",
			"metadata.annotations[karpenter-go.github.io/payback]", false, true},
		{"ours, a bad annotation", "team=shop", "uid: p1", "uid: p1, annotations: {karpenter-go.github.io/payback: long}",
			"metadata.annotations[karpenter-go.github.io/payback]", false, false},
		{"a bad requirement", "team=bank", "operator: Gte", "operator: Near", "spec.template.spec.requirements[1].operator", false, true},
		{"a requirement with the label", "example.com/cell=a", "key: example.com/size", "key: example.com/cell",
			"spec.template.spec.requirements[1].key", false, false},
		{"ours, a requirement with the label", "team=shop,!example.com/cell", "key: example.com/size", "key: example.com/cell",
			"spec.template.spec.requirements[1].key", false, false},
		{"not ready, a requirement with the label", "team=bank,!example.com/size", `{type: Ready, status: "True",`,
			`{type: Ready, status: "False", reason: Other,`, "status.conditions[Ready]", false, true},
		{"ours by its name, a requirement with it", "karpenter.sh/nodepool=pool", "key: example.com/size, operator: Gte, values: [\"4\"], minValues: 2",
			"key: karpenter.sh/nodepool, operator: In, values: [pool]", "", false, false},
		{"it is static", "team=bank", "weight: 10", "replicas: 2", "spec.template.metadata.labels", false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := words()
			selector, err := labels.Parse(test.selector)
			if err != nil {
				t.Fatal(err)
			}
			v.Selection = karpv1.Selection{Selector: selector}
			got := Pool(decode[karpv1.NodePool](t, strings.Replace(poolText, test.old, test.new, 1)), v)
			if got.Elsewhere != test.elsewhere {
				t.Errorf("got.Elsewhere is %v, want %v", got.Elsewhere, test.elsewhere)
			}
			why := model.Rejection{}
			if got.Blocked != nil {
				why = *got.Blocked
			}
			if why.Field != test.field || why.Silent != test.silent {
				t.Errorf("blocked: %+v, want field %q, silent %v", why, test.field, test.silent)
			}
		})
	}
}

func TestNodePriceOfPool(t *testing.T) {
	for _, test := range []struct {
		annotation string
		want       int64
		blocked    string
	}{
		{"", 0, ""},
		{"0.05", 50_000_000, ""},
		{"0", -1, ""},
		{"-1", 0, `"-1" is not a price`},
		{"much", 0, "USD per hour"},
		{"NaN", 0, "USD per hour"},
	} {
		t.Run(test.annotation, func(t *testing.T) {
			pool := decode[karpv1.NodePool](t, poolText)
			if test.annotation != "" {
				pool.Annotations = map[string]string{"karpenter-go.github.io/node-overhead-price": test.annotation}
			}
			spec := Pool(pool, words())
			switch {
			case spec.NodePrice != test.want:
				t.Errorf("spec.NodePrice is %v, want %v", spec.NodePrice, test.want)
			case (spec.Blocked != nil) != (test.blocked != ""):
				t.Errorf("(spec.Blocked != nil) is %v, want %v, blocked %+v, %q", (spec.Blocked != nil), (test.blocked != ""),
					spec.Blocked, test.blocked)
			case spec.Blocked != nil && !strings.Contains(spec.Blocked.Reason, test.blocked):
				t.Errorf("spec.Blocked != nil && !strings.Contains(spec.Blocked.Reason, test.blocked), blocked %+v, %q", spec.Blocked, test.blocked)
			}
		})
	}
}

// TestReservations checks that an offering determines which nodes carry the ID of a reservation.
func TestReservations(t *testing.T) {
	catalog, refused := Catalog([]cloud.InstanceType{{Name: "small", Offerings: []cloud.Offering{
		{Zone: "a", CapacityType: "reserved", ReservationID: "r-1", ReservationCount: 3}, {Zone: "a", CapacityType: "spot"},
	}}}, words())
	if len(refused) > 0 {
		t.Fatal(refused)
	}
	const key = "example.com/reservation"
	want := [][]label.Requirement{{{Key: key, Operator: label.In, Values: []string{"r-1"}}}, {{Key: key, Operator: label.DoesNotExist}}}
	var got [][]label.Requirement
	for _, o := range catalog.Types[0].Offerings {
		got = append(got, o.Requirements)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requirements (-want +got):\n%s", diff)
	}
}

func TestAddCatalog(t *testing.T) {
	full := &model.Catalog{Types: []model.InstanceType{{Name: "a"}}}
	for _, test := range []struct {
		name    string
		catalog *model.Catalog
		blocked bool
	}{{"types", full, false}, {"no types", &model.Catalog{}, true}, {"none", nil, true}} {
		t.Run(test.name, func(t *testing.T) {
			var spec model.PoolSpec
			AddCatalog(&spec, test.catalog, "why")
			switch {
			case spec.Catalog != test.catalog:
				t.Errorf("blocked: spec.Catalog is %v, want %v", spec.Catalog, test.catalog)
			case (spec.Blocked != nil) != test.blocked:
				t.Errorf("blocked: (spec.Blocked != nil) is %v, want %v, %+v", (spec.Blocked != nil), test.blocked, spec.Blocked)
			case test.blocked && spec.Blocked.Reason != "why":
				t.Errorf(`blocked: test.blocked && spec.Blocked.Reason != "why", %+v`, spec.Blocked)
			}
		})
	}
}

// TestBudgets covers budgets with and without schedules and reasons.
func TestBudgets(t *testing.T) {
	at := func(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC) }
	const daily = `{nodes: "0", schedule: "0 9 * * *", duration: 8h}`
	tests := []struct {
		name, budgets, clock string
		want                 []model.Budget
		problem              string
	}{
		{"unset", "null", "12:00", []model.Budget{{IsPercent: true, Percent: 10}}, ""},
		{"empty", "[]", "12:00", []model.Budget{}, ""},
		{"number", `[{nodes: "3"}]`, "12:00", []model.Budget{{Count: 3}}, ""},
		{"all with reasons", `[{nodes: "3", reasons: [Drifted]}]`, "12:00", []model.Budget{
			{Count: 3, Reasons: []string{"Drifted"}}, {IsPercent: true, Percent: 10, Reasons: []string{string(plan.Expired)}}}, ""},
		{"one without", `[{nodes: "3", reasons: [Drifted]}, {nodes: "4"}]`, "12:00",
			[]model.Budget{{Count: 3, Reasons: []string{"Drifted"}}, {Count: 4}}, ""},
		{"before the window", "[" + daily + "]", "08:59", []model.Budget{{Inactive: true, Changes: at(20, 9)}}, ""},
		{"within the window", "[" + daily + "]", "16:59", []model.Budget{{Changes: at(20, 17)}}, ""},
		{"after the window", "[" + daily + "]", "17:01", []model.Budget{{Inactive: true, Changes: at(21, 9)}}, ""},
		{"schedule that cannot be read", `[{nodes: "1"}, {nodes: "0", schedule: "61 9 * * *", duration: 8h}]`, "12:00",
			nil, "spec.disruption.budgets[1]"},
		{"nodes that cannot be read", `[{nodes: many}]`, "12:00", nil, `"many"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			pool := decode[karpv1.NodePool](t, "spec: {disruption: {budgets: "+test.budgets+"}}")
			now, err := time.Parse(time.RFC3339, "2026-11-20T"+test.clock+":00Z")
			if err != nil {
				t.Fatal(err)
			}
			got, problem := Budgets(pool, now)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("budgets (-want +got):\n%s", diff)
			}
			if (problem == "") != (test.problem == "") || !strings.Contains(problem, test.problem) {
				t.Errorf("problem: %q, want one with %q", problem, test.problem)
			}
		})
	}
}

func TestDaemon(t *testing.T) {
	got := Daemon(decode[appsv1.DaemonSet](t, `
metadata: {name: agent, namespace: kube-system, uid: d1}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      hostNetwork: true
      nodeSelector: {kubernetes.io/os: linux}
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: noisy}}}]}}
      tolerations: [{key: team, operator: Exists}]
      containers:
      - name: a
        resources: {requests: {cpu: 100m}, limits: {cpu: 200m, memory: 64Mi}}
      - name: b
        resources: {limits: {cpu: 50m}}
`), words(), nil, nil)
	tolerate := func(key string, effect model.Effect) model.Toleration {
		return model.Toleration{Key: "node.kubernetes.io/" + key, Exists: true, Effect: effect}
	}
	want := model.DaemonSpec{
		UID: "d1", Namespace: "kube-system", Name: "agent",
		Requests:     []quantity.Amount{{Name: "cpu", Value: 150}, {Name: "memory", Value: 64 << 20}, {Name: "pods", Value: 1}},
		Alternatives: [][]label.Requirement{{{Key: "kubernetes.io/os", Operator: label.In, Values: []string{"linux"}}}},
		Tolerations: []model.Toleration{
			{Key: "team", Exists: true},
			tolerate("not-ready", model.NoExecute), tolerate("unreachable", model.NoExecute), tolerate("disk-pressure", model.NoSchedule),
			tolerate("memory-pressure", model.NoSchedule), tolerate("pid-pressure", model.NoSchedule),
			tolerate("unschedulable", model.NoSchedule), tolerate("network-unavailable", model.NoSchedule),
		},
		Labels: map[string]string{"app": "agent"},
		Terms: []model.Term{{Key: model.LabelHostname, Anti: true, Selector: model.Selector{Namespaces: []string{"kube-system"},
			Requirements: []label.Requirement{{Key: "app", Operator: label.In, Values: []string{"noisy"}}}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestCatalog(t *testing.T) {
	types := []cloud.InstanceType{
		{
			Name: "small",
			Requirements: []cloud.Requirement{
				{Key: "beta.kubernetes.io/arch", Operator: "In", Values: []string{"amd64"}},
				{Key: "example.com/size", Operator: "DoesNotExist"},
			},
			Capacity: map[string]int64{"cpu": 2000, "memory": 4 << 30, "hugepages-2Mi": 1 << 30, "pods": 10, "none": 0},
			Overhead: map[string]int64{"cpu": 100, "memory": 1 << 30},
			Offerings: []cloud.Offering{{
				Zone: "z", CapacityType: "spot", Price: 0.0123456789, Available: true, ReservationID: "r", ReservationCount: 2,
				Requirements: []cloud.Requirement{{Key: "example.com/reservation", Operator: "Exists"}},
			}},
		},
		{Name: "odd", Requirements: []cloud.Requirement{{Key: "a", Operator: "Near"}}},
		{Name: "negative", Offerings: []cloud.Offering{{Price: -1}}},
	}
	got, refused := Catalog(types, words())
	want := []model.InstanceType{{
		Name: "small",
		Requirements: []label.Requirement{
			{Key: "kubernetes.io/arch", Operator: label.In, Values: []string{"amd64"}},
			{Key: "example.com/size", Operator: label.DoesNotExist},
			{Key: "node.kubernetes.io/instance-type", Operator: label.In, Values: []string{"small"}},
		},
		Capacity: []quantity.Amount{{Name: "cpu", Value: 2000}, {Name: "hugepages-2Mi", Value: 1 << 30},
			{Name: "memory", Value: 4 << 30}, {Name: "pods", Value: 10}},
		Allocatable: []quantity.Amount{
			{Name: "cpu", Value: 1900}, {Name: "hugepages-2Mi", Value: 1 << 30}, {Name: "memory", Value: 2 << 30}, {Name: "pods", Value: 10},
		},
		Offerings: []model.Offering{{
			Zone: "z", CapacityType: "spot", Price: 12_345_679, Available: true, ReservationID: "r", ReservationCount: 2,
			Requirements: []label.Requirement{{Key: "example.com/reservation", Operator: label.Exists}},
		}},
	}}
	if diff := cmp.Diff(want, got.Types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	for _, key := range []string{"karpenter.sh/nodepool", "kubernetes.io/arch", "example.com/size", "example.com/reservation"} {
		if !got.WellKnown[key] {
			t.Errorf("%s is not well-known", key)
		}
	}
	var fields []string
	for _, r := range refused {
		fields = append(fields, r.Field)
	}
	if diff := cmp.Diff([]string{"odd.requirements[0].operator", "negative.offerings[0].price"}, fields); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}
