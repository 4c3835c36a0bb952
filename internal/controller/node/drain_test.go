package node

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
)

// until returns the policy of a drain with this deadline.
func until(deadline time.Time) drainPolicy {
	return drainPolicy{now: now, deadline: deadline, slack: 2 * time.Second, stuck: time.Minute}
}

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type option func(*corev1.Pod)

func pod(name string, options ...option) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	for _, o := range options {
		o(&p)
	}
	return p
}

func owned(apiVersion, kind string) option {
	return func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind}} }
}

func critical(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }

func phase(phase corev1.PodPhase) option { return func(p *corev1.Pod) { p.Status.Phase = phase } }

func tolerates(toleration corev1.Toleration) option {
	return func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{toleration} }
}

func terminatingFor(d time.Duration) option {
	return func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now.Add(-d)} }
}

func guarded(value string, age time.Duration) option {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: value}
		p.Status.StartTime = &metav1.Time{Time: now.Add(-age)}
	}
}

func TestRemaining(t *testing.T) {
	daemonSet := owned("apps/v1", "DaemonSet")
	for _, test := range []struct {
		name           string
		pods           []corev1.Pod
		waiting, evict []string
	}{
		{"nothing", nil, nil, nil},
		{"what goes with the machine, has ended, stays or is lost", []corev1.Pod{
			pod("mirror", owned("v1", "Node")),
			pod("done", phase(corev1.PodSucceeded)), pod("failed", phase(corev1.PodFailed)),
			pod("tolerant", tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists})),
			pod("lost", terminatingFor(2*time.Minute)),
		}, nil, nil},
		{"other tolerations do not count", []corev1.Pod{
			pod("a", tolerates(corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists})),
			pod("b", tolerates(corev1.Toleration{Key: karpv1.TaintKeyDisrupted, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute})),
		}, []string{"a", "b"}, []string{"a", "b"}},
		{"workloads first", []corev1.Pod{pod("daemon", daemonSet), pod("critical", critical), pod("w"),
			pod("critical daemon", daemonSet, critical)},
			[]string{"daemon", "critical", "w", "critical daemon"}, []string{"w"}},
		{"then daemons", []corev1.Pod{pod("critical", critical), pod("daemon", daemonSet)}, []string{"critical", "daemon"}, []string{"daemon"}},
		{"then critical workloads", []corev1.Pod{pod("critical daemon", daemonSet, critical), pod("critical", critical)},
			[]string{"critical daemon", "critical"}, []string{"critical"}},
		{"then critical daemons", []corev1.Pod{pod("critical daemon", daemonSet, critical)}, []string{"critical daemon"},
			[]string{"critical daemon"}},
		{"a terminating pod holds its group", []corev1.Pod{pod("w", terminatingFor(time.Second)), pod("daemon", daemonSet)},
			[]string{"w", "daemon"}, nil},
		{"a protected pod holds its group", []corev1.Pod{pod("w", guarded("true", 0)), pod("daemon", daemonSet)}, []string{"w", "daemon"}, nil},
		{"protection that has passed", []corev1.Pod{pod("w", guarded("10m", 11*time.Minute))}, []string{"w"}, []string{"w"}},
		{"protection that has not", []corev1.Pod{pod("w", guarded("10m", 9*time.Minute))}, []string{"w"}, nil},
	} {
		state := remaining(test.pods, until(time.Time{}))
		if diff := cmp.Diff(test.waiting, names(state.waiting)); diff != "" {
			t.Errorf("%s: waiting: %s", test.name, diff)
		}
		if diff := cmp.Diff(test.evict, names(state.evict)); diff != "" {
			t.Errorf("%s: evict: %s", test.name, diff)
		}
	}
}

func names(pods []*corev1.Pod) []string {
	var list []string
	for _, p := range pods {
		list = append(list, p.Name)
	}
	return list
}

// TestRemainingMistaken verifies that a do-not-disrupt annotation that cannot be parsed is ignored and reported.
func TestRemainingMistaken(t *testing.T) {
	pods := []corev1.Pod{pod("false", guarded("false", 0)), pod("negative", guarded("-1m", 0)), pod("fine", guarded("true", 0))}
	state := remaining(pods, until(time.Time{}))
	want := []string{"false", "negative"}
	if diff := cmp.Diff(want, names(state.invalidAnnotation)) + cmp.Diff(want, names(state.evict)); diff != "" {
		t.Error(diff)
	}
	unstarted := pod("unstarted", guarded("1m", 0))
	unstarted.Status.StartTime = nil
	if state := remaining([]corev1.Pod{unstarted}, until(time.Time{})); len(state.invalidAnnotation)+len(state.evict) != 0 {
		t.Errorf("a pod that has not started: mistaken %v, to evict %v", names(state.invalidAnnotation), names(state.evict))
	}
}

