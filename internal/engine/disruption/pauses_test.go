package disruption_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// renewing is a fleet whose drifted nodes must be replaced. It carries out the commands second by second.
type renewing struct {
	t     *testing.T
	now   time.Time
	pool  model.PoolSpec
	nodes map[string]model.NodeSpec // by claim
	pods  []model.PodSpec
	// initialized is the time until a new claim becomes a node; 0 for never.
	initialized time.Duration
	launched    []time.Time
	closed      time.Duration
	under       []plan.Command
}

func newRenewing(t *testing.T, reason plan.Reason, nodes int) *renewing {
	w := &renewing{t: t, now: noon, nodes: map[string]model.NodeSpec{}}
	w.pool = pool(t, "p", map[string]string{"after": ",30s", "budget": ",100%"})
	for i := range nodes {
		n := node(t, fmt.Sprintf("n%d", i), map[string]string{"pool": ",p", "type": ",small", "age": ",100h"})
		if n.Created = noon.Add(-100 * time.Hour); reason == plan.Expired {
			n.ExpiresAt = noon
		} else {
			n.Drifted = "NodePoolDrifted"
		}
		w.nodes[n.Claim] = n
		p := pod("pod", fmt.Sprintf("web%d", i), map[string]string{"node": "," + n.Name})
		p.Requests = []quantity.Amount{{Name: "cpu", Value: 900}}
		w.pods = append(w.pods, p)
	}
	return w
}

func (w *renewing) snapshot() *model.Snapshot {
	b := model.NewBuilder()
	b.UpsertPool(w.pool)
	for _, n := range w.nodes {
		b.UpsertNode(n)
	}
	for _, p := range w.pods {
		b.UpsertPod(p)
	}
	return b.Snapshot(w.now)
}

// pass is one pass of the disruption loop.
func (w *renewing) pass() disruption.Proposal {
	snap := w.snapshot()
	p := disruption.Propose(snap, disruption.Options{})
	commands := append(guard.Resume(snap, w.under...), p.Commands...)
	w.under = nil
	for step := 0; step < 8 && len(commands) > 0; step++ {
		g := guard.New(w.snapshot())
		var again []plan.Command
		for _, c := range commands {
			c, actions := g.Step(c)
			for _, a := range actions {
				w.do(a)
			}
			switch {
			case len(actions) > 0:
				again = append(again, c)
			case !c.Phase.Over():
				w.under = append(w.under, c)
			}
		}
		commands = again
	}
	w.under = append(w.under, commands...)
	for _, a := range guard.Undone(w.snapshot()) {
		w.do(a)
	}
	return p
}

func (w *renewing) do(action plan.Action) {
	edit := func(claim string, change func(*model.NodeSpec)) {
		if _, there := w.nodes[claim]; !there {
			claim = strings.TrimPrefix(claim, "claim-") // a replacement: its node has the name of its claim
		}
		if n, there := w.nodes[claim]; there {
			change(&n)
			w.nodes[claim] = n
		}
	}
	switch a := action.(type) {
	case plan.WriteCommand:
		edit(a.Claim, func(n *model.NodeSpec) { n.Command = a.Command.Encode() })
	case plan.ClearCommand:
		edit(a.Claim, func(n *model.NodeSpec) { n.Command = "" })
	case plan.TaintNode:
		edit("claim-"+a.Node, func(n *model.NodeSpec) { n.Disrupted = true })
	case plan.UntaintNode:
		edit("claim-"+a.Node, func(n *model.NodeSpec) { n.Disrupted = false })
	case plan.CreateClaim:
		w.launched = append(w.launched, w.now)
		w.nodes[a.NewClaim.Name] = model.NodeSpec{Name: a.NewClaim.Name, UID: a.NewClaim.Name, Claim: a.NewClaim.Name, ClaimUID: a.NewClaim.Name, Pool: "p",
			Stage: model.Launching, Created: w.now, Requirements: a.NewClaim.Requirements, Requests: a.NewClaim.Requests,
			Renewal: a.Reason == "drifted"}
	case plan.DeleteClaim:
		w.pods = slices.DeleteFunc(w.pods, func(p model.PodSpec) bool { return p.Node == w.nodes[a.Claim].Name })
		delete(w.nodes, a.Claim)
	case plan.SetPause:
		w.pool.Pauses = w.pool.Pauses.With(a.Pause)
	case plan.EndPause:
		w.pool.Pauses = w.pool.Pauses.Without(a.Key)
	}
}

// run advances the time. New claims become nodes, or are deleted after a quarter of an hour.
func (w *renewing) run(length time.Duration) {
	for end := w.now.Add(length); w.now.Before(end); w.now = w.now.Add(time.Second) {
		for claim, n := range w.nodes {
			switch age := w.now.Sub(n.Created); {
			case n.Stage == model.Initialized:
			case w.initialized > 0 && age >= w.initialized:
				n.Stage, n.Ready, n.InitializedAt, n.Labels = model.Initialized, true, w.now, map[string]string{model.LabelType: "small", model.LabelZone: "z", model.LabelCapacityType: "spot"}
				n.Allocatable, n.Capacity = catalog.Types[0].Allocatable, catalog.Types[0].Capacity
				w.nodes[claim] = n
			case age > 15*time.Minute:
				delete(w.nodes, claim)
			}
		}
		w.pass()
		if w.nodes["claim-n0"].Disrupted {
			w.closed += time.Second
		}
	}
}

