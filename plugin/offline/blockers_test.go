package offline

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// heldFleet returns manifests of a random fleet of which annotations, a PodDisruptionBudget and the pool's budget keep
// nodes.
func heldFleet(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 11))
	var b strings.Builder
	b.WriteString(strings.Replace(lightFleet, `nodes: "1"`, `nodes: "`+[]string{"1", "30%", "0"}[r.IntN(3)]+`"`, 1))
	b.WriteString(`---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db, namespace: default}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: db}}}
status: {disruptionsAllowed: 0}
`)
	for i := range 4 + r.IntN(6) {
		annotation, label := "", "web"
		switch r.IntN(4) {
		case 0:
			annotation = `karpenter.sh/do-not-disrupt: "true"`
		case 1:
			label = "db"
		}
		node := lightNode(fmt.Sprintf("n%d", i), annotation)
		node = strings.Replace(node, "  namespace: default\n", "  namespace: default\n  labels: {app: "+label+"}\n", 1)
		b.WriteString(strings.Replace(node, "cpu: 500m", fmt.Sprintf("cpu: %dm", 300+100*r.IntN(30)), 1))
	}
	return b.String()
}

// plainly returns the price of the fleet at rest without a blocker as the meaning of a saving says it: every step of the
// plan is carried out on the snapshot without the blocker, one after the other, and then the plan goes on.
func plainly(t *testing.T, o *Overview, b *blocker) float64 {
	t.Helper()
	base := newPlanRecorder(o, o.snap).d
	base.launch()
	for base.next() {
	}
	changed, err := o.changed(b.lift)
	if err != nil {
		t.Fatal(err)
	}
	d := newPlanRecorder(changed, changed.snap).d
	for i := range base.steps {
		step := &base.steps[i]
		d.last = at(d.last, step.at, d.pools)
		d.last = disruption.After(d.last, onPodsOf(d.last, &step.Command))
	}
	d.last = at(d.last, base.last.Now, d.pools)
	d.first = d.last
	for d.next() {
	}
	return figuresFor(d.figures(d.last)).Price
}

// onPodsOf returns the command with the pods of another snapshot in place of those of the same UID.
func onPodsOf(snap *model.Snapshot, c *plan.Command) plan.Command {
	of := snap.PendingPods()
	for _, n := range snap.Nodes {
		for _, p := range n.Pods {
			of[p.UID] = p
		}
	}
	translate := func(pods []*model.Pod) []*model.Pod {
		own := make([]*model.Pod, len(pods))
		for i, p := range pods {
			own[i] = of[p.UID]
		}
		return own
	}
	own := *c
	own.Assignments, own.Replacements = nil, append([]plan.NewClaim{}, c.Replacements...)
	for _, a := range c.Assignments {
		own.Assignments = append(own.Assignments, model.Assignment{Node: a.Node, Pods: translate(a.Pods)})
	}
	for i := range own.Replacements {
		own.Replacements[i].Pods = translate(own.Replacements[i].Pods)
	}
	return own
}

// TestSavingsMean checks that savings have the documented meaning, in 30 random fleets: what the plan would go on to save
// from its end, without the blocker. Where there is no plan, that is the difference of the plans with and without it.
func TestSavingsMean(t *testing.T) {
	savings, atRest := 0, 0
	for seed := range uint64(30) {
		o := overviewOf(t, heldFleet(seed))
		base, err := o.Plan(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Savings(t.Context(), time.Hour, func(*view.Savings) {}); err != nil {
			t.Fatal(err)
		}
		for i := range o.saved.list() {
			b := &o.saved.list()[i]
			if b.lift == nil {
				continue
			}
			want := base.After.Price - plainly(t, o, b)
			if !b.Known || math.Abs(b.Saving-want) > 1e-9 {
				t.Errorf("seed %d: without %s %s %.6f USD per hour are saved (%v), want %.6f", seed, b.Kind, b.Name, b.Saving, b.Known, want)
			}
			if b.Saving > 0 {
				savings++
			}
			if len(base.Steps) > 0 {
				continue
			}
			changed, err := o.changed(b.lift)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := changed.Plan(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if want := base.After.Price - whole.After.Price; math.Abs(b.Saving-want) > 1e-9 {
				t.Errorf("seed %d, at rest: without %s %s %.6f USD per hour are saved, want %.6f", seed, b.Kind, b.Name, b.Saving, want)
			}
			atRest++
		}
	}
	if savings < 10 || atRest < 10 {
		t.Errorf("%d savings, %d of fleets at rest: want many of both", savings, atRest)
	}
}

// TestSavingsStop checks that savings stop after a time with what they have, and that the next call goes on from there.
func TestSavingsStop(t *testing.T) {
	o := overviewOf(t, heldFleet(1))
	stopped, err := o.Savings(t.Context(), -1, func(*view.Savings) { t.Error("a saving is told") })
	if err != nil {
		t.Fatal(err)
	}
	if !stopped.Stopped || stopped.Done != 0 || stopped.Of == 0 {
		t.Errorf("%d of %d computed, stopped %v: want none of some, and stopped", stopped.Done, stopped.Of, stopped.Stopped)
	}
	ctx, cancel := context.WithCancel(t.Context())
	told := 0
	if _, err = o.Savings(ctx, time.Hour, func(s *view.Savings) { told = max(told, s.Done); cancel() }); err == nil && told < stopped.Of {
		t.Errorf("canceled after %d of %d, and there is no error", told, stopped.Of)
	}
	rest, err := o.Savings(t.Context(), time.Hour, func(*view.Savings) {})
	if err != nil {
		t.Fatal(err)
	}
	if rest.Stopped || rest.Done != rest.Of || told == 0 {
		t.Errorf("%d of %d computed, %d before, stopped %v: want all, and not stopped", rest.Done, rest.Of, told, rest.Stopped)
	}
}
