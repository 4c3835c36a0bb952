package convert

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestPromises: what is written about the pods of a claim is read again; of pods that still run elsewhere with their
// controllers.
func TestPromises(t *testing.T) {
	owner := model.Owner{Kind: "ReplicaSet", UID: "rs"}
	pending := &model.Pod{UID: "pending", Controller: owner}
	running := &model.Pod{UID: "running", Node: "n", Controller: owner}
	bare := &model.Pod{UID: "bare", Node: "n"}
	for _, test := range []struct {
		name   string
		pods   []*model.Pod
		text   string
		owners []string
	}{
		{"nobody", nil, "", nil},
		{"pending pods only", []*model.Pod{pending, pending}, "pending pending", nil},
		{"one that runs", []*model.Pod{pending, running, bare}, "pending running/rs bare", []string{"", "rs", ""}},
		{"the first runs", []*model.Pod{running, running, pending}, "running/rs running/rs pending", []string{"rs", "rs", ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			claim := plan.NewClaim{Pods: test.pods}
			text := strings.Join(claim.Promises(), " ")
			if text != test.text {
				t.Errorf("written %q, want %q", text, test.text)
			}
			var uids []string
			for _, p := range test.pods {
				uids = append(uids, p.UID)
			}
			pods, owners := promises(text)
			if diff := cmp.Diff(uids, pods); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.owners, owners); diff != "" {
				t.Errorf("owners (-want +got):\n%s", diff)
			}
		})
	}
}
