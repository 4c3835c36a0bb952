package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// adoptionTimers check drift immediately and often.
var adoptionTimers = []string{"--timers=disruption-poll=500ms,drain-min=1s,collection=3s,leak=20s,drift=1s,type-drift=1s,validation=1s"}

// theirs is a claim of Karpenter v1.x, and the node that its kwok provider created for it.
type theirs struct {
	claim *karpv1.NodeClaim
	node  *corev1.Node
}

// leaves creates a claim in the state of Karpenter v1.14 when its node is ready.
func (s *stage) leaves(name string, pool *karpv1.NodePool) theirs {
	s.t.Helper()
	claim := s.leavesClaim(name, pool)
	labels := maps.Clone(claim.Labels)
	maps.Copy(labels, map[string]string{
		"karpenter.sh/registered": "true", "karpenter.sh/initialized": "true", corev1.LabelHostname: name, "kwok.x-k8s.io/node": "fake",
		"kwok-partition": "a", "eks-node-viewer/instance-price": "0.108589934",
	})
	nodeName := "kwok-" + name + "-elegant-gauss-0-x2f7-3120453187"
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: nodeName, Labels: labels, Finalizers: []string{"karpenter.sh/termination"},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake", "karpenter.sh/nodepool-hash": "6821555240594823858", "karpenter.sh/nodepool-hash-version": "v3"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: claim.Name, UID: claim.UID, BlockOwnerDeletion: new(true)}},
		},
		Spec:   corev1.NodeSpec{ProviderID: "kwok://" + nodeName},
		Status: corev1.NodeStatus{Capacity: machineCapacity(), Allocatable: machineAllocatable()},
	}
	s.create(node)
	s.writeStatus(claim, node)
	return theirs{claim, node}
}

// leavesClaim creates a claim that Karpenter has created and not launched.
func (s *stage) leavesClaim(name string, pool *karpv1.NodePool) *karpv1.NodeClaim {
	s.t.Helper()
	in := func(key string, values ...string) karpv1.Requirement {
		return karpv1.Requirement{Key: key, Operator: karpv1.OperatorIn, Values: values}
	}
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, GenerateName: pool.Name + "-", Finalizers: []string{"karpenter.sh/termination"},
			Annotations: map[string]string{
				"karpenter.sh/nodepool-hash": "6821555240594823858", "karpenter.sh/nodepool-hash-version": "v3",
				"karpenter.sh/nodeclaim-min-values-relaxed": "false",
			},
			Labels: map[string]string{
				caseLabel: s.name, "karpenter.sh/nodepool": pool.Name, "karpenter.kwok.sh/kwoknodeclass": pool.Name, "karpenter.sh/capacity-type": "spot",
				"karpenter.kwok.sh/instance-cpu": "4", "karpenter.kwok.sh/instance-family": "c", "karpenter.kwok.sh/instance-memory": "8192",
				"karpenter.kwok.sh/instance-size": "4", corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux",
				corev1.LabelInstanceTypeStable: "c-4x-amd64-linux", corev1.LabelTopologyZone: "test-zone-a",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: pool.Name, UID: pool.UID, BlockOwnerDeletion: new(true)}},
		},
		Spec: karpv1.NodeClaimSpec{
			NodeClassRef: pool.Spec.Template.Spec.NodeClassRef, ExpireAfter: pool.Spec.Template.Spec.ExpireAfter,
			Resources: karpv1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("512Mi"), "pods": resource.MustParse("2")}},
			Requirements: []karpv1.Requirement{
				in("karpenter.kwok.sh/instance-cpu", "4"), in("karpenter.kwok.sh/kwoknodeclass", pool.Name), in("karpenter.sh/capacity-type", "spot"),
				in("karpenter.sh/nodepool", pool.Name), in(corev1.LabelArchStable, "amd64"), in(corev1.LabelOSStable, "linux"),
				in(caseLabel, s.name), in(corev1.LabelInstanceTypeStable, "c-4x-amd64-linux", "s-4x-amd64-linux"),
			},
		},
	}
	s.create(claim)
	return claim
}

