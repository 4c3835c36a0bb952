package nodepool

import (
	"context"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestReadinessIsLogged verifies that the log has one line when a pool becomes not ready, with the cause, and one when it
// is ready again.
func TestReadinessIsLogged(t *testing.T) {
	var lines []string
	ctx := ctrl.LoggerInto(context.Background(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	pool := &karpv1.NodePool{}
	pool.Name = "web"
	step := func(set func()) string {
		before := pool.DeepCopy()
		set()
		lines = nil
		logReadiness(ctx, before, pool)
		return strings.Join(lines, "\n")
	}
	good := func() {
		for _, kind := range []string{karpv1.ConditionValidationSucceeded, karpv1.ConditionNodeClassReady} {
			pool.StatusConditions().SetTrue(kind)
		}
	}
	bad := func() {
		pool.StatusConditions().SetFalse(karpv1.ConditionNodeClassReady, karpv1.ReasonNodeClassNotFound, "there is no class")
	}
	const notReady = `"level"=0 "msg"="a NodePool is not ready" "nodePool"="web" "reason"="NodeClassNotFound" "message"="there is no class"`
	got := []string{step(good), step(good), step(bad), step(bad), step(good)}
	want := []string{"", "", notReady, "", `"level"=0 "msg"="a NodePool is ready again" "nodePool"="web"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
