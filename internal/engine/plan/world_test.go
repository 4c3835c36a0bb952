package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// world is a cluster on which actions take effect at once.
type world struct {
	t     testing.TB
	now   time.Time
	nodes map[string]*model.NodeSpec // by claim
	pods  []model.PodSpec
	pools []model.PoolSpec
	pdbs  []model.PDBSpec
	// reasons are the claims with a disruption reason, held those whose drain does not end.
	reasons, held map[string]bool
}

// onSale is the catalog: the one type of all nodes, for a dollar an hour.
var onSale = model.Catalogue{Types: []model.InstanceType{{
	Name: "t", Capacity: []quantity.Amount{{Name: "cpu", Value: 4000}}, Allocatable: []quantity.Amount{{Name: "cpu", Value: 4000}},
	Offerings: []model.Offering{{Zone: "z", CapacityType: "on-demand", Price: model.Nano, Available: true}},
}}}

// newWorld has one pool without budgets and the given number of empty, quiet nodes n0, n1, ... with claims c0, c1, ...
func newWorld(t testing.TB, nodes int) *world {
	w := &world{t: t, now: noon, nodes: map[string]*model.NodeSpec{}, reasons: map[string]bool{}, held: map[string]bool{},
		pools: []model.PoolSpec{{Name: "p", UID: "pool-uid", ConsolidateAfter: 30 * time.Second, Policy: "WhenEmpty", Catalogue: &onSale}}}
	for i := range nodes {
		w.add(fmt.Sprint("n", i), fmt.Sprint("c", i))
	}
	return w
}

func (w *world) add(node, claim string) *model.NodeSpec {
	n := &model.NodeSpec{Name: node, UID: "uid-" + node, Claim: claim, ClaimUID: "uid-" + claim, Pool: "p", Stage: model.Initialized,
		InitializedAt: noon.Add(-time.Hour), Ready: true,
		Labels:      map[string]string{model.LabelPool: "p", model.LabelType: "t", model.LabelZone: "z", model.LabelCapacityType: "on-demand"},
		Capacity:    []quantity.Amount{{Name: "cpu", Value: 4000}},
		Allocatable: []quantity.Amount{{Name: "cpu", Value: 4000}}}
	w.nodes[claim] = n
	return n
}

// bind puts a pod on a node. The prefix of its name is its kind: daemon-*, web-*.
func (w *world) bind(pod, node string) {
	daemon := strings.HasPrefix(pod, "daemon")
	w.pods = append(w.pods, model.PodSpec{UID: "uid-" + pod, Namespace: "default", Name: pod, State: model.Bound, Node: node, Daemon: daemon, Reschedulable: !daemon,
		Ready: true, Labels: map[string]string{"app": pod}})
}

// guard adds a PodDisruptionBudget for the pods of that name.
func (w *world) guard(pod string, allowed int64) *model.PDBSpec {
	name := fmt.Sprint("pdb-", len(w.pdbs))
	w.pdbs = append(w.pdbs, model.PDBSpec{UID: name, Namespace: "default", Name: name, Allowed: allowed,
		Selector: model.Selector{Namespaces: []string{"default"}, Requirements: []label.Requirement{{Key: "app", Operator: label.In, Values: []string{pod}}}}})
	return &w.pdbs[len(w.pdbs)-1]
}

func (w *world) pend(pod, nominated string) {
	w.pods = append(w.pods, model.PodSpec{UID: "uid-" + pod, Namespace: "default", Name: pod, State: model.Pending, Nominated: nominated,
		Requests: []quantity.Amount{{Name: "cpu", Value: 100}}})
}

func (w *world) snapshot() *model.Snapshot {
	b := model.NewBuilder()
	for _, p := range w.pools {
		b.UpsertPool(p)
	}
	for _, n := range w.nodes {
		b.UpsertNode(*n)
	}
	for _, p := range w.pods {
		b.UpsertPod(p)
	}
	for _, pdb := range w.pdbs {
		b.UpsertPDB(pdb)
	}
	return b.Snapshot(w.now)
}

