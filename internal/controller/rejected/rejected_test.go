package rejected_test

import (
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/controller/rejected"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/telemetry"
	"github.com/karpenter-go/karpenter/internal/testing/loopcluster"
)

// TestAsideIsNamed verifies that each claim and node that is set aside is reported once, with field and reason, again
// when the reason changes, and once when it is processed again.
func TestAsideIsNamed(t *testing.T) {
	var list []state.RejectedObject
	sink, lines := events.NewFakeRecorder(10), 0
	a := &rejected.Reporter{
		List:     func() []state.RejectedObject { return list },
		Recorder: telemetry.NewRecorder(sink, clocktesting.NewFakePassiveClock(loopcluster.Noon)),
		Log:      funcr.New(func(string, string) { lines++ }, funcr.Options{}),
	}
	claim := state.RejectedObject{Kind: "NodeClaim", Name: "c", UID: "u",
		Why: model.Rejection{Field: "spec.requirements[0].operator", Reason: "is not known"}}
	changed := claim
	changed.Why.Reason = "is odd"
	node := state.RejectedObject{Kind: "Node", Name: "n", UID: "v", Why: model.Rejection{Field: "spec.providerID", Reason: "is another's"}}
	pod := state.RejectedObject{Kind: "Pod", Name: "default/p"}
	daemons := state.RejectedObject{Kind: "DaemonSet", Name: "default/d", UID: "w",
		Why: model.Rejection{Field: "spec.template.spec.affinity", Reason: "is too much"}}
	for _, step := range []struct {
		name   string
		list   []state.RejectedObject
		events []string
		lines  int
	}{
		{"two are set aside", []state.RejectedObject{node, claim, pod}, []string{
			"Warning SetAside spec.providerID: is another's", "Warning SetAside spec.requirements[0].operator: is not known",
		}, 2},
		{"a DaemonSet too", []state.RejectedObject{node, claim, daemons}, []string{
			"Warning SetAside spec.template.spec.affinity: is too much",
		}, 1},
		{"nothing is new", []state.RejectedObject{node, claim, pod, daemons}, nil, 0},
		{"the reason changes", []state.RejectedObject{node, changed}, []string{"Warning SetAside spec.requirements[0].operator: is odd"}, 2},
		{"all are back", nil, nil, 2},
	} {
		list, lines = step.list, 0
		a.Tick()
		if diff := cmp.Diff(step.events, loopcluster.Emitted(sink)); diff != "" || lines != step.lines {
			t.Errorf("%s: %d lines in the log, want %d; events (-want +got):\n%s", step.name, lines, step.lines, diff)
		}
	}
}
