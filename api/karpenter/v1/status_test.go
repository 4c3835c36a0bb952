package v1

import (
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReadyFollowsItsDependents(t *testing.T) {
	created := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for _, test := range []struct {
		name       string
		object     status.Object
		dependents []string
		others     []string
	}{
		{"NodePool", &NodePool{ObjectMeta: metav1.ObjectMeta{Generation: 1, CreationTimestamp: created}},
			[]string{"ValidationSucceeded", "NodeClassReady"}, []string{"NodeRegistrationHealthy"}},
		{"NodeClaim", &NodeClaim{ObjectMeta: metav1.ObjectMeta{Generation: 1, CreationTimestamp: created}},
			[]string{"Launched", "Registered", "Initialized"},
			[]string{"Consolidatable", "Drifted", "DisruptionReason", "Drained", "VolumesDetached", "InstanceTerminating", "ConsistentStateFound"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			conditions := test.object.StatusConditions()
			want := func(ready metav1.ConditionStatus, reason string) {
				t.Helper()
				if root := conditions.Root(); root.Status != ready || root.Reason != reason {
					t.Errorf("Ready is %s because %s, want %s because %s", root.Status, root.Reason, ready, reason)
				}
			}
			for _, dependent := range test.dependents {
				first := conditions.Get(dependent)
				switch {
				case !first.IsUnknown():
					t.Errorf("first.IsUnknown() is false, %s, starts as %+v", dependent, first)
				case first.Reason != ReasonAwaitingReconciliation:
					t.Errorf("first.Reason is %v, want %v, %s", first.Reason, ReasonAwaitingReconciliation, dependent)
				case !first.LastTransitionTime.Equal(&created):
					t.Errorf("first.LastTransitionTime.Equal(&created) is false, %s, starts as %+v", dependent, first)
				}
				want(metav1.ConditionUnknown, "ReconcilingDependents")
				conditions.SetTrue(dependent)
			}
			for _, other := range test.others {
				conditions.SetFalse(other, "Some", "")
			}
			want(metav1.ConditionTrue, "Ready")
			conditions.SetFalse(test.dependents[0], "Some", "")
			want(metav1.ConditionFalse, "UnhealthyDependents")
		})
	}
}

func TestKnownEphemeralTaint(t *testing.T) {
	for _, test := range []struct {
		taint corev1.Taint
		want  bool
	}{
		{corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: "NoSchedule"}, true},
		{corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: "NoExecute"}, true},
		{corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: "PreferNoSchedule"}, false},
		{corev1.Taint{Key: "node.kubernetes.io/unreachable", Effect: "NoSchedule"}, true},
		{corev1.Taint{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute"}, false},
		{corev1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: "NoSchedule"}, true},
		{UnregisteredTaint(), true},
		{DisruptedTaint(), false},
		{corev1.Taint{Key: "readiness.k8s.io/network", Effect: "NoSchedule"}, true},
		{corev1.Taint{Key: "example.com/a", Effect: "NoSchedule"}, false},
	} {
		if got := KnownEphemeralTaint(test.taint); got != test.want {
			t.Errorf("%s: got %v, want %v", test.taint.ToString(), got, test.want)
		}
	}
}

func TestNodeClassLabel(t *testing.T) {
	if got, want := NodeClassLabel("karpenter.kwok.sh", "KWOKNodeClass"), "karpenter.kwok.sh/kwoknodeclass"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
