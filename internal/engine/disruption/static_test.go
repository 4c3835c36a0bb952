package disruption_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

var staticNoon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// staticWorld has one static pool "s" with one type.
type staticWorld struct {
	pool  model.PoolSpec
	nodes []*model.NodeSpec
	pods  []model.PodSpec
	// quota is the number of nodes that a CapacityQuota allows, 0 without one.
	quota int64
}

func newStaticWorld(replicas int64, nodes int) *staticWorld {
	in := func(key string, values ...string) label.Requirement {
		return label.Requirement{Key: key, Operator: label.In, Values: values}
	}
	amounts := []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "pods", Value: 110}}
	w := &staticWorld{pool: model.PoolSpec{Name: "s", UID: "uid-s", Generation: 3, Static: true, Replicas: replicas, Blocked: model.StaticBlock(), ConsolidateAfter: -1,
		Requirements: []label.Requirement{in(model.LabelPool, "s"), {Key: "team", Operator: label.In, Values: []string{"b", "a"}}, in(model.LabelType, "m", "l")},
		Catalog: &model.Catalog{Types: []model.InstanceType{{Name: "m", Capacity: amounts, Allocatable: amounts,
			Requirements: []label.Requirement{in(model.LabelType, "m"), in(model.LabelZone, "z"), in(model.LabelCapacityType, "on-demand")},
			Offerings:    []model.Offering{{Zone: "z", CapacityType: "on-demand", Price: model.Nano, Available: true}}}},
			WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}}}}
	for range nodes {
		w.add(model.Initialized)
	}
	return w
}

func (w *staticWorld) add(stage model.Stage) *model.NodeSpec {
	name := fmt.Sprint("n", len(w.nodes))
	n := &model.NodeSpec{Name: name, UID: "uid-" + name, Claim: "c-" + name, ClaimUID: "uid-c-" + name, Pool: "s", Stage: stage, Ready: true,
		Created: staticNoon.Add(-time.Hour), InitializedAt: staticNoon.Add(-time.Hour), Labels: map[string]string{model.LabelPool: "s"},
		Capacity: []quantity.Amount{{Name: "cpu", Value: 4000}}, Allocatable: []quantity.Amount{{Name: "cpu", Value: 4000}}}
	w.nodes = append(w.nodes, n)
	return n
}

func (w *staticWorld) run(node string, cost int64) *model.PodSpec {
	name := fmt.Sprint("pod-", len(w.pods))
	w.pods = append(w.pods, model.PodSpec{UID: name, Namespace: "default", Name: name, State: model.Bound, Node: node, Reschedulable: true, EvictionCost: cost, Ready: true})
	return &w.pods[len(w.pods)-1]
}

// command records a command that is to replace the node, and returns the name of the replacement.
func (w *staticWorld) command(n *model.NodeSpec) string {
	cmd := plan.NewCommand(staticNoon, plan.Drifted, "", []plan.Candidate{{Claim: n.Claim, ClaimUID: n.ClaimUID, Node: n.Name, NodeUID: n.UID, Pool: n.Pool}})
	cmd.Replacements = []plan.NewClaim{{Name: "instead-of-" + n.Name, Pool: n.Pool, PoolUID: w.pool.UID}}
	n.Command = cmd.Encode()
	return cmd.Replacements[0].Name
}

func (w *staticWorld) limit(nodes int64) {
	w.pool.Limits = []quantity.Amount{{Name: model.ResourceNodes, Value: nodes}}
}

func (w *staticWorld) unavailable() { w.pool.Catalog.Types[0].Offerings[0].Available = false }

// expiring gives the nodes a lifetime of a day that ends in the given number of minutes.
func (w *staticWorld) expiring(minutes int, nodes ...int) {
	for _, i := range nodes {
		w.nodes[i].ExpiresAt = staticNoon.Add(time.Duration(minutes) * time.Minute)
		w.nodes[i].Created = w.nodes[i].ExpiresAt.Add(-24 * time.Hour)
	}
}

func (w *staticWorld) snapshot() *model.Snapshot {
	b := model.NewBuilder()
	b.UpsertPool(w.pool)
	for _, n := range w.nodes {
		b.UpsertNode(*n)
	}
	for _, p := range w.pods {
		b.UpsertPod(p)
	}
	if w.quota > 0 {
		b.UpsertQuota(model.QuotaSpec{Name: "q", Limits: []quantity.Amount{{Name: model.ResourceNodes, Value: w.quota}}})
	}
	return b.Snapshot(staticNoon)
}

