package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBurst measures the scale-up of a Deployment from nothing to the numbers of replicas in KARPENTER_BURST ("1000"),
// without and with --proactive-scale-up, on a control plane of its own. It prints a Markdown table. It asserts that all
// pods run, that no claim is superfluous, and that the claims are created in at most two plans with the flag.
//
//	claims    from the scale command to the creation of the last claim
//	ready     from the scale command to the last pod that runs
//	plans     that created claims
//	CPU       seconds of the controller's process from the scale command to the last pod that runs
func TestBurst(t *testing.T) {
	sizes := os.Getenv("KARPENTER_BURST")
	if sizes == "" {
		t.Skip("takes minutes; KARPENTER_BURST=1000 runs it")
	}
	c := ownCluster(t)
	c.environment = append(c.environment, mutationDetector+"false")
	s := newStage(t, c, "thousand")
	table := []string{"| replicas | proactive | claims | ready | plans | nodes | CPU | memory |", "|---|---|---|---|---|---|---|---|"}
	for size := range strings.SplitSeq(sizes, ",") {
		replicas, err := strconv.Atoi(size)
		if err != nil {
			t.Fatalf("KARPENTER_BURST: %v", err)
		}
		for _, proactive := range []bool{false, true} {
			row := s.burst(replicas, proactive)
			table = append(table, row)
		}
	}
	t.Logf("\n%s", strings.Join(table, "\n"))
}

// burst returns the table row of a scale-up.
func (s *stage) burst(replicas int, proactive bool) string {
	s.t.Helper()
	log := kept(s.t, fmt.Sprintf("burst-%d-%t.log", replicas, proactive))
	s.runController(s.t, log, "--proactive-scale-up="+strconv.FormatBool(proactive))
	before := s.controller.takes(s.t)
	old := len(s.ledger.claimsOf(s.name))
	begun := time.Now()
	s.scale("app", replicas)
	await(s.t, 10*patience, fmt.Sprintf("%d pods to run", replicas), s.running("app", replicas))
	ready, elapsed := time.Since(begun), s.controller.takes(s.t)
	plans, last := s.creations(log, begun)
	claims := s.ledger.claimsOf(s.name)[old:]
	used := map[string]bool{}
	for _, pod := range s.pods("app") {
		used[pod.Spec.NodeName] = true
	}
	for _, claim := range claims {
		// Claims of several plans may be consolidated while pods still come.
		if proactive && (claim.gone || !used[claim.object.Status.NodeName]) {
			s.t.Errorf("claim %s, node %q, was never used (gone: %t)", claim.object.Name, claim.object.Status.NodeName, claim.gone)
		}
	}
	if proactive && plans > 2 {
		s.t.Errorf("%d plans created claims, want one, or two when pods differ", plans)
	}
	s.scale("app", 0)
	await(s.t, 10*patience, "no node to be left", s.empty)
	if err := s.controller.stop(); err != nil {
		s.t.Error(err)
	}
	return fmt.Sprintf("| %d | %t | %.1f s | %.1f s | %d | %d | %.1f s | %d MiB |",
		replicas, proactive, last.Seconds(), ready.Seconds(), plans, len(claims),
		elapsed.cpu-before.cpu, elapsed.peak>>20)
}

// creations returns how many plans have created claims according to the log, and when the last did, after begun.
func (s *stage) creations(log string, begun time.Time) (plans int, last time.Duration) {
	s.t.Helper()
	content, err := os.ReadFile(log)
	if err != nil {
		s.t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range bytes.Lines(content) {
		var said struct {
			Time time.Time `json:"time"`
			Msg  string    `json:"message"`
			Plan string    `json:"planID"`
		}
		if json.Unmarshal(line, &said) == nil && strings.HasPrefix(said.Msg, "created nodeclaims") {
			seen[said.Plan] = true
			last = max(last, said.Time.Sub(begun))
		}
	}
	return len(seen), last
}

// TestQuotaStopsPods checks that no node remains for pods that a ResourceQuota does not allow.
func TestQuotaStopsPods(t *testing.T) {
	s := onShared(t, "stopped")
	s.create(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "few"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}}})
	await(t, patience, "the quota to be in force", func(ctx context.Context) error {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "few"}}
		if err := s.Get(ctx, keyOf(quota), quota); err != nil {
			return err
		}
		if len(quota.Status.Hard) == 0 {
			return fmt.Errorf("its status is empty")
		}
		return nil
	})
	s.scale("app", 20)
	await(t, patience, "two pods to run", s.running("app", 2))
	await(t, patience, "the nodes of two pods to be left", s.nodesReady(2))
	if c := s.ledger.count(s.name); c.claimsEver > 20 {
		t.Errorf("%d claims were created for 20 replicas", c.claimsEver)
	}
}
