package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/legacy/v1beta1"
	conversion "github.com/karpenter-go/karpenter/internal/legacy/webhook"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func codes(f *Facts) []string {
	list := []string{}
	for _, finding := range Examine(f, Options{Patience: time.Minute, Skew: time.Second}) {
		list = append(list, finding.Code+" "+finding.Object)
	}
	return list
}

// TestExamineWhatCannotBeRead verifies that without permission to read, the doctor neither reports a healthy
// installation nor missing objects that it could not see.
func TestExamineWhatCannotBeRead(t *testing.T) {
	refused := errors.New("is forbidden")
	f := &Facts{Now: now, Unread: []Unread{{"objects of kind CustomResourceDefinition", refused},
		{"the Lease karpenter-leader-election", refused}}}
	want := []string{"CannotLook objects of kind CustomResourceDefinition", "CannotLook the Lease karpenter-leader-election"}
	if diff := cmp.Diff(want, codes(f)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestExaminePermissionsAndClock verifies that verbs of one right form one finding, that clocks may differ by a
// second, and that nothing is reported about them without a response.
func TestExaminePermissionsAndClock(t *testing.T) {
	f := &Facts{Now: now, ServerTime: now.Add(time.Second), NoElection: true, Denied: []Denied{
		{Right: Right{Resource: "pods", For: "a"}, Verb: "list"}, {Right: Right{Resource: "pods", For: "a"}, Verb: "watch"},
		{Right: Right{Group: "apps", Resource: "daemonsets"}, Verb: "list"},
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

// TestExamineWebhooks verifies that a webhook is a finding when it applies to the controller's writes, must respond,
// and does not.
func TestExamineWebhooks(t *testing.T) {
	create, all := []admissionv1.OperationType{admissionv1.Create}, []admissionv1.OperationType{admissionv1.OperationAll}
	ready := &Facts{
		Services: []corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "up"}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "outside"},
				Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "down"}}},
		Slices: []discoveryv1.EndpointSlice{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Labels: map[string]string{discoveryv1.LabelServiceName: "up"}},
				Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Labels: map[string]string{discoveryv1.LabelServiceName: "down"}},
				Endpoints: []discoveryv1.Endpoint{
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
		{"everything of claims", "down", "karpenter.sh", "nodeclaims/*", create, admissionv1.Fail, true},
		{"all subresources of pods", "down", "", "pods/*", create, admissionv1.Fail, true},
		{"all evictions", "down", "", "*/eviction", create, admissionv1.Fail, true},
		{"all scales", "down", "*", "*/scale", all, admissionv1.Fail, false},
		{"everything", "none", "*", "*/*", all, admissionv1.Fail, true},
		{"evictions", "down", "", "pods/eviction", create, admissionv1.Fail, true},
		{"leases", "down", "coordination.k8s.io", "leases", []admissionv1.OperationType{admissionv1.Update}, admissionv1.Fail, true},
		{"pods are not created by us", "down", "", "pods", create, admissionv1.Fail, false},
		{"deployments are not matched", "down", "apps", "deployments", all, admissionv1.Fail, false},
		{"it may fail", "down", "karpenter.sh", "nodeclaims", create, admissionv1.Ignore, false},
		{"outside of the cluster", "outside", "karpenter.sh", "nodeclaims", create, admissionv1.Fail, false},
		{"the service answers", "up", "karpenter.sh", "nodeclaims", create, admissionv1.Fail, false},
	} {
		f := *ready
		f.NoElection = true
		f.Mutating = []admissionv1.MutatingWebhookConfiguration{{ObjectMeta: metav1.ObjectMeta{Name: "m"},
			Webhooks: []admissionv1.MutatingWebhook{{
				Name: "w", FailurePolicy: &c.policy, ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "a", Name: c.service}},
				Rules: []admissionv1.RuleWithOperations{{Operations: c.operations,
					Rule: admissionv1.Rule{APIGroups: []string{c.group}, Resources: []string{c.resource}}}},
			}}}}
		if got := codes(&f); (len(got) == 1) != c.broken {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestExamineGeneratedDefinitions verifies that the generated definitions need a webhook that converts, or the mark
// of a disabled one, and nothing else. Some have several versions that differ in name only.
func TestExamineGeneratedDefinitions(t *testing.T) {
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	several, converted := 0, 0
	f := &Facts{NoElection: true, Now: now, Expected: definitions}
	for _, d := range definitions {
		if len(d.Spec.Versions) > 1 {
			several++
		}
		if d.Spec.Conversion != nil {
			converted++
		}
		f.Installed = append(f.Installed, *d.DeepCopy())
	}
	switch got := codes(f); {
	case converted == 0:
		t.Errorf("converted is 0, want one ConversionBroken for each of %d", converted)
	case len(got) != converted:
		t.Errorf("len(got) is %v, want %v, found %v", len(got), converted, got)
	case !strings.HasPrefix(got[0], ConversionBroken+" "):
		t.Errorf("got[0] is %q, want the prefix %q", got[0], ConversionBroken+" ")
	}
	for i := range f.Installed {
		if c := f.Installed[i].Spec.Conversion; c != nil {
			c.Webhook.ClientConfig.Service.Name = switchedOff
		}
	}
	if got := codes(f); len(got) > 0 || several == 0 {
		t.Errorf("%d of %d definitions have several versions; found %v, want nothing", several, len(definitions), got)
	}
}

// TestTrialsCanBeConverted verifies that the trial objects can be converted in both directions, so that a working
// webhook is never reported because of them. TestDoctor verifies that the definitions accept them.
func TestTrialsCanBeConverted(t *testing.T) {
	for definition, trial := range trials {
		object := map[string]any{}
		if err := json.Unmarshal([]byte(trial), &object); err != nil {
			t.Fatalf("%s: %v", definition, err)
		}
		if pool := v1beta1.PoolToAsk(object); pool != "" {
			t.Errorf("%s: pool %s is read", definition, pool)
		}
		from, _ := object["apiVersion"].(string)
		for _, to := range []string{strings.TrimSuffix(from, "beta1"), from} {
			converted, err := v1beta1.Converter{}.Convert(object, to)
			switch {
			case err != nil:
				t.Fatalf("%s: error %v", definition, err)
			case converted["apiVersion"] != to:
				t.Fatalf(`%s: converted["apiVersion"] is %v, want %v`, definition, converted["apiVersion"], to)
			case converted["spec"] == nil:
				t.Fatalf(`%s: converted["spec"] is nil, %v`, definition, converted)
			}
			object = converted
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(conversion.Definitions())), slices.Sorted(maps.Keys(trials))); diff != "" {
		t.Errorf("-definitions that are converted +trials:\n%s", diff)
	}
}

// TestConversionIsTried covers a definition that looks correct while the API server gets no response: a trial is sent
// where a controller has registered its webhook, and only errors about the webhook count.
func TestConversionIsTried(t *testing.T) {
	const refused = `conversion webhook for karpenter.sh/v1beta1, Kind=NodePool failed: Post "https://karpenter.kube-system.svc:8443/convert?timeout=30s": dial tcp 127.0.0.1:8443: connect: connection refused`
	definitions, err := crds.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	authority, _, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, service string
		authority     []byte
		answer        error
		tried, broken bool
	}{
		{"converts", "karpenter", authority, nil, true, false},
		{"connection refused", "karpenter", authority, errors.New("Internal error occurred: " + refused), true, true},
		{"no answer", "karpenter", authority, context.DeadlineExceeded, true, true},
		{"may not try", "karpenter", authority, errors.New(`nodepools.karpenter.sh is forbidden: User "reader" cannot create resource "nodepools"`), true, false},
		{"switched off", switchedOff, authority, errors.New(refused), false, false},
		{"as installed", "karpenter", nil, errors.New(refused), false, true},
	} {
		f := &Facts{NoElection: true, Now: time.Now()}
		for _, d := range definitions {
			if d = d.DeepCopy(); d.Name == "nodepools.karpenter.sh" {
				at := d.Spec.Conversion.Webhook.ClientConfig
				at.CABundle, at.Service.Namespace, at.Service.Name = c.authority, "kube-system", c.service
				f.Expected, f.Installed = append(f.Expected, d), append(f.Installed, *d)
			}
		}
		for _, name := range []string{"karpenter", switchedOff} {
			f.Services = append(f.Services, corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name},
				Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}})
		}
		var tried int
		s := &Source{Client: interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, object client.Object, options ...client.CreateOption) error {
				tried++
				if !slices.Contains(options, client.CreateOption(client.DryRunAll)) || object.GetObjectKind().GroupVersionKind().Version != "v1beta1" {
					t.Errorf("%s: %v is created with %v, want one of v1beta1 in a dry run", c.name, object, options)
				}
				return c.answer
			},
		})}
		s.conversions(t.Context(), f)
		if got := codes(f); (tried == 1) != c.tried || (len(got) == 1) != c.broken {
			t.Errorf("%s: tried %d times, found %v", c.name, tried, got)
		}
	}
}