func machineCapacity() corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("64"), "ephemeral-storage": resource.MustParse("20Gi")}
}

func machineAllocatable() corev1.ResourceList {
	list := machineCapacity()
	list["cpu"], list["memory"] = resource.MustParse("3900m"), resource.MustParse("8182Mi")
	return list
}

// writeStatus writes the status of a claim whose node is ready: conditions with Karpenter's reasons.
func (s *stage) writeStatus(claim *karpv1.NodeClaim, node *corev1.Node) {
	s.t.Helper()
	claim.Status.ProviderID, claim.Status.NodeName = node.Spec.ProviderID, node.Name
	claim.Status.Capacity, claim.Status.Allocatable = machineCapacity(), machineAllocatable()
	claim.Status.LastPodEventTime = metav1.Time{Time: time.Now().Add(-time.Hour).Truncate(time.Second)}
	conditions := claim.StatusConditions()
	for _, condition := range []string{"Launched", "Registered", "Initialized", "Consolidatable"} {
		conditions.SetTrue(condition)
	}
	if err := s.Status().Update(s.t.Context(), claim); err != nil {
		s.t.Fatal(err)
	}
}

// TestAdoption checks that the controller adopts the claims, nodes and machines of Karpenter v1.x, and replaces
// nothing: hashes that were computed differently are written again, and commands in progress are rolled back or
// finished. Karpenter could adopt the resulting objects likewise.
func TestAdoption(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
	s := newStage(t, c, "adopted")
	pool := &karpv1.NodePool{}
	if err := s.Get(t.Context(), keyOf(&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "adopted"}}), pool); err != nil {
		t.Fatal(err)
	}
	busy, marked, going := s.leaves("adopted-7k2xq", pool), s.leaves("adopted-m4zzt", pool), s.leaves("adopted-q9w8e", pool)
	await(t, patience, "kwok to play the nodes", s.ready(3))
	s.scale("app", 6)
	await(t, patience, "the pods to run on nodes of before", s.running("app", 6))
	// Karpenter was uninstalled while it was about to replace a node, was draining another, and had just created a
	// claim.
	s.patch(marked.node, `{"spec":{"taints":[{"key":"karpenter.sh/disrupted","effect":"NoSchedule"}]}}`)
	marked.claim.StatusConditions().SetTrueWithReason("DisruptionReason", "Underutilized", "Underutilized")
	if err := s.Status().Update(t.Context(), marked.claim); err != nil {
		t.Fatal(err)
	}
	s.remove(going.claim)
	s.leavesClaim("adopted-zz5rd", pool)

	c.runController(t, filepath.Join(artifacts, "adoption.log"), adoptionTimers...)
	await(t, patience, "the hashes to be stamped, the mark to be gone and the claim in flight to be a node", func(ctx context.Context) error {
		return s.takenOver(busy.claim.Name, marked.claim.Name, "adopted-zz5rd")
	})
	await(t, patience, "the drain to be finished", s.gone(going.claim.Name))
	await(t, patience, "all pods to run", s.running("app", 6))
	if c := s.ledger.count("adopted"); c.claimsEver != 4 {
		t.Errorf("there were %d claims, want the four original ones", c.claimsEver)
	}
	s.scale("app", 8)
	await(t, patience, "all pods to run", s.running("app", 8))
	await(t, patience, "all to be as Karpenter would take it over", s.canBeHandedBack)
	s.scale("app", 0)
	s.patch(pool, `{"spec":{"disruption":{"consolidateAfter":"0s"}}}`)
	await(t, patience, "the nodes to leave", s.empty)
	for _, e := range s.ledger.claimsOf("adopted") {
		if why := reasonOf(e.object); why != "Empty" && e.object.Name != going.claim.Name {
			t.Errorf("claim %s was removed for %q", e.object.Name, why)
		}
	}
}

