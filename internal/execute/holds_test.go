package execute_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// testHolds verifies that all notes of one pass on a pool are one write. After a conflict they are applied to the
// state on the server.
func testHolds(t *testing.T, b *bench) {
	pool := b.pool("holds")
	uid := string(pool.UID)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	other := model.LaunchHold{Owner: "other", Name: "Job default/other", Failures: 4, Until: at}
	stale := pool.DeepCopy()
	b.do(b.Executor, plan.HoldLaunches{Pool: pool.Name, UID: uid, Hold: other})
	b.store.take()

	var actions []plan.Action
	want := []model.LaunchHold{other}
	for i := range 40 {
		hold := model.LaunchHold{Owner: fmt.Sprintf("uid-%02d", i), Name: "ReplicaSet default/web", Failures: 4, Until: at}
		actions, want = append(actions, plan.HoldLaunches{Pool: pool.Name, UID: uid, Hold: hold}), append(want, hold)
	}
	actions = append(actions, plan.NoteBackoff{Pool: pool.Name, UID: uid, Backoff: model.Backoff{Reason: "Drifted", Failures: 2, At: at}})
	reads := 0
	x := b.with(interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
		reads++
		stale.DeepCopyInto(o.(*karpv1.NodePool)) // as a stale cache
		return nil
	}})
	b.do(x, actions...)
	b.get(pool)
	if diff := cmp.Diff(want, convert.Holds(pool.Annotations[karpv1.AnnotationLaunchBackoff])); diff != "" {
		t.Errorf("holds (-want +got):\n%s", diff)
	}
	if noted := convert.Backoffs(pool.Annotations[karpv1.AnnotationBackoff]); len(noted) != 1 || reads != 1 {
		t.Errorf("backoffs %+v, want one; %d reads from the cache, want 1", noted, reads)
	}
	if diff := cmp.Diff([]string{"wrote holds"}, b.store.take()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
