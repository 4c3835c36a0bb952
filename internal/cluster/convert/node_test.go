package convert

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

const claimText = `
metadata:
  name: pool-1
  uid: c1
  creationTimestamp: "2026-11-20T09:00:00Z"
  labels: {karpenter.sh/nodepool: pool, team: shop}
  annotations: {karpenter.sh/do-not-disrupt: "true", karpenter-go.github.io/command: '{"id":"x"}'}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  taints: [{key: team, value: shop, effect: NoSchedule}]
  startupTaints: [{key: agent, effect: NoExecute}]
  requirements:
  - {key: beta.kubernetes.io/arch, operator: In, values: [arm64], minValues: 1}
  resources: {requests: {cpu: 1500m}}
`

const launchedStatus = `
status:
  providerID: kwok://node-1
  capacity: {cpu: "4", memory: 16Gi, pods: 110}
  allocatable: {cpu: 3900m, memory: 15Gi, pods: 110}
  conditions:
  - {type: Launched, status: "True", lastTransitionTime: "2026-11-20T09:00:01Z"}
`

const nodeText = `
metadata:
  name: node-1
  uid: n1
  creationTimestamp: "2026-11-20T09:01:00Z"
  labels: {LABELS}
spec:
  providerID: kwok://node-1
  taints:
  - {key: karpenter.sh/unregistered, effect: NoExecute}
  - {key: node.kubernetes.io/not-ready, effect: NoSchedule}
  - {key: agent, effect: NoExecute}
  - {key: gpu, effect: NoSchedule}
status:
  capacity: {cpu: "4", memory: "0", example.com/dev: "1"}
  allocatable: {cpu: "4"}
  conditions: [{type: Ready, status: "True"}]
`

