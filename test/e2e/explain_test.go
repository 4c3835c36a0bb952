package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// TestExplain checks that kubectl karpenter explain gives the reason of each unschedulable pod on a live cluster, and that
// the pod's event has the same reason.
func TestExplain(t *testing.T) {
	s := onShared(t, "explained")
	explain := func(pod string) (string, error) {
		output, err := exec.CommandContext(t.Context(), plugin, "explain", "pod", "explained/"+pod, "--kubeconfig",
			s.sandbox.Kubeconfig()).CombinedOutput()
		return string(output), err
	}
	const ofPool = "pool explained: "
	for _, test := range []struct {
		pod   string
		event []string // words that the event also contains
		more  []string
	}{
		{"large", []string{ofPool + "needs 4Ti of memory, the largest of"},
			[]string{"memory at least 4Ti", " would fit for at most 2Ti of memory"}},
		{"kept-out", []string{ofPool + "taint dedicated=explained:NoSchedule is not tolerated"},
			[]string{" would fit if taint dedicated=explained:NoSchedule were tolerated"}},
		{"misspelled", []string{ofPool + "label topology.kubernetes.io/zones is required, and the pool does not define it",
			"did you mean label topology.kubernetes.io/zone?"},
			[]string{" would fit if label topology.kubernetes.io/zones were not required"}},
		{"elsewhere", []string{ofPool, "none of ", "matching types has an available offering", "the zones are test-zone-a, test-zone-b, test-zone-c and test-zone-d"}, nil},
		{"lonely", []string{ofPool + "no remaining domain has a pod that the pod affinity on label topology.kubernetes.io/zone selects"}, nil},
	} {
		await(t, patience, "kubectl karpenter explain to say why pod "+test.pod+" cannot be scheduled", func(ctx context.Context) error {
			output, err := explain(test.pod)
			if err != nil || !strings.HasPrefix(output, "pod explained/"+test.pod+" cannot be scheduled\n") || !containsAll(output,
				append(test.more, test.event...)) {
				return fmt.Errorf("it ended with %v and printed\n%s", err, output)
			}
			for _, pod := range s.ledger.podsOf("explained") {
				if pod.Name == test.pod {
					return s.says(pod, "FailedScheduling", test.event...)(ctx)
				}
			}
			return fmt.Errorf("the pod is not there")
		})
		if testing.Verbose() {
			output, _ := explain(test.pod) // for the verbose log
			t.Log(output)
		}
	}
	if output, err := explain("gated"); err != nil || output != "pod explained/gated is ignored: spec.schedulingGates: the pod has scheduling gates: example.com/quota\n" {
		t.Errorf("a gated pod: %v\n%s", err, output)
	}
	if _, err := explain("absent"); err == nil {
		t.Error("a pod that does not exist was explained")
	}
}
