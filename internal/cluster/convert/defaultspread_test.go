package convert

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

func TestParseSchedulerConfig(t *testing.T) {
	list := func(constraints string) string {
		return "podTopologySpread: {defaultConstraints: [" + constraints + "]}"
	}
	const good = "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}"
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"YAML", list(good), ""},
		{"JSON", `{"podTopologySpread":{"defaultConstraints":[{"maxSkew":1,"topologyKey":"a/zone","whenUnsatisfiable":"ScheduleAnyway"}]}}`, ""},
		{"one key hard and soft", list(good + ", " + strings.Replace(good, "DoNotSchedule", "ScheduleAnyway", 1)), ""},
		{"unknown field", "podTopologySpread: {constraints: []}", "constraints"},
		{"unknown field of a constraint", list("{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, skew: 1}"), "skew"},
		{"no YAML", "{", "reading the scheduler configuration"},
		{"skew", list(strings.Replace(good, "1", "0", 1)), "[0].maxSkew: is 0, want at least 1"},
		{"key", list(strings.Replace(good, "zone", "''", 1)), `[0].topologyKey: is "", want a label key`},
		{"when", list(good + ", " + strings.Replace(good, "DoNotSchedule", "Never", 1)), `[1].whenUnsatisfiable: is "Never"`},
		{"domains", list(strings.Replace(good, "maxSkew", "minDomains: 0, maxSkew", 1)), "[0].minDomains: is 0"},
		{"soft domains", list("{maxSkew: 1, minDomains: 2, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}"), "want DoNotSchedule"},
		{"policy", list(strings.Replace(good, "maxSkew", "nodeTaintsPolicy: Maybe, maxSkew", 1)), "are Honor or Ignore"},
		{"selector", list(strings.Replace(good, "maxSkew", "labelSelector: {}, maxSkew", 1)), "leave them out"},
		{"twice", list(good + ", " + good), "[1]: repeats topologyKey zone with DoNotSchedule"},
	} {
		t.Run(test.name, func(t *testing.T) {
			constraints, err := ParseSchedulerConfig(test.text)
			if test.want == "" {
				switch {
				case err != nil:
					t.Errorf("error %v", err)
				case test.text != "" && len(constraints) == 0:
					t.Errorf(`test.text != "" && len(constraints) == 0, got %v`, constraints)
				}
			}
			if test.want != "" {
				switch {
				case err == nil:
					t.Errorf("no error")
				case !strings.Contains(err.Error(), test.want):
					t.Errorf("err.Error() lacks %q, error is %v", test.want, err)
				}
			}
		})
	}
}

// owners holds the objects of namespace shop.
type owners struct {
	services  []*corev1.Service
	selectors map[string]*metav1.LabelSelector
}

func (o owners) Services(namespace string) []*corev1.Service {
	if namespace != "shop" {
		return nil
	}
	return o.services
}

func (o owners) Selector(_ string, owner metav1.OwnerReference) *metav1.LabelSelector {
	return o.selectors[owner.Kind+"/"+owner.Name]
}

func TestDefaultSpread(t *testing.T) {
	constraints, err := ParseSchedulerConfig("podTopologySpread: {defaultConstraints: [{maxSkew: 3, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}")
	if err != nil {
		t.Fatal(err)
	}
	service := func(name, selector string) *corev1.Service {
		return decode[corev1.Service](t, "metadata: {namespace: shop, name: "+name+"}\nspec: {"+selector+"}")
	}
	spread := DefaultSpread(constraints, owners{
		services: []*corev1.Service{
			service("b", "selector: {app: web, tier: front}"), service("a", "selector: {app: web}"),
			service("none", "clusterIP: None"), service("others", "selector: {app: db}"),
		},
		selectors: map[string]*metav1.LabelSelector{
			"ReplicaSet/web": {MatchLabels: map[string]string{"app": "web", "pod-template-hash": "1"},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist}}},
			"ReplicationController/old": {MatchLabels: map[string]string{"app": "old"}},
		},
	})
	in := func(key, value string) label.Requirement {
		return label.Requirement{Key: key, Operator: label.In, Values: []string{value}}
	}
	owned := func(kind, name string) string {
		return ", ownerReferences: [{apiVersion: v1, kind: " + kind + ", name: " + name + ", uid: o, controller: true}]"
	}
	for _, test := range []struct {
		name, metadata, spec string
		want                 []label.Requirement // of the one constraint; nil for no constraint
	}{
		{"nothing selects it", "namespace: shop, labels: {app: cron}", "{}", nil},
		{"another namespace", "namespace: lab, labels: {app: web}", "{}", nil},
		{"a Service", "namespace: shop, labels: {app: web}", "{}", []label.Requirement{in("app", "web")}},
		{"two Services", "namespace: shop, labels: {app: web, tier: front}", "{}", []label.Requirement{in("app", "web"), in("tier", "front")}},
		{"Service and ReplicaSet", "namespace: shop, labels: {app: web}" + owned("ReplicaSet", "web"), "{}",
			[]label.Requirement{in("app", "web"), in("app", "web"), in("pod-template-hash", "1"), {Key: "old", Operator: label.DoesNotExist}}},
		{"ReplicationController over Service", "namespace: shop, labels: {app: web}" + owned("ReplicationController", "old"),
			"{}", []label.Requirement{in("app", "old")}},
		{"another owner", "namespace: shop, labels: {app: web}" + owned("Job", "web"), "{}", []label.Requirement{in("app", "web")}},
		{"a constraint of its own", "namespace: shop, labels: {app: web}",
			"{topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}]}",
			[]label.Requirement{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := decode[corev1.Pod](t, "metadata: {"+test.metadata+"}\nspec: "+test.spec+unschedulableStatus)
			spec, _ := Pod(pod, words(), &Around{DefaultSpread: spread})
			var want []model.Spread
			switch {
			case test.want == nil:
			case len(test.want) == 0:
				want = []model.Spread{{Key: "rack", MaxSkew: 1, Soft: true, Selector: model.Selector{Namespaces: []string{"shop"}}}}
			default:
				want = []model.Spread{{Key: "zone", MaxSkew: 3, Selector: model.Selector{Namespaces: []string{"shop"}, Requirements: test.want}}}
			}
			if diff := cmp.Diff(want, spec.Spread); diff != "" {
				t.Errorf("spread (-want +got):\n%s", diff)
			}
		})
	}
	if DefaultSpread(nil, owners{}) != nil {
		t.Error("without constraints: want a nil function")
	}
}
