package crds_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
)

const goodOverlay = `
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: good}
spec: {requirements: [], price: "0.5"}
`

const goodBuffer = `
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: good, namespace: default}
spec: {podTemplateRef: {name: web}, replicas: 2}
`

const goodQuota = `
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityQuota
metadata: {name: good}
spec: {selector: {matchLabels: {a: b}}, limits: {resources: {cpu: 3}}}
`

func testNodeOverlaySchema(t *testing.T, s *server) {
	adjusted := func(value string) string { return `spec: {price: null, priceAdjustment: "` + value + `"}` }
	key := func(key string) string { return `spec: {requirements: [{key: "` + key + `", operator: Exists}]}` }
	value := func(length int) string {
		return `spec: {requirements: [{key: a, operator: In, values: [` + strings.Repeat("a", length) + `]}]}`
	}
	for _, r := range []schemaRule{
		{"requirements are required", `{}`, `spec: {requirements: null}`, "requirements"},
		{"an operator is known", `spec: {requirements: [{key: a, operator: Exists}]}`, `spec: {requirements: [{key: a, operator: Has}]}`, "operator"},
		{"In needs a value", `spec: {requirements: [{key: a, operator: In, values: [b]}]}`, `spec: {requirements: [{key: a, operator: In}]}`, "at least one value"},
		{"NotIn needs a value", `spec: {requirements: [{key: a, operator: NotIn, values: [b]}]}`, `spec: {requirements: [{key: a, operator: NotIn, values: []}]}`, "at least one value"},
		{"Gt needs an integer", `spec: {requirements: [{key: a, operator: Gt, values: ["3"]}]}`, `spec: {requirements: [{key: a, operator: Gt, values: ["-3"]}]}`, "exactly one value"},
		{"Lte needs one value", `spec: {requirements: [{key: a, operator: Lte, values: ["3"]}]}`, `spec: {requirements: [{key: a, operator: Lte, values: ["3", "4"]}]}`, "exactly one value"},
		{"a requirement has a key", `spec: {requirements: [{key: a, operator: Exists}]}`, `spec: {requirements: [{operator: Exists}]}`, "key"},
		{"a key is a label", `spec: {requirements: [{key: example.org/a.b_c, operator: Exists}]}`,
			`spec: {requirements: [{key: "a b", operator: Exists}]}`, "key"},
		{"a key is bounded", key(strings.Repeat("a", 252) + "/" + strings.Repeat("b", 63)), key(strings.Repeat("a",
			253) + "/" + strings.Repeat("b", 63)), "key"},
		{"the domain of Karpenter is restricted", key("karpenter.sh/capacity-type"), key("karpenter.sh/registered"), "the domain karpenter.sh"},
		{"a NodePool can be required", key("karpenter.sh/nodepool"), key("other.karpenter.sh/a"), "the domain karpenter.sh"},
		{"another domain is not restricted", key("karpenter.k8s.aws/instance-cpu"), key("kubernetes.io/hostname"), "kubernetes.io/hostname"},
		{"a value is a label value", `spec: {requirements: [{key: a, operator: In, values: ["", a-b.c]}]}`,
			`spec: {requirements: [{key: a, operator: In, values: [a b]}]}`, "values"},
		{"a value is bounded", value(63), value(64), "values"},
		{"a price is a decimal number", `spec: {price: "13234.223"}`, `spec: {price: "-1"}`, "price"},
		{"a price has no unit", `spec: {price: "1"}`, `spec: {price: "1 USD"}`, "price"},
		{"price or adjustment", adjusted("+1"), `spec: {priceAdjustment: "+1"}`, "cannot both be set"},
		{"an adjustment has a sign", adjusted("-0.25"), adjusted("0.25"), "priceAdjustment"},
		{"a rise in percent", adjusted("+250.5%"), adjusted("+%"), "priceAdjustment"},
		{"a discount in percent", adjusted("-99.9%"), adjusted("-101%"), "priceAdjustment"},
		{"free", adjusted("-100%"), adjusted("-100.5%"), "priceAdjustment"},
		{"capacity is of extended resources", `spec: {capacity: {smarter-devices/fuse: 1}}`, `spec: {capacity: {cpu: 1}}`, "invalid resource restricted"},
		{"capacity names no pods", `spec: {capacity: {hugepages-2Mi: 1Gi}}`, `spec: {capacity: {pods: 10}}`, "invalid resource restricted"},
		{"weight is positive", `spec: {weight: 10000}`, `spec: {weight: 0}`, "weight"},
		{"weight is bounded", `spec: {weight: 1}`, `spec: {weight: 10001}`, "weight"},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, s, goodOverlay) })
	}
}

