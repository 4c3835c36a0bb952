package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

// caseLabel is a label of every pool's nodes; its value is the case that they belong to.
const caseLabel = "e2e.example.org/case"

// stage is the environment of one case: a namespace of its name on a cluster.
type stage struct {
	*cluster
	t    *testing.T
	name string
}

// onShared returns the environment of a test on the shared cluster, beside other tests. It applies the fixture
// testdata/<name>.yaml if it exists.
func onShared(t *testing.T, name string) *stage {
	t.Helper()
	t.Parallel()
	await(t, patience, "the shared controller to be ready", common.controller.ready)
	return newStage(t, common, name)
}

func newStage(t *testing.T, c *cluster, name string) *stage {
	t.Helper()
	s := &stage{cluster: c, t: t, name: name}
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	t.Cleanup(s.clear)
	if fixture := filepath.Join("testdata", name+".yaml"); fileExists(fixture) {
		s.apply(fixture)
	}
	return s
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// apply creates the objects of a YAML file.
func (s *stage) apply(path string) {
	s.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4<<10)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			s.t.Fatalf("reading %s: %v", path, err)
		}
		s.create(object)
	}
}

func (s *stage) create(objects ...client.Object) {
	s.t.Helper()
	for _, object := range objects {
		err := s.Create(s.t.Context(), object)
		if _, namespace := object.(*corev1.Namespace); namespace && apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			s.t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
		}
	}
}

// clear removes all objects of the case. It fails if a claim, a node or a machine remains.
func (s *stage) clear() {
	if s.t.Failed() && s.controller != nil {
		s.t.Logf("the controller's last errors (log: %s):\n%s", s.controller.log, s.controller.lastErrors(s.name))
		s.describe()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	in, ours := client.InNamespace(s.name), client.MatchingLabels{caseLabel: s.name}
	for _, all := range []struct {
		kind  client.Object
		which client.DeleteAllOfOption
	}{
		{&policyv1.PodDisruptionBudget{}, in}, {&appsv1.Deployment{}, in}, {&appsv1.StatefulSet{}, in}, {&appsv1.DaemonSet{}, in}, {&corev1.Pod{}, in},
		{&corev1.PersistentVolumeClaim{}, in},
		{&v1alpha1.NodeOverlay{}, ours}, {&karpv1alpha5.Provisioner{}, ours}, {&karpv1.NodePool{}, ours},
		{&karpv1.NodeClaim{}, ours}, {&kwokv1alpha1.KWOKNodeClass{}, ours},
	} {
		if _, class := all.kind.(*kwokv1alpha1.KWOKNodeClass); class {
			s.awaitNothing(ctx)
		}
		if err := s.DeleteAllOf(ctx, all.kind, all.which); err != nil {
			s.t.Errorf("removing the objects of the case: %v", err)
		}
	}
}

// awaitNothing waits until no claim, node or machine of the case exists.
func (s *stage) awaitNothing(ctx context.Context) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		c := s.ledger.count(s.name)
		if c.claims == 0 && c.nodes == 0 && c.machines == 0 {
			return
		}
		select {
		case <-ctx.Done():
			s.t.Errorf("the case has ended, but %d claims, %d nodes and %d machines remained", c.claims, c.nodes, c.machines)
			return
		case <-ticker.C:
		}
	}
}

