package room

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func TestCount(t *testing.T) {
	one := list("cpu", "1", "memory", "512Mi")
	workload := &v1beta1.ScalableRef{Kind: "Deployment", Name: "web"}
	for _, c := range []struct {
		name     string
		spec     v1beta1.CapacityBufferSpec
		replicas int64
		want     int64
	}{
		{"CB-1: replicas", v1beta1.CapacityBufferSpec{Replicas: new(int32(3))}, noWorkload, 3},
		{"CB-2: 20 % of 10", v1beta1.CapacityBufferSpec{ScalableRef: workload, Percentage: new(int32(20))}, 10, 2},
		{"CB-2: 20 % of 5", v1beta1.CapacityBufferSpec{ScalableRef: workload, Percentage: new(int32(20))}, 5, 1},
		{"CB-2: 20 % of 20", v1beta1.CapacityBufferSpec{ScalableRef: workload, Percentage: new(int32(20))}, 20, 4},
		{"CB-2: 5 % of 3", v1beta1.CapacityBufferSpec{ScalableRef: workload, Percentage: new(int32(5))}, 3, 1},
		{"CB-2: 0 %", v1beta1.CapacityBufferSpec{ScalableRef: workload, Percentage: new(int32(0))}, 10, 0},
		{"CB-2: 20 % of none", v1beta1.CapacityBufferSpec{ScalableRef: workload, Percentage: new(int32(20))}, 0, 0},
		{"CB-2: the larger is replicas",
			v1beta1.CapacityBufferSpec{ScalableRef: workload, Replicas: new(int32(3)), Percentage: new(int32(20))}, 10, 3},
		{"CB-2: the larger is the percentage",
			v1beta1.CapacityBufferSpec{ScalableRef: workload, Replicas: new(int32(1)), Percentage: new(int32(20))}, 10, 2},
		{"CB-3: limits alone", v1beta1.CapacityBufferSpec{Limits: list("cpu", "2")}, noWorkload, 2},
		{"CB-3: larger limits", v1beta1.CapacityBufferSpec{Limits: list("cpu", "5")}, noWorkload, 5},
		{"CB-3: limits cap replicas", v1beta1.CapacityBufferSpec{Replicas: new(int32(10)), Limits: list("cpu", "4")}, noWorkload, 4},
		{"CB-3: the scarcer of two limits",
			v1beta1.CapacityBufferSpec{Replicas: new(int32(10)), Limits: list("cpu", "4", "memory", "1Gi")}, noWorkload, 2},
		{"CB-3: limits on what is not requested, alone", v1beta1.CapacityBufferSpec{Limits: list("nvidia.com/gpu", "1")}, noWorkload, 0},
		{"CB-3: limits on what is not requested, with replicas",
			v1beta1.CapacityBufferSpec{Replicas: new(int32(3)), Limits: list("nvidia.com/gpu", "1")}, noWorkload, 3},
		{"a limit below one pod", v1beta1.CapacityBufferSpec{Replicas: new(int32(3)), Limits: list("cpu", "500m")}, noWorkload, 0},
		{"a percentage without a workload", v1beta1.CapacityBufferSpec{Percentage: new(int32(50))}, noWorkload, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := count(&c.spec, one, c.replicas); got != c.want {
				t.Errorf("count %d, want %d", got, c.want)
			}
		})
	}
}

// TestNone checks that the condition of a buffer without pods says which field is why.
func TestNone(t *testing.T) {
	workload := &v1beta1.ScalableRef{Kind: "Deployment", Name: "web"}
	for _, c := range []struct {
		name   string
		spec   v1beta1.CapacityBufferSpec
		quotas []corev1.ResourceQuota
		want   string
	}{
		{"a limit on what is not requested", v1beta1.CapacityBufferSpec{Limits: list("nvidia.com/gpu", "1")}, nil,
			"spec.limits: the pods request no nvidia.com/gpu, so their number does not follow from it; set spec.replicas"},
		{"two of them", v1beta1.CapacityBufferSpec{Limits: list("nvidia.com/gpu", "1", "example.com/a", "1")}, nil,
			"spec.limits: the pods request no example.com/a, nvidia.com/gpu, so their number does not follow from it; set spec.replicas"},
		{"a limit below one pod", v1beta1.CapacityBufferSpec{Replicas: new(int32(3)), Limits: list("cpu", "500m")}, nil,
			"spec.limits: one pod requests more of cpu than they allow"},
		{"replicas", v1beta1.CapacityBufferSpec{Replicas: new(int32(0))}, nil, "spec.replicas is 0"},
		{"percentage", v1beta1.CapacityBufferSpec{ScalableRef: workload, Percentage: new(int32(0))}, nil, "spec.percentage is 0"},
		{"percentage of none", v1beta1.CapacityBufferSpec{ScalableRef: workload, Percentage: new(int32(20))}, nil,
			"spec.percentage: Deployment web has no replicas"},
		{"nothing", v1beta1.CapacityBufferSpec{ScalableRef: workload}, nil,
			"spec has neither replicas, nor limits, nor a percentage of a scalableRef"},
		{"a quota", v1beta1.CapacityBufferSpec{Replicas: new(int32(3))}, []corev1.ResourceQuota{quota("small", list("pods", "0"), nil)},
			"ResourceQuota small allows 0 of 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Resources: corev1.ResourceRequirements{Requests: list("cpu", "1")}}}}}
			q := &Request{Buffer: &v1beta1.CapacityBuffer{Spec: c.spec}, Shape: &Shape{Template: template, Replicas: 0}}
			Allot([]*Request{q}, func(string) []corev1.ResourceQuota { return c.quotas }, time.Time{})
			got := q.Condition(&Room{})
			if got.Reason != v1beta1.ReasonBufferEmpty || got.Message != c.want {
				t.Errorf("%s: %s, want %s: %s", got.Reason, got.Message, v1beta1.ReasonBufferEmpty, c.want)
			}
		})
	}
}

