package execute_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// TestResumedReplacementNamesItsPods verifies that a replacement that a resumed command launches records the pods for
// which the command needs it.
func TestResumedReplacementNamesItsPods(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := karpv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "uid"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pool).Build()
	x := &execute.Executor{Client: c, Live: c, Store: &written{}, Metrics: telemetry.New(prometheus.NewRegistry()),
		Recorder: telemetry.NewRecorder(events.NewFakeRecorder(10), clocktesting.NewFakePassiveClock(time.Unix(0, 0)))}
	resumed := planned("p-1", pool)
	resumed.Pods, resumed.Refs = nil, model.ParsePodRefs("a/owner b")
	if err := x.Do(t.Context(), []plan.Action{plan.CreateClaim{NewClaim: resumed, Reason: "drifted"}})[0].Err; err != nil {
		t.Fatal(err)
	}
	claim := &karpv1.NodeClaim{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "p-1"}, claim); err != nil {
		t.Fatal(err)
	}
	if got := claim.Annotations[karpv1.AnnotationPods]; got != "a/owner b" {
		t.Errorf("launched for %q, want %q", got, "a/owner b")
	}
}
