package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestPermissionOfManyObjects verifies that a right that is missing for several objects is one finding, which names them.
func TestPermissionOfManyObjects(t *testing.T) {
	f := &Facts{Now: now, NoElection: true}
	for _, right := range conversionRights(Installation{Unconverted: true}) {
		for _, verb := range right.Verbs {
			f.Denied = append(f.Denied, Denied{Right: right, Verb: verb})
		}
	}
	list := permissions(f, Options{})
	if len(list) != 2 {
		t.Fatalf("%d findings, want one of the definitions and one of their status: %+v", len(list), list)
	}
	const want = "the controller may not get, watch, patch customresourcedefinitions.apiextensions.k8s.io nodepools.karpenter.sh, " +
		"nodeclaims.karpenter.sh, ec2nodeclasses.karpenter.k8s.aws in the whole cluster (for: registration of the conversion webhook)"
	if list[0].Problem != want {
		t.Errorf("the problem is\n%s, want\n%s", list[0].Problem, want)
	}
}

// TestReportOfWhatWasRead verifies that the report counts only what was read.
func TestReportOfWhatWasRead(t *testing.T) {
	definition := func(name string) apiextensionsv1.CustomResourceDefinition {
		return apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	a, b := definition("a"), definition("b")
	f := &Facts{Expected: []*apiextensionsv1.CustomResourceDefinition{&a, &b}, Installed: []apiextensionsv1.CustomResourceDefinition{definition("a"), definition("c")}}
	if text := NewReport(f, nil).Text(); !strings.Contains(text, ", CRDs 1, NodePools 0, ") || strings.Contains(text, "not read") {
		t.Errorf("one definition was compared:\n%s", text)
	}
	f.Installed = nil
	for _, kind := range []string{"CustomResourceDefinition", "Node", "ValidatingWebhookConfiguration"} {
		f.Unread = append(f.Unread, Unread{kindsUnread + kind, errors.New("forbidden")})
	}
	report := NewReport(f, nil)
	const want = "permissions 0, NodePools 0, node classes 0, NodeClaims 0, running pods 0; not read: CRDs, nodes, webhooks\n"
	if text := report.Text(); !strings.HasSuffix(text, want) {
		t.Errorf("the text is\n%s, want it to end with\n%s", text, want)
	}
	if number, has := report.Looked["definitions"]; has {
		t.Errorf("%d definitions in the document, want none: they were not read", number)
	}
}

// TestDrainFix verifies that the fix of a blocked drain is one for the drain in progress, and that the setting for later
// drains is named only if the NodePool exists.
func TestDrainFix(t *testing.T) {
	deleted, labels := metav1.NewTime(now.Add(-time.Hour)), map[string]string{"app": "web"}
	f := &Facts{Now: now, NoElection: true,
		Claims: []karpv1.NodeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "c", DeletionTimestamp: &deleted,
			Labels: map[string]string{karpv1.LabelNodePool: "p"}}, Status: karpv1.NodeClaimStatus{NodeName: "n"}}},
		Pods: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web-0", Labels: labels}, Spec: corev1.PodSpec{NodeName: "n"}}},
		PDBs: []policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"},
			Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
			Status: policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 2}}}}
	const fix = "increase the number of healthy pods of the workload, or relax the budget: kubectl -n a edit poddisruptionbudget web; " +
		"or delete the pods: kubectl -n a delete pod web-0"
	const later = "; spec.template.spec.terminationGracePeriod of the NodePool p limits the drains of nodes that are launched after it is set"
	check := func(want string) {
		t.Helper()
		if list := drains(f, Options{Patience: time.Minute}); len(list) != 1 || list[0].Fix != want {
			t.Errorf("found %+v, want the fix\n%s", list, want)
		}
	}
	check(fix)
	f.Pools = []karpv1.NodePool{{ObjectMeta: metav1.ObjectMeta{Name: "p"}}}
	check(fix + later)
	f.PDBs, f.Pods[0].Annotations = nil, map[string]string{karpv1.AnnotationDoNotDisrupt: "true"}
	check("delete the pods, or remove their annotation" + later)
	f.Pools = nil
	check("delete the pods, or remove their annotation")
}