// ready fails until n nodes of the case are ready.
func (s *stage) ready(n int) func(context.Context) error {
	return func(context.Context) error {
		ready := 0
		for _, node := range s.ledger.nodesOf(s.name) {
			if karpv1.NodeReady(node) {
				ready++
			}
		}
		if ready != n {
			return fmt.Errorf("%d nodes are ready, want %d", ready, n)
		}
		return nil
	}
}

// gone fails while the claim exists.
func (s *stage) gone(claim string) func(context.Context) error {
	return func(context.Context) error {
		for _, e := range s.ledger.claimsOf(s.name) {
			if e.object.Name == claim && !e.gone {
				return fmt.Errorf("claim %s is there", claim)
			}
		}
		return nil
	}
}

// takenOver fails until the claims are managed, undrifted and unmarked.
func (s *stage) takenOver(claims ...string) error {
	found := 0
	for _, e := range s.ledger.claimsOf(s.name) {
		if e.gone || !slices.Contains(claims, e.object.Name) {
			continue
		}
		found++
		conditions := e.object.DeepCopy().StatusConditions()
		switch {
		case conditions.Get("Drifted").IsTrue():
			return fmt.Errorf("claim %s has drifted: %s", e.object.Name, conditions.Get("Drifted").Reason)
		case e.object.Annotations["karpenter.sh/nodepool-hash-version"] != karpv1.HashVersion:
			return fmt.Errorf("claim %s has the hash version %q", e.object.Name, e.object.Annotations["karpenter.sh/nodepool-hash-version"])
		case conditions.Get("DisruptionReason").IsTrue():
			return fmt.Errorf("claim %s is being disrupted", e.object.Name)
		case !conditions.Get("Initialized").IsTrue():
			return fmt.Errorf("claim %s has no node yet", e.object.Name)
		}
	}
	for _, node := range s.ledger.nodesOf(s.name) {
		if tainted(node) && node.DeletionTimestamp == nil {
			return fmt.Errorf("node %s is marked", node.Name)
		}
	}
	if found != len(claims) {
		return fmt.Errorf("%d of %d claims are there", found, len(claims))
	}
	return nil
}

// canBeHandedBack fails while a claim or its node lacks something that Karpenter needs.
func (s *stage) canBeHandedBack(context.Context) error {
	for _, e := range s.ledger.claimsOf(s.name) {
		if missing := s.missing(e.object); !e.gone && len(missing) > 0 {
			return fmt.Errorf("claim %s lacks %s", e.object.Name, strings.Join(missing, ", "))
		}
	}
	return nil
}

// missing returns what Karpenter would lack on a claim and its node.
func (s *stage) missing(claim *karpv1.NodeClaim) (missing []string) {
	want := func(what string, there bool) {
		if !there {
			missing = append(missing, what)
		}
	}
	ref := claim.Spec.NodeClassRef
	class := strings.ToLower(ref.Group + "/" + ref.Kind)
	want("the finalizer", slices.Contains(claim.Finalizers, "karpenter.sh/termination"))
	want("the pool's label", claim.Labels["karpenter.sh/nodepool"] == s.name)
	want("the class's label", claim.Labels[class] == ref.Name)
	for _, label := range []string{corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, "karpenter.sh/capacity-type", corev1.LabelArchStable, corev1.LabelOSStable} {
		want("the label "+label, claim.Labels[label] != "")
	}
	want("the hash", claim.Annotations["karpenter.sh/nodepool-hash"] != "" && claim.Annotations["karpenter.sh/nodepool-hash-version"] != "")
	want("the owner", len(claim.OwnerReferences) == 1 && claim.OwnerReferences[0].Kind == "NodePool" && claim.OwnerReferences[0].Name == s.name)
	want("the machine", claim.Status.ProviderID != "" && claim.Status.NodeName != "" && len(claim.Status.Allocatable) > 0)
	for _, condition := range []string{"Launched", "Registered", "Initialized", "Ready"} {
		want("the condition "+condition, claim.DeepCopy().Condition(condition).IsTrue())
	}
	for _, node := range s.ledger.nodesOf(s.name) {
		if node.Name != claim.Status.NodeName {
			continue
		}
		want("the node's finalizer", slices.Contains(node.Finalizers, "karpenter.sh/termination"))
		want("the node's labels", node.Labels["karpenter.sh/registered"] == "true" && node.Labels["karpenter.sh/initialized"] == "true" && node.Labels[class] == ref.Name)
		want("the node's owner", len(node.OwnerReferences) == 1 && node.OwnerReferences[0].UID == claim.UID)
		want("the node's provider id", node.Spec.ProviderID == claim.Status.ProviderID)
	}
	return missing
}

