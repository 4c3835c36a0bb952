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
	"github.com/karpenter-go/karpenter/internal/controller"
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
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(may.Add(time.Minute))}}
}
func leaving(pod *corev1.Pod)   { pod.DeletionTimestamp = &metav1.Time{Time: may} }
func succeeded(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }
func labeled(pod *corev1.Pod)   { pod.Labels = map[string]string{"a": "b"} }
func ofDaemonSet(pod *corev1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet"}}
}
func mirror(pod *corev1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node"}}
}

// TestPodEventsThatCount verifies which events of a pod count, and at which time.
func TestPodEventsThatCount(t *testing.T) {
	for name, c := range map[string]struct {
		before, after *corev1.Pod // one nil: created or deleted
		want          []Moment
	}{
		"bound":                         {somePod(), somePod(onNode), []Moment{{Node: "n"}}},
		"begins to leave":               {somePod(onNode), somePod(onNode, leaving), []Moment{{Node: "n"}}},
		"ends":                          {somePod(onNode), somePod(onNode, succeeded), []Moment{{Node: "n"}}},
		"was leaving before":            {somePod(onNode, leaving), somePod(onNode, leaving, labeled), nil},
		"had ended before":              {somePod(onNode, succeeded), somePod(onNode, succeeded, labeled), nil},
		"something else":                {somePod(onNode), somePod(onNode, labeled), nil},
		"not bound":                     {somePod(), somePod(labeled), nil},
		"leaves without a node":         {somePod(), somePod(leaving), nil},
		"a daemon":                      {somePod(ofDaemonSet), somePod(onNode, ofDaemonSet), nil},
		"a mirror pod":                  {somePod(mirror), somePod(onNode, mirror), nil},
		"there at start":                {nil, somePod(onNode), []Moment{{Node: "n", At: may.Add(time.Minute)}}},
		"a daemon at start":             {nil, somePod(onNode, ofDaemonSet), nil},
		"created":                       {nil, somePod(), nil},
		"deleted by force":              {somePod(onNode), nil, []Moment{{Node: "n"}}},
		"gone after leaving":            {somePod(onNode, leaving), nil, nil},
		"gone after its end":            {somePod(onNode, succeeded), nil, nil},
		"deleted before it had a place": {somePod(), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := &PodEvents{Metrics: telemetry.New(prometheus.NewRegistry()), Clock: clocktesting.NewFakePassiveClock(may)}
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[Moment]())
			defer queue.ShutDown()
			h, ctx := p.Handler(), context.Background()
			switch {
			case c.before == nil:
				h.Create(ctx, event.TypedCreateEvent[client.Object]{Object: c.after}, queue)
			case c.after == nil:
				h.Delete(ctx, event.TypedDeleteEvent[client.Object]{Object: c.before}, queue)
			default:
				h.Update(ctx, event.TypedUpdateEvent[client.Object]{ObjectOld: c.before, ObjectNew: c.after}, queue)
			}
			var got []Moment
			for queue.Len() > 0 {
				m, _ := queue.Get()
				got = append(got, m)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("recorded (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPodEventIsDue verifies that a pod event is written at most every ten seconds, and that none is lost.
func TestPodEventIsDue(t *testing.T) {
	never := time.Time{}
	for name, c := range map[string]struct {
		last, initialized, at time.Time
		due                   time.Time
	}{
		"the first":                              {never, never, may, may},
		"before the node was initialized":        {never, may, may.Add(-time.Second), never},
		"after the node was initialized":         {never, may, may.Add(time.Second), may.Add(time.Second)},
		"soon after the last":                    {may, never, may.Add(9 * time.Second), may.Add(10 * time.Second)},
		"in the second that is shown":            {may, never, may.Add(900 * time.Millisecond), never},
		"later":                                  {may, never, may.Add(time.Minute), may.Add(10 * time.Second)},
		"from before a restart, and known since": {may, never, may.Add(-time.Hour), never},
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
			got, wanted := (&PodEvents{Timers: controller.Production()}).due(claim, c.at)
			switch {
			case wanted != !c.due.IsZero():
				t.Errorf("due: wanted is %v, want %v, want %v", wanted, !c.due.IsZero(), c.due)
			case wanted && !got.Equal(c.due):
				t.Errorf("due: wanted && !got.Equal(c.due), %v, %v, want %v", got, wanted, c.due)
			}
		})
	}
}

// TestLatestPodEventIsRemembered verifies that the last of several events is kept until it is recorded, and that an
// event that occurs meanwhile is kept.
func TestLatestPodEventIsRemembered(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(may)
	p := &PodEvents{Clock: clock}
	p.saw("n")
	clock.SetTime(may.Add(time.Second))
	m := p.saw("n")
	if at, unnoted := p.when(m); !unnoted || !at.Equal(may.Add(time.Second)) {
		t.Errorf("the latest event was at %v (unrecorded %v), want the second", at, unnoted)
	}
	p.forget("n", may)
	if _, unnoted := p.when(m); !unnoted {
		t.Error("the second event was dropped with the first")
	}
	p.forget("n", may.Add(time.Second))
	if at, unnoted := p.when(m); unnoted {
		t.Errorf("the event at %v is kept although it was recorded", at)
	}
}