func TestStatic(t *testing.T) {
	for _, test := range []struct {
		name            string
		replicas        int64
		nodes           int
		change          func(*staticWorld)
		create, surplus int
		short           plan.Code
	}{
		{"as many as it says", 3, 3, func(*staticWorld) {}, 0, 0, plan.OK},
		{"none yet", 3, 0, func(*staticWorld) {}, 3, 0, plan.OK},
		{"some are missing", 5, 3, func(*staticWorld) {}, 2, 0, plan.OK},
		{"too many", 1, 3, func(*staticWorld) {}, 0, 2, plan.OK},
		{"to zero", 0, 3, func(*staticWorld) {}, 0, 3, plan.OK},
		{"in flight counts", 3, 2, func(w *staticWorld) { w.add(model.Launching) }, 0, 0, plan.OK},
		{"what is being deleted does not", 3, 3, func(w *staticWorld) { w.nodes[0].Deleting = true }, 1, 0, plan.OK},
		{"nodes of others do not", 3, 3, func(w *staticWorld) { w.nodes[0].Claim = "" }, 1, 0, plan.OK},
		{"a node that is to be replaced counts", 3, 3, func(w *staticWorld) { w.command(w.nodes[0]) }, 0, 0, plan.OK},
		{"and so does its replacement", 3, 3, func(w *staticWorld) { w.command(w.nodes[0]); w.add(model.Launching) }, 0, 0, plan.OK},
		{"a replacement that came to nothing is one too many", 3, 3, func(w *staticWorld) { w.add(model.Launching) }, 0, 1, plan.OK},
		{"the limit has room for one", 5, 3, func(w *staticWorld) { w.limit(4) }, 1, 0, plan.NodeLimitReached},
		{"the limit has no room", 5, 3, func(w *staticWorld) { w.limit(2) }, 0, 0, plan.NodeLimitReached},
		{"within the limit, what is being deleted counts", 4, 4, func(w *staticWorld) { w.limit(4); w.nodes[0].Deleting = true }, 0, 0,
			plan.NodeLimitReached},
		{"and leaves the rest", 4, 4, func(w *staticWorld) { w.limit(5); w.nodes[0].Deleting = true }, 1, 0, plan.OK},
		{"so does the replacement of a command that is to be launched", 5, 3, func(w *staticWorld) { w.limit(4); w.command(w.nodes[0]) }, 0,
			0, plan.NodeLimitReached},
		{"a replacement that exists counts once", 5, 3, func(w *staticWorld) {
			w.limit(5)
			w.add(model.Launching).Claim = w.command(w.nodes[0])
		}, 1, 0, plan.OK},
		{"a command that launches nothing more takes no place", 5, 3,
			func(w *staticWorld) { w.limit(5); w.command(w.nodes[0]); w.nodes[0].Deleting = true }, 2, 0, plan.NodeLimitReached},
		{"not ready: it does not grow", 5, 3, func(w *staticWorld) { w.pool.Blocked = &model.Rejection{Field: "status"} }, 0, 0, plan.PoolBlocked},
		{"not ready: it shrinks", 1, 3, func(w *staticWorld) { w.pool.Blocked = &model.Rejection{Field: "status"} }, 0, 2, plan.OK},
		{"another controller's: it reports what is missing", 5, 3, func(w *staticWorld) {
			w.pool.Blocked = &model.Rejection{Silent: true, Field: "spec.template.metadata.labels"}
		}, 0, 0, plan.OK},
		{"no type is right", 3, 2, func(w *staticWorld) {
			w.pool.Requirements = append(w.pool.Requirements, label.Requirement{Key: model.LabelZone, Operator: label.In, Values: []string{"y"}})
		}, 0, 0, plan.NoCompatibleInstanceTypes},
		{"no offering is available", 3, 2, func(w *staticWorld) { w.unavailable() }, 0, 0, plan.NoOffering},
		{"requirements exclude each other", 3, 2, func(w *staticWorld) {
			w.pool.Requirements = append(w.pool.Requirements, label.Requirement{Key: "team", Operator: label.DoesNotExist})
		}, 0, 0, plan.PoolContradiction},
		{"not static", 3, 1, func(w *staticWorld) { w.pool.Static = false }, 0, 0, plan.OK},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newStaticWorld(test.replicas, test.nodes)
			test.change(w)
			got := disruption.Static(w.snapshot())
			short := plan.OK
			if len(got.Short) > 0 {
				short = got.Short[0].Verdict.Code
			}
			if len(got.Create) != test.create || len(got.Surplus) != test.surplus {
				t.Errorf("creates %d and deletes %d, want %d and %d", len(got.Create), len(got.Surplus), test.create, test.surplus)
			}
			if short != test.short {
				t.Errorf("the reason for missing nodes is %d, want %d", short, test.short)
			}
			if n := len(got.Actions()); n != test.create+test.surplus {
				t.Errorf("%d actions", n)
			}
		})
	}
}

