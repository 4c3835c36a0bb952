package crds_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

const goodClaim = `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: good}
spec:
  requirements: []
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
`

var claimRules = []schemaRule{
	{"spec is required", `{}`, `spec: null`, "spec: Required"},
	{"nodeClassRef is required", `{}`, `spec: {nodeClassRef: null}`, "nodeClassRef: Required"},
	{"requirements is required, and may be empty", `{}`, `spec: {requirements: null}`, "requirements: Required"},
	{"at most 100 requirements", `spec: {requirements: ` + repeat(`{key: a, operator: Exists}`, 100) + `}`,
		`spec: {requirements: ` + repeat(`{key: a, operator: Exists}`, 101) + `}`, "Too many"},
	{"the pool's label may be required", `spec: {requirements: [{key: karpenter.sh/nodepool, operator: In, values: [a]}]}`,
		`spec: {requirements: [{key: karpenter.sh/nodepools, operator: In, values: [a]}]}`, "domain karpenter.sh"},
	{"terminationGracePeriod is a duration", `spec: {terminationGracePeriod: 1h2m3s}`, `spec: {terminationGracePeriod: Never}`,
		"terminationGracePeriod"},
	{"terminationGracePeriod is below 292 years", `spec: {terminationGracePeriod: 2562000h}`,
		`spec: {terminationGracePeriod: 2563000h}`, "terminationGracePeriod"},
	{"expireAfter is a duration", `spec: {expireAfter: 72h30m}`, `spec: {expireAfter: 3d}`, "expireAfter"},
	{"expireAfter may be Never", `spec: {expireAfter: Never}`, `spec: {expireAfter: never}`, "expireAfter"},
	{"requests are quantities", `spec: {resources: {requests: {cpu: 1500m, pods: 3}}}`, `spec: {resources: {requests: {cpu: some}}}`,
		"requests"},
}

func testNodeClaimSchema(t *testing.T, s *server) {
	rules := claimRules
	for _, r := range requirementRules {
		rules = append(rules, schemaRule{"requirement: " + r.name, "spec: {requirements: [" + r.pass + "]}",
			"spec: {requirements: [" + r.fail + "]}", r.want})
	}
	for _, list := range []string{"taints", "startupTaints"} {
		for _, r := range taintRules {
			rules = append(rules, schemaRule{list + ": " + r.name, "spec: {" + list + ": [" + r.pass + "]}",
				"spec: {" + list + ": [" + r.fail + "]}", r.want})
		}
	}
	for _, r := range nodeClassRefRules {
		rules = append(rules, schemaRule{"nodeClassRef: " + r.name, "spec: {nodeClassRef: " + r.pass + "}",
			"spec: {nodeClassRef: " + r.fail + "}", r.want})
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) { r.check(t, s, goodClaim) })
	}
}

func testNodeClaimImmutability(t *testing.T, s *server) {
	for _, r := range []updateRule{
		{"spec cannot get a field", `{}`, `metadata: {annotations: {a: b}}`, `spec: {terminationGracePeriod: 1h}`, "spec is immutable"},
		{"spec cannot lose a field", `spec: {terminationGracePeriod: 1h}`, `metadata: {labels: {a: b}}`,
			`spec: {terminationGracePeriod: null}`, "spec is immutable"},
		{"no text in spec can change", `spec: {expireAfter: 60m}`, `spec: {expireAfter: 60m}`, `spec: {expireAfter: 1h}`, "spec is immutable"},
		{"no list in spec can change", `spec: {requirements: [{key: a, operator: In, values: [b, c]}]}`,
			`metadata: {finalizers: []}`, `spec: {requirements: [{key: a, operator: In, values: [c, b]}]}`, "spec is immutable"},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, s, goodClaim) })
	}
}

func testNodeClaimDefaults(t *testing.T, s *server) {
	claim := merged(t, goodClaim, `{}`)
	if err := s.Create(t.Context(), claim, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	want := parse(t, `{expireAfter: 720h, requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}`)
	if diff := cmp.Diff(want, claim.Object["spec"]); diff != "" {
		t.Errorf("stored spec (-want +got):\n%s", diff)
	}
}

// A claim that is written with the Go types is accepted unchanged, and so is its status.
func testNodeClaimFromGo(t *testing.T, s *server) {
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "from-go"},
		Spec: karpv1.NodeClaimSpec{
			Requirements: []karpv1.Requirement{{Key: corev1.LabelTopologyZone, Operator: karpv1.OperatorIn, Values: []string{"a"}}},
			NodeClassRef: karpv1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"},
		},
	}
	if err := s.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if claim.Spec.ExpireAfter.String() != karpv1.Never {
		t.Errorf("expireAfter is %s, want the Go zero value to mean Never", claim.Spec.ExpireAfter)
	}
	claim.Status.ProviderID = "kwok://from-go"
	claim.StatusConditions().SetTrue(karpv1.ConditionLaunched)
	if err := s.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	read := &karpv1.NodeClaim{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(claim), read); err != nil {
		t.Fatal(err)
	}
	switch {
	case !read.Condition(karpv1.ConditionLaunched).IsTrue():
		t.Errorf("read.Condition(karpv1.ConditionLaunched).IsTrue() is false")
	case read.Status.ProviderID != "kwok://from-go":
		t.Errorf(`read.Status.ProviderID is %v, want "kwok://from-go"`, read.Status.ProviderID)
	case !read.Status.LastPodEventTime.IsZero():
		t.Errorf("read.Status.LastPodEventTime.IsZero() is false, status is %+v", read.Status)
	}
	if err := s.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
}

func testNodeClaimConditions(t *testing.T, s *server) {
	stored := s.create(t, goodClaim, `metadata: {name: conditions}`)
	update := func(conditions string) error {
		return s.patchStatus(t, stored, `{conditions: [`+conditions+`]}`, client.DryRunAll)
	}
	for name, conditions := range map[string]string{
		"without reason and message": `{type: Ready, status: "True", lastTransitionTime: "2026-01-02T03:04:05Z"}`,
		"with an empty reason":       `{type: Ready, status: "True", reason: "", lastTransitionTime: "2026-01-02T03:04:05Z"}`,
	} {
		if err := update(conditions); err != nil {
			t.Errorf("condition %s: %v", name, err)
		}
	}
	wantInvalid(t, update(`{status: "True", lastTransitionTime: "2026-01-02T03:04:05Z"}`), "type: Required")
	wantInvalid(t, update(`{type: Ready, lastTransitionTime: "2026-01-02T03:04:05Z"}`), "status: Required")
	wantInvalid(t, update(`{type: Ready, status: "True"}`), "lastTransitionTime: Required")
	wantInvalid(t, update(`{type: Ready, status: "Yes", lastTransitionTime: "2026-01-02T03:04:05Z"}`), "status")
	wantInvalid(t, update(`{type: Ready, status: "True", reason: "two words", lastTransitionTime: "2026-01-02T03:04:05Z"}`), "reason")
}
