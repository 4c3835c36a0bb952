package permission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

const log = `{"stage":"ResponseComplete","verb":"list","requestURI":"/api/v1/pods?limit=500","objectRef":{"resource":"pods","apiVersion":"v1"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"stage":"ResponseComplete","verb":"list","requestURI":"/api/v1/pods?limit=500","objectRef":{"resource":"pods","apiVersion":"v1"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"stage":"ResponseComplete","verb":"create","requestURI":"/api/v1/namespaces/a/pods/b/eviction","objectRef":{"resource":"pods","namespace":"a","name":"b","apiVersion":"v1","subresource":"eviction"},"annotations":{"authorization.k8s.io/decision":"forbid","authorization.k8s.io/reason":"no"}}
{"stage":"ResponseComplete","verb":"get","requestURI":"/version","annotations":{"authorization.k8s.io/decision":"allow"}}
`

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	have, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	want := Log{
		Allowed: []Call{{Verb: "list", Resource: "pods"}, {Verb: "get", Path: "/version"}},
		Denied:  []Call{{Verb: "create", Resource: "pods/eviction", Namespace: "a", Name: "b", Reason: "no"}},
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "audit log") {
		t.Errorf("a broken log gives the error %v", err)
	}
}

func TestUnused(t *testing.T) {
	cluster := Grants("", []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods", "pods/eviction"}, Verbs: []string{"list", "create"}}})
	role := Grants("kube-system", []rbacv1.PolicyRule{{APIGroups: []string{"g"}, Resources: []string{"r"}, ResourceNames: []string{"n"}, Verbs: []string{"get"}}})
	var have []string
	calls := []Call{{Verb: "list", Resource: "pods", Namespace: "a"}, {Verb: "create", Resource: "pods/eviction", Namespace: "a"}, {Verb: "get", Group: "g", Resource: "r", Namespace: "elsewhere"}}
	for _, g := range Unused(append(cluster, role...), calls) {
		have = append(have, g.String())
	}
	if diff := cmp.Diff([]string{"create pods", "list pods/eviction", "get r.g in kube-system"}, have); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
}