func (w *world) command(claims ...string) plan.Command {
	var candidates []plan.Candidate
	for _, claim := range claims {
		n := w.nodes[claim]
		candidates = append(candidates, plan.Candidate{Claim: claim, ClaimUID: n.ClaimUID, Node: n.Name, NodeUID: n.UID, Pool: n.Pool})
	}
	return plan.NewCommand(w.now, plan.Empty, "empty", candidates)
}

func (w *world) node(name string) *model.NodeSpec {
	for _, n := range w.nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// do performs an action as the API would, and fails the test when the action violates an invariant.
func (w *world) do(action plan.Action) {
	w.t.Helper()
	switch a := action.(type) {
	case plan.TaintNode:
		if n := w.node(a.Node); n != nil && n.UID == a.UID {
			if n.Command == "" {
				w.t.Fatalf("node %s is tainted before the command is written", n.Name)
			}
			n.Disrupted = true
		}
	case plan.UntaintNode:
		if n := w.node(a.Node); n != nil && n.UID == a.UID {
			n.Disrupted = false
		}
	case plan.WriteCommand:
		if n := w.nodes[a.Claim]; n != nil && n.ClaimUID == a.UID {
			n.Command = a.Command.Encode()
		}
	case plan.ClearCommand:
		if n := w.nodes[a.Claim]; n != nil && n.ClaimUID == a.UID {
			if n.Disrupted && !n.Deleting {
				w.t.Fatalf("the command of claim %s is cleared while its node is tainted", n.Claim)
			}
			n.Command = ""
		}
	case plan.SetDisruptionReason:
		w.reasons[a.Claim] = true
	case plan.ClearDisruptionReason:
		delete(w.reasons, a.Claim)
	case plan.CreateClaim:
		if w.nodes[a.NewClaim.Name] != nil {
			w.t.Fatalf("claim %s is created twice", a.NewClaim.Name)
		}
		w.add(a.NewClaim.Name, a.NewClaim.Name).Stage = model.Launching
	case plan.DeleteClaim:
		if n := w.nodes[a.Claim]; n != nil && n.ClaimUID == a.UID {
			if !n.Disrupted || n.Command == "" {
				w.t.Fatalf("claim %s is deleted without taint or command", n.Claim)
			}
			n.Deleting = true
		}
	case plan.MarkConsolidated:
		if n := w.nodes[a.Claim]; n != nil && n.ClaimUID == a.UID {
			n.ConsolidatedAt = a.At.Truncate(time.Second) // the resolution of times in the API
		}
	case plan.MarkExpecting:
		if n := w.nodes[a.Claim]; n != nil && n.ClaimUID == a.UID {
			n.ExpectingSince = a.At.Truncate(time.Second)
		}
	case plan.NoteBackoff:
		for i := range w.pools {
			if w.pools[i].UID == a.UID {
				w.pools[i].Backoffs = []model.Backoff{a.Backoff}
			}
		}
	case plan.ClearBackoff:
		for i := range w.pools {
			w.pools[i].Backoffs = nil
		}
	default:
		w.t.Fatalf("no such action here: %v", action)
	}
}

// end deletes a claim without a command: it expires, or a user deletes it. Its drain does not end.
func (w *world) end(claim string) {
	if n := w.nodes[claim]; n != nil {
		n.Deleting, w.held[claim] = true, true
	}
}

// settle advances the time and runs the other controllers: deleted claims disappear if their drain ends, created ones
// become nodes.
func (w *world) settle() {
	w.now = w.now.Add(2 * time.Second)
	for claim, n := range w.nodes {
		if n.Deleting && !w.held[claim] {
			delete(w.nodes, claim)
		}
		n.Stage = model.Initialized
	}
}

// clean fails the test when a trace of a command is left. A node that is being deleted keeps its taint.
func (w *world) clean() {
	w.t.Helper()
	for claim, n := range w.nodes {
		if n.Command != "" || !n.Deleting && (n.Disrupted || w.reasons[claim]) {
			w.t.Errorf("left on %s: taint %v, reason %v, command %q", n.Name, n.Disrupted, w.reasons[claim], n.Command)
		}
	}
}

func texts(actions []plan.Action) string {
	var lines []string
	for _, a := range actions {
		lines = append(lines, a.String())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
