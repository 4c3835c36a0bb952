package decisions_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/controller/decisions"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

func TestHistoryForgets(t *testing.T) {
	h := decisions.NewHistory(2)
	for i := range 3 {
		h.Add(decisions.Record{Provision: &plan.Provision{Claims: make([]plan.NewClaim, i)}})
	}
	var sizes []int
	for _, r := range h.Records() {
		sizes = append(sizes, len(r.Provision.Claims))
	}
	if diff := cmp.Diff([]int{1, 2}, sizes); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	heavy := &model.Snapshot{Groups: []*model.Group{{Matches: make([]int, 3<<20)}}}
	for range 3 {
		h.Add(decisions.Record{Snapshot: heavy})
	}
	if n := len(h.Records()); n != 1 {
		t.Errorf("%d records of large snapshots are kept, want the last", n)
	}
	h = decisions.NewHistory(5)
	m := label.NewMentions()
	for i := range 64_000 {
		m.Value("key", strconv.Itoa(i))
	}
	for range 10 {
		h.Add(decisions.Record{Snapshot: &model.Snapshot{Space: m.Space(), Nodes: make([]*model.Node, 2000)}})
		m.Value("key", strconv.Itoa(m.Len()))
	}
	if n := len(h.Records()); n != 2 {
		t.Errorf("%d records with long rows of their own are kept, want 2", n)
	}
	var none *decisions.History
	none.Add(decisions.Record{})
	if none.Records() != nil {
		t.Error("a nil history keeps records")
	}
}