// TestStaticClaims checks that a claim equals the template, and gets the same name after a crash.
func TestStaticClaims(t *testing.T) {
	w := newStaticWorld(3, 0)
	first := disruption.Static(w.snapshot()).Create
	if diff := cmp.Diff(first, disruption.Static(w.snapshot()).Create); diff != "" {
		t.Errorf("two calls differ (-first +second):\n%s", diff)
	}
	c := first[0]
	if diff := cmp.Diff(w.pool.Requirements, c.Requirements); diff != "" {
		t.Errorf("requirements (-want +got):\n%s", diff)
	}
	if c.PoolGeneration != 3 || c.PoolUID != "uid-s" {
		t.Errorf("the claim is of generation %d of pool %s, want 3 and uid-s", c.PoolGeneration, c.PoolUID)
	}
	if len(c.Pods)+len(c.Options)+len(c.Requests) > 0 {
		t.Errorf("claim %+v, want no pods, options or requests", c)
	}
	if diff := cmp.Diff(map[string]string{"team": "a"}, c.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	names := func(claims []plan.NewClaim) []string {
		var all []string
		for _, c := range claims {
			all = append(all, c.Name)
		}
		return all
	}
	all := names(first)
	if slices.Sort(all); len(slices.Compact(slices.Clone(all))) != 3 {
		t.Errorf("names %v", all)
	}
	// The second of the three was created before the crash: the others keep their names, and no claim is created
	// twice.
	w.add(model.Launching).Claim = first[1].Name
	if diff := cmp.Diff([]string{first[0].Name, first[2].Name}, names(disruption.Static(w.snapshot()).Create)); diff != "" {
		t.Errorf("after a crash (-want +got):\n%s", diff)
	}
	// Claims of another series have other names.
	w.pool.ClaimSeries = "1"
	for _, name := range names(disruption.Static(w.snapshot()).Create) {
		if slices.Contains(all, name) {
			t.Errorf("the name %s is used again in another series", name)
		}
	}
	w.pool.ClaimSeries = ""
	// The name of a claim that is being deleted is not reused.
	w.nodes[0].Deleting = true
	if again := names(disruption.Static(w.snapshot()).Create); len(again) != 3 || slices.Contains(again, first[1].Name) {
		t.Errorf("with %s being deleted: %v", first[1].Name, again)
	}
}

// TestStaticSurplusOrder checks that the nodes with the lowest cost are removed first.
func TestStaticSurplusOrder(t *testing.T) {
	w := newStaticWorld(0, 8)
	launching := w.add(model.Launching)
	registered := w.add(model.Registered)
	w.run("n0", 2000)
	w.run("n1", 1000)
	w.run("n1", -5000) // counts as zero and does not offset others
	old := w.nodes[2]  // expensive pods, but a tenth of its lifetime remains
	w.run("n2", 9000)
	old.Created, old.ExpiresAt = staticNoon.Add(-9*time.Hour), staticNoon.Add(time.Hour)
	w.run("n3", 10).ProtectedUntil = model.Forever
	w.nodes[4].DoNotDisrupt = true
	w.run("n5", 10).ProtectedUntil = staticNoon.Add(-time.Minute)
	w.run("n6", 1000).Reschedulable = false
	var order []string
	for _, n := range disruption.Static(w.snapshot()).Surplus {
		order = append(order, n.Name)
	}
	want := []string{launching.Name, registered.Name, "n6", "n7", "n5", "n2", "n1", "n0", "n4", "n3"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestStaticDrift(t *testing.T) {
	drift := func(w *staticWorld, nodes ...int) {
		for _, i := range nodes {
			w.nodes[i].Drifted, w.nodes[i].DriftedSince = "NodePoolDrifted", staticNoon.Add(-time.Duration(10*i)*time.Minute)
		}
	}
	for _, test := range []struct {
		name   string
		change func(*staticWorld)
		want   string
		kept   map[string]plan.Code
	}{
		{"nothing drifted", func(*staticWorld) {}, "", nil},
		{"the oldest first, the empty before all", func(w *staticWorld) { drift(w, 1, 2, 3); w.run("n2", 1000); w.run("n3", 1000) }, "n1 n3 n2", nil},
		{"within budgets", func(w *staticWorld) { drift(w, 1, 2, 3); w.pool.Budgets = []model.Budget{{Count: 1}} }, "n3",
			map[string]plan.Code{"n1": plan.BudgetExhausted, "n2": plan.BudgetExhausted}},
		{"within the limit", func(w *staticWorld) { drift(w, 1, 2); w.limit(5) }, "n2", map[string]plan.Code{"n1": plan.NodeLimitReached}},
		{"within a quota", func(w *staticWorld) { drift(w, 1, 2); w.quota = 5 }, "n2", map[string]plan.Code{"n1": plan.QuotaReached}},
		{"within a quota, beside the replacement of another command", func(w *staticWorld) {
			drift(w, 1)
			w.command(w.nodes[0])
			w.quota = 5
		}, "", map[string]plan.Code{"n1": plan.QuotaReached}},
		{"within a quota, missing nodes come first", func(w *staticWorld) { drift(w, 1); w.pool.Replicas = 5; w.quota = 5 }, "",
			map[string]plan.Code{"n1": plan.QuotaReached}},
		{"within the limit, what is being deleted counts", func(w *staticWorld) {
			drift(w, 1, 2)
			w.nodes[0].Deleting = true
			w.add(model.Initialized)
			w.limit(6)
		}, "n2", map[string]plan.Code{"n1": plan.NodeLimitReached}},
		{"so does the replacement of another command", func(w *staticWorld) { drift(w, 1, 2); w.command(w.nodes[0]); w.limit(6) }, "n2",
			map[string]plan.Code{"n1": plan.NodeLimitReached}},
		{"missing nodes come first", func(w *staticWorld) { drift(w, 1, 2); w.pool.Replicas = 6; w.limit(7) }, "n2",
			map[string]plan.Code{"n1": plan.NodeLimitReached}},
		{"others are being replaced", func(w *staticWorld) { drift(w, 1); w.command(w.nodes[0]); w.add(model.Launching) }, "",
			map[string]plan.Code{"n1": plan.PoolAboveReplicas}},
		{"the pool is not ready", func(w *staticWorld) { drift(w, 1); w.pool.Blocked = &model.Rejection{Field: "status"} }, "",
			map[string]plan.Code{"n1": plan.PoolBlocked}},
		{"protected", func(w *staticWorld) { drift(w, 0, 1); w.nodes[1].DoNotDisrupt = true }, "n0", map[string]plan.Code{"n1": plan.NodeProtected}},
		{"the next wave", func(w *staticWorld) {
			drift(w, 1)
			w.command(w.nodes[0])
			w.nodes[0].Deleting = true
			w.add(model.Initialized)
		}, "n1", nil},
		{"not static", func(w *staticWorld) { drift(w, 1); w.pool.Static = false }, "", nil},
		{"no offering is available", func(w *staticWorld) { drift(w, 1); w.unavailable() }, "", map[string]plan.Code{"n1": plan.NoOffering}},
		{"near the end of their lives, the first to end first", func(w *staticWorld) { w.expiring(2, 1); w.expiring(1, 2); w.expiring(150, 3) }, "n2 n1", nil},
		{"drifted before old", func(w *staticWorld) { w.expiring(1, 1, 3); drift(w, 3) }, "n3 n1", nil},
		{"budgets without reasons are about the old ones too", func(w *staticWorld) { w.expiring(1, 1, 2); w.pool.Budgets = []model.Budget{{Count: 1}} }, "n1",
			map[string]plan.Code{"n2": plan.BudgetExhausted}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newStaticWorld(4, 4)
			test.change(w)
			snap := w.snapshot()
			commands, kept := disruption.StaticDrift(snap, guard.New(snap))
			var nodes []string
			names := map[string]bool{}
			for _, c := range commands {
				nodes = append(nodes, c.Candidates[0].Node)
				reason := plan.Expired
				if snap.Node(c.Candidates[0].Node).Drifted != "" {
					reason = plan.Drifted
				}
				if len(c.Candidates) != 1 || len(c.Replacements) != 1 {
					t.Fatalf("command %+v, want one node and one replacement", c)
				}
				if c.Reason != reason || names[c.Replacements[0].Name] {
					t.Errorf("command %+v, want the reason %s and a replacement with a new name", c, reason)
				}
				names[c.Replacements[0].Name] = true
			}
			if got := strings.Join(nodes, " "); got != test.want {
				t.Errorf("replaces %q, want %q", got, test.want)
			}
			codes := map[string]plan.Code{}
			for _, k := range kept {
				codes[k.Node] = k.Verdict.Code
			}
			if diff := cmp.Diff(test.kept, codes, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRenewalComesBack checks that a proposal contains the time at which a budget that blocks a renewal changes, in
// static pools and in others.
func TestRenewalComesBack(t *testing.T) {
	changes := staticNoon.Add(20 * time.Minute)
	for _, static := range []bool{true, false} {
		w := newStaticWorld(1, 1)
		w.pool.Static = static
		if !static {
			w.pool.Blocked = nil
		}
		w.nodes[0].Drifted = "NodePoolDrifted"
		w.run("n0", 1000)
		w.pool.Budgets = []model.Budget{{Count: 0, Changes: changes, Reasons: []string{"Drifted"}}}
		if p := disruption.Propose(w.snapshot(), disruption.Options{Static: true}); !p.Next.Equal(changes) || len(p.Commands) > 0 {
			t.Errorf("static %v: next is %s with %d commands, want %s: %+v", static, p.Next, len(p.Commands), changes, p.Kept)
		}
	}
}

// TestStaticPoolsShareQuotas checks that static pools together stay within a quota, of the number of nodes and of another
// resource, and say what stops them.
func TestStaticPoolsShareQuotas(t *testing.T) {
	ofPool := func(name string) label.Requirement {
		return label.Requirement{Key: model.LabelPool, Operator: label.In, Values: []string{name}}
	}
	for name, c := range map[string]struct {
		quota model.QuotaSpec
		want  int
	}{
		"none":  {model.QuotaSpec{Name: "q", Limits: []quantity.Amount{{Name: model.ResourceNodes, Value: 100}}}, 6},
		"nodes": {model.QuotaSpec{Name: "q", Limits: []quantity.Amount{{Name: model.ResourceNodes, Value: 4}}}, 4},
		"cpu":   {model.QuotaSpec{Name: "q", Limits: []quantity.Amount{{Name: "cpu", Value: 21_000}}}, 5},
		"USD":   {model.QuotaSpec{Name: "q", Limits: []quantity.Amount{{Name: model.ResourceUSD, Value: 2 * model.Nano}}}, 2},
		"of one pool": {model.QuotaSpec{Name: "q", Selector: []label.Requirement{ofPool("r")},
			Limits: []quantity.Amount{{Name: "cpu", Value: 5000}}}, 4},
	} {
		b := model.NewBuilder()
		for _, pool := range []string{"r", "s"} {
			spec := newStaticWorld(3, 0).pool
			spec.Name, spec.UID = pool, "uid-"+pool
			spec.Requirements = append([]label.Requirement{ofPool(pool)}, spec.Requirements[1:]...)
			b.UpsertPool(spec)
		}
		b.UpsertQuota(c.quota)
		s := disruption.Static(b.Snapshot(staticNoon))
		missing := int64(0)
		for _, short := range s.Short {
			missing += short.Missing
			if short.Verdict.Code != plan.QuotaReached || short.Verdict.Quota != "q" {
				t.Errorf("%s: pool %s is short by %d because of %+v", name, short.Pool, short.Missing, short.Verdict)
			}
		}
		if len(s.Create) != c.want || int(missing) != 6-c.want {
			t.Errorf("%s: %d nodes are created and %d missing, want %d of 6", name, len(s.Create), missing, c.want)
		}
	}
}