// converts checks the conversion of a claim and its node, if there is one.
func converts(t *testing.T, claim, node string, want model.NodeSpec) {
	t.Helper()
	var object *corev1.Node
	if node != "" {
		object = decode[corev1.Node](t, node)
	}
	got, refused := Node(object, decode[karpv1.NodeClaim](t, claim), words())
	if refused != nil {
		t.Fatalf("refused: %+v", *refused)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// TestScaleDownDisabled verifies that the annotation of the Cluster Autoscaler protects a node, with and without a claim,
// if the rules say so.
func TestScaleDownDisabled(t *testing.T) {
	v := words()
	disabled := decode[corev1.Node](t, "metadata: {name: a, labels: {karpenter.sh/registered: 'true'}, annotations: "+
		"{cluster-autoscaler.kubernetes.io/scale-down-disabled: 'true'}}")
	claim := decode[karpv1.NodeClaim](t, "metadata: {name: a}\nstatus: {providerID: kwok://a}")
	for _, honored := range []bool{false, true} {
		v.Protection.SafeToEvict = honored
		for name, claim := range map[string]*karpv1.NodeClaim{"without a claim": nil, "of a claim": claim} {
			if got, _ := Node(disabled, claim, v); got.DoNotDisrupt != honored {
				t.Errorf("honored %t, %s: DoNotDisrupt is %t", honored, name, got.DoNotDisrupt)
			}
		}
	}
}

// TestNodeStages covers the claim and node of one machine from its creation on.
func TestNodeStages(t *testing.T) {
	created := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	base := model.NodeSpec{
		Name: "pool-1", UID: "c1", Claim: "pool-1", ClaimUID: "c1", Pool: "pool", Created: created,
		Labels:       map[string]string{"karpenter.sh/nodepool": "pool", "team": "shop"},
		Taints:       []model.Taint{{Key: "team", Value: "shop", Effect: model.NoSchedule}},
		Requests:     []quantity.Amount{{Name: "cpu", Value: 1500}},
		DoNotDisrupt: true, Command: `{"id":"x"}`,
	}
	filled := []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "example.com/dev", Value: 1},
		{Name: "memory", Value: 16 << 30}, {Name: "pods", Value: 110}}
	usable := []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "memory", Value: 15 << 30}, {Name: "pods", Value: 110}}
	node := func(labels string) string { return strings.Replace(nodeText, "LABELS", labels, 1) }
	tests := []struct {
		name, claim, node string
		want              func(*model.NodeSpec)
	}{
		{"launching", claimText, "", func(n *model.NodeSpec) {
			n.Requirements = []label.Requirement{
				{Key: "kubernetes.io/arch", Operator: label.In, Values: []string{"arm64"}, MinValues: 1},
				{Key: "karpenter.sh/nodepool", Operator: label.In, Values: []string{"pool"}},
				{Key: "team", Operator: label.In, Values: []string{"shop"}},
			}
		}},
		{"launched", claimText + launchedStatus, "", func(n *model.NodeSpec) {
			n.Stage, n.ProviderID = model.Launched, "kwok://node-1"
			n.Capacity = []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "memory", Value: 16 << 30}, {Name: "pods", Value: 110}}
			n.Allocatable = []quantity.Amount{{Name: "cpu", Value: 3900}, {Name: "memory", Value: 15 << 30}, {Name: "pods", Value: 110}}
		}},
		{"node not registered", claimText + launchedStatus, node("custom: x"), func(n *model.NodeSpec) {
			n.Name, n.UID, n.Stage, n.ProviderID, n.Ready = "node-1", "n1", model.Launched, "kwok://node-1", true
			n.Capacity, n.Allocatable = filled, usable
		}},
		{"registered", claimText + launchedStatus, node("karpenter.sh/registered: 'true', team: shop"), func(n *model.NodeSpec) {
			n.Name, n.UID, n.Stage, n.ProviderID, n.Ready = "node-1", "n1", model.Registered, "kwok://node-1", true
			n.Capacity, n.Allocatable = filled, usable
			n.Labels = map[string]string{"karpenter.sh/registered": "true", "team": "shop"}
			n.Taints = []model.Taint{{Key: "gpu", Effect: model.NoSchedule}}
			n.DoNotDisrupt = false // only the node's annotation counts now
		}},
		{"initialized", claimText + launchedStatus + `
  - {type: Registered, status: "True", lastTransitionTime: "2026-11-20T09:02:00Z"}
  - {type: Initialized, status: "True", lastTransitionTime: "2026-11-20T09:03:00Z"}
  lastPodEventTime: "2026-11-20T09:04:00Z"
`, node("a: b"), func(n *model.NodeSpec) {
			n.Name, n.UID, n.Stage, n.ProviderID, n.Ready = "node-1", "n1", model.Initialized, "kwok://node-1", true
			n.Capacity = []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "example.com/dev", Value: 1}}
			n.Allocatable = []quantity.Amount{{Name: "cpu", Value: 4000}}
			n.Labels = map[string]string{"a": "b"}
			n.Taints = []model.Taint{
				{Key: "agent", Effect: model.NoExecute}, {Key: "gpu", Effect: model.NoSchedule},
				{Key: "karpenter.sh/unregistered", Effect: model.NoExecute}, {Key: "node.kubernetes.io/not-ready", Effect: model.NoSchedule},
			}
			n.InitializedAt, n.LastPodEvent = created.Add(3*time.Minute), created.Add(4*time.Minute)
			n.DoNotDisrupt = false
		}},
		{"the node is gone", claimText + launchedStatus + `
  - {type: Registered, status: "True", lastTransitionTime: "2026-11-20T09:02:00Z"}
`, "", func(n *model.NodeSpec) {
			n.Stage, n.ProviderID, n.Deleting = model.Launched, "kwok://node-1", true
			n.Capacity = []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "memory", Value: 16 << 30}, {Name: "pods", Value: 110}}
			n.Allocatable = []quantity.Amount{{Name: "cpu", Value: 3900}, {Name: "memory", Value: 15 << 30}, {Name: "pods", Value: 110}}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := base
			test.want(&want)
			converts(t, test.claim, test.node, want)
		})
	}
}

