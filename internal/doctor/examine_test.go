package doctor

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func codes(f *Facts) []string {
	list := []string{}
	for _, finding := range Examine(f, Options{Patience: time.Minute, Skew: time.Second}) {
		list = append(list, finding.Code+" "+finding.Object)
	}
	return list
}

// A doctor who may not look does not say that all is well, nor that something is missing which he could not see.
func TestExamineWhatCannotBeRead(t *testing.T) {
	refused := errors.New("is forbidden")
	f := &Facts{Now: now, Unread: []Unread{{"objects of kind CustomResourceDefinition", refused}, {"the Lease karpenter-leader-election", refused}}}
	want := []string{"CannotLook objects of kind CustomResourceDefinition", "CannotLook the Lease karpenter-leader-election"}
	if diff := cmp.Diff(want, codes(f)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Verbs of one right make one finding; clocks may differ by a second, and without an answer nothing is said of them.
func TestExaminePermissionsAndClock(t *testing.T) {
	f := &Facts{Now: now, ServerTime: now.Add(time.Second), NoElection: true, Denied: []Denied{
		{Right: Right{Resource: "pods", For: "a"}, Verb: "list"}, {Right: Right{Resource: "pods", For: "a"}, Verb: "watch"}, {Right: Right{Group: "apps", Resource: "daemonsets"}, Verb: "list"},
	}}
	if diff := cmp.Diff([]string{"PermissionMissing daemonsets.apps", "PermissionMissing pods"}, codes(f)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := Examine(f, Options{})[2].Problem; !strings.Contains(got, "list, watch pods") {
		t.Errorf("the verbs are not named together: %s", got)
	}
	f.Denied, f.ServerTime = nil, now.Add(-2*time.Second)
	if diff := cmp.Diff([]string{"ClockSkew clock"}, codes(f)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A webhook is a finding when it is asked about what the controller writes, must answer, and nobody does.
func TestExamineWebhooks(t *testing.T) {
	create, all := []admissionv1.OperationType{admissionv1.Create}, []admissionv1.OperationType{admissionv1.OperationAll}
	ready := &Facts{
		Services: []corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "up"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "down"}}},
		Slices: []discoveryv1.EndpointSlice{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Labels: map[string]string{discoveryv1.LabelServiceName: "up"}}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Labels: map[string]string{discoveryv1.LabelServiceName: "down"}}, Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{"10.0.0.2"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}}}},
		},
	}
	for _, c := range []struct {
		name, service, group, resource string
		operations                     []admissionv1.OperationType
		policy                         admissionv1.FailurePolicyType
		broken                         bool
	}{
		{"claims are created", "down", "karpenter.sh", "nodeclaims", create, admissionv1.Fail, true},
		{"everything", "none", "*", "*/*", all, admissionv1.Fail, true},
		{"evictions", "down", "", "pods/eviction", create, admissionv1.Fail, true},
		{"leases", "down", "coordination.k8s.io", "leases", []admissionv1.OperationType{admissionv1.Update}, admissionv1.Fail, true},
		{"pods are not created by us", "down", "", "pods", create, admissionv1.Fail, false},
		{"nobody asks about deployments", "down", "apps", "deployments", all, admissionv1.Fail, false},
		{"it may fail", "down", "karpenter.sh", "nodeclaims", create, admissionv1.Ignore, false},
		{"somebody answers", "up", "karpenter.sh", "nodeclaims", create, admissionv1.Fail, false},
	} {
		f := *ready
		f.NoElection = true
		f.Mutating = []admissionv1.MutatingWebhookConfiguration{{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Webhooks: []admissionv1.MutatingWebhook{{
			Name: "w", FailurePolicy: &c.policy, ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "a", Name: c.service}},
			Rules: []admissionv1.RuleWithOperations{{Operations: c.operations, Rule: admissionv1.Rule{APIGroups: []string{c.group}, Resources: []string{c.resource}}}},
		}}}}
		if got := codes(&f); (len(got) == 1) != c.broken {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// Operators look codes up in docs/doctor.md: it has them all, and no others.
func TestCodesAreDocumented(t *testing.T) {
	source, err := os.ReadFile("examine.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	find := func(pattern string, text []byte) []string {
		var list []string
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			list = append(list, m[1])
		}
		slices.Sort(list)
		return list
	}
	want := find(`(?m)^\t\w+ += "(\w+)" +//`, source)
	if diff := cmp.Diff(want, find("(?m)^\\| `([A-Z]\\w+)` \\|", page)); diff != "" || len(want) < 15 {
		t.Errorf("-code +docs/doctor.md:\n%s", diff)
	}
}

// The table of rights has no verb twice, and what an installation does not need is not in it.
func TestRights(t *testing.T) {
	for _, provider := range []string{"aws", "kwok"} {
		seen := map[string]bool{}
		for _, right := range Rights(Installation{Provider: provider, LeaseName: "l", LeaseNamespace: "n"}) {
			for _, verb := range right.Verbs {
				key := strings.Join([]string{verb, right.Group, right.Resource, right.Namespace, right.Name}, " ")
				if seen[key] || right.For == "" {
					t.Errorf("%s: %q is there twice, or for nothing", provider, key)
				}
				seen[key] = true
			}
		}
		if seen["create  nodes  "] != (provider == "kwok") || seen["get karpenter.k8s.aws ec2nodeclasses  "] != (provider == "aws") {
			t.Errorf("%s has the rights of another provider", provider)
		}
	}
	if n := len(Rights(Installation{Provider: "kwok"})); n+3 != len(Rights(Installation{Provider: "kwok", LeaseName: "l"})) {
		t.Error("without an election there are rights on Leases")
	}
}
