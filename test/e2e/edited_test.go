package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestEditedByHand changes nodes, NodeClaims, PodDisruptionBudgets and PersistentVolumeClaims of a running fleet at
// random: labels, taints, capacity, provider IDs, finalizers, annotations and statuses get invalid values. Unedited
// objects are kept, new pods get claims, and the controller neither panics nor ends.
func TestEditedByHand(t *testing.T) {
	only(t)
	const fleet, rounds, edits = 8, 5, 60
	l := apiOnly(t)
	s := l.stage("bystander")
	log := filepath.Join(artifacts, "edited.log")
	l.runController(t, log, quickTimers...)
	h := &hand{loaded: l, stage: s, random: rand.New(rand.NewPCG(1, 12))}
	for i := range fleet {
		h.pods = append(h.pods, h.placed(fmt.Sprintf("fleet-%d", i)))
	}
	h.surroundings()
	before := map[string]types.UID{}
	for _, pod := range h.pods[fleet/2:] {
		before[pod.Spec.NodeName] = h.node(pod.Spec.NodeName).UID
	}
	for round := range rounds {
		for range edits {
			h.edit(h.pods[h.random.IntN(fleet/2)].Spec.NodeName)
		}
		if !l.controller.running() {
			t.Fatalf("after %d edits the controller has ended: %v; its log is %s", h.made, l.controller.err, log)
		}
		h.placed(fmt.Sprintf("new-%d", round))
	}
	t.Logf("%d edits were made, the API server refused %d", h.made, h.refused)
	for node, uid := range before {
		switch got := h.node(node); {
		case got == nil:
			t.Errorf("node %s, which was not edited, is absent", node)
		case got.UID != uid:
			t.Errorf("node %s, which was not edited, is %s, want %s", node, got.UID, uid)
		case got.DeletionTimestamp != nil:
			t.Errorf("node %s, which was not edited, is being removed since %s", node, got.DeletionTimestamp)
		}
	}
	for _, pod := range h.pods[fleet/2:] {
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp != nil {
			t.Errorf("pod %s, which was not edited: %v, deleted %v", pod.Name, err, pod.DeletionTimestamp)
		}
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if at := bytes.Index(text, []byte("panic")); at >= 0 {
		t.Errorf("the log has a panic: %.2000s", text[at:])
	}
}

// hand edits objects, and simulates kube-scheduler and kubelet.
type hand struct {
	*loaded
	stage         *stage
	random        *rand.Rand
	pods          []*corev1.Pod
	made, refused int
}

// node returns the node of that name, nil for none.
func (h *hand) node(name string) *corev1.Node {
	node := &corev1.Node{}
	if h.stage.Get(h.stage.t.Context(), types.NamespacedName{Name: name}, node) != nil {
		return nil
	}
	return node
}

// placed creates a pod and waits for its claim, makes the node of the claim ready, and binds the pod to it.
func (h *hand) placed(name string) *corev1.Pod {
	s := h.stage
	s.t.Helper()
	pod := plainPod(s.name, name, s.name, "1500m")
	pod.Labels = map[string]string{"app": name}
	if err := h.ask(s.t.Context(), pod); err != nil {
		s.t.Fatal(err)
	}
	var node *corev1.Node
	await(s.t, patience, "a claim with a node for pod "+name, func(context.Context) error {
		for _, e := range s.ledger.claimsOf(s.name) {
			if !e.gone && strings.Contains(e.object.Annotations[karpv1.AnnotationPods], string(pod.UID)) && e.object.Status.NodeName != "" {
				if node = h.node(e.object.Status.NodeName); node != nil {
					return nil
				}
			}
		}
		return fmt.Errorf("%d claims", s.ledger.count(s.name).claims)
	})
	await(s.t, patience, "the node to be ready", func(ctx context.Context) error { return h.boot(ctx, node.Name) })
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}
	if err := s.SubResource("binding").Create(s.t.Context(), pod, binding); err != nil {
		s.t.Fatal(err)
	}
	pod.Spec.NodeName = node.Name
	return pod
}

// boot marks a node as ready, as the kubelet and the node controller do.
func (h *hand) boot(ctx context.Context, name string) error {
	node := h.node(name)
	if node == nil {
		return fmt.Errorf("node %s is gone", name)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
	if err := h.stage.Status().Update(ctx, node); err != nil {
		return err
	}
	var kept []corev1.Taint
	for _, taint := range node.Spec.Taints {
		if taint.Key != corev1.TaintNodeNotReady {
			kept = append(kept, taint)
		}
	}
	node.Spec.Taints = kept
	return h.stage.Update(ctx, node)
}

// surroundings creates budgets and volume claims for the pods.
func (h *hand) surroundings() {
	for i := range 3 {
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("fleet-%d", i)}}
		h.stage.create(
			&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: h.stage.name, Name: fmt.Sprintf("edited-%d", i)},
				Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector, MaxUnavailable: &intstr.IntOrString{IntVal: 1}}},
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: h.stage.name, Name: fmt.Sprintf("edited-%d", i)},
				Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}},
		)
	}
}

