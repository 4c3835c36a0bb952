// Package plantest has a cluster for the tests of plans, on which actions take effect at once. It is in memory and has
// no API, no controllers and no kube-scheduler.
//
// It knows the data of plans only, so that the tests of every package that decides about plans can use it.
package plantest

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

// Noon is when the clock of a World begins.
var Noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// World is a cluster on which actions take effect at once.
type World struct {
	T     testing.TB
	Now   time.Time
	Nodes map[string]*model.NodeSpec // by claim
	Pods  []model.PodSpec
	Pools []model.PoolSpec
	PDBs  []model.PDBSpec
	// Reasons are the claims with a disruption reason, Held those whose drain does not end.
	Reasons, Held map[string]bool
}

// catalog has the one type of all nodes, for a dollar an hour.
var catalog = model.Catalog{Types: []model.InstanceType{{
	Name: "t", Capacity: []quantity.Amount{{Name: "cpu", Value: 4000}}, Allocatable: []quantity.Amount{{Name: "cpu", Value: 4000}},
	Offerings: []model.Offering{{Zone: "z", CapacityType: "on-demand", Price: model.Nano, Available: true}},
}}}

// New returns a World with one pool without budgets and the given number of empty, quiet nodes n0, n1, ... with claims
// c0, c1, ...
func New(t testing.TB, nodes int) *World {
	w := &World{T: t, Now: Noon, Nodes: map[string]*model.NodeSpec{}, Reasons: map[string]bool{}, Held: map[string]bool{},
		Pools: []model.PoolSpec{{Name: "p", UID: "pool-uid", ConsolidateAfter: 30 * time.Second, Policy: "WhenEmpty", Catalog: &catalog}}}
	for i := range nodes {
		w.Add(fmt.Sprint("n", i), fmt.Sprint("c", i))
	}
	return w
}

// Add adds an initialized, quiet node and its claim.
func (w *World) Add(node, claim string) *model.NodeSpec {
	n := &model.NodeSpec{Name: node, UID: "uid-" + node, Claim: claim, ClaimUID: "uid-" + claim, Pool: "p", Stage: model.Initialized,
		InitializedAt: Noon.Add(-time.Hour), Ready: true,
		Labels:      map[string]string{model.LabelPool: "p", model.LabelType: "t", model.LabelZone: "z", model.LabelCapacityType: "on-demand"},
		Capacity:    []quantity.Amount{{Name: "cpu", Value: 4000}},
		Allocatable: []quantity.Amount{{Name: "cpu", Value: 4000}}}
	w.Nodes[claim] = n
	return n
}

// Bind puts a pod on a node. The prefix of its name is its kind: daemon-*, web-*.
func (w *World) Bind(pod, node string) {
	daemon := strings.HasPrefix(pod, "daemon")
	w.Pods = append(w.Pods, model.PodSpec{UID: "uid-" + pod, Namespace: "default", Name: pod, State: model.Bound,
		Node: node, Daemon: daemon, Reschedulable: !daemon,
		Ready: true, Labels: map[string]string{"app": pod}})
}

// Protect adds a PodDisruptionBudget for the pods of that name.
func (w *World) Protect(pod string, allowed int64) *model.PDBSpec {
	name := fmt.Sprint("pdb-", len(w.PDBs))
	w.PDBs = append(w.PDBs, model.PDBSpec{UID: name, Namespace: "default", Name: name, Allowed: allowed,
		Selector: model.Selector{Namespaces: []string{"default"},
			Requirements: []label.Requirement{{Key: "app", Operator: label.In, Values: []string{pod}}}}})
	return &w.PDBs[len(w.PDBs)-1]
}

// Pend adds a pending pod, with a nomination unless it is empty.
func (w *World) Pend(pod, nominated string) {
	w.Pods = append(w.Pods, model.PodSpec{UID: "uid-" + pod, Namespace: "default", Name: pod, State: model.Pending, Nominated: nominated,
		Requests: []quantity.Amount{{Name: "cpu", Value: 100}}})
}

// Snapshot returns the state of the cluster.
func (w *World) Snapshot() *model.Snapshot {
	b := model.NewBuilder()
	for _, p := range w.Pools {
		b.UpsertPool(p)
	}
	for _, n := range w.Nodes {
		b.UpsertNode(*n)
	}
	for _, p := range w.Pods {
		b.UpsertPod(p)
	}
	for _, pdb := range w.PDBs {
		b.UpsertPDB(pdb)
	}
	return b.Snapshot(w.Now)
}