// testAWSLeft checks an AWS installation in the state of Karpenter v1.x: the objects have only Karpenter's
// annotations and hashes, and a node is marked by a command that Karpenter had in memory. Nothing is replaced, and
// everything can be deleted.
func testAWSLeft(t *testing.T, w *awsWorld) {
	s := w.stage(t, "aws-left")
	s.scale("app", 6)
	await(t, patience, "all pods to run", s.running("app", 6))
	await(t, patience, "all claims to be as Karpenter would take them over", s.canBeHandedBack)
	before := s.ledger.count(s.name)
	if err := w.controller.stop(); err != nil {
		t.Fatal(err)
	}
	for _, e := range s.ledger.claimsOf(s.name) {
		s.asKarpenterLeaves(e.object, map[string]string{
			"karpenter.sh/nodepool-hash": "6821555240594823858", "karpenter.sh/nodepool-hash-version": "v3",
			"karpenter.k8s.aws/ec2nodeclass-hash": "4763107571234123412", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4",
		})
	}
	s.asKarpenterLeaves(&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: s.name}},
		map[string]string{"karpenter.sh/nodepool-hash": "6821555240594823858", "karpenter.sh/nodepool-hash-version": "v3"})
	s.asKarpenterLeaves(&awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		map[string]string{"karpenter.k8s.aws/ec2nodeclass-hash": "4763107571234123412", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4"})
	s.patch(s.node(s.pods("app")[0]), `{"spec":{"taints":[{"key":"karpenter.sh/disrupted","effect":"NoSchedule"}]}}`)

	w.run(t, quickTimers[0]+",drift=1s,type-drift=1s") // one flag --timers: the last one counts
	var claims []string
	for _, e := range s.ledger.claimsOf(s.name) {
		claims = append(claims, e.object.Name)
	}
	await(t, patience, "the claims to be ours, undrifted and unmarked", func(context.Context) error { return s.takenOver(claims...) })
	s.scale("app", 12)
	await(t, patience, "more pods to run", s.running("app", 12))
	s.boughtOnce()
	for _, e := range s.ledger.claimsOf(s.name)[:before.claimsEver] {
		if e.gone || e.object.DeletionTimestamp != nil {
			t.Errorf("claim %s was replaced: %q", e.object.Name, reasonOf(e.object))
		}
	}
	s.scale("app", 0)
	await(t, patience, "everything to go", s.empty)
}

// asKarpenterLeaves replaces the annotations of this controller by Karpenter's.
func (s *stage) asKarpenterLeaves(object client.Object, annotations map[string]string) {
	s.t.Helper()
	if err := s.Get(s.t.Context(), keyOf(object), object); err != nil {
		s.t.Fatal(err)
	}
	base := object.DeepCopyObject().(client.Object)
	left := maps.Clone(object.GetAnnotations())
	maps.DeleteFunc(left, func(key, _ string) bool { return strings.HasPrefix(key, karpv1.OwnAnnotationPrefix) })
	maps.Copy(left, annotations)
	object.SetAnnotations(left)
	if err := s.Patch(s.t.Context(), object, client.MergeFrom(base)); err != nil {
		s.t.Fatal(err)
	}
}
