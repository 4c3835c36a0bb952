// Package loopcluster is an in-memory cluster for the tests of the loops (controller/provision, disrupt and static).
//
//	loop --Snapshot--> Cluster --> plantest.World
//	loop --Provision, Advance, Do, Act--> Cluster: records the action as text --> plantest.World: executes at once
//
// It must not depend on the loops: each of their tests builds its loop over a Cluster.
package loopcluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// Noon is the time at which the clock of a new cluster starts.
var Noon = plantest.Noon

// Cluster is an in-memory cluster that executes actions at once, and can refuse some.
type Cluster struct {
	mu    sync.Mutex
	world *plantest.World
	Clock *clocktesting.FakeClock
	Nodes map[string]*model.NodeSpec // by claim
	Pods  map[string]*model.PodSpec  // by UID
	Pool  *model.PoolSpec
	// Refuse makes actions fail whose text contains it, when it is not empty.
	Refuse string
	// Log holds the actions since the last call of Took.
	Log []string
}

// Lock keeps loops in other goroutines from reading or changing the cluster until Unlock.
func (c *Cluster) Lock() { c.mu.Lock() }

// Unlock ends what Lock began.
func (c *Cluster) Unlock() { c.mu.Unlock() }

// New returns a cluster with one pool and no nodes.
func New(t testing.TB) *Cluster {
	w := plantest.New(t, 0)
	w.Pools[0] = model.PoolSpec{Name: "p", UID: "pool-uid", ConsolidateAfter: 30 * time.Second}
	return &Cluster{world: w, Clock: clocktesting.NewFakeClock(Noon), Nodes: w.Nodes, Pods: map[string]*model.PodSpec{}, Pool: &w.Pools[0]}
}

// Node adds a node of the pool with its claim.
func (c *Cluster) Node(name string, stage model.Stage) *model.NodeSpec {
	n := &model.NodeSpec{Name: name, UID: "uid-" + name, Claim: "c-" + name, ClaimUID: "uid-c-" + name, Pool: "p", Stage: stage,
		InitializedAt: Noon, Ready: true, Labels: map[string]string{model.LabelPool: "p"},
		Capacity: []quantity.Amount{{Name: "pods", Value: 10}}, Allocatable: []quantity.Amount{{Name: "pods", Value: 10}}}
	c.Nodes[n.Claim] = n
	return n
}

// Pending adds a pending pod.
func (c *Cluster) Pending(name, nominated string) {
	c.Pods["uid-"+name] = &model.PodSpec{UID: "uid-" + name, Namespace: "default", Name: name, Nominated: nominated, Requests: []quantity.Amount{{Name: "pods", Value: 1}}}
}

// Bound adds a pod that runs on the node.
func (c *Cluster) Bound(name, node string) {
	c.Pending(name, "")
	c.Pods["uid-"+name].State, c.Pods["uid-"+name].Node, c.Pods["uid-"+name].Reschedulable = model.Bound, node, true
}

// Snapshot returns the current state.
func (c *Cluster) Snapshot() *model.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.world.Now, c.world.Nodes, c.world.Pods = c.Clock.Now(), c.Nodes, nil
	for _, p := range c.Pods {
		c.world.Pods = append(c.world.Pods, *p)
	}
	return c.world.Snapshot()
}

// Provision creates the claims of a plan, as the executor does.
func (c *Cluster) Provision(ctx context.Context, newest func() *model.Snapshot, p *plan.Provision) execute.Provisioned {
	snap := newest()
	kept, dropped := guard.CheckProvision(snap, p)
	var actions []plan.Action
	for _, claim := range kept.AllClaims() {
		actions = append(actions, plan.CreateClaim{NewClaim: claim, Reason: "provisioned"})
	}
	return execute.Provisioned{Plan: kept, Dropped: dropped, Outcomes: c.Do(ctx, actions)}
}

// Advance takes one step of each command, as the executor does.
func (c *Cluster) Advance(ctx context.Context, newest func() *model.Snapshot, commands []plan.Command) []execute.Advanced {
	g := guard.New(newest())
	advanced := make([]execute.Advanced, len(commands))
	for i, command := range commands {
		next, actions := g.Step(command)
		advanced[i] = execute.Advanced{Command: next, Outcomes: c.Do(ctx, actions)}
	}
	return advanced
}

// Do executes the actions.
func (c *Cluster) Do(_ context.Context, actions []plan.Action) []execute.Outcome {
	outcomes := make([]execute.Outcome, len(actions))
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, action := range actions {
		outcomes[i] = execute.Outcome{Action: action}
		text := action.String()
		if c.Refuse != "" && strings.Contains(text, c.Refuse) {
			outcomes[i].Err = errors.New("refused")
			text += " (refused)"
		} else {
			c.do(action)
		}
		if cmd, ok := action.(plan.WriteCommand); ok {
			text = strings.ReplaceAll(text, cmd.Command.ID, "ID")
		}
		c.Log = append(c.Log, text)
	}
	return outcomes
}

func (c *Cluster) do(action plan.Action) {
	switch a := action.(type) {
	case plan.CreateClaim:
		c.Nodes[a.NewClaim.Name] = &model.NodeSpec{Name: a.NewClaim.Name, Claim: a.NewClaim.Name, ClaimUID: "uid-" + a.NewClaim.Name,
			Pool: "p", Stage: model.Launching,
			Requirements: a.NewClaim.Requirements, Requests: a.NewClaim.Requests}
	case plan.DeleteClaim: // of a static pool, too, for which there is no command
		c.Nodes[a.Claim].Deleting = true
	case plan.NominatePod:
		c.Pods[a.UID].Nominated = a.Node
	case plan.ClearNomination:
		c.Pods[a.UID].Nominated = ""
	default:
		c.world.Do(action)
	}
}

// Took returns the actions since the last call, sorted.
func (c *Cluster) Took() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.Log)
	text := strings.Join(c.Log, "\n")
	c.Log = nil
	return text
}

// Act executes what is decided on the newest snapshot.
func (c *Cluster) Act(ctx context.Context, newest func() *model.Snapshot, decide func(*model.Snapshot) []plan.Action) []execute.Outcome {
	return c.Do(ctx, decide(newest()))
}

// Static makes the pool static and gives it an available offering.
func (c *Cluster) Static(replicas int64) {
	amounts := []quantity.Amount{{Name: "pods", Value: 10}}
	c.Pool.Static, c.Pool.Replicas, c.Pool.Blocked = true, replicas, model.StaticBlock()
	c.Pool.Catalog = &model.Catalog{Types: []model.InstanceType{{Name: "m", Capacity: amounts, Allocatable: amounts,
		Requirements: []label.Requirement{{Key: model.LabelType, Operator: label.In, Values: []string{"m"}}},
		Offerings:    []model.Offering{{Zone: "z", CapacityType: "on-demand", Price: 1, Available: true}}}},
		WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}}
}