// TestExamineWebhooksOfSomeObjects verifies that a webhook that applies to some objects only is not reported. A
// namespace selector does not exclude cluster-scoped objects.
func TestExamineWebhooksOfSomeObjects(t *testing.T) {
	team := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	for _, c := range []struct {
		name, group, resource string
		of                    admissionv1.ValidatingWebhook
		broken                bool
	}{
		{"pods of one namespace", "", "pods/eviction", admissionv1.ValidatingWebhook{NamespaceSelector: team}, false},
		{"claims are in no namespace", "karpenter.sh", "nodeclaims", admissionv1.ValidatingWebhook{NamespaceSelector: team}, true},
		{"nodes are in no namespace", "", "nodes", admissionv1.ValidatingWebhook{NamespaceSelector: team}, true},
		{"an empty selector leaves nothing out", "", "pods/eviction",
			admissionv1.ValidatingWebhook{NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}}, true},
		{"some nodes", "", "nodes", admissionv1.ValidatingWebhook{ObjectSelector: team}, false},
		{"conditions", "", "nodes", admissionv1.ValidatingWebhook{MatchConditions: []admissionv1.MatchCondition{{Name: "c",
			Expression: "false"}}}, false},
	} {
		w := c.of
		w.Name, w.ClientConfig.Service = "w", &admissionv1.ServiceReference{Namespace: "a", Name: "gone"}
		w.Rules = []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.OperationAll},
			Rule: admissionv1.Rule{APIGroups: []string{c.group}, Resources: []string{c.resource}}}}
		f := &Facts{NoElection: true, Validating: []admissionv1.ValidatingWebhookConfiguration{{ObjectMeta: metav1.ObjectMeta{Name: "v"},
			Webhooks: []admissionv1.ValidatingWebhook{w}}}}
		if got := codes(f); (len(got) == 1) != c.broken {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestExamineDrains verifies that a budget counts as blocking when the drain takes long and the API server would not
// evict the pod regardless of the budget.
func TestExamineDrains(t *testing.T) {
	labels := map[string]string{"app": "web"}
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	always, budgeted := policyv1.AlwaysAllow, policyv1.IfHealthyBudget
	for _, c := range []struct {
		name       string
		ago        time.Duration
		conditions []corev1.PodCondition
		policy     *policyv1.UnhealthyPodEvictionPolicyType
		healthy    int32
		tolerates  []corev1.Toleration
		blocked    bool
	}{
		{name: "for long", ago: time.Hour, conditions: ready, blocked: true},
		{name: "just begun", ago: time.Second, conditions: ready},
		{name: "ready, always", ago: time.Hour, conditions: ready, policy: &always, blocked: true},
		{name: "not ready, always", ago: time.Hour, policy: &always},
		{name: "not ready, enough others are", ago: time.Hour, policy: &budgeted, healthy: 2},
		{name: "not ready, too few others are", ago: time.Hour, healthy: 1, blocked: true},
		{name: "stays", ago: time.Hour, conditions: ready, tolerates: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
	} {
		deleted := metav1.NewTime(now.Add(-c.ago))
		f := &Facts{Now: now, NoElection: true,
			Claims: []karpv1.NodeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "c", DeletionTimestamp: &deleted},
				Status: karpv1.NodeClaimStatus{NodeName: "n"}}},
			Pods: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web-0", Labels: labels},
				Spec:   corev1.PodSpec{NodeName: "n", Tolerations: c.tolerates},
				Status: corev1.PodStatus{Conditions: c.conditions}}},
			PDBs: []policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"},
				Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, UnhealthyPodEvictionPolicy: c.policy},
				Status: policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 2, CurrentHealthy: c.healthy}}},
		}
		if got := slices.Contains(codes(f), "DrainBlocked poddisruptionbudget/a/web"); got != c.blocked {
			t.Errorf("%s: blocked %v, want %v", c.name, got, c.blocked)
		}
	}
}

