package explain_test

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

func TestUnconsolidatable(t *testing.T) {
	v := plan.Verdict{Code: plan.PDBBlocks, Node: "n1", Holder: &plan.Holder{Pod: "default/web-0", PDB: "default/web"}}
	const why = "PodDisruptionBudget default/web allows no eviction of pod default/web-0 on node n1 now"
	for cost, want := range map[int64]string{0: why, model.Nano / 10: why + "; the node costs 73.00 USD a month"} {
		if got := explain.Unconsolidatable(nil, v, cost); got != want {
			t.Errorf("cost %d: got %q, want %q", cost, got, want)
		}
	}
}