func testCapacityBufferSchema(t *testing.T, s *server) {
	for _, r := range []schemaRule{
		{"a template needs a number", `spec: {replicas: 0}`, `spec: {replicas: null}`, "needs replicas or limits"},
		{"limits are a number", `spec: {replicas: null, limits: {cpu: 2}}`, `spec: {replicas: null, percentage: 10}`, "needs replicas or limits"},
		{"one reference", `spec: {podTemplateRef: null, scalableRef: {apiGroup: apps, kind: Deployment, name: a}}`,
			`spec: {scalableRef: {apiGroup: apps, kind: Deployment, name: a}}`, "cannot both be set"},
		{"no reference is accepted", `spec: {podTemplateRef: null}`, `spec: {podTemplateRef: {name: null}}`, "name"},
		{"a reference has a name", `spec: {podTemplateRef: {name: a}}`, `spec: {podTemplateRef: {name: ""}}`, "name"},
		{"replicas are not negative", `spec: {replicas: 1}`, `spec: {replicas: -1}`, "replicas"},
		{"a percentage is not negative", `spec: {percentage: 250}`, `spec: {percentage: -1}`, "percentage"},
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, s, goodBuffer) })
	}
}

// The version of the Cluster Autoscaler's manifests is served, and the object is stored in the current one.
func testAutoscalerVersions(t *testing.T, s *server) {
	for _, current := range []string{goodBuffer, goodQuota} {
		older := strings.Replace(current, "v1beta1", "v1alpha1", 1)
		stored := s.create(t, older, `metadata: {name: older}`)
		same := overlaid(t, s.create(t, current, `metadata: {name: newer}`), `metadata: {name: older}`)
		read := same.DeepCopyObject().(client.Object)
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(stored), read); err != nil {
			t.Fatal(err)
		}
		for _, o := range []client.Object{same, read} {
			o.SetUID("")
			o.SetResourceVersion("")
			o.SetCreationTimestamp(metav1.Time{})
			o.SetManagedFields(nil)
		}
		if diff := cmp.Diff(same, read); diff != "" {
			t.Errorf("%s of v1alpha1, read as v1beta1 (-want +got):\n%s", read.GetObjectKind().GroupVersionKind().Kind, diff)
		}
	}
}

// The strategy has a default, and a buffer can be scaled like a workload.
func testCapacityBufferScale(t *testing.T, s *server) {
	stored := s.create(t, goodBuffer, `metadata: {name: scaled}`)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"replicas": 7}}`))
	if err := s.SubResource("scale").Patch(t.Context(), stored.DeepCopy(), patch); err != nil {
		t.Fatal(err)
	}
	buffer := &autoscalingv1beta1.CapacityBuffer{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(stored), buffer); err != nil {
		t.Fatal(err)
	}
	if buffer.Spec.ProvisioningStrategy == nil || *buffer.Spec.ProvisioningStrategy != autoscalingv1beta1.StrategyActiveCapacity {
		t.Errorf("the strategy is %v, want %s", buffer.Spec.ProvisioningStrategy, autoscalingv1beta1.StrategyActiveCapacity)
	}
	if buffer.Spec.Replicas == nil || *buffer.Spec.Replicas != 7 {
		t.Errorf("replicas are %v, want 7", buffer.Spec.Replicas)
	}
}