// TestProtectedDrain verifies that a drain that waits for a protected pod is found, and explains that its NodeClaim
// still exists.
func TestProtectedDrain(t *testing.T) {
	deleted := metav1.NewTime(now.Add(-time.Hour))
	f := &Facts{Now: now, NoElection: true,
		Claims: []karpv1.NodeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "c", DeletionTimestamp: &deleted},
			Status: karpv1.NodeClaimStatus{NodeName: "n"}}},
		Pods: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "db",
			Annotations: map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}},
			Spec: corev1.PodSpec{NodeName: "n"}}}}
	if diff := cmp.Diff([]string{"DrainBlocked node/n"}, codes(f)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if blocked := drains(f, Options{Patience: time.Minute}); len(blocked) != 1 || !f.drains(blocked[0], "c") ||
		!strings.Contains(blocked[0].Problem, ": a/db") {
		t.Errorf("found %+v", blocked)
	}
	f.Pods[0].Annotations[karpv1.AnnotationDoNotDisrupt] = "false"
	if got := codes(f); len(got) > 0 {
		t.Errorf("without protection: %v", got)
	}
}

// TestDrainOfEachNode verifies that each NodeClaim whose drain waits for the same budget is listed below its finding, also
// beyond the pods that the finding names.
func TestDrainOfEachNode(t *testing.T) {
	labels := map[string]string{"app": "web"}
	deleted := metav1.NewTime(now.Add(-time.Hour))
	f := &Facts{Now: now, NoElection: true, PDBs: []policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}}}}
	for i := range 5 {
		node := fmt.Sprintf("n%d", i)
		f.Claims = append(f.Claims, karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c-" + node, DeletionTimestamp: &deleted},
			Status: karpv1.NodeClaimStatus{NodeName: node}})
		f.Pods = append(f.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web-" + node, Labels: labels},
			Spec:   corev1.PodSpec{NodeName: node},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}})
	}
	blocked := drains(f, Options{Patience: time.Minute})
	if len(blocked) != 1 {
		t.Fatalf("%d findings, want 1: %v", len(blocked), blocked)
	}
	for _, claim := range f.Claims {
		if !f.drains(blocked[0], claim.Name) {
			t.Errorf("the finding is not the cause of the drain of %s: %s", claim.Name, blocked[0].Problem)
		}
	}
	if f.drains(blocked[0], "c-other") {
		t.Error("the finding is the cause of the drain of a NodeClaim that does not exist")
	}
}