// garbage returns a text that may be a name, a number, a time, JSON, or none of these.
func (h *hand) garbage() string {
	texts := []string{"", "0", "-1", "x", "9223372036854775807", "1e-9", "{", `{"phase":"draining"}`, `[null]`, "null", "true", "spot", "on-demand", "reserved",
		"2000-01-01T00:00:00Z", "test-zone-a", "nowhere-1z", "bystander", "kwok:///", "NaN", "default", strings.Repeat("a", 63), "ä", "a b", "\x7f", "karpenter.sh/nodepool"}
	return texts[h.random.IntN(len(texts))]
}

func (h *hand) one(of ...string) string { return of[h.random.IntN(len(of))] }

// edit changes a node, its claim, a budget or a volume claim.
func (h *hand) edit(name string) {
	s := h.stage
	s.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	claim := &karpv1.NodeClaim{}
	for _, e := range s.ledger.claimsOf(s.name) {
		if !e.gone && e.object.Status.NodeName == name {
			claim.Name = e.object.Name
		}
	}
	number := fmt.Sprintf("edited-%d", h.random.IntN(3))
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: number}}
	volume := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: number}}
	object, patch, status := client.Object(node), map[string]any{}, false
	if h.random.IntN(2) == 0 && claim.Name != "" {
		object = claim
	}
	set := func(value any, path ...string) {
		at := patch
		for _, field := range path[:len(path)-1] {
			next := map[string]any{}
			at[field], at = next, next
		}
		at[path[len(path)-1]] = value
	}
	switch h.random.IntN(10) {
	case 0, 1:
		set(h.garbage(), "metadata", "labels", h.one(karpv1.LabelNodePool, karpv1.LabelCapacityType, karpv1.LabelInitialized, karpv1.LabelRegistered, corev1.LabelInstanceTypeStable,
			corev1.LabelTopologyZone, corev1.LabelHostname, corev1.LabelArchStable, "karpenter.kwok.sh/instance-cpu"))
	case 2, 3:
		set(h.garbage(), "metadata", "annotations", h.one(karpv1.AnnotationCommand, karpv1.AnnotationPods, karpv1.AnnotationBoughtBy,
			"karpenter.sh/do-not-disrupt", "karpenter.sh/nodeclaim-termination-timestamp", "karpenter.sh/nodepool-hash", "kwok.x-k8s.io/node"))
	case 4:
		set([]any{map[string]any{"key": h.one("karpenter.sh/disrupted", "karpenter.sh/unregistered", "x", corev1.TaintNodeUnschedulable), "value": h.garbage(),
			"effect": h.one("NoSchedule", "NoExecute", "PreferNoSchedule", "Never")}}, "spec", "taints")
		object = node
	case 5:
		set(h.one("0", "-1", "9223372036854775807", "1n", "15Ei", "x"), "status", h.one("capacity", "allocatable"), h.one("cpu", "memory", "pods", "example.com/x"))
		status = true
	case 6:
		set([]string{}, "metadata", "finalizers")
		if h.random.IntN(2) == 0 {
			set([]string{"e2e.example.org/held"}, "metadata", "finalizers")
		}
	case 7:
		object, status = claim, true
		set(h.garbage(), "status", h.one("providerID", "nodeName", "imageID"))
	case 8:
		object = budget
		set(h.one("0%", "100%", "200%", "-1", "x"), "spec", h.one("maxUnavailable", "minAvailable"))
		if h.random.IntN(2) == 0 {
			set(map[string]any{"matchExpressions": []any{map[string]any{"key": h.garbage(), "operator": h.one("Exists", "In", "Gt"), "values": []string{h.garbage()}}}}, "spec", "selector")
		}
	case 9:
		object = volume
		set(h.garbage(), "metadata", "annotations", h.one("volume.kubernetes.io/selected-node", "volume.beta.kubernetes.io/storage-class", "pv.kubernetes.io/bind-completed"))
	}
	if object.GetName() == "" {
		return
	}
	h.apply(object, patch, status)
}

func (h *hand) apply(object client.Object, patch map[string]any, status bool) {
	s := h.stage
	s.t.Helper()
	text, err := json.Marshal(patch)
	if err != nil {
		s.t.Fatal(err)
	}
	raw := client.RawPatch(types.MergePatchType, text)
	if status {
		err = s.Status().Patch(s.t.Context(), object, raw)
	} else {
		err = s.Patch(s.t.Context(), object, raw)
	}
	h.made++
	switch {
	case err == nil || apierrors.IsNotFound(err):
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsConflict(err):
		h.refused++
	default:
		s.t.Fatalf("editing %T %s by %s: %v", object, object.GetName(), text, err)
	}
}
