package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// movedManifest is of v1beta1: two pools of one class, with kubelet settings of their own. After the migration, the
// class has the settings of the first pool, and a copy of the class those of the other.
const movedManifest = `apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: moved-few}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: Never}
  template:
    spec:
      nodeClassRef: {apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: moved}
      requirements: []
      kubelet: {maxPods: 20}
---
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: moved-many}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: Never}
  template:
    spec:
      nodeClassRef: {apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: moved}
      requirements: []
      kubelet: {maxPods: 90, kubeReserved: {cpu: 200m}}
---
apiVersion: karpenter.k8s.aws/v1beta1
kind: EC2NodeClass
metadata: {name: moved}
spec:
  amiFamily: AL2023
  role: workshop-nodes
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: workshop}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: workshop}}]
`

var movedPools = []string{"moved-few", "moved-many"}

// playOver applies the migrated movedManifest over its running nodes, which are kept. When settings actually change
// afterwards, only the nodes with these settings drift.
func (m *manifest) playOver() {
	for _, pool := range movedPools {
		m.create(m.workload(pool))
	}
	m.applyAs(movedManifest)
	for _, pool := range movedPools {
		m.scale(pool, 1)
	}
	before := map[string]karpv1.NodeClaim{}
	for _, pool := range movedPools {
		await(m.t, patience, "the pod of "+pool+" to run", m.running(pool, 1))
		before[pool] = m.only(pool)
	}
	objects := m.applyAs(m.migrated(movedManifest))
	for _, object := range objects {
		await(m.t, patience, object.GetKind()+" "+object.GetName()+" to be ready", m.readyNow(object))
	}
	many := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "moved-many"}}
	if err := m.Get(m.t.Context(), client.ObjectKeyFromObject(many), many); err != nil {
		m.t.Fatal(err)
	}
	if class := many.Spec.Template.Spec.NodeClassRef.Name; class == "moved" || many.Annotations[karpv1.AnnotationKubelet] != "" {
		m.t.Errorf("the pool has the class %s, and the kubelet settings %q; want a class of its own that has them", class, many.Annotations[karpv1.AnnotationKubelet])
	}
	m.unmoved(before["moved-few"], "after it was migrated")
	m.patch(&awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "moved"}}, `{"spec":{"kubelet":{"maxPods":21}}}`)
	await(m.t, patience, "the node with the former settings to drift", func(ctx context.Context) error {
		claim := before["moved-few"]
		if err := m.Get(ctx, client.ObjectKeyFromObject(&claim), &claim); err != nil {
			return client.IgnoreNotFound(err) // already replaced
		}
		if c := claim.Condition(karpv1.ConditionDrifted); !c.IsTrue() || c.Reason != awsv1.ReasonNodeClassDrift {
			return fmt.Errorf("claim %s: Drifted is %v", claim.Name, c)
		}
		return nil
	})
	m.unmoved(before["moved-many"], "after the other pool's class was changed")
	m.takeAway(objects)
}

// applyAs applies manifests like kubectl apply --server-side, object by object.
func (m *manifest) applyAs(text string) []*unstructured.Unstructured {
	m.t.Helper()
	var objects []*unstructured.Unstructured
	for decoder := yamlstream.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			m.t.Fatal(err)
		}
		if err := m.Apply(m.t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
			m.t.Fatalf("applying %s %s: %v", object.GetKind(), object.GetName(), err)
		}
		objects = append(objects, object)
	}
}

// only returns the only claim of a pool.
func (m *manifest) only(pool string) karpv1.NodeClaim {
	m.t.Helper()
	claims, err := m.claims(m.t.Context(), pool)
	if err != nil || len(claims) != 1 {
		m.t.Fatalf("pool %s has %d claims, want 1; %v", pool, len(claims), err)
	}
	return claims[0]
}

// unmoved checks that a pool still has its claim, and that the claim has not drifted.
func (m *manifest) unmoved(before karpv1.NodeClaim, when string) {
	m.t.Helper()
	now := m.only(before.Labels[karpv1.LabelNodePool])
	c := now.Condition(karpv1.ConditionDrifted)
	switch {
	case now.UID != before.UID:
		m.t.Errorf("%s: claim %s has the UID %s, want %s of the claim before", when, now.Name, now.UID, before.UID)
	case c.IsTrue():
		m.t.Errorf("%s: claim %s has drifted: %s", when, now.Name, c.Message)
	case !now.DeletionTimestamp.IsZero():
		m.t.Errorf("%s: claim %s was deleted at %s", when, now.Name, now.DeletionTimestamp)
	}
}

// readyNow fails until an object of v1 is ready in its current generation.
func (m *manifest) readyNow(object *unstructured.Unstructured) func(context.Context) error {
	return func(ctx context.Context) error {
		now := object.NewEmptyInstance().(*unstructured.Unstructured)
		now.SetGroupVersionKind(object.GroupVersionKind())
		if err := m.Get(ctx, client.ObjectKeyFromObject(object), now); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
		if !slices.ContainsFunc(conditions, func(c any) bool {
			condition, _ := c.(map[string]any)
			return condition["type"] == "Ready" && condition["status"] == "True" && condition["observedGeneration"] == now.GetGeneration()
		}) {
			return fmt.Errorf("its conditions are %v at generation %d", conditions, now.GetGeneration())
		}
		return nil
	}
}

// takeAway deletes the applied objects, pools with their nodes first.
func (m *manifest) takeAway(objects []*unstructured.Unstructured) {
	m.t.Helper()
	for _, pool := range movedPools {
		m.scale(pool, 0)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return -strings.Compare(a.GetKind(), b.GetKind()) })
	for _, object := range objects {
		if err := m.Delete(m.t.Context(), object); err != nil && !apierrors.IsNotFound(err) {
			m.t.Fatal(err)
		}
	}
	for _, pool := range movedPools {
		await(m.t, patience, "what "+pool+" bought to leave", m.left(pool))
	}
	for _, object := range objects {
		await(m.t, patience, object.GetKind()+" "+object.GetName()+" to be gone", m.gone(object))
	}
}
