package nodeclaim

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clocktesting "k8s.io/utils/clock/testing"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

var may = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func somePod(change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", CreationTimestamp: metav1.NewTime(may)}}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func onNode(pod *corev1.Pod) {
	pod.Spec.NodeName = "n"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(may.Add(time.Minute))}}
}
func leaving(pod *corev1.Pod)   { pod.DeletionTimestamp = &metav1.Time{Time: may} }
func succeeded(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }
func labelled(pod *corev1.Pod)  { pod.Labels = map[string]string{"a": "b"} }
func ofDaemonSet(pod *corev1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet"}}
}
func mirror(pod *corev1.Pod) { pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Node"}} }

// Which events of a pod count, and as of when.
func TestPodEventsThatCount(t *testing.T) {
	for name, c := range map[string]struct {
		before, after *corev1.Pod // one nil: created or deleted
		want          []moment
	}{
		"bound":                         {somePod(), somePod(onNode), []moment{{Node: "n"}}},
		"begins to leave":               {somePod(onNode), somePod(onNode, leaving), []moment{{Node: "n"}}},
		"ends":                          {somePod(onNode), somePod(onNode, succeeded), []moment{{Node: "n"}}},
		"was leaving before":            {somePod(onNode, leaving), somePod(onNode, leaving, labelled), nil},
		"had ended before":              {somePod(onNode, succeeded), somePod(onNode, succeeded, labelled), nil},
		"something else":                {somePod(onNode), somePod(onNode, labelled), nil},
		"not bound":                     {somePod(), somePod(labelled), nil},
		"leaves without a node":         {somePod(), somePod(leaving), nil},
		"a daemon":                      {somePod(ofDaemonSet), somePod(onNode, ofDaemonSet), nil},
		"a mirror pod":                  {somePod(mirror), somePod(onNode, mirror), nil},
		"there at start":                {nil, somePod(onNode), []moment{{Node: "n", At: may.Add(time.Minute)}}},
		"a daemon at start":             {nil, somePod(onNode, ofDaemonSet), nil},
		"created":                       {nil, somePod(), nil},
		"deleted by force":              {somePod(onNode), nil, []moment{{Node: "n"}}},
		"gone after leaving":            {somePod(onNode, leaving), nil, nil},
		"gone after its end":            {somePod(onNode, succeeded), nil, nil},
		"deleted before it had a place": {somePod(), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := &PodEvents{Metrics: telemetry.New(prometheus.NewRegistry()), Clock: clocktesting.NewFakePassiveClock(may)}
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[moment]())
			defer queue.ShutDown()
			h, ctx := p.handler(), context.Background()
			switch {
			case c.before == nil:
				h.Create(ctx, event.TypedCreateEvent[client.Object]{Object: c.after}, queue)
			case c.after == nil:
				h.Delete(ctx, event.TypedDeleteEvent[client.Object]{Object: c.before}, queue)
			default:
				h.Update(ctx, event.TypedUpdateEvent[client.Object]{ObjectOld: c.before, ObjectNew: c.after}, queue)
			}
			var got []moment
			for queue.Len() > 0 {
				m, _ := queue.Get()
				got = append(got, m)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("noted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodEventIsNews(t *testing.T) {
	for name, c := range map[string]struct {
		last, initialized, at time.Time
		want                  bool
	}{
		"the first":                              {time.Time{}, time.Time{}, may, true},
		"before the node was initialised":        {time.Time{}, may, may.Add(-time.Second), false},
		"after the node was initialised":         {time.Time{}, may, may.Add(time.Second), true},
		"soon after the last":                    {may, time.Time{}, may.Add(9 * time.Second), false},
		"later":                                  {may, time.Time{}, may.Add(10 * time.Second), true},
		"from before a restart, and known since": {may, time.Time{}, may.Add(-time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &karpv1.NodeClaim{}
			if !c.last.IsZero() {
				claim.Status.LastPodEventTime = metav1.NewTime(c.last)
			}
			if !c.initialized.IsZero() {
				claim.StatusConditions().SetTrue(karpv1.ConditionInitialized)
				for i := range claim.Status.Conditions {
					claim.Status.Conditions[i].LastTransitionTime = metav1.NewTime(c.initialized)
				}
			}
			if got := news(claim, c.at); got != c.want {
				t.Errorf("news: %v, want %v", got, c.want)
			}
		})
	}
}
