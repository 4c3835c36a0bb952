package chart

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/api/crds"
)

// TestLint runs Helm's own linter on both charts and expects no errors and no warnings.
func TestLint(t *testing.T) {
	for path, with := range map[string]values{mainChart: values(minimal()), definitionChart: {}} {
		result := lint.RunAll(path, with, namespace)
		for _, message := range result.Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %v", path, message)
			}
		}
	}
}

// TestDefinitions compares the copies in the charts with the generated files.
func TestDefinitions(t *testing.T) {
	for _, folder := range []string{mainChart + "/crds", definitionChart + "/files"} {
		want := map[string][]byte{}
		entries, err := crds.Files.ReadDir(".")
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if want[entry.Name()], err = crds.Files.ReadFile(entry.Name()); err != nil {
				t.Fatal(err)
			}
		}
		there, err := filepath.Glob(folder + "/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range there {
			name := filepath.Base(path)
			have, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(have, want[name]) && !*update {
				t.Errorf("%s differs from api/crds; go test ./chart -run TestDefinitions -update copies it", path)
			}
		}
		for name, content := range want {
			if *update {
				if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
				t.Errorf("%s has no %s; go test ./chart -run TestDefinitions -update copies it", folder, name)
			}
		}
	}
}

// TestDefinitionChart checks that the chart's definitions are the generated ones except for annotations.
func TestDefinitionChart(t *testing.T) {
	want, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	r := render(t, definitionChart, values{"additionalAnnotations": values{"example.org/a": "b"}})
	for _, definition := range want {
		object := r.of("CustomResourceDefinition", definition.Name)
		if object == nil {
			t.Fatalf("the chart has no %s", definition.Name)
		}
		annotations := object.GetAnnotations()
		if annotations["helm.sh/resource-policy"] != "keep" || annotations["example.org/a"] != "b" {
			t.Errorf("%s has the annotations %v, want it kept and annotated", definition.Name, annotations)
		}
		delete(annotations, "helm.sh/resource-policy")
		delete(annotations, "example.org/a")
		object.SetAnnotations(annotations)
		if conversion := definition.Spec.Conversion; conversion != nil && conversion.Webhook != nil {
			conversion.Webhook.ClientConfig.Service.Namespace = namespace // nothing else differs
		}
		have, err := yaml.Marshal(object.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(definition.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), string(have)); diff != "" {
			t.Errorf("%s differs (-generated +chart):\n%s", definition.Name, diff)
		}
		if diff := cmp.Diff(definition.Annotations, annotations); diff != "" {
			t.Errorf("%s (-generated +chart):\n%s", definition.Name, diff)
		}
	}
	given := render(t, definitionChart, values{"keep": false, "guard": values{"enabled": false}})
	if len(given.objects) != len(want) {
		t.Errorf("without a guard there are %d objects, want the %d definitions", len(given.objects), len(want))
	}
	if annotations := given.objects[0].GetAnnotations(); annotations["helm.sh/resource-policy"] != "" {
		t.Errorf("a definition that is not to be kept has the annotations %v", annotations)
	}
}

