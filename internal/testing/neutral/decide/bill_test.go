package decide

import (
	"context"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/testing/neutral"
	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/podusage"
)

// overview reads an input, with the usage of its pods if it has some.
func overview(t *testing.T, in *neutral.Input) *offline.Overview {
	t.Helper()
	folder := t.TempDir()
	if err := in.Write(folder); err != nil {
		t.Fatal(err)
	}
	policy := offline.DefaultPolicy()
	source := offline.Source{Paths: []string{folder}, Cluster: &offline.Cluster{Usage: true}}
	read, err := source.Read(context.Background(), policy)
	if err != nil {
		t.Fatal(err)
	}
	return read.Overview(&policy)
}

// TestBill checks that a change that must not change a plan changes no row of the bill either.
func TestBill(t *testing.T) {
	tried := 0
	for seed := range 3 {
		in := neutral.Fleet(seed)
		before := overview(t, in)
		for _, c := range neutral.Changes() {
			changed := c.Apply(in, neutral.Outcome{})
			if changed == nil || c.Monotone { // requests are smaller
				continue
			}
			tried++
			after := overview(t, changed)
			for _, by := range []string{bill.ByNamespace, bill.ByWorkload} {
				if by == bill.ByWorkload && c.Name == "Deployments split in two" {
					continue
				}
				want := before.Bill(bill.Grouping{By: by})
				if diff := cmp.Diff(want, after.Bill(bill.Grouping{By: by})); diff != "" || want.PerHour == 0 || len(want.Rows) < 3 {
					t.Errorf("fleet %d of %d rows with %s, by %s:\n%s", seed, len(want.Rows), c.Name, by, diff)
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d changes apply", tried)
	}
}

// TestRightSized checks what requests that fit the usage save: nothing if they are those of today, and no less than that if
// pods use next to nothing.
func TestRightSized(t *testing.T) {
	saved := 0.0
	for seed := range 3 {
		in := neutral.Fleet(seed)
		for _, o := range in.Objects { // requests of which 5/6 are whole, so that 120% of these are they
			if p, is := o.(*corev1.Pod); is {
				r := p.Spec.Containers[0].Resources.Requests
				r[corev1.ResourceCPU] = *resource.NewMilliQuantity(r.Cpu().MilliValue()/6*6, resource.DecimalSI)
				r[corev1.ResourceMemory] = *resource.NewQuantity(r.Memory().Value()/6*6, resource.BinarySI)
			}
		}
		same, changed := rightSized(t, in, 5, 6)
		if changed == 0 || math.Abs(same) > 1e-9 {
			t.Errorf("fleet %d: usage that the requests of %d pods fit saves %v USD per hour, want 0", seed, changed, same)
		}
		less, _ := rightSized(t, in, 1, 1000)
		if less < -1e-9 {
			t.Errorf("fleet %d: requests of next to nothing cost %v USD per hour more", seed, -less)
		}
		saved += less
	}
	if saved <= 0 {
		t.Error("requests of next to nothing save nothing in any fleet")
	}
}

// rightSized returns what requests save that fit the usage, if pods use a part of what they request, in USD per hour, and how
// many pods have other requests.
func rightSized(t *testing.T, in *neutral.Input, part, of int64) (saving float64, pods int) {
	t.Helper()
	with := in.Clone()
	for _, o := range in.Objects {
		p, is := o.(*corev1.Pod)
		if !is {
			continue
		}
		m := &podusage.PodMetrics{TypeMeta: metav1.TypeMeta{APIVersion: podusage.GroupVersion.String(), Kind: "PodMetrics"},
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
		for _, c := range p.Spec.Containers {
			cpu, memory := c.Resources.Requests.Cpu().MilliValue()*part/of, c.Resources.Requests.Memory().Value()*part/of
			m.Containers = append(m.Containers, podusage.ContainerMetrics{Name: c.Name, Usage: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI)}})
		}
		with.Objects = append(with.Objects, m)
	}
	sized, err := overview(t, with).RightSized(t.Context())
	if err != nil || sized == nil {
		t.Fatalf("%+v, %v", sized, err)
	}
	return sized.Saving.Float(), sized.Pods
}
