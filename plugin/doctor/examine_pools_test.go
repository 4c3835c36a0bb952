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

// unschedulablePod returns a pod that kube-scheduler has reported for five minutes.
func unschedulablePod() corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			LastTransitionTime: metav1.NewTime(now.Add(-5 * time.Minute))}}}}
}

// TestExamineLimits verifies that a pool whose nodes use up a limit is a finding if pods are unschedulable, also if what
// is left is less than its smallest node has, but not for a resource that some of its nodes do not have.
func TestExamineLimits(t *testing.T) {
	list := func(text string) corev1.ResourceList {
		list := corev1.ResourceList{}
		for item := range strings.FieldsSeq(text) {
			name, amount, _ := strings.Cut(item, "=")
			list[corev1.ResourceName(name)] = resource.MustParse(amount)
		}
		return list
	}
	waiting := []corev1.Pod{unschedulablePod()}
	for name, test := range map[string]struct {
		used, limit string
		nodes       []string
		pods        []corev1.Pod
		want        string
	}{
		"below": {"cpu=4", "cpu=8", []string{"cpu=4"}, waiting, ""},
		"full": {"cpu=8", "cpu=8", []string{"cpu=4", "cpu=4"}, waiting,
			"its nodes use 8 of the limit of 8 cpu, and 1 pod is unschedulable: shop/web"},
		"no node fits":          {"cpu=5", "cpu=8", []string{"cpu=5"}, waiting, "its nodes use 5 of the limit of 8 cpu, and"},
		"one is being launched": {"cpu=8", "cpu=8", []string{"cpu=8", ""}, waiting, "its nodes use 8 of the limit of 8 cpu, and"},
		"no pods":               {"cpu=8", "cpu=8", []string{"cpu=8"}, nil, ""},
		"nodes":                 {"cpu=8 nodes=1", "nodes=1", []string{"cpu=8"}, waiting, "its nodes use 1 of the limit of 1 nodes, and"},
		"fewer nodes":           {"cpu=8 nodes=1", "nodes=2", []string{"cpu=8"}, waiting, ""},
		"no GPUs":               {"cpu=4", "cpu=100 nvidia.com/gpu=0", []string{"cpu=4"}, waiting, ""},
		"no GPUs, no nodes":     {"", "cpu=100 nvidia.com/gpu=0", nil, waiting, ""},
		"GPUs on some nodes":    {"cpu=8 nvidia.com/gpu=1", "nvidia.com/gpu=1", []string{"cpu=4", "cpu=4 nvidia.com/gpu=1"}, waiting, ""},
		"GPUs on every node": {"cpu=4 nvidia.com/gpu=1", "nvidia.com/gpu=1", []string{"cpu=4 nvidia.com/gpu=1"}, waiting,
			"its nodes use 1 of the limit of 1 nvidia.com/gpu, and"},
		"no CPU, and no nodes":   {"", "cpu=0", nil, waiting, "its nodes use 0 of the limit of 0 cpu, and"},
		"no nodes, below limits": {"", "cpu=8", nil, waiting, ""},
	} {
		pool := karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: karpv1.NodePoolSpec{Limits: list(test.limit)},
			Status: karpv1.NodePoolStatus{Resources: list(test.used)}}
		f := &Facts{Now: now, NoElection: true, Pools: []karpv1.NodePool{pool}, Waiting: test.pods}
		for _, capacity := range test.nodes {
			f.Claims = append(f.Claims, karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{karpv1.LabelNodePool: "p"}},
				Status: karpv1.NodeClaimStatus{Capacity: list(capacity)}})
		}
		found := limits(f, Options{})
		switch {
		case test.want == "" && len(found) > 0, test.want != "" && len(found) != 1:
			t.Errorf("%s: found %+v", name, found)
		case test.want != "" && (!strings.Contains(found[0].Problem, test.want) || strings.Contains(found[0].Problem, "no further")):
			t.Errorf("%s: found %s, want %s", name, found[0].Problem, test.want)
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