// TestExamineAdvice verifies that a suggested command has exactly the described effect: finalizers of other
// controllers stay, and no name is left empty.
func TestExamineAdvice(t *testing.T) {
	long := metav1.NewTime(now.Add(-time.Hour))
	f := &Facts{Now: now, NoElection: true, Owned: []schema.GroupKind{{}},
		Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "left",
			Finalizers: []string{"example.com/audit", karpv1.FinalizerTermination}}}},
		Claims: []karpv1.NodeClaim{
			{ObjectMeta: metav1.ObjectMeta{Name: "bare", DeletionTimestamp: &long}},
			{ObjectMeta: metav1.ObjectMeta{Name: "joined", DeletionTimestamp: &long}, Status: karpv1.NodeClaimStatus{NodeName: "n"}},
		}}
	var got []string
	for _, finding := range Examine(f, Options{}) {
		got = append(got, finding.Fix)
	}
	want := []string{
		"kubectl describe nodeclaim bare",
		"kubectl describe nodeclaim joined; kubectl describe node n shows the reason if its drain is blocked",
		`verify that its instance does not exist, then run kubectl patch node left --type=json -p '[{"op":"test","path":"/metadata/finalizers/1","value":"karpenter.sh/termination"},{"op":"remove","path":"/metadata/finalizers/1"}]'`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestExamineOlderObjects verifies that a Provisioner or template that is not released in time is a finding, with the
// command that releases that kind. One that is released, or is held by others only, is not.
func TestExamineOlderObjects(t *testing.T) {
	object := func(name string, ago time.Duration, finalizers ...string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Finalizers: finalizers, DeletionTimestamp: new(metav1.NewTime(now.Add(-ago)))}
	}
	living := metav1.ObjectMeta{Name: "living", Finalizers: []string{karpv1.FinalizerMadeFrom}}
	f := &Facts{Now: now, NoElection: true,
		Provisioners: []karpv1alpha5.Provisioner{
			{ObjectMeta: living},
			{ObjectMeta: object("going", time.Second, karpv1.FinalizerMadeFrom)},
			{ObjectMeta: object("another's", time.Hour, metav1.FinalizerDeleteDependents)},
			{ObjectMeta: object("held", time.Hour, metav1.FinalizerDeleteDependents, karpv1.FinalizerMadeFrom),
				Status: karpv1alpha5.ProvisionerStatus{NodeClass: "KWOKNodeClass/held"}},
		},
		Templates: []awsv1alpha1.AWSNodeTemplate{{ObjectMeta: living}, {ObjectMeta: object("held", time.Hour, karpv1.FinalizerMadeFrom)}},
	}
	if diff := cmp.Diff([]string{"OlderNotReleased awsnodetemplate/held", "OlderNotReleased provisioner/held"}, codes(f)); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	findings := Examine(f, Options{Patience: time.Minute})
	for i, want := range []struct{ problem, fix string }{
		{"provider of EC2NodeClass", `kubectl patch awsnodetemplate held --type=json -p '[{"op":"test","path":"/metadata/finalizers/0","value":"karpenter-go.github.io/made-from"},{"op":"remove","path":"/metadata/finalizers/0"}]'`},
		{"provider of KWOKNodeClass", `kubectl patch provisioner held --type=json -p '[{"op":"test","path":"/metadata/finalizers/1","value":"karpenter-go.github.io/made-from"},{"op":"remove","path":"/metadata/finalizers/1"}]'`},
	} {
		if got := findings[i]; !strings.Contains(got.Problem, want.problem) || !strings.HasSuffix(got.Fix, want.fix) {
			t.Errorf("%s: %s; %s", got.Object, got.Problem, got.Fix)
		}
	}
}

