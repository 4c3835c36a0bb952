package node

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type option func(*corev1.Pod)

func pod(name string, options ...option) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
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

func protected(value string, age time.Duration) option {
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
			pod("b", tolerates(corev1.Toleration{Key: karpv1.TaintKeyDisrupted, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})),
		}, []string{"a", "b"}, []string{"a", "b"}},
		{"workloads first", []corev1.Pod{pod("daemon", daemonSet), pod("critical", critical), pod("w"), pod("critical daemon", daemonSet, critical)},
			[]string{"daemon", "critical", "w", "critical daemon"}, []string{"w"}},
		{"then daemons", []corev1.Pod{pod("critical", critical), pod("daemon", daemonSet)}, []string{"critical", "daemon"}, []string{"daemon"}},
		{"then critical workloads", []corev1.Pod{pod("critical daemon", daemonSet, critical), pod("critical", critical)},
			[]string{"critical daemon", "critical"}, []string{"critical"}},
		{"then critical daemons", []corev1.Pod{pod("critical daemon", daemonSet, critical)}, []string{"critical daemon"}, []string{"critical daemon"}},
		{"a terminating pod holds its group", []corev1.Pod{pod("w", terminatingFor(time.Second)), pod("daemon", daemonSet)}, []string{"w", "daemon"}, nil},
		{"a protected pod holds its group", []corev1.Pod{pod("w", protected("true", 0)), pod("daemon", daemonSet)}, []string{"w", "daemon"}, nil},
		{"protection that has passed", []corev1.Pod{pod("w", protected("10m", 11*time.Minute))}, []string{"w"}, []string{"w"}},
		{"protection that has not", []corev1.Pod{pod("w", protected("10m", 9*time.Minute))}, []string{"w"}, nil},
	} {
		left := remaining(test.pods, now, time.Minute)
		if diff := cmp.Diff(test.waiting, names(left.waiting)); diff != "" {
			t.Errorf("%s: waiting: %s", test.name, diff)
		}
		if diff := cmp.Diff(test.evict, names(left.evict)); diff != "" {
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

// A do-not-disrupt that means nothing is ignored and named.
func TestRemainingMistaken(t *testing.T) {
	pods := []corev1.Pod{pod("false", protected("false", 0)), pod("negative", protected("-1m", 0)), pod("fine", protected("true", 0))}
	left := remaining(pods, now, time.Minute)
	want := []string{"false", "negative"}
	if diff := cmp.Diff(want, names(left.mistaken)) + cmp.Diff(want, names(left.evict)); diff != "" {
		t.Error(diff)
	}
	unstarted := pod("unstarted", protected("1m", 0))
	unstarted.Status.StartTime = nil
	if left := remaining([]corev1.Pod{unstarted}, now, time.Minute); len(left.mistaken)+len(left.evict) != 0 {
		t.Errorf("a pod that has not started: mistaken %v, to evict %v", names(left.mistaken), names(left.evict))
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

func TestCode(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, http.StatusOK}, {errors.New("no connection"), 0}, {apierrors.NewTooManyRequests("a budget says no", 0), http.StatusTooManyRequests},
	} {
		if got := code(test.err); got != test.want {
			t.Errorf("%v: %d, want %d", test.err, got, test.want)
		}
	}
}
