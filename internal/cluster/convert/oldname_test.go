package convert

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// today and ofBefore are the same pod with the current and the deprecated names.
const today = `
metadata: {name: a, namespace: n, labels: {app: a}, annotations: {karpenter.sh/do-not-disrupt: "true"}}
spec:
  nodeSelector: {karpenter.sh/nodepool: general, karpenter.k8s.aws/instance-family: c5}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
          - {key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["3"]}
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 1, preference: {matchExpressions: [{key: karpenter.k8s.aws/instance-size, operator: In, values: [large]}]}}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: karpenter.sh/nodepool, labelSelector: {matchLabels: {app: a}}}
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: karpenter.sh/capacity-type, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: a}}}
`

const ofBefore = `
metadata: {name: a, namespace: n, labels: {app: a}, annotations: {karpenter.sh/do-not-evict: "true"}}
spec:
  nodeSelector: {karpenter.sh/provisioner-name: general, karpenter.k8s.aws/instance.family: c5}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - {key: node.k8s.aws/capacity-type, operator: In, values: [spot]}
          - {key: karpenter.k8s.aws/instance.cpu, operator: Gt, values: ["3"]}
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 1, preference: {matchExpressions: [{key: karpenter.k8s.aws/instance.size, operator: In, values: [large]}]}}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: karpenter.sh/provisioner-name, labelSelector: {matchLabels: {app: a}}}
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: node.k8s.aws/capacity-type, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: a}}}
`

// TestOldNamesMeanCurrentOnes checks that a pod with deprecated names is converted like one with the current names.
func TestOldNamesMeanCurrentOnes(t *testing.T) {
	v := NewVocabulary(cloud.Declared{WellKnown: awsv1.WellKnownLabels(), Restricted: []string{awsv1.Group}})
	spec := func(text string) model.PodSpec {
		spec, disposition := Pod(decode[corev1.Pod](t, text+unschedulableStatus), v, nil)
		if disposition != Pending || spec.Rejected != nil {
			t.Fatalf("disposition %d, rejected: %+v", disposition, spec.Rejected)
		}
		return spec
	}
	if diff := cmp.Diff(spec(today), spec(ofBefore)); diff != "" {
		t.Errorf("current names (-), deprecated names (+):\n%s", diff)
	}
}

// TestOldNamesOfOptOut checks that a pod can opt out with the deprecated name too, and that a removed label is
// rejected by name.
func TestOldNamesOfOptOut(t *testing.T) {
	v := NewVocabulary(cloud.Declared{WellKnown: awsv1.WellKnownLabels(), Restricted: []string{awsv1.Group}})
	for name, test := range map[string]struct {
		pod    string
		silent bool
		field  string
	}{
		"no provisioner": {`
spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
  {matchExpressions: [{key: karpenter.sh/provisioner-name, operator: DoesNotExist}]}]}}}}
`, true, "spec"},
		"a label that is gone": {`
spec: {nodeSelector: {karpenter.k8s.aws/instance-pods: "58"}}
`, false, "spec.nodeSelector[karpenter.k8s.aws/instance-pods]"},
	} {
		spec, _ := Pod(decode[corev1.Pod](t, test.pod+unschedulableStatus), v, nil)
		switch r := spec.Rejected; {
		case r == nil:
			t.Errorf("%s: r is nil", name)
		case r.Silent != test.silent:
			t.Errorf("%s: r.Silent is %v, want %v", name, r.Silent, test.silent)
		case r.Field != test.field && r.Field != test.field+"[0].key":
			t.Errorf(`%s: r.Field != test.field && r.Field != test.field+"[0].key", %+v, want a rejection of %s`, name, r, test.field)
		}
	}
}

func TestOldAnnotationOfNodes(t *testing.T) {
	node := decode[corev1.Node](t, "metadata: {name: n, annotations: {karpenter.sh/do-not-consolidate: 'true'}}")
	if spec, _ := Node(node, nil, NewVocabulary(cloud.Declared{})); !spec.DoNotDisrupt {
		t.Error("a node with do-not-consolidate may be disrupted")
	}
}

// TestOldPolicy covers a deprecated value that was stored before the current schema.
func TestOldPolicy(t *testing.T) {
	pool := decode[karpv1.NodePool](t, "metadata: {name: p}\nspec: {disruption: {consolidationPolicy: WhenUnderutilized}}")
	if spec := Pool(pool, NewVocabulary(cloud.Declared{})); spec.Policy != string(karpv1.ConsolidateWhenEmptyOrUnderutilized) {
		t.Errorf("got policy %s", spec.Policy)
	}
}
