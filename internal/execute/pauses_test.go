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
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// testPauses verifies that all pauses of one pass on a pool are one write. After a conflict they are applied to the
// state on the server.
func testPauses(t *testing.T, b *bench) {
	pool := b.pool("pauses")
	uid := string(pool.UID)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	paused := func(scope string) pause.Pause {
		return pause.Pause{Key: pause.Key{Reason: pause.Launch, Scope: scope}, Name: "launches for " + scope, Failures: 4, At: at, Until: at}
	}
	stale := pool.DeepCopy()
	b.do(b.Executor, plan.SetPause{Pool: pool.Name, UID: uid, Pause: paused("other")})
	b.store.take()

	var actions []plan.Action
	want := pause.List{paused("other")}
	for i := range 40 {
		p := paused(fmt.Sprintf("uid-%02d", i))
		actions, want = append(actions, plan.SetPause{Pool: pool.Name, UID: uid, Pause: p}), append(want, p)
	}
	reads := 0
	x := b.with(interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
		reads++
		stale.DeepCopyInto(o.(*karpv1.NodePool)) // as a stale cache
		return nil
	}})
	b.do(x, actions...)
	b.get(pool)
	if diff := cmp.Diff(want, pause.Parse(pool.Annotations[karpv1.AnnotationPauses])); diff != "" || reads != 1 {
		t.Errorf("%d reads from the cache, want 1; pauses (-want +got):\n%s", reads, diff)
	}
	if diff := cmp.Diff([]string{"wrote pauses"}, b.store.take()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