// describe logs the objects of a failed case.
func (s *stage) describe() {
	names := map[types.UID]string{}
	for _, pod := range s.ledger.podsOf(s.name) {
		names[pod.UID] = pod.Name
	}
	for _, e := range s.ledger.claimsOf(s.name) {
		s.t.Logf("claim %s created %s by %s, deleted %s for %q, gone %t", e.object.Name, e.object.CreationTimestamp.Format(time.TimeOnly),
			e.object.Annotations[karpv1.AnnotationBoughtBy], e.object.DeletionTimestamp, reasonOf(e.object), e.gone)
		var bought []string
		for uid := range strings.FieldsSeq(e.object.Annotations[karpv1.AnnotationPods]) {
			bought = append(bought, names[types.UID(uid)])
		}
		s.t.Logf("  launched for %v", bought)
		if e.gone {
			continue
		}
		conditions, _ := json.Marshal(e.object.Status.Conditions)
		s.t.Logf("  node=%q conditions=%s", e.object.Status.NodeName, conditions)
	}
	for _, node := range s.ledger.nodesOf(s.name) {
		s.t.Logf("node %s type=%s zone=%s deleting=%v taints=%v", node.Name, node.Labels[corev1.LabelInstanceTypeStable], node.Labels[corev1.LabelTopologyZone],
			node.DeletionTimestamp != nil, node.Spec.Taints)
	}
	const most = 100
	pods := s.ledger.podsOf(s.name)
	slices.SortFunc(pods, func(p, q *corev1.Pod) int { return strings.Compare(p.Name, q.Name) })
	for i, pod := range pods {
		if i == most {
			s.t.Logf("... and more pods")
			return
		}
		s.t.Logf("pod %s %s node=%q nominated=%q events=%q", pod.Name, pod.Status.Phase, pod.Spec.NodeName, pod.Status.NominatedNodeName, s.ledger.saidOf(pod.UID))
	}
}

// scale sets the replicas of a Deployment of the case.
func (s *stage) scale(deployment string, replicas int) {
	s.t.Helper()
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: deployment}}
	s.patch(object, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

func (s *stage) patch(object client.Object, merge string) {
	s.t.Helper()
	if err := s.Patch(s.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(merge))); err != nil {
		s.t.Fatalf("changing %T %s: %v", object, object.GetName(), err)
	}
}

func (s *stage) remove(object client.Object) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), object); err != nil {
		s.t.Fatalf("deleting %T %s: %v", object, object.GetName(), err)
	}
}

// pods returns the pods of a Deployment (by the label app) that are not terminating.
func (s *stage) pods(app string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, pod := range s.ledger.podsOf(s.name) {
		if pod.Labels["app"] == app && pod.DeletionTimestamp == nil {
			out = append(out, pod)
		}
	}
	return out
}

// running fails until exactly n pods of the Deployment exist and run.
func (s *stage) running(app string, n int) func(context.Context) error {
	return func(context.Context) error {
		pods := s.pods(app)
		run := 0
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodRunning {
				run++
			}
		}
		if run != n || len(pods) != n {
			return fmt.Errorf("%d of %d pods of %s/%s run, want %d", run, len(pods), s.name, app, n)
		}
		return nil
	}
}

// empty fails until no claim, node or machine of the case exists.
func (s *stage) empty(context.Context) error {
	c := s.ledger.count(s.name)
	if c.claims+c.nodes+c.machines > 0 {
		return fmt.Errorf("%d claims, %d nodes and %d machines are there", c.claims, c.nodes, c.machines)
	}
	return nil
}

// node returns the node of a bound pod.
func (s *stage) node(pod *corev1.Pod) *corev1.Node {
	s.t.Helper()
	for _, node := range s.ledger.nodesOf(s.name) {
		if node.Name == pod.Spec.NodeName {
			return node
		}
	}
	s.t.Fatalf("pod %s is on %q, which is not a node of the case", pod.Name, pod.Spec.NodeName)
	return nil
}

// pools counts the pods of a Deployment by the pool of their node.
func (s *stage) pools(app string) map[string]int {
	s.t.Helper()
	out := map[string]int{}
	for _, pod := range s.pods(app) {
		out[s.node(pod).Labels[karpv1.LabelNodePool]]++
	}
	return out
}

// says fails until the controller has emitted an event with the reason and all words about the object.
func (s *stage) says(object client.Object, reason string, words ...string) func(context.Context) error {
	return func(context.Context) error {
		said := s.ledger.saidOf(object.GetUID())
		for _, text := range said {
			if strings.HasPrefix(text, reason+": ") && containsAll(text, words) {
				return nil
			}
		}
		return fmt.Errorf("events about %s are %q, want %s with %q", object.GetName(), said, reason, words)
	}
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
