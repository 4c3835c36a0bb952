package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

type kwokClass = kwokv1alpha1.KWOKNodeClass

// TestEmptyNodesLeave checks that empty nodes are removed when consolidateAfter has passed since their last pod, and
// not before.
func TestEmptyNodesLeave(t *testing.T) {
	s := onShared(t, "leave")
	s.scale("app", 6)
	await(t, patience, "the pods to run", s.running("app", 6))
	s.scale("app", 0)
	await(t, patience, "the pods to be gone", s.running("app", 0))
	await(t, patience, "the nodes to leave", s.empty)
	for _, e := range s.ledger.claimsOf("leave") {
		quiet := e.object.DeletionTimestamp.Sub(e.object.Status.LastPodEventTime.Time)
		if quiet < 29*time.Second { // both times have a resolution of seconds
			t.Errorf("claim %s was deleted %s after its last pod event, want 30 s or more", e.object.Name, quiet)
		}
	}
}

// TestBudgetOfZero checks that a budget of zero keeps empty nodes, and that they are removed when it is raised.
func TestBudgetOfZero(t *testing.T) {
	s := onShared(t, "frozen")
	s.scale("app", 2)
	await(t, patience, "the pods to run", s.running("app", 2))
	s.scale("app", 0)
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "frozen"}}
	await(t, patience, "the pool to say that its budget forbids", func(ctx context.Context) error {
		if err := s.Get(ctx, keyOf(pool), pool); err != nil {
			return err
		}
		return s.says(pool, "DisruptionBlocked", "budget")(ctx)
	})
	for _, node := range s.ledger.nodesOf("frozen") {
		if node.DeletionTimestamp != nil || tainted(node) {
			t.Errorf("node %s is being removed, though the budget is 0", node.Name)
		}
	}
	s.patch(pool, `{"spec":{"disruption":{"budgets":[{"nodes":"1"}]}}}`)
	await(t, patience, "the nodes to leave", s.empty)
}

// TestDrainBlockedByDisruptionBudget checks that a PodDisruptionBudget that allows no eviction blocks a drain, which
// is reported. The drain continues when the budget is deleted, and the pods get another node.
func TestDrainBlockedByDisruptionBudget(t *testing.T) {
	s := onShared(t, "budget")
	s.scale("app", 2)
	await(t, patience, "the pods to run", s.running("app", 2))
	pod := s.pods("app")[0]
	node := s.node(pod)
	claim := s.ledger.claimsOf("budget")[0].object
	s.remove(claim)
	stays := func() {
		for _, now := range s.pods("app") {
			if now.UID == pod.UID && now.Spec.NodeName == node.Name && now.DeletionTimestamp == nil {
				return
			}
		}
		t.Fatalf("pod %s was not kept on node %s", pod.Name, node.Name)
	}
	await(t, patience, "the node to be drained, in vain", func(ctx context.Context) error {
		stays()
		if now := s.ledger.nodesOf("budget"); len(now) == 0 || now[0].DeletionTimestamp == nil || !tainted(now[0]) {
			return fmt.Errorf("node %s is not being drained", node.Name)
		}
		return s.says(node, "FailedDraining", "evicting pod budget/", "disruption budget")(ctx)
	})
	// The API has rejected one eviction; the drain repeats the request.
	refused := s.evictionsRefused()
	await(t, patience, "the eviction to be refused some more times", func(context.Context) error {
		stays()
		if now := s.evictionsRefused(); now < refused+3 {
			return fmt.Errorf("%d evictions were refused, %d before", now, refused)
		}
		return nil
	})
	s.remove(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "budget", Name: "app"}})
	await(t, patience, "the node to leave", func(context.Context) error {
		for _, now := range s.ledger.nodesOf("budget") {
			if now.UID == node.UID {
				return fmt.Errorf("node %s is still there", node.Name)
			}
		}
		return nil
	})
	await(t, patience, "the pods to run elsewhere", s.running("app", 2))
}

// evictionsRefused returns how many evictions the API has rejected because of a budget, according to the controller's
// metrics.
func (s *stage) evictionsRefused() int {
	s.t.Helper()
	count := s.metric(`karpenter_pods_eviction_requests_total{code="429"}`)
	if count == "" {
		return 0
	}
	n, err := strconv.Atoi(count)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// metric returns the value of a series of the controller, empty if there is none.
func (s *stage) metric(series string) string {
	s.t.Helper()
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", s.controller.metrics))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), series+" "); found {
			return value
		}
	}
	return ""
}

func tainted(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == karpv1.TaintKeyDisrupted {
			return true
		}
	}
	return false
}