// TestDefaults checks the defaults that users of the upstream chart rely on, and those that make the pod secure.
func TestDefaults(t *testing.T) {
	r := render(t, mainChart, minimal())
	d := decode[appsv1.Deployment](t, r, "Deployment")
	pod := d.Spec.Template.Spec
	container := pod.Containers[0]
	for what, same := range map[string][2]any{
		"replicas":          {int32(2), *d.Spec.Replicas},
		"selector":          {map[string]string{"app.kubernetes.io/name": "karpenter", "app.kubernetes.io/instance": "karpenter"}, d.Spec.Selector.MatchLabels},
		"priority class":    {"system-cluster-critical", pod.PriorityClassName},
		"service account":   {"karpenter", pod.ServiceAccountName},
		"container":         {"controller", container.Name},
		"arguments":         {[]string{"controller"}, container.Args},
		"non-root":          {true, *container.SecurityContext.RunAsNonRoot},
		"user":              {int64(65532), *container.SecurityContext.RunAsUser},
		"read-only root":    {true, *container.SecurityContext.ReadOnlyRootFilesystem},
		"escalation":        {false, *container.SecurityContext.AllowPrivilegeEscalation},
		"capabilities":      {&corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}, container.SecurityContext.Capabilities},
		"seccomp":           {corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type},
		"alive":             {"/healthz", container.LivenessProbe.HTTPGet.Path},
		"ready":             {"/readyz", container.ReadinessProbe.HTTPGet.Path},
		"spread":            {"topology.kubernetes.io/zone", pod.TopologySpreadConstraints[0].TopologyKey},
		"spread selects":    {d.Spec.Selector.MatchLabels, pod.TopologySpreadConstraints[0].LabelSelector.MatchLabels},
		"apart selects":     {d.Spec.Selector.MatchLabels, pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels},
		"not on its nodes":  {"karpenter.sh/nodepool", pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Key},
		"disruption budget": {"karpenter", r.of("PodDisruptionBudget").GetName()},
		"service":           {"karpenter", r.of("Service").GetName()},
	} {
		if diff := cmp.Diff(same[0], same[1]); diff != "" {
			t.Errorf("%s (-want +have):\n%s", what, diff)
		}
	}
	for kind, name := range map[string]string{"ServiceMonitor": "karpenter", "NetworkPolicy": "karpenter", "PrometheusRule": "karpenter", "ConfigMap": "karpenter-dashboard-fleet"} {
		if object := r.of(kind, name); object != nil {
			t.Errorf("by default there is the %s %s", kind, object.GetName())
		}
	}
	if strings.Contains(r.notes, "About the values") {
		t.Errorf("the notes warn about the defaults:\n%s", r.notes)
	}
}

// TestNetworkPolicyOfWebhook checks that the rule of the webhook's port contains the sources of the value for it.
func TestNetworkPolicyOfWebhook(t *testing.T) {
	subnet := networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/24"}}
	for _, test := range []struct {
		name string
		from []any
		want []networkingv1.NetworkPolicyPeer
	}{
		{"any source", []any{}, nil},
		{"one subnet", []any{values{"ipBlock": values{"cidr": "10.0.0.0/24"}}}, []networkingv1.NetworkPolicyPeer{subnet}},
	} {
		t.Run(test.name, func(t *testing.T) {
			with := minimal().set("networkPolicy.enabled", true).set("networkPolicy.webhookFrom", test.from)
			policy := decode[networkingv1.NetworkPolicy](t, render(t, mainChart, with), "NetworkPolicy")
			rules := map[string][]networkingv1.NetworkPolicyPeer{}
			for _, rule := range policy.Spec.Ingress {
				for _, port := range rule.Ports {
					rules[port.Port.String()] = rule.From
				}
			}
			want := map[string][]networkingv1.NetworkPolicyPeer{"http-metrics": nil, "http": nil, "https-webhook": test.want}
			if diff := cmp.Diff(want, rules); diff != "" {
				t.Errorf("sources by port (-want +have):\n%s", diff)
			}
		})
	}
}

// TestNetworkPolicy checks that the policy allows the addresses of credential endpoints, in clusters of either IP
// family.
func TestNetworkPolicy(t *testing.T) {
	policy := decode[networkingv1.NetworkPolicy](t, render(t, mainChart, minimal().set("networkPolicy.enabled", true)), "NetworkPolicy")
	have := map[string]bool{}
	for _, rule := range policy.Spec.Egress {
		for _, peer := range rule.To {
			for _, port := range rule.Ports {
				have[peer.IPBlock.CIDR+" "+port.Port.String()] = true
			}
		}
	}
	want := map[string]bool{
		"169.254.169.254/32 80": true, "fd00:ec2::254/128 80": true, // instance metadata
		"169.254.170.23/32 80": true, "fd00:ec2::23/128 80": true, // EKS Pod Identity
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("addresses and ports for credentials (-want +have):\n%s", diff)
	}
}