// TestBrokenReplacements checks that replacements that never become nodes are retried after increasing pauses, one at
// a time, whatever the reason, and that the nodes accept pods between the attempts.
func TestBrokenReplacements(t *testing.T) {
	for _, reason := range []plan.Reason{plan.Drifted, plan.Expired} {
		t.Run(string(reason), func(t *testing.T) {
			w := newRenewing(t, reason, 1)
			w.run(100 * time.Minute)
			if len(w.launched) != 6 {
				t.Fatalf("%d machines were launched, want 6: %v", len(w.launched), w.launched)
			}
			for i, most := range []int{1, 2, 4, 8, 16} {
				pause := w.launched[i+1].Sub(w.launched[i]) - plan.CommandTimeout
				most := time.Duration(most) * time.Minute
				if pause < most-5*time.Second || pause > most+5*time.Second {
					t.Errorf("attempt %d began %s after the end of the previous one, want %s", i+2, pause, most)
				}
			}
			if attempts := time.Duration(len(w.launched)) * (plan.CommandTimeout + 5*time.Second); w.closed > attempts {
				t.Errorf("the node accepted no pods for %s, want no longer than the attempts, %s", w.closed, attempts)
			}
			p := w.pass()
			if len(w.under) > 0 {
				return
			}
			failed := func(k disruption.Kept) bool { return k.Verdict.Code == plan.Paused }
			if !slices.ContainsFunc(p.Kept, failed) || p.Next.IsZero() {
				t.Errorf("kept %v, next at %v; want the pause and its end", p.Kept, p.Next)
			}
		})
	}
}

// TestPauseEnds checks that after a failure only one node is tried, and that the others follow at once when its
// replacement is initialized.
func TestPauseEnds(t *testing.T) {
	w := newRenewing(t, plan.Drifted, 4)
	w.run(plan.CommandTimeout + 5*time.Second)
	if len(w.launched) != 4 {
		t.Fatalf("%d launched, want the four of the first round", len(w.launched))
	}
	if p := w.pool.Pauses; len(p) != 1 || p[0].Failures != 1 {
		t.Fatalf("pauses %+v, want one, in which the four count as one failure", p)
	}
	var launches []int
	w.run(time.Minute)
	w.run(30 * time.Second)
	launches = append(launches, len(w.launched))
	for claim, n := range w.nodes { // the claims of the first round never become nodes
		if n.Stage == model.Launching && n.Created.Before(w.launched[4]) {
			delete(w.nodes, claim)
		}
	}
	w.initialized = 3 * time.Minute
	w.run(3 * time.Minute)
	launches = append(launches, len(w.launched))
	// The test does not recreate evicted pods, so the first replacement has room for the pods of one of the other
	// three nodes.
	if diff := cmp.Diff([]int{5, 7}, launches); diff != "" {
		t.Errorf("total launches, during the trial and after it (-want +got):\n%s", diff)
	}
	if len(w.pool.Pauses) > 0 {
		t.Errorf("pauses %+v after a replacement is initialized", w.pool.Pauses)
	}
}

// flip lets the template of the pool change for so long, each time that a replacement has been initialized for 20 seconds.
// Evicted pods are created again, and run on the replacements.
func (w *renewing) flip(length time.Duration) {
	need := len(w.pods)
	for range int(length / time.Second) {
		for claim, n := range w.nodes {
			if n.Stage == model.Initialized && n.Drifted == "" && w.now.Sub(n.InitializedAt) >= 20*time.Second {
				n.Drifted, n.DriftedSince = "NodePoolDrifted", w.now
				w.nodes[claim] = n
			}
			if bound := func(p model.PodSpec) bool { return p.Node == n.Name }; n.Stage == model.Initialized && len(w.pods) < need && !slices.ContainsFunc(w.pods, bound) {
				p := pod("pod", fmt.Sprintf("web-%s-%d", n.Name, w.now.Unix()), map[string]string{"node": "," + n.Name})
				p.Requests = []quantity.Amount{{Name: "cpu", Value: 1900}}
				w.pods = append(w.pods, p)
			}
		}
		w.run(time.Second)
	}
}

// TestFlippingTemplate checks that drift waits, longer each time, if the replacements of drifted nodes drift as well, and
// that an edit during the replacement of the nodes delays nothing.
func TestFlippingTemplate(t *testing.T) {
	w := newRenewing(t, plan.Drifted, 4)
	w.initialized = 10 * time.Second
	w.flip(2 * time.Minute)
	twice := len(w.launched)
	if twice < 8 {
		t.Errorf("%d nodes launched in two minutes, want the four and their replacements without a pause", twice)
	}
	w.flip(28 * time.Minute)
	if got := len(w.launched); got > 16 {
		t.Errorf("%d nodes launched in half an hour, want at most four for each node: %v", got, w.launched)
	}
	before := len(w.launched)
	w.flip(35 * time.Minute)
	if got := len(w.launched) - before; got == 0 || got > 2 {
		t.Errorf("%d nodes launched in the next 35 minutes, want one after each pause: %v", got, w.launched[before:])
	}
}
