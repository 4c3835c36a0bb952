package v1

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodKinds(t *testing.T) {
	for _, test := range []struct {
		kind, version  string
		daemon, mirror bool
	}{
		{"DaemonSet", "apps/v1", true, false},
		{"DaemonSet", "apps/v2", true, false},
		{"DaemonSet", "example.com/v1", false, false},
		{"Node", "v1", false, true},
		{"Node", "example.com/v1", false, false},
		{"ReplicaSet", "apps/v1", false, false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: test.kind, APIVersion: test.version}}}}
		if d, m := DaemonPod(pod), MirrorPod(pod); d != test.daemon || m != test.mirror {
			t.Errorf("%s of %s: daemon %t and mirror %t, want %t and %t", test.kind, test.version, d, m, test.daemon, test.mirror)
		}
	}
	for phase, want := range map[corev1.PodPhase]bool{corev1.PodPending: false, corev1.PodRunning: false, corev1.PodSucceeded: true, corev1.PodFailed: true} {
		if got := EndedPod(&corev1.Pod{Status: corev1.PodStatus{Phase: phase}}); got != want {
			t.Errorf("%s: ended %t, want %t", phase, got, want)
		}
	}
}

func TestProtection(t *testing.T) {
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		annotations map[string]string
		started     bool
		until       time.Duration // since the start of the pod; negative: forever
		valid       bool
	}{
		"none":                  {nil, true, 0, true},
		"true":                  {map[string]string{AnnotationDoNotDisrupt: "true"}, true, -1, true},
		"false":                 {map[string]string{AnnotationDoNotDisrupt: "false"}, true, 0, false},
		"empty":                 {map[string]string{AnnotationDoNotDisrupt: ""}, true, 0, false},
		"a duration":            {map[string]string{AnnotationDoNotDisrupt: "30m"}, true, 30 * time.Minute, true},
		"a duration, not begun": {map[string]string{AnnotationDoNotDisrupt: "30m"}, false, -1, true},
		"no time at all":        {map[string]string{AnnotationDoNotDisrupt: "0s"}, true, 0, false},
		"longer than can be":    {map[string]string{AnnotationDoNotDisrupt: "9999999999999h"}, true, -1, false},
		"longer, in parts":      {map[string]string{AnnotationDoNotDisrupt: "2562047h48m"}, true, -1, false},
		"as long as can be":     {map[string]string{AnnotationDoNotDisrupt: "2562047h47m"}, true, 2562047 * time.Hour, true},
		"less than nothing":     {map[string]string{AnnotationDoNotDisrupt: "-9999999999999h"}, true, 0, false},
		"no unit":               {map[string]string{AnnotationDoNotDisrupt: "99999999999999999999"}, true, 0, false},
		"the old name":          {map[string]string{AnnotationDoNotEvict: "true"}, true, -1, true},
		"the old name, false":   {map[string]string{AnnotationDoNotEvict: "false"}, true, 0, true},
		"the old name had none": {map[string]string{AnnotationDoNotEvict: "30m"}, true, 0, true},
		"the new name wins":     {map[string]string{AnnotationDoNotDisrupt: "false", AnnotationDoNotEvict: "true"}, true, 0, false},
		"of another controller": {map[string]string{AnnotationSafeToEvict: "false"}, true, 0, true},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}}
		if test.started {
			pod.Status.StartTime = &metav1.Time{Time: start}
		}
		p, valid := ProtectionOf(pod)
		if valid != test.valid {
			t.Errorf("%s: valid %t, want %t", name, valid, test.valid)
		}
		for _, after := range []time.Duration{0, 29 * time.Minute, 30 * time.Minute, 1000 * time.Hour} {
			if want := test.until < 0 || after < test.until; p.Holds(start.Add(after)) != want {
				t.Errorf("%s, %s after the start: holds %t, want %t", name, after, !want, want)
			}
		}
	}
}

// The Cluster Autoscaler's annotation applies only if it is enabled, and do-not-disrupt takes precedence.
func TestSafeToEvict(t *testing.T) {
	rules := ProtectionRules{SafeToEvict: true}
	for name, test := range map[string]struct {
		annotations map[string]string
		by          string
		forever     bool
	}{
		"not safe":             {map[string]string{AnnotationSafeToEvict: "false"}, AnnotationSafeToEvict, true},
		"safe":                 {map[string]string{AnnotationSafeToEvict: "true"}, "", false},
		"neither":              {map[string]string{AnnotationSafeToEvict: "no"}, "", false},
		"do-not-disrupt wins":  {map[string]string{AnnotationSafeToEvict: "false", AnnotationDoNotDisrupt: "false"}, AnnotationDoNotDisrupt, false},
		"do-not-evict as well": {map[string]string{AnnotationSafeToEvict: "false", AnnotationDoNotEvict: "true"}, AnnotationDoNotEvict, true},
	} {
		p, _ := rules.Of(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}})
		if p.By != test.by || p.Forever != test.forever {
			t.Errorf("%s: %+v, want by %q, forever %t", name, p, test.by, test.forever)
		}
	}
}

func TestProtectedNode(t *testing.T) {
	disabled := map[string]string{AnnotationScaleDownDisabled: "true"}
	for name, test := range map[string]struct {
		annotations map[string]string
		want        bool // under the zero rules
		honored     bool // with the annotations of the Cluster Autoscaler
	}{
		"none":              {nil, false, false},
		"today's name":      {map[string]string{AnnotationDoNotDisrupt: "true"}, true, true},
		"a duration":        {map[string]string{AnnotationDoNotDisrupt: "30m"}, false, false},
		"the old name":      {map[string]string{AnnotationDoNotConsolidate: "true"}, true, true},
		"the old name, off": {map[string]string{AnnotationDoNotConsolidate: "false"}, false, false},
		"today's name wins": {map[string]string{AnnotationDoNotDisrupt: "false", AnnotationDoNotConsolidate: "true"}, false, false},
		"that is for a pod": {map[string]string{AnnotationDoNotEvict: "true", AnnotationSafeToEvict: "false"}, false, false},

		"scale-down disabled": {disabled, false, true},
		"scale-down enabled":  {map[string]string{AnnotationScaleDownDisabled: "false"}, false, false},
		"today's name wins over the autoscaler": {map[string]string{AnnotationDoNotDisrupt: "false", AnnotationScaleDownDisabled: "true"},
			false, false},
		"both, and one protects": {map[string]string{AnnotationDoNotConsolidate: "false",
			AnnotationScaleDownDisabled: "true"}, false, true},
	} {
		if got := (ProtectionRules{}).Node(test.annotations); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
		if got := (ProtectionRules{SafeToEvict: true}).Node(test.annotations); got != test.honored {
			t.Errorf("%s, honored: %t, want %t", name, got, test.honored)
		}
	}
}

func TestNodeReady(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue}}}}
	if NodeReady(node) || ReadyCondition(node) != nil {
		t.Error("a node without the condition Ready is ready, want not ready")
	}
	for status, want := range map[corev1.ConditionStatus]bool{corev1.ConditionTrue: true, corev1.ConditionFalse: false, corev1.ConditionUnknown: false} {
		ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: status}
		node.Status.Conditions = append(node.Status.Conditions[:1], ready)
		if NodeReady(node) != want {
			t.Errorf("%s: ready %t, want %t", status, !want, want)
		}
	}
}
