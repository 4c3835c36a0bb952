package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestFirstStart checks that the controller logs no error from its first start until it has launched its first node. It
// runs before the cases that share the controller, which run in parallel: they cause errors on purpose.
func TestFirstStart(t *testing.T) {
	if measuring() {
		t.Skip("there is no shared cluster")
	}
	await(t, patience, "the shared controller to be ready", common.controller.ready)
	s := newStage(t, common, "first")
	s.scale("app", 1)
	await(t, patience, "a pod to run", s.running("app", 1))
	await(t, patience, "its node to be initialized", s.nodesReady(1))
	content, err := os.ReadFile(common.controller.log)
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(content)) {
		lines++
		if strings.Contains(line, "ERROR") || strings.Contains(line, "panic") {
			t.Errorf("the log of a healthy start has an error: %s", strings.TrimSpace(line))
		}
	}
	if lines == 0 {
		t.Error("the log is empty")
	}
}