// Command returns a command that removes the nodes of the claims because they are empty.
func (w *World) Command(claims ...string) plan.Command {
	var candidates []plan.Candidate
	for _, claim := range claims {
		n := w.Nodes[claim]
		candidates = append(candidates, plan.Candidate{Claim: claim, ClaimUID: n.ClaimUID, Node: n.Name, NodeUID: n.UID, Pool: n.Pool})
	}
	return plan.NewCommand(w.Now, plan.Empty, "empty", candidates)
}

// Node returns the node of that name, nil if there is none.
func (w *World) Node(name string) *model.NodeSpec {
	for _, n := range w.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Do performs an action as the API would, and fails the test when the action violates an invariant.
func (w *World) Do(action plan.Action) {
	w.T.Helper()
	switch a := action.(type) {
	case plan.TaintNode:
		if n := w.Node(a.Node); n != nil && n.UID == a.UID {
			if n.Command == "" {
				w.T.Fatalf("node %s is tainted before the command is written", n.Name)
			}
			n.Disrupted = true
		}
	case plan.UntaintNode:
		if n := w.Node(a.Node); n != nil && n.UID == a.UID {
			n.Disrupted = false
		}
	case plan.WriteCommand:
		if n := w.Nodes[a.Claim]; n != nil && n.ClaimUID == a.UID {
			n.Command = a.Command.Encode()
		}
	case plan.ClearCommand:
		if n := w.Nodes[a.Claim]; n != nil && n.ClaimUID == a.UID {
			if n.Disrupted && !n.Deleting {
				w.T.Fatalf("the command of claim %s is cleared while its node is tainted", n.Claim)
			}
			n.Command = ""
		}
	case plan.SetDisruptionReason:
		w.Reasons[a.Claim] = true
	case plan.ClearDisruptionReason:
		delete(w.Reasons, a.Claim)
	case plan.CreateClaim:
		if w.Nodes[a.NewClaim.Name] != nil {
			w.T.Fatalf("claim %s is created twice", a.NewClaim.Name)
		}
		w.Add(a.NewClaim.Name, a.NewClaim.Name).Stage = model.Launching
	case plan.DeleteClaim:
		if n := w.Nodes[a.Claim]; n != nil && n.ClaimUID == a.UID {
			if !n.Disrupted || n.Command == "" {
				w.T.Fatalf("claim %s is deleted without taint or command", n.Claim)
			}
			n.Deleting = true
		}
	case plan.MarkConsolidated:
		if n := w.Nodes[a.Claim]; n != nil && n.ClaimUID == a.UID {
			n.ConsolidatedAt = a.At.Truncate(time.Second) // the resolution of times in the API
		}
	case plan.MarkPodsSent:
		if n := w.Nodes[a.Claim]; n != nil && n.ClaimUID == a.UID {
			n.PodsSentAt = a.At.Truncate(time.Second)
		}
	case plan.SetPause:
		for i := range w.Pools {
			if w.Pools[i].UID == a.UID {
				w.Pools[i].Pauses = w.Pools[i].Pauses.With(a.Pause)
			}
		}
	case plan.EndPause:
		for i := range w.Pools {
			w.Pools[i].Pauses = w.Pools[i].Pauses.Without(a.Key)
		}
	default:
		w.T.Fatalf("no such action here: %v", action)
	}
}

// End deletes a claim without a command: it expires, or a user deletes it. Its drain does not end.
func (w *World) End(claim string) {
	if n := w.Nodes[claim]; n != nil {
		n.Deleting, w.Held[claim] = true, true
	}
}

// Settle advances the time and runs the other controllers: deleted claims disappear if their drain ends, created ones
// become nodes.
func (w *World) Settle() {
	w.Now = w.Now.Add(2 * time.Second)
	for claim, n := range w.Nodes {
		if n.Deleting && !w.Held[claim] {
			delete(w.Nodes, claim)
		}
		n.Stage = model.Initialized
	}
}

// Clean fails the test when a trace of a command is left. A node that is being deleted keeps its taint.
func (w *World) Clean() {
	w.T.Helper()
	for claim, n := range w.Nodes {
		if n.Command != "" || !n.Deleting && (n.Disrupted || w.Reasons[claim]) {
			w.T.Errorf("left on %s: taint %v, reason %v, command %q", n.Name, n.Disrupted, w.Reasons[claim], n.Command)
		}
	}
}

// Texts returns the sorted texts of the actions, one a line.
func Texts(actions []plan.Action) string {
	var lines []string
	for _, a := range actions {
		lines = append(lines, a.String())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
