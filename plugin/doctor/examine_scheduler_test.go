package doctor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSchedulerFails verifies that pods for which kube-scheduler fails are reported once for each message, with their
// number.
func TestSchedulerFails(t *testing.T) {
	waiting := func(name, reason, message string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message}}}}
	}
	f := &Facts{Now: now, NoElection: true, Waiting: []corev1.Pod{
		waiting("c", "SchedulerError", `running Score plugins: plugin "NodeResourcesFit" returns an invalid score 119 for a/c`),
		waiting("b", "SchedulerError", `running Score plugins: plugin "NodeResourcesFit" returns an invalid score 119 for a/b`),
		waiting("d", "SchedulerError", strings.Repeat("x", 1000)),
		waiting("e", "Unschedulable", "0/3 nodes are available"),
		waiting("f", "SchedulingGated", "Scheduling is blocked"),
		{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "g"}},
	}}
	if diff := cmp.Diff([]string{"SchedulerFails pod/a/b", "SchedulerFails pod/a/d"}, codes(f)); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	problem := Examine(f, Options{})[0].Problem
	if !strings.Contains(problem, "2 pods with SchedulerError") || !strings.Contains(problem, "invalid score 119 for the pod") {
		t.Errorf("the finding says: %s", problem)
	}
	if n := len(Examine(f, Options{})[1].Problem); n > 500 {
		t.Errorf("a finding has %d bytes", n)
	}
}
