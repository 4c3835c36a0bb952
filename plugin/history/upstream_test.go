package history_test

import (
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/plugin/history"
)

// plannedTwo is a plan of upstream's for two pods on two new nodes, both lines at one time, and a command that counts its
// new nodes without a name.
const plannedTwo = `
{"time": "2026-06-01T09:00:00Z", "message": "found provisionable pod(s)", "reconcileID": "1", "Pods": "shop/web-0, shop/web-1"}
{"time": "2026-06-01T09:00:00Z", "message": "computed new nodeclaim(s) to fit pod(s)", "reconcileID": "1", "nodeclaims": 2, "pods": 2}
{"time": "2026-06-01T09:00:01Z", "message": "created nodeclaim", "reconcileID": "1", "NodeClaim": {"name": "d-a"}}
{"time": "2026-06-01T09:00:01Z", "message": "created nodeclaim", "reconcileID": "1", "NodeClaim": {"name": "d-b"}}
{"time": "2026-06-01T10:30:00Z", "message": "disrupting node(s)", "command-id": "x", "reason": "underutilized", ` +
	`"decision": "replace", "disrupted-node-count": 1, "replacement-node-count": 1, "pod-count": 3, "disrupted-nodes": ` +
	`[{"Node": {"name": "n-a"}, "NodeClaim": {"name": "d-a"}}], "replacement-nodes": [{"capacity-type": "spot"}]}
`

func TestPlanOfUpstreamAtOneTime(t *testing.T) {
	var log history.Log
	if err := log.Read(strings.NewReader(plannedTwo)); err != nil {
		t.Fatal(err)
	}
	view := log.View(history.Query{})
	pod, err := view.Pod("shop/web-0")
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range pod.Stages {
		if stage.Nodes != 2 {
			t.Errorf("node %s was launched as one of %d, want 2", stage.NodeClaim, stage.Nodes)
		}
	}
	if text := pod.Text(0); strings.Count(text, "one of 2 for it and other pods") != 2 || log.Repeated != 0 {
		t.Errorf("%d lines are read as repeated, and the answer does not say that the pod may be on either node:\n%s", log.Repeated, text)
	}
	var row []string
	for line := range strings.Lines(view.Commands().Text(0)) {
		if strings.Contains(line, "underutilized") {
			row = strings.Fields(line)
		}
	}
	if len(row) < 6 || row[5] != "1" {
		t.Errorf("the command has the cells %q, want 1 as the number of new nodes", row)
	}
}