// TestExamineOlderObjectsThatAreNotReady verifies that an older object that was not converted is a finding, and
// explains a pool without a class. One that waits for the deletion of another, or whose class a user wrote, is not.
func TestExamineOlderObjectsThatAreNotReady(t *testing.T) {
	no := func(kind, reason, message string, ago time.Duration) []status.Condition {
		return []status.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(now.Add(-ago))}}
	}
	applied, ready := karpv1alpha5.ConditionApplied, karpv1alpha5.ConditionNodeClassReady
	provisioner := func(name string, conditions []status.Condition) karpv1alpha5.Provisioner {
		p := karpv1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Status.Conditions = conditions
		return p
	}
	template := func(name string, conditions []status.Condition) awsv1alpha1.AWSNodeTemplate {
		t := awsv1alpha1.AWSNodeTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
		t.Status.Conditions = conditions
		return t
	}
	ec2 := schema.GroupKind{Group: awsv1.Group, Kind: awsv1.Kind}
	owned := metav1.ObjectMeta{Name: "legacy", OwnerReferences: []metav1.OwnerReference{{Kind: karpv1alpha5.Kind,
		Name: "legacy", Controller: new(true)}}}
	pool := karpv1.NodePool{ObjectMeta: owned}
	pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: ec2.Group, Kind: ec2.Kind, Name: "legacy"}
	f := &Facts{Now: now, NoElection: true, Owned: []schema.GroupKind{ec2}, Pools: []karpv1.NodePool{pool},
		Classes: []Class{{Kind: ec2, Name: "written"},
			{Kind: ec2, Name: "made", MadeFrom: "awsnodetemplate made", Conditions: []Condition{{Type: "Ready", Status: "False"}}}},
		Provisioners: []karpv1alpha5.Provisioner{
			provisioner("taken", no(applied, karpv1alpha5.ReasonNameTaken, "not made from this object", time.Second)),
			provisioner("waits", no(applied, karpv1alpha5.ReasonNotObserved, "is being deleted", time.Second)),
			provisioner("waits for long", no(applied, karpv1alpha5.ReasonNotObserved, "is being deleted", time.Hour)),
			provisioner("pool not ready", no(karpv1alpha5.ConditionNodePoolReady, "NodeClassNotFound", "", time.Hour)),
			provisioner("new", nil),
		},
		Templates: []awsv1alpha1.AWSNodeTemplate{
			template("legacy", no(ready, karpv1alpha5.ReasonNotMade, "spec.instanceProfile is not set", time.Second)),
			template("written", no(ready, karpv1alpha5.ReasonNotMade, "launchTemplate", time.Second)),
			template("made", no(ready, "SubnetsNotFound", "", time.Second)),
			template("refused", no(applied, karpv1alpha5.ReasonRefused, "the API server refuses", time.Second)),
		},
	}
	var got []string
	for _, finding := range Examine(f, Options{Patience: time.Minute}) {
		got = append(got, finding.Code+" "+finding.Object+": "+finding.Fix)
	}
	const edit = ": fix the problem in the message: kubectl edit "
	want := []string{
		"ClassMissing nodepool/legacy: the NodePool is created from provisioner legacy, which reverts edits: kubectl describe provisioner legacy; kubectl describe awsnodetemplate legacy, from which the node class is created; or create the EC2NodeClass",
		"ClassNotReady ec2nodeclass/made: kubectl describe ec2nodeclass.karpenter.k8s.aws made; fix the problems in the conditions; it is created from awsnodetemplate made, which reverts edits of it: kubectl edit awsnodetemplate made",
		"OlderNotReady awsnodetemplate/legacy" + edit + "awsnodetemplate legacy; the objects created from it are then updated",
		"OlderNotReady awsnodetemplate/refused" + edit + "awsnodetemplate refused; the objects created from it are then updated",
		"OlderNotReady provisioner/taken: follow the message; or, to keep the existing object, run kubectl delete provisioner taken",
		"OlderNotReady provisioner/waits for long" + edit + "provisioner waits for long; the objects created from it are then updated",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	f.Owned = nil // a controller of another provider does not process templates
	if got := codes(f); slices.ContainsFunc(got, func(c string) bool { return strings.Contains(c, "awsnodetemplate") }) {
		t.Errorf("for another provider: %v", got)
	}
}

