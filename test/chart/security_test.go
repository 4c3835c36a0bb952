package chart

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// TestSecurityPage checks the chart against the permissions that docs/security.md excludes.
func TestSecurityPage(t *testing.T) {
	ownSecret := []string{"karpenter-conversion"}
	ownMaps := []string{"karpenter-instance-memory", "karpenter-global-settings"}
	never := func(provider, namespace string, rule rbacv1.PolicyRule, resource string) string {
		has := func(verbs ...string) bool {
			return slices.ContainsFunc(verbs, func(v string) bool { return slices.Contains(rule.Verbs, v) })
		}
		named := func(names []string) bool {
			return len(rule.ResourceNames) > 0 && !slices.ContainsFunc(rule.ResourceNames, func(n string) bool { return !slices.Contains(names, n) })
		}
		switch {
		case strings.Contains(strings.Join(append(append(rule.Verbs, rule.APIGroups...), resource), " "), "*"):
			return "wildcards"
		case has("escalate", "bind", "impersonate", "approve", "sign", "deletecollection"):
			return "verbs that give more rights"
		case resource == "secrets" && has("create"):
			return "making Secrets"
		case resource == "secrets" && !named(ownSecret) && has("get", "list", "watch", "update", "patch", "delete"):
			return "Secrets that are not its own"
		case resource == "configmaps" && !named(ownMaps) && has("get", "list", "watch", "update", "patch", "delete") && (provider != "kwok" || namespace != "kube-system"):
			return "ConfigMaps that are not its own"
		case resource == "pods" && has("create", "update", "patch"), strings.HasPrefix(resource, "pods/") && resource != "pods/status" && resource != "pods/eviction":
			return "making pods, or changing what they run"
		case resource == "nodes" && has("create") && provider != "kwok":
			return "making nodes"
		case slices.Contains(rule.APIGroups, "rbac.authorization.k8s.io"), slices.Contains(rule.APIGroups, "certificates.k8s.io"), slices.Contains(rule.APIGroups, "admissionregistration.k8s.io"):
			return "changing who may do what"
		case resource == "customresourcedefinitions" && has("create", "delete"), strings.HasPrefix(resource, "customresourcedefinitions") && has("update", "patch") && len(rule.ResourceNames) == 0:
			return "definitions that are not its own"
		}
		return ""
	}
	n := 0
	for _, provider := range []string{"kwok", "aws"} {
		r := render(t, mainChart, values(everything(provider)))
		for _, object := range r.objects {
			var rules []rbacv1.PolicyRule
			switch object.GetKind() {
			case "ClusterRole":
				if name := object.GetName(); strings.HasSuffix(name, "-admin") || strings.HasSuffix(name, "-view") {
					continue // for users; TestViewer has what the latter grants
				}
				rules = decode[rbacv1.ClusterRole](t, r, "ClusterRole", object.GetName()).Rules
			case "Role":
				rules = decode[rbacv1.Role](t, r, "Role", object.GetName()).Rules
			}
			for _, rule := range rules {
				for _, resource := range rule.Resources {
					n++
					if what := never(provider, object.GetNamespace(), rule, resource); what != "" {
						t.Errorf("%s, %s %s: %s (%v), which docs/security.md rules out", provider, object.GetKind(), object.GetName(), what, rule)
					}
				}
			}
		}
	}
	if n < 60 {
		t.Errorf("only %d resources are checked", n)
	}
}
