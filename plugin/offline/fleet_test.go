package offline

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/plugin/top"
)

// TestTopIgnoredPods checks that pods that need no node from Karpenter share a line by what they wait for.
func TestTopIgnoredPods(t *testing.T) {
	gated, unasked := idlePod{why: plan.Verdict{Rejection: &model.Rejection{Reason: "gated"}}}, idlePod{why: plan.Verdict{Rejection: &model.Rejection{Reason: "unasked"}}}
	var idle []idlePod
	for i, p := range []idlePod{gated, unasked, gated, gated} {
		p.pod = fmt.Sprint("shop/p", i)
		idle = append(idle, p)
	}
	want := []top.Waiting{{Pod: "shop/p0", Count: 3, Outcome: "Ignored", Why: "gated"}, {Pod: "shop/p1", Count: 1, Outcome: "Ignored", Why: "unasked"}}
	d := &Decision{from: &mirror{idle: idle}, snap: &model.Snapshot{}, plan: &plan.Provision{}}
	if diff := cmp.Diff(want, d.waitingPods("")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