// TestReviewsInTheNamespace verifies that rights in one namespace are checked in that of the controller, and not
// at all if it is unknown.
func TestReviewsInTheNamespace(t *testing.T) {
	leases := []coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{Namespace: "led"}}}
	for _, c := range []struct {
		name   string
		source Source
		facts  Facts
		want   string
	}{
		{"as told", Source{Installation: Installation{LeaseNamespace: "told"}, Account: "account/a", Namespace: "pod"},
			Facts{Leases: leases}, "told"},
		{"where the Lease is", Source{Account: "account/a", Namespace: "pod"}, Facts{Leases: leases}, "led"},
		{"no election", Source{Account: "account/a", Namespace: "pod"}, Facts{}, "account"},
		{"in the pod", Source{Namespace: "pod"}, Facts{}, "pod"},
		{"two elections", Source{}, Facts{Leases: append(leases, leases...)}, ""},
	} {
		var asked []string
		c.source.Installation.Provider, c.source.Installation.LeaseName = "aws", "l"
		c.source.Client = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
				var about *authorizationv1.ResourceAttributes
				switch review := object.(type) {
				case *authorizationv1.SelfSubjectAccessReview:
					about, review.Status.Allowed = review.Spec.ResourceAttributes, true
				case *authorizationv1.SubjectAccessReview:
					about, review.Status.Allowed = review.Spec.ResourceAttributes, true
				}
				if about.Namespace != NodeLeaseNamespace && (about.Resource == "leases" || about.Resource == "configmaps") {
					asked = append(asked, about.Namespace)
				}
				return nil
			},
		})
		c.source.review(t.Context(), &c.facts, c.source.installations(&c.facts))
		slices.Sort(asked)
		asked = slices.Compact(asked)
		if want := strings.Fields(c.want); !slices.Equal(asked, want) || (len(c.facts.Unread) == 1) != (c.want == "") {
			t.Errorf("%s: checked in %q, want %q; unread %v", c.name, asked, want, c.facts.Unread)
		}
	}
}

