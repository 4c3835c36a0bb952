package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/karpenter-go/karpenter/internal/legacy/webhook"
	"github.com/karpenter-go/karpenter/plugin/doctor"
	"github.com/karpenter-go/karpenter/plugin/viewer"
)

// TestRights compares the chart's roles with the table of the controller's permissions, which `kubectl karpenter doctor`
// uses. The roles grant exactly these, plus the finalizers that some clusters require.
func TestRights(t *testing.T) {
	if doctor.SwitchedOff != webhook.SwitchedOff {
		t.Errorf("the doctor expects the switch %s for the webhook, the controller has %s", doctor.SwitchedOff, webhook.SwitchedOff)
	}
	for _, c := range []struct {
		name, provider  string
		converts, gated bool
		proactive       any // nil: not set
	}{{"kwok", "kwok", true, false, nil}, {"aws", "aws", true, false, true},
		{"without webhook", "aws", false, false, false}, {"with feature gates", "aws", true, true, nil}} {
		t.Run(c.name, func(t *testing.T) {
			r := render(t, mainChart, values(minimal().set("settings.cloudProvider", c.provider).set("conversion.enabled", c.converts).
				set("settings.featureGates.nodeOverlay", c.gated).set("settings.featureGates.capacityBuffer", c.gated).
				set("settings.proactiveScaleUp", c.proactive)))
			granted := map[string]bool{}
			for _, object := range r.objects {
				switch object.GetKind() {
				case "ClusterRole":
					if name := object.GetName(); !strings.HasSuffix(name, "-admin") && !strings.HasSuffix(name, "-view") {
						grant(granted, "", decode[rbacv1.ClusterRole](t, r, "ClusterRole", object.GetName()).Rules)
					}
				case "Role":
					role := decode[rbacv1.Role](t, r, "Role", object.GetName())
					grant(granted, role.Namespace, role.Rules)
				}
			}
			wanted := map[string]bool{}
			i := doctor.Installation{Provider: c.provider, LeaseName: "karpenter-leader-election", LeaseNamespace: namespace,
				Unconverted: !c.converts,
				Overlays:    c.gated, Buffers: c.gated, Replicas: c.proactive != false}
			for _, right := range doctor.Rights(i) {
				rule := rbacv1.PolicyRule{APIGroups: []string{right.Group}, Resources: []string{right.Resource}, Verbs: right.Verbs}
				if right.Name != "" {
					rule.ResourceNames = []string{right.Name}
				}
				grant(wanted, right.Namespace, []rbacv1.PolicyRule{rule})
			}
			if diff := cmp.Diff(wanted, granted); diff != "" || len(wanted) < 50 {
				t.Errorf("permissions of the controller with %s, -plugin/doctor/rights.go +chart:\n%s", c.name, diff)
			}
		})
	}
}

// TestViewer checks that the role for viewers grants exactly reading what the commands of the plugin read, and that the
// role view of Kubernetes includes it.
func TestViewer(t *testing.T) {
	for _, provider := range []string{"kwok", "aws"} {
		r := render(t, mainChart, values(minimal().set("settings.cloudProvider", provider)))
		role := decode[rbacv1.ClusterRole](t, r, "ClusterRole", viewer.Role)
		if role.Labels["rbac.authorization.k8s.io/aggregate-to-view"] != "true" {
			t.Errorf("the labels are %v", role.Labels)
		}
		granted, wanted := map[string]bool{}, map[string]bool{}
		grant(granted, "", role.Rules)
		for _, resource := range viewer.Resources() {
			resource, group, _ := strings.Cut(resource, ".")
			rule := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"get", "list", "watch"}}
			grant(wanted, "", []rbacv1.PolicyRule{rule})
		}
		grant(wanted, "", []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}, ResourceNames: []string{"karpenter-instance-memory"}}})
		if diff := cmp.Diff(wanted, granted); diff != "" || len(wanted) < 50 {
			t.Errorf("with %s, -plugin/viewer +chart:\n%s", provider, diff)
		}
	}
}

// grant records the permissions of rules, a line for each verb.
func grant(to map[string]bool, namespace string, rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range slices.DeleteFunc(slices.Clone(rule.Resources), func(r string) bool { return strings.HasSuffix(r, "/finalizers") }) {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						to[strings.Join([]string{namespace, group, resource, name, verb}, " ")] = true
					}
				}
			}
		}
	}
}