func TestNodeDeleting(t *testing.T) {
	leaving := "metadata: {name: n1, deletionTimestamp: '2026-11-20T09:00:00Z'}"
	tests := []struct {
		name, node, claim string
		want              bool
	}{
		{"no", "metadata: {name: n1}", claimText, false},
		{"the claim", "metadata: {name: n1}", leaving, true},
		{"the node", leaving, claimText, true},
		{"an unmanaged node", leaving, "", true},
		{"the machine", "metadata: {name: n1}", "status: {conditions: [{type: InstanceTerminating, status: 'True', lastTransitionTime: null}]}", true},
		{"the machine, not yet", "metadata: {name: n1}",
			"status: {conditions: [{type: InstanceTerminating, status: 'False', lastTransitionTime: null}]}", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var claim *karpv1.NodeClaim
			if test.claim != "" {
				claim = decode[karpv1.NodeClaim](t, test.claim)
			}
			got, _ := Node(decode[corev1.Node](t, test.node), claim, words())
			if got.Deleting != test.want {
				t.Errorf("deleting is %t, want %t", got.Deleting, test.want)
			}
			if got.Terminating != (test.name == "the machine") {
				t.Errorf("terminating is %t", got.Terminating)
			}
		})
	}
}

func TestUnmanagedNode(t *testing.T) {
	got, _ := Node(decode[corev1.Node](t, `
metadata:
  name: old-1
  uid: n1
  creationTimestamp: "2026-11-20T09:00:00Z"
  labels: {a: b}
spec:
  unschedulable: true
  taints: [{key: karpenter.sh/disrupted, effect: NoSchedule}, {key: soft, effect: PreferNoSchedule}]
status:
  allocatable: {cpu: 1999.5m, pods: 10}
`), nil, words())
	created := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	want := model.NodeSpec{
		Name: "old-1", UID: "n1", Stage: model.Initialized, Created: created, InitializedAt: created, Labels: map[string]string{"a": "b"},
		Taints: []model.Taint{
			{Key: "karpenter.sh/disrupted", Effect: model.NoSchedule}, {Key: "node.kubernetes.io/unschedulable", Effect: model.NoSchedule},
			{Key: "soft", Effect: model.PreferNoSchedule},
		},
		Capacity:    []quantity.Amount{},
		Allocatable: []quantity.Amount{{Name: "cpu", Value: 1999}, {Name: "pods", Value: 10}},
		Disrupted:   true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// TestDisruptionReason checks that the condition is visible, so that it can be removed.
func TestDisruptionReason(t *testing.T) {
	for status, want := range map[string]bool{"True": true, "False": false} {
		claim := decode[karpv1.NodeClaim](t, claimText+"\nstatus: {conditions: [{type: DisruptionReason, status: \""+status+"\"}]}")
		if got, _ := Node(nil, claim, words()); got.DisruptionReason != want {
			t.Errorf("condition %s: %t", status, got.DisruptionReason)
		}
	}
}

func TestClaimThatCannotBeRead(t *testing.T) {
	claim := decode[karpv1.NodeClaim](t, "metadata: {name: c}\nspec: {requirements: [{key: a, operator: Near}]}")
	_, refused := Node(nil, claim, words())
	switch {
	case refused == nil:
		t.Errorf("refused: refused is nil")
	case refused.Field != "spec.requirements[0].operator":
		t.Errorf(`refused: refused.Field is %v, want "spec.requirements[0].operator"`, refused.Field)
	case !strings.Contains(refused.Reason, "use In"):
		t.Errorf(`refused: refused.Reason lacks "use In", %+v`, refused)
	}
	claim.Status.ProviderID = "kwok://c"
	if _, refused := Node(nil, claim, words()); refused != nil {
		t.Errorf("requirements do not matter after launch, but the claim is refused: %+v", *refused)
	}
}
