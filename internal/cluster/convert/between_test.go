package convert

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// betweenSpec contains every kind of constraint between pods.
const betweenSpec = `
spec:
  topologySpreadConstraints:
  - {maxSkew: 2, topologyKey: old.example.com/zone, whenUnsatisfiable: DoNotSchedule, minDomains: 3, nodeAffinityPolicy: Ignore,
     nodeTaintsPolicy: Honor, matchLabelKeys: [pod-template-hash, app], labelSelector: {matchLabels: {tier: db, app: db}}}
  - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}
  - {maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: rack, labelSelector: {matchExpressions: [{key: app, operator: NotIn, values: [z, a]}]}, matchLabelKeys: [app], mismatchLabelKeys: [app, none]}
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 0, podAffinityTerm: {topologyKey: rack, namespaces: [b, a], labelSelector: {}}}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: rack, namespaceSelector: {matchLabels: {team: shop}}, namespaces: [other], labelSelector: {}}
      - {topologyKey: rack, namespaceSelector: {}, namespaces: [other], labelSelector: {}}
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 7, podAffinityTerm: {topologyKey: rack, labelSelector: {matchLabels: {app: db}}}}
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 3, preference: {matchExpressions: [{key: beta.kubernetes.io/arch, operator: In, values: [arm64]}]}}
      - {weight: 4, preference: {}}
      - {weight: 5, preference: {matchExpressions: [{key: a, operator: Exists}], matchFields: [{key: metadata.name, operator: In, values: [n]}]}}
  initContainers:
  - {name: setup, ports: [{containerPort: 1, hostPort: 1}]}
  - {name: mesh, restartPolicy: Always, ports: [{containerPort: 2, hostPort: 2, protocol: UDP, hostIP: 10.0.0.1}]}
  containers:
  - {name: main, ports: [{containerPort: 3}, {containerPort: 4, hostPort: 5}]}
`

func TestBetweenPods(t *testing.T) {
	around := &Around{Namespaces: map[string]map[string]string{"shop": {"team": "shop"}, "store": {"team": "shop"}, "lab": {"team": "lab"}}}
	got, _ := Pod(decode[corev1.Pod](t, "metadata: {namespace: shop, name: a, labels: {app: db}}"+betweenSpec+unschedulableStatus), words(), around)
	in := func(key string, values ...string) label.Requirement {
		return label.Requirement{Key: key, Operator: label.In, Values: values}
	}
	here := []string{"shop"}
	want := model.PodSpec{
		Spread: []model.Spread{
			{Key: model.LabelZone, MaxSkew: 2, MinDomains: 3, IgnoreAffinity: true, HonorTaints: true,
				Selector: model.Selector{Namespaces: here, Requirements: []label.Requirement{in("app", "db"), in("tier", "db"), in("app", "db")}}},
			{Key: model.LabelHostname, MaxSkew: 1, Soft: true, Selector: model.Selector{Namespaces: here}},
			{Key: "rack", MaxSkew: 1, Selector: model.Selector{Nothing: true}},
		},
		Terms: []model.Term{
			{Key: "rack", Selector: model.Selector{Namespaces: here, Requirements: []label.Requirement{
				{Key: "app", Operator: label.NotIn, Values: []string{"a", "z"}}, in("app", "db"), {Key: "app", Operator: label.NotIn, Values: []string{"db"}}}}},
			{Key: "rack", Weight: 1, Selector: model.Selector{Namespaces: []string{"a", "b"}}},
			{Key: "rack", Anti: true, Selector: model.Selector{Namespaces: []string{"other", "shop", "store"}}},
			{Key: "rack", Anti: true, Selector: model.Selector{AllNamespaces: true}},
			{Key: "rack", Anti: true, Weight: 7, Selector: model.Selector{Namespaces: here, Requirements: []label.Requirement{in("app", "db")}}},
		},
		Preferred: []model.Preference{{Weight: 3, Requirements: []label.Requirement{in("kubernetes.io/arch", "arm64")}}},
		HostPorts: []model.HostPort{{Protocol: "TCP", Port: 5}, {IP: "10.0.0.1", Protocol: "UDP", Port: 2}},
	}
	if diff := cmp.Diff(want, model.PodSpec{Spread: got.Spread, Terms: got.Terms, Preferred: got.Preferred, HostPorts: got.HostPorts}); diff != "" {
		t.Errorf("constraints (-want +got):\n%s", diff)
	}
	if got.Rejected != nil {
		t.Errorf("rejected: %+v", *got.Rejected)
	}
}

func TestHostNetwork(t *testing.T) {
	spec, _ := Pod(decode[corev1.Pod](t, "spec: {nodeName: n, hostNetwork: true, containers: [{name: a, ports: [{containerPort: 80}, {containerPort: 90, hostPort: 91}]}]}"), words(), nil)
	want := []model.HostPort{{Protocol: "TCP", Port: 80}, {Protocol: "TCP", Port: 91}}
	if diff := cmp.Diff(want, spec.HostPorts); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
}

func TestSelectsNamespaces(t *testing.T) {
	for _, test := range []struct {
		name, affinity string
		want           bool
	}{
		{"no affinity", "{}", false},
		{"its own namespace", "{podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a}]}}", false},
		{"all namespaces", "{podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, namespaceSelector: {}}]}}", false},
		{"some namespaces", "{podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, namespaceSelector: {matchLabels: {a: b}}}]}}", true},
		{"some, apart", "{podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, namespaceSelector: {matchLabels: {a: b}}}]}}", true},
		{"some, preferred", "{podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: a, namespaceSelector: {matchLabels: {a: b}}}}]}}", true},
		{"some, preferred apart", "{podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: a, namespaceSelector: {matchLabels: {a: b}}}}]}}", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := SelectsNamespaces(decode[corev1.Pod](t, "spec: {affinity: "+test.affinity+"}")); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
