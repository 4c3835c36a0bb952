package placement_test

import (
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestPausedTaint: while launches in a pool are paused for pods that do not tolerate a taint, such pods get nodes of other
// pools, or are refused with the pause. Pods that tolerate the taint get nodes of the pool.
func TestPausedTaint(t *testing.T) {
	taint := model.Taint{Key: "surprise", Value: "x", Effect: model.NoExecute}
	w := equalPools(2, func(*model.PoolSpec) {})
	now := w.snapshot(nil).Now
	for i := range w.pools { // pool d is tried first
		p := pause.Pause{Key: pause.Key{Reason: pause.Launch, Scope: model.TaintScope(w.pools[i].Name, taint)}, Name: "launches"}
		w.pools[i].Pauses = pause.List{p.Fail(now, now.Add(-time.Minute*time.Duration(i)), 0, "why")}
	}
	tolerates := func(p *model.PodSpec) {
		p.Tolerations = []model.Toleration{{Key: "surprise", Value: "x", Effect: model.NoExecute}}
	}
	pools := func(p *plan.Provision) string {
		var names []string
		for _, c := range p.Claims {
			if len(names) == 0 || names[len(names)-1] != c.Pool {
				names = append(names, c.Pool)
			}
		}
		return strings.Join(names, " ")
	}
	if got := pools(placement.Schedule(w.snapshot(nil), placement.Options{})); got != "c" {
		t.Errorf("nodes are launched from %q, want c, whose pause is over", got)
	}
	w.pools = w.pools[:1]
	snap := w.snapshot(nil)
	p := placement.Schedule(snap, placement.Options{})
	if len(p.Claims) > 0 || len(p.Refused) == 0 {
		t.Fatalf("%d claims, refused %v", len(p.Claims), p.Refused)
	}
	v := p.Refused[0].Pools[0].Verdict
	why := explain.Refusal(snap, p.Refused[0])
	if v.Code != plan.Paused || v.Pool != "d" || !strings.Contains(why, "launches are paused until") {
		t.Errorf("verdict %+v: %s", v, why)
	}
	tolerates(&w.pods[0])
	p = placement.Schedule(w.snapshot(nil), placement.Options{})
	if len(p.Claims) != 1 || len(p.Claims[0].Pods) != 1 || p.Claims[0].Pods[0].UID != w.pods[0].UID {
		t.Errorf("claims %v, want one for the pod that tolerates the taint", p.Claims)
	}
}

// TestTaintScope: the scope of a pause tells the taint again, and nothing else is taken for one.
func TestTaintScope(t *testing.T) {
	for _, taint := range []model.Taint{{Key: "a", Effect: model.NoSchedule}, {Key: "b.c/d", Value: "e", Effect: model.NoExecute}} {
		if got, is := model.TaintOfScope("p", model.TaintScope("p", taint)); !is || got != taint {
			t.Errorf("%v is told as %v, %t", taint, got, is)
		}
	}
	for _, scope := range []string{"", "uid", "q taint a:NoSchedule", "p taint a", "p taint :NoSchedule", "p taint =b:NoSchedule",
		"p taint a:PreferNoSchedule", "p label a:NoSchedule"} {
		if taint, is := model.TaintOfScope("p", scope); is {
			t.Errorf("scope %q is about %v", scope, taint)
		}
	}
}
