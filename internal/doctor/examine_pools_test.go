package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

func cpus(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// unschedulablePod returns a pod that kube-scheduler has reported for five minutes.
func unschedulablePod() corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			LastTransitionTime: metav1.NewTime(now.Add(-5 * time.Minute))}}}}
}

// TestExamineLimits verifies that a pool at its limit is a finding if pods are unschedulable, also if what is left is
// less than its smallest node has.
func TestExamineLimits(t *testing.T) {
	for name, test := range map[string]struct {
		used, limit string
		pods        []corev1.Pod
		want        string
	}{
		"below": {"4", "8", []corev1.Pod{unschedulablePod()}, ""},
		"full": {"8", "8", []corev1.Pod{unschedulablePod()},
			"its nodes use 8 of the limit of 8 cpu, and 1 pod is unschedulable: shop/web"},
		"no node fits": {"5", "8", []corev1.Pod{unschedulablePod()}, "its nodes use 5 of the limit of 8 cpu, and"},
		"no pods":      {"8", "8", nil, ""},
	} {
		pool := karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: karpv1.NodePoolSpec{Limits: cpus(test.limit)},
			Status: karpv1.NodePoolStatus{Resources: cpus(test.used)}}
		claim := karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{karpv1.LabelNodePool: "p"}},
			Status: karpv1.NodeClaimStatus{Capacity: cpus("4")}}
		f := &Facts{Now: now, NoElection: true, Pools: []karpv1.NodePool{pool}, Claims: []karpv1.NodeClaim{claim}, Waiting: test.pods}
		list := limits(f, Options{})
		switch {
		case test.want == "" && len(list) > 0, test.want != "" && len(list) != 1:
			t.Errorf("%s: found %+v", name, list)
		case test.want != "" && !strings.Contains(list[0].Problem, test.want):
			t.Errorf("%s: found %s, want %s", name, list[0].Problem, test.want)
		}
	}
}

// TestExamineClaimsWithoutPool verifies that claims whose pool was deleted without them are found, one finding per
// pool, and that nothing is reported if pools cannot be read.
func TestExamineClaimsWithoutPool(t *testing.T) {
	claim := func(name, pool string) karpv1.NodeClaim {
		return karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpv1.LabelNodePool: pool}}}
	}
	f := &Facts{Now: now, NoElection: true, Pools: []karpv1.NodePool{{ObjectMeta: metav1.ObjectMeta{Name: "there"}}},
		Claims: []karpv1.NodeClaim{claim("a", "gone"), claim("b", "gone"), claim("c", "there"), {ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}}}}
	if diff := cmp.Diff([]string{"PoolMissing nodeclaim/by-hand", "PoolMissing nodepool/gone"}, codes(f)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := orphans(f, Options{})[1].Problem; !strings.Contains(got, "replaced: a, b") {
		t.Errorf("the claims are not named: %s", got)
	}
	f.Unread = []Unread{{kindsUnread + "NodePool", errNowhere}}
	if list := orphans(f, Options{}); len(list) > 0 {
		t.Errorf("without pools it finds %+v", list)
	}
}

// TestExamineBudgets verifies that a schedule that cannot be parsed is a finding with the budget and the error.
func TestExamineBudgets(t *testing.T) {
	schedule := func(text string) *string { return &text }
	pool := karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	pool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "10%", Schedule: schedule("0 0 * * mon-fri"),
		Duration: &metav1.Duration{Duration: time.Hour}},
		{Nodes: "0", Schedule: schedule("0 0 * * sat-sun"), Duration: &metav1.Duration{Duration: time.Hour}}}
	f := &Facts{Now: now, NoElection: true, Pools: []karpv1.NodePool{pool}}
	list := budgets(f, Options{})
	if len(list) != 1 || !strings.Contains(list[0].Problem, `spec.disruption.budgets[1]: reading a budget: schedule is "0 0 * * sat-sun"`) {
		t.Errorf("found %+v", list)
	}
}
