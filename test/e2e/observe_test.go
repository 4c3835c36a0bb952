package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
)

// TestOlderServer runs in the conditions of older clusters: an API server without streaming lists (feature gate
// WatchList, off by default in Kubernetes 1.33), and pods that are not nominated (--pod-placement=observe, the
// default before 1.35). Pods get nodes, no surplus node is launched, and empty nodes are removed.
func TestOlderServer(t *testing.T) {
	t.Parallel()
	directory, err := os.MkdirTemp(artifacts, "own-")
	if err != nil {
		t.Fatal(err)
	}
	c, err := startOf(t.Context(), sandbox.Options{
		DataDir: directory, ExtraArgs: map[string][]string{"kube-apiserver": {"--feature-gates=WatchList=false"}},
	}, "kwok")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.close(t)
		giveBack(t, directory, filepath.Dir(c.audit))
	})
	if err := c.watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := newStage(t, c, "observed")
	s.runController(t, filepath.Join(artifacts, "observed.log"), append([]string{"--pod-placement=observe"}, quickTimers...)...)
	for _, replicas := range []int{40, 90} {
		s.scale("app", replicas)
		await(t, patience, "the pods to run", s.running("app", replicas))
		s.checkClaimsUsed()
		for _, pod := range s.pods("app") {
			if nominated := s.ledger.nominations(pod.UID); len(nominated) > 0 {
				t.Errorf("pod %s was nominated to %q, want no nomination with --pod-placement=observe", pod.Name, nominated)
			}
		}
	}
	listed, err := os.ReadFile(c.audit)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(listed), `"requestURI":"/api/v1/pods?limit=`) {
		t.Error("the controller listed no pods page by page: the API server has streamed them, and the test is void")
	}
	s.scale("app", 0)
	await(t, patience, "the nodes to leave", s.empty)
}
