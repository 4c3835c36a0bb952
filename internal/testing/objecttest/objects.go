// Package objecttest has objects for the tests of packages that hold the objects of a cluster. It must not know what is
// made of them.
package objecttest

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Parse reads an object as a user or a controller might write it; an unknown field is an error.
func Parse[T any](t testing.TB, text string) *T {
	t.Helper()
	o := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), o); err != nil {
		t.Fatalf("reading the fixture: %v\n%s", err, text)
	}
	return o
}

// Claim returns a claim of the pool "pool"; without an id it is not launched. more is added to its metadata.
func Claim(t testing.TB, name, uid, version, id, more string) *karpv1.NodeClaim {
	t.Helper()
	return Parse[karpv1.NodeClaim](t, strings.NewReplacer("$NAME", name, "$UID", uid, "$VERSION", version, "$ID", id, "$MORE", more).Replace(`
metadata: {name: "$NAME", uid: "$UID", resourceVersion: "$VERSION", labels: {karpenter.sh/nodepool: pool}, $MORE}
spec:
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
  requirements: []
status: {providerID: "$ID"}
`))
}

// Node returns a node with the labels.
func Node(t testing.TB, name, uid, version, id, labels string) *corev1.Node {
	t.Helper()
	return Parse[corev1.Node](t, strings.NewReplacer("$NAME", name, "$UID", uid, "$VERSION", version, "$ID", id, "$LABELS", labels).Replace(`
metadata: {name: "$NAME", uid: "$UID", resourceVersion: "$VERSION", labels: {$LABELS}}
spec: {providerID: "$ID"}
status: {capacity: {cpu: 4}, allocatable: {cpu: 4}}
`))
}

// Registered are the labels of a node that is registered, of the pool "pool".
const Registered = "karpenter.sh/nodepool: pool, karpenter.sh/registered: 'true'"

// Pod returns a pod, bound to a node or pending without one.
func Pod(t testing.TB, name, uid, version, node string) *corev1.Pod {
	t.Helper()
	return Parse[corev1.Pod](t, strings.NewReplacer("$NAME", name, "$UID", uid, "$VERSION", version, "$NODE", node).Replace(`
metadata: {name: "$NAME", namespace: default, uid: "$UID", resourceVersion: "$VERSION"}
spec:
  nodeName: "$NODE"
  containers: [{name: a, resources: {requests: {cpu: 100m}}}]
status:
  conditions:
  - {type: PodScheduled, status: "False", reason: Unschedulable}
`))
}

// Pool returns a ready pool of the provider.
func Pool(t testing.TB, name, uid, version string) *karpv1.NodePool {
	t.Helper()
	return Parse[karpv1.NodePool](t, strings.NewReplacer("$NAME", name, "$UID", uid, "$VERSION", version).Replace(`
metadata: {name: "$NAME", uid: "$UID", resourceVersion: "$VERSION", generation: $VERSION}
spec:
  disruption: {consolidateAfter: 30s}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      expireAfter: Never
      requirements: []
status:
  conditions: [{type: Ready, status: "True", lastTransitionTime: null}]
`))
}

// Daemon returns a DaemonSet whose pods request that CPU.
func Daemon(t testing.TB, name, uid, version, cpu string) *appsv1.DaemonSet {
	t.Helper()
	return Parse[appsv1.DaemonSet](t, strings.NewReplacer("$NAME", name, "$UID", uid, "$VERSION", version, "$CPU", cpu).Replace(`
metadata: {name: "$NAME", namespace: default, uid: "$UID", resourceVersion: "$VERSION"}
spec: {template: {spec: {containers: [{name: a, resources: {requests: {cpu: $CPU}}}]}}}
`))
}

// PDB returns a PodDisruptionBudget with the status.
func PDB(t testing.TB, name, uid, version, status string) *policyv1.PodDisruptionBudget {
	t.Helper()
	return Parse[policyv1.PodDisruptionBudget](t, strings.NewReplacer("$NAME", name, "$UID", uid, "$VERSION", version, "$STATUS", status).Replace(`
metadata: {name: "$NAME", namespace: default, uid: "$UID", resourceVersion: "$VERSION"}
spec: {selector: {matchLabels: {app: "$NAME"}}}
status: {expectedPods: 1, $STATUS}
`))
}
