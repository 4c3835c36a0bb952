package convert

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

func TestHolds(t *testing.T) {
	until := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	text := ""
	for i := range model.MostHolds + 5 {
		h := model.LaunchHold{Owner: fmt.Sprintf("uid-%03d", i), Name: "ReplicaSet a/b", Failures: 4,
			Until: until.Add(time.Duration(i) * time.Minute), Why: strings.Repeat("x", 5000)}
		text = WithHold(text, h.Owner, &h)
	}
	holds := Holds(text)
	switch {
	case len(holds) != model.MostHolds:
		t.Errorf("len(holds) is %v, want %v", len(holds), model.MostHolds)
	case holds[0].Owner != "uid-005":
		t.Errorf(`holds[0].Owner is %v, want "uid-005"`, holds[0].Owner)
	case !holds[0].Until.Equal(until.Add(5 * time.Minute)):
		t.Errorf("holds[0].Until.Equal(until.Add(5*time.Minute)) is false, holds, the first %+v", holds[0])
	}
	for i, h := range holds {
		if told := i >= len(holds)-mostWhys; len(h.Why) > longestWhy+3 || (h.Why != "") != told {
			t.Errorf("hold %d of %d has a reason of %d bytes; want a short one for the %d that last longest", i, len(holds), len(h.Why), mostWhys)
		}
	}
	if len(text) > 128<<10 {
		t.Errorf("the annotation has %d bytes, want at most half of the limit of an object", len(text))
	}
	third := model.LaunchHold{Owner: "a", Name: "Job a/b", Failures: 14, Pauses: 3, Until: until}
	if diff := cmp.Diff([]model.LaunchHold{third}, Holds(WithHold("", "a", &third))); diff != "" {
		t.Errorf("a hold that is encoded and parsed (-want +got):\n%s", diff)
	}
	sooner := model.LaunchHold{Owner: "sooner", Name: "Job a/b", Failures: 4, Until: until}
	if diff := cmp.Diff(text, WithHold(text, "sooner", &sooner)); diff != "" {
		t.Errorf("a hold that ends before all others changes the annotation:\n%s", diff)
	}
	for _, h := range holds {
		text = WithHold(text, h.Owner, nil)
	}
	if text != "" {
		t.Errorf("with all removed: %q", text)
	}
	for _, text := range []string{"", "yes", "[]", `{"a": 1}`, `{"a": {"failures": 0, "until": "2026-05-01T12:00:00Z"}}`,
		`{"": {"failures": 1, "until": "2026-05-01T12:00:00Z"}}`} {
		if got := Holds(text); got != nil {
			t.Errorf("%s is parsed as %v, want nothing", text, got)
		}
	}
}

// TestDeparted covers pods that ended by themselves and pods that are preempted, and pods that are neither.
func TestDeparted(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 1, 0, 0, time.UTC)
	const scheduled = `{type: PodScheduled, status: "True", lastTransitionTime: "2026-05-01T12:00:00Z"}`
	disrupted := func(reason string) string {
		return `{type: DisruptionTarget, status: "True", reason: ` + reason + `, lastTransitionTime: "2026-05-01T12:00:04Z"}`
	}
	for _, test := range []struct{ name, pod, want string }{
		{"running", "spec: {nodeName: n}\nstatus: {phase: Running, conditions: [" + scheduled + "]}", ""},
		{"pending", "status: {phase: Pending}", ""},
		{"succeeded", "spec: {nodeName: n}\nstatus: {phase: Succeeded, conditions: [" + scheduled + "]}", "ended after 1m0s"},
		{"failed by itself", "spec: {nodeName: n}\nstatus: {phase: Failed, conditions: [" + scheduled + "]}", "ended after 1m0s"},
		{"evicted by kubelet", "spec: {nodeName: n}\nstatus: {phase: Failed, reason: Evicted}", ""},
		{"refused by kubelet", "spec: {nodeName: n}\nstatus: {phase: Failed, reason: OutOfcpu}", ""},
		{"preempted", "spec: {nodeName: n, priority: 7}\nstatus: {phase: Running, conditions: [" + scheduled + ", " + disrupted("PreemptionByScheduler") + "]}", "preempted after 4s"},
		{"preempted and over", "spec: {nodeName: n, priority: 7}\nstatus: {phase: Failed, conditions: [" + scheduled + ", " + disrupted("PreemptionByScheduler") + "]}", "preempted after 4s"},
		{"preempted and over with exit code 0", "spec: {nodeName: n, priority: 7}\nstatus: {phase: Succeeded, conditions: [" + scheduled + ", " + disrupted("PreemptionByScheduler") + "]}", "preempted after 4s"},
		{"deleted and over with exit code 0", "metadata: {deletionTimestamp: \"2026-01-01T00:00:00Z\"}\nspec: {nodeName: n}\nstatus: {phase: Succeeded, conditions: [" + scheduled + "]}", ""},
		{"evicted and over with exit code 0", "spec: {nodeName: n}\nstatus: {phase: Succeeded, conditions: [" + scheduled + ", " + disrupted("EvictionByEvictionAPI") + "]}", ""},
		{"preempted by kubelet", "spec: {nodeName: n}\nstatus: {phase: Failed, reason: Preempting, conditions: [" + scheduled + "]}",
			"preempted after 1m0s"},
		{"evicted through the API", "spec: {nodeName: n}\nstatus: {phase: Running, conditions: [" + scheduled + ", " + disrupted("EvictionByEvictionAPI") + "]}", ""},
		{"a daemon", "metadata: {ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: d}]}\nspec: {nodeName: n}\nstatus: {phase: Succeeded}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if d, gone := Departed(decode[corev1.Pod](t, test.pod), now); gone {
				got = map[bool]string{true: "preempted", false: "ended"}[d.Preempted] + " after " + d.Ran.String()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