func quota(name string, hard, used corev1.ResourceList, scopes ...corev1.ResourceQuotaScope) corev1.ResourceQuota {
	return corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ResourceQuotaSpec{Scopes: scopes},
		Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
}

func TestQuotas(t *testing.T) {
	quotas := []corev1.ResourceQuota{
		quota("requests", list("requests.cpu", "10", "pods", "100"), list("requests.cpu", "4", "pods", "1")),
		quota("short", list("pods", "1"), nil, corev1.ResourceQuotaScopeTerminating),
	}
	use, one := quotaUse{}, list("cpu", "2")
	first, by := use.withinQuotas(quotas, &corev1.PodSpec{}, one, 2)
	if first != 2 || by != nil {
		t.Errorf("the first buffer gets %d, limited by %q, want 2 and none", first, by)
	}
	second, by := use.withinQuotas(quotas, &corev1.PodSpec{}, one, 2)
	if diff := cmp.Diff([]string{"requests"}, by); second != 1 || diff != "" {
		t.Errorf("the second buffer gets %d, want 1; limited by (-want +got):\n%s", second, diff)
	}
	// The quota short does not count the pods of the first two.
	seconds := int64(60)
	third, by := use.withinQuotas(quotas, &corev1.PodSpec{ActiveDeadlineSeconds: &seconds}, list("memory", "1Gi"), 1)
	if third != 1 || by != nil {
		t.Errorf("the third buffer gets %d, limited by %q, want 1 and none", third, by)
	}
	// Numbers that take years to count to.
	const many = 1 << 40
	services := []corev1.ResourceQuota{quota("services", list("services", "1", "requests.memory", "1Ei"), nil)}
	if n, by := use.withinQuotas(services, &corev1.PodSpec{}, one, many); n != many || by != nil {
		t.Errorf("%d of %d pods, limited by %q", n, int64(many), by)
	}
}

func TestFairly(t *testing.T) {
	if diff := cmp.Diff([]int64{10, 45, 45}, fairly([]int64{10, 1000, 500}, 100)); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{3, 4}, fairly([]int64{3, 4}, 100)); diff != "" {
		t.Errorf("shares where there is enough (-want +got):\n%s", diff)
	}
}

// TestSchedule covers the annotation that limits a buffer to times.
func TestSchedule(t *testing.T) {
	monday := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		text            string
		at              time.Duration
		want            int64
		reason, message string
	}{
		{"", 0, 3, v1beta1.ReasonRequiresNewCapacity, "3/3 virtual pods required new capacity, 3 failed"},
		{"0 7 * * 1-5/11h", 7 * time.Hour, 3, v1beta1.ReasonRequiresNewCapacity, "3/3 virtual pods required new capacity, 3 failed"},
		{"0 7 * * 1-5/11h", 6 * time.Hour, 0, v1beta1.ReasonBufferEmpty,
			`outside of the times "0 7 * * 1-5/11h"; the next begins at 2026-01-05T07:00:00Z`},
		{"0 7 * * 1-5/11h", 18*time.Hour + time.Second, 0, v1beta1.ReasonBufferEmpty,
			`outside of the times "0 7 * * 1-5/11h"; the next begins at 2026-01-06T07:00:00Z`},
		{"*/30 * * * */10m", 35 * time.Minute, 3, v1beta1.ReasonRequiresNewCapacity, "3/3 virtual pods required new capacity, 3 failed"},
		{"0 7 * * 1-5", 0, 0, v1beta1.ReasonResolutionFailed,
			`annotation karpenter-go.github.io/active is "0 7 * * 1-5", want a schedule and a duration, such as "0 7 * * 1-5/11h"`},
		{"x/1h", 0, 0, v1beta1.ReasonResolutionFailed, ""},
	} {
		q := &Request{Buffer: &v1beta1.CapacityBuffer{Spec: v1beta1.CapacityBufferSpec{Replicas: new(int32(3))}},
			Shape: &Shape{Template: &corev1.PodTemplateSpec{}, Replicas: noWorkload}}
		if c.text != "" {
			q.Buffer.Annotations = map[string]string{"karpenter-go.github.io/active": c.text}
		}
		Allot([]*Request{q}, func(string) []corev1.ResourceQuota { return nil }, monday.Add(c.at))
		got := q.Condition(&Room{})
		if q.Count != c.want || got.Reason != c.reason {
			t.Errorf("%q after %s: %d pods, %s, want %d, %s", c.text, c.at, q.Count, got.Reason, c.want, c.reason)
		}
		if c.message != "" && got.Message != c.message {
			t.Errorf("%q after %s: message %q, want %q", c.text, c.at, got.Message, c.message)
		}
	}
}
