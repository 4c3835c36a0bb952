package plan

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// TestPodCounts checks that pods and virtual pods of a claim are counted apart, and those of a stored claim too.
func TestPodCounts(t *testing.T) {
	pod := func(virtual string) *model.Pod { return &model.Pod{Shape: &model.Shape{Virtual: virtual}} }
	for name, c := range map[string]struct {
		claim         NewClaim
		pods, virtual int
	}{
		"none":    {NewClaim{}, 0, 0},
		"pods":    {NewClaim{Pods: []*model.Pod{pod(""), pod("")}}, 2, 0},
		"virtual": {NewClaim{Pods: []*model.Pod{pod(model.VirtualReplica), pod(model.VirtualReplica)}}, 0, 2},
		"stored":  {NewClaim{Refs: make([]model.PodRef, 3)}, 3, 0},
	} {
		if pods, virtual := c.claim.PodCounts(); pods != c.pods || virtual != c.virtual {
			t.Errorf("%s: %d pods, %d virtual; want %d and %d", name, pods, virtual, c.pods, c.virtual)
		}
	}
}