// TestCodesAreDocumented verifies that docs/doctor.md, in which operators look up codes, contains exactly the codes.
// Those of providers have their own section.
func TestCodesAreDocumented(t *testing.T) {
	source, err := os.ReadFile("examine.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/doctor.md")
	if err != nil {
		t.Fatal(err)
	}
	own, _, divided := bytes.Cut(page, []byte("\n## In AWS\n"))
	if !divided {
		t.Error("docs/doctor.md has no section about AWS")
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
	if diff := cmp.Diff(want, find("(?m)^\\| `([A-Z]\\w+)` \\|", own)); diff != "" || len(want) < 15 {
		t.Errorf("-code +docs/doctor.md:\n%s", diff)
	}
}

// TestRights verifies that the table of rights has no verb twice, and contains only what an installation needs.
func TestRights(t *testing.T) {
	for _, provider := range []string{"aws", "kwok"} {
		seen := map[string]bool{}
		for _, right := range Rights(Installation{Provider: provider, LeaseName: "l", LeaseNamespace: "n"}) {
			for _, verb := range right.Verbs {
				key := strings.Join([]string{verb, right.Group, right.Resource, right.Namespace, right.Name}, " ")
				if seen[key] || right.For == "" {
					t.Errorf("%s: %q is there twice, or without a purpose", provider, key)
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
	off := apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{Conversion: &apiextensionsv1.CustomResourceConversion{
		Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Name: SwitchedOff}}},
	}}}
	for _, c := range []struct {
		installed []apiextensionsv1.CustomResourceDefinition
		want      bool
	}{{nil, true}, {[]apiextensionsv1.CustomResourceDefinition{{}, off}, false}} {
		list := (&Source{}).installations(&Facts{Installed: c.installed})
		if got := slices.ContainsFunc(Rights(list[0]), func(r Right) bool { return r.Resource == "secrets" }); got != c.want {
			t.Errorf("with %d definitions, rights on Secrets are needed: %v, want %v", len(c.installed), got, c.want)
		}
	}
}
