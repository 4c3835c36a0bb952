package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

func grace(seconds int64) option {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

// leavingIn makes the pod a deleted one that has to end in d from now. given is its grace period in seconds, counted
// from the first deletion.
func leavingIn(d time.Duration, given int64) option {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: now.Add(d)}
		p.DeletionGracePeriodSeconds = &given
	}
}

// TestNext verifies what is done with a pod of the current group.
func TestNext(t *testing.T) {
	in := func(d time.Duration) time.Time { return now.Add(d) }
	never := time.Time{}
	for _, test := range []struct {
		name     string
		pod      corev1.Pod
		deadline time.Time
		want     step
	}{
		{"asked", pod("p"), never, step{action: evict}},
		{"ended", pod("p", phase(corev1.PodFailed)), in(-time.Hour), step{action: settled}},
		{"terminating", pod("p", leavingIn(20*time.Second, 30)), never, step{action: settled}},
		{"protected", pod("p", guarded("true", 0)), never, step{action: protected}},
		{"protected for a time", pod("p", guarded("10m", 9*time.Minute)), never, step{action: protected}},
		{"protected no longer", pod("p", guarded("10m", 11*time.Minute)), never, step{action: evict}},

		{"time left", pod("p", grace(30)), in(40 * time.Second), step{action: evict}},
		{"time left and protected", pod("p", grace(30), guarded("true", 0)), in(40 * time.Second), step{action: protected}},
		{"just enough", pod("p", grace(30)), in(31 * time.Second), step{force, 30}},
		{"exactly enough", pod("p", grace(30), guarded("true", 0)), in(30 * time.Second), step{force, 30}},
		{"the usual grace period", pod("p"), in(31 * time.Second), step{force, 30}},
		{"not enough", pod("p", grace(3600)), in(100 * time.Second), step{force, 100}},
		{"parts of a second are not given", pod("p", grace(3600)), in(100*time.Second + 900*time.Millisecond), step{force, 100}},
		{"the deadline", pod("p", grace(30)), in(0), step{force, 1}},
		{"long after it", pod("p", grace(30), guarded("true", 0)), in(-time.Hour), step{force, 1}},
		{"no grace period of its own", pod("p", grace(0)), in(10 * time.Second), step{action: evict}},
		{"nor at the deadline", pod("p", grace(0)), in(0), step{force, 1}},

		{"terminating, in time", pod("p", leavingIn(20*time.Second, 30)), in(20 * time.Second), step{action: settled}},
		{"terminating, too late", pod("p", grace(30), leavingIn(time.Hour, 3600)), in(100 * time.Second), step{force, 100}},
		{"terminating after the deadline", pod("p", leavingIn(time.Second, 1)), in(-time.Minute), step{action: settled}},
		{"terminating, shortened", pod("p", grace(3600), leavingIn(90*time.Second, 100)), in(90 * time.Second), step{action: settled}},
	} {
		if got := next(&test.pod, until(test.deadline)); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}

// TestLost verifies that a drain stops waiting for a pod a minute after it should have ended. A pod whose grace
// period was shortened has time until the deadline, whatever its deletion timestamp is.
func TestLost(t *testing.T) {
	soon, past := now.Add(30*time.Second), now.Add(-2*time.Minute)
	for _, test := range []struct {
		name     string
		pod      corev1.Pod
		deadline time.Time
		want     bool
	}{
		{"alive", pod("p"), time.Time{}, false},
		{"late", pod("p", leavingIn(-50*time.Second, 30)), time.Time{}, false},
		{"too late", pod("p", leavingIn(-70*time.Second, 30)), time.Time{}, true},
		{"too late, and a deadline", pod("p", leavingIn(-70*time.Second, 30)), soon, true},
		{"made shorter", pod("p", grace(3600), leavingIn(-10*time.Minute, 100)), soon, false},
		{"made shorter, and past the deadline", pod("p", grace(3600), leavingIn(-10*time.Minute, 100)), past, true},
	} {
		if got := stuckTerminating(&test.pod, until(test.deadline)); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestDeadlineOf(t *testing.T) {
	noted, deleted := now.Add(7*time.Minute), now.Add(-time.Minute)
	claim := func(annotation string, grace time.Duration, going bool) *karpv1.NodeClaim {
		c := &karpv1.NodeClaim{}
		if annotation != "" {
			c.Annotations = map[string]string{karpv1.AnnotationTerminationTimestamp: annotation}
		}
		if grace >= 0 {
			c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: grace}
		}
		if going {
			c.DeletionTimestamp = &metav1.Time{Time: deleted}
		}
		return c
	}
	for _, test := range []struct {
		name     string
		claim    *karpv1.NodeClaim
		want     time.Time
		readable bool
	}{
		{"no claim", nil, time.Time{}, true},
		{"no grace period", claim("", -1, true), time.Time{}, true},
		{"not deleted", claim("", time.Hour, false), time.Time{}, true},
		{"deleted, not noted yet", claim("", time.Hour, true), deleted.Add(time.Hour), true},
		{"at once", claim("", 0, true), deleted, true},
		{"noted", claim(noted.Format(time.RFC3339), time.Hour, true), noted, true},
		{"noted without a grace period", claim(noted.Format(time.RFC3339), -1, true), noted, true},
		{"no time", claim("tomorrow", -1, true), time.Time{}, false},
		{"no time, but a grace period", claim("tomorrow", time.Hour, true), deleted.Add(time.Hour), false},
	} {
		got, readable := deadlineOf(test.claim)
		if !got.Equal(test.want) || readable != test.readable {
			t.Errorf("%s: %v, readable %v; want %v, %v", test.name, got, readable, test.want, test.readable)
		}
	}
}

func TestEarlier(t *testing.T) {
	none, first, second := time.Time{}, now, now.Add(time.Second)
	for _, test := range []struct{ a, b, want time.Time }{
		{none, none, none}, {none, first, first}, {first, none, first}, {first, second, first}, {second, first, first},
	} {
		if got := earlier(test.a, test.b); !got.Equal(test.want) {
			t.Errorf("earlier(%v, %v) = %v", test.a, test.b, got)
		}
	}
}