func TestDisrupted(t *testing.T) {
	other, want := corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoSchedule}, karpv1.DisruptedTaint()
	wrong := corev1.Taint{Key: want.Key, Value: "x", Effect: corev1.TaintEffectNoExecute}
	for _, test := range []struct{ have, want []corev1.Taint }{
		{nil, []corev1.Taint{want}},
		{[]corev1.Taint{want, other}, []corev1.Taint{want, other}},
		{[]corev1.Taint{wrong, other}, []corev1.Taint{other, want}},
		{[]corev1.Taint{want, other, wrong}, []corev1.Taint{other, want}},
	} {
		if diff := cmp.Diff(test.want, disrupted(test.have)); diff != "" {
			t.Errorf("%v: %s", test.have, diff)
		}
	}
}

// TestRemainingAtADeadline verifies that at the deadline, groups and protection no longer apply. The groups still
// apply to pods with time left.
func TestRemainingAtADeadline(t *testing.T) {
	daemonSet := owned("apps/v1", "DaemonSet")
	pods := []corev1.Pod{
		pod("held", guarded("true", 0), grace(600)), pod("mirror", owned("v1", "Node"), grace(600)),
		pod("tolerant", tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists}), grace(600)),
		pod("w", grace(30)), pod("daemon", daemonSet, grace(30)), pod("slow daemon", daemonSet, grace(600)),
		pod("lost", terminatingFor(2*time.Minute)), pod("done", phase(corev1.PodSucceeded)),
	}
	state := remaining(pods, until(now.Add(5*time.Minute)))
	if diff := cmp.Diff([]string{"held", "slow daemon"}, names(state.force)); diff != "" {
		t.Errorf("by force: %s", diff)
	}
	if diff := cmp.Diff([]string{"w"}, names(state.evict)); diff != "" {
		t.Errorf("evict: %s", diff)
	}
	if diff := cmp.Diff([]string{"held", "w", "daemon", "slow daemon"}, names(state.waiting)); diff != "" {
		t.Errorf("waiting: %s", diff)
	}
	state = remaining(pods, until(now))
	if diff := cmp.Diff([]string{"held", "w", "daemon", "slow daemon"}, names(state.force)); diff != "" || len(state.evict) != 0 {
		t.Errorf("by force: %s; evict %v, want none", diff, names(state.evict))
	}
}

func TestWhy(t *testing.T) {
	for _, test := range []struct {
		pods []corev1.Pod
		want string
	}{
		{[]corev1.Pod{pod("a")}, "1 pod is waiting to be evicted"},
		{[]corev1.Pod{pod("a"), pod("b")}, "2 pods are waiting to be evicted"},
		{[]corev1.Pod{pod("a"), pod("b", guarded("true", 0)), pod("c", guarded("10m", time.Minute))},
			"3 pods are waiting to be evicted: ns/b forbids it by karpenter.sh/do-not-disrupt, ns/c forbids it by karpenter.sh/do-not-disrupt until 2026-01-01T00:09:00Z"},
	} {
		if diff := cmp.Diff(test.want, remaining(test.pods, until(time.Time{})).describe()); diff != "" {
			t.Error(diff)
		}
	}
	var many []corev1.Pod
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		many = append(many, pod(name, guarded("true", 0)))
	}
	if got := remaining(many, until(time.Time{})).describe(); !strings.HasSuffix(got, ", and 2 more") || strings.Contains(got, "ns/f") {
		t.Errorf("%q: want five names and a count of two", got)
	}
}

// TestClockAhead verifies that a controller with a clock that is ahead of the API server's waits for pods as long as
// any other.
func TestClockAhead(t *testing.T) {
	ending := []corev1.Pod{pod("ending", terminatingFor(-20*time.Second)), pod("lost", terminatingFor(2*time.Minute))}
	for _, ahead := range []time.Duration{0, 20 * time.Minute, -20 * time.Minute} {
		r := &Reconciler{Clock: testclock.NewFakePassiveClock(now.Add(ahead)), Timers: controller.Production(),
			Ahead: func() time.Duration { return ahead }}
		for what, policy := range map[string]drainPolicy{"drain": r.policy(&termination{now: apiTime(r.Clock.Now(), r.Ahead)}),
			"eviction": r.policyAt(time.Time{})} {
			state := remaining(ending, policy)
			if len(state.waiting) != 1 || state.waiting[0].Name != "ending" {
				t.Errorf("%s of a clock that is %s ahead: the drain waits for %d pods", what, ahead, len(state.waiting))
			}
		}
	}
}
