package chart

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// odd are values that users may write to mean no value, or where a value of another type is expected.
var odd = []any{nil, "", false, 0, "word", []any{}, []any{"a"}, []any{nil}, values{}, values{"a": "b"}}

// paths returns all dotted paths of values, including those of maps.
func paths(of values, prefix string) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if strings.Contains(key, ".") {
			continue // a label, not a setting
		}
		all = append(all, prefix+key)
		if below, is := of[key].(values); is {
			all = append(all, paths(below, prefix+key+".")...)
		}
	}
	return all
}

// blunder matches an error of a template that does not handle a value.
var blunder = regexp.MustCompile(`nil pointer|can't evaluate|error calling|wrong type|executing "|YAML parse error|reading a rendered`)

// TestOddValues sets odd values at every path. Either the chart accepts them, and every object is valid for its API
// type, or the error names the path.
func TestOddValues(t *testing.T) {
	text, err := os.ReadFile(mainChart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := values{}
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	accepted, refused := 0, 0
	for _, path := range paths(all, "") {
		for _, value := range odd {
			with := values(minimal().set("serviceMonitor.enabled", true).set("prometheusRule.enabled", true).set("dashboards.enabled", true).
				set("networkPolicy.enabled", true).set(path, value))
			name := fmt.Sprintf("%s: %#v", path, value)
			switch r, err := template(t, mainChart, with); {
			case err == nil:
				accepted++
				typed(t, name, r, value)
				kept(t, name, path, r, value)
			case blunder.MatchString(err.Error()) || !about(err.Error(), path):
				t.Errorf("%s: %v", name, err)
			default:
				refused++
			}
		}
	}
	t.Logf("%d values were accepted, %d refused", accepted, refused)
	if accepted < 200 || refused < 200 {
		t.Errorf("%d values were accepted, %d refused; want some hundreds of both", accepted, refused)
	}
}

// about reports whether an error names a path: like the chart, or like Helm's schema, with slashes. A property that
// null removed is reported as missing in its parent.
func about(refusal, path string) bool {
	above, name := "", path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		above, name = "/"+strings.ReplaceAll(path[:i], ".", "/"), path[i+1:]
	}
	missing := fmt.Sprintf("at '%s': missing property '%s'", above, name)
	return strings.Contains(refusal, path) || strings.Contains(refusal, strings.ReplaceAll(path, ".", "/")) || strings.Contains(refusal, missing)
}

// kept checks that false and 0 are passed to the controller.
func kept(t *testing.T, name, path string, r rendered, value any) {
	t.Helper()
	setting, is := strings.CutPrefix(path, "settings.")
	if !is || value != false && value != 0 || strings.Contains(setting, ".") {
		return
	}
	for variable, have := range environment(decode[appsv1.Deployment](t, r, "Deployment")) {
		if strings.ReplaceAll(variable, "_", "") == strings.ToUpper(setting) && have == fmt.Sprint(value) {
			return
		}
	}
	t.Errorf("%s: no variable of the controller contains it", name)
}

// typed decodes each object as its type: strictly, unless a map was set somewhere. Maps that are copied to the API
// unchanged are validated by the API server.
func typed(t *testing.T, name string, r rendered, value any) {
	t.Helper()
	free, is := value.(values)
	strict := !is || len(free) == 0
	for _, object := range r.objects {
		as := map[string]any{
			"Deployment": &appsv1.Deployment{}, "Service": &corev1.Service{}, "ServiceAccount": &corev1.ServiceAccount{}, "ConfigMap": &corev1.ConfigMap{},
			"Role": &rbacv1.Role{}, "RoleBinding": &rbacv1.RoleBinding{}, "ClusterRole": &rbacv1.ClusterRole{}, "ClusterRoleBinding": &rbacv1.ClusterRoleBinding{},
			"PodDisruptionBudget": &policyv1.PodDisruptionBudget{}, "NetworkPolicy": &networkingv1.NetworkPolicy{},
		}[object.GetKind()]
		if as == nil {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, as, strict); err != nil {
			t.Errorf("%s: the %s %s: %v", name, object.GetKind(), object.GetName(), err)
			strict = false
		}
	}
	if strict {
		wellFormed(t, name, r)
	}
}

// TestReadableRefusals checks that the error for values of wrong types is readable and contains all of them.
func TestReadableRefusals(t *testing.T) {
	_, err := template(t, mainChart, values(minimal().set("serviceMonitor", nil).set("replicas", "two").set("tolerations", values{}).
		set("settings.batchMaxDuration", 10).set("settings.featureGates.nodeRepair", "yes")))
	if err == nil {
		t.Fatal("five mistakes are accepted")
	}
	for _, want := range []string{
		"at '': missing property 'serviceMonitor'\n",
		"at '/replicas': got string, want integer\n",
		"at '/settings/batchMaxDuration': got number, want null or string\n",
		"at '/settings/featureGates/nodeRepair': got string, want null or boolean\n",
		"at '/tolerations': got object, want null or array\n",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not contain %q:\n%v", want, err)
		}
	}
}
