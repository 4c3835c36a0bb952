// Package execute carries out plans. It is the only writer for what the engine decides.
//
//	loop: provision                    loop: disrupt
//	    | *plan.Provision                  | []plan.Command
//	    v                                  v
//	Provision ---- one lock: newest snapshot, check, first write ---- Advance, Act (static pools)
//	    |                                  |
//	    +---------> Do([]plan.Action) <----+      bounded parallel API writes, each idempotent
//	                   |            |
//	                   v            v
//	               API server    Store.Wrote       so that the next snapshot has the write before the watch event
//
// Every write may be repeated. Objects are identified by UID. A write to an object that is gone, or was replaced by
// another one of the same name, does nothing and succeeds, because the next step is decided from the current state. A
// create whose name is taken by a live claim succeeds too: claims have deterministic names, so it is the same claim,
// created before a crash. Lists (taints, conditions) are patched under an optimistic lock and read live after a
// conflict. A failed write of one object does not stop the others. The loops repeat the remaining writes, because
// they decide from the state of the cluster.
//
// The package must not make decisions: no selection, no ordering, no policy. It must not depend on the cloud's
// machines. Of package cloud it uses only the formatting of resource quantities.
package execute

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Store receives every object that was written, as the API server returned it, and every object whose deletion the
// API server accepted.
type Store interface {
	Wrote(object client.Object)
	Deleted(object client.Object)
	// Refuse records that the API server rejects a claim of the pool with that UID, and why.
	Refuse(pool, uid, why string)
}

// workers is the number of concurrent writes, unless Workers is set. The client's own rate limit applies in addition.
const workers = 64

// Executor performs actions. Set the exported fields before the first use and do not change them afterward. It is
// safe for concurrent use.
type Executor struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Nominations writes nominations. Nil means Client. A client with its own rate limit prevents a thousand
	// nominations from delaying other writes.
	Nominations client.Client
	Store       Store
	// Overlays reports whether NodeOverlays changed the price, or the capacity, of a type that a new claim may become.
	// It may be nil.
	Overlays func(claim *karpv1.NodeClaim) (price, capacity bool)
	Metrics  *telemetry.Metrics
	Recorder *telemetry.Recorder
	// WellKnown holds the labels that a claim need not carry for its node to get them: the well-known labels of
	// karpenter.sh and those of the provider.
	WellKnown map[string]bool

	// WriteTimeout bounds one action, including retries. 0 means 15 s. CordonQuiet is that of guard.Guard.
	WriteTimeout time.Duration
	CordonQuiet  time.Duration
	// Workers is the number of concurrent writes of one call. 0 means 64.
	Workers int
	// Guard returns the guard for commands. Nil means guard.New.
	Guard func(*model.Snapshot) *guard.Guard

	// mu serializes "check, then first write" of both loops.
	mu sync.Mutex
}

// Outcome is the result of an action. A nil Err means success. A *NotNowError means that a later attempt may succeed.
type Outcome struct {
	Action plan.Action
	Err    error
	// Begin and End are when it was performed; zero for notes on pools.
	Begin, End time.Time
}

// Failures returns the outcomes with an error.
func Failures(outcomes []Outcome) []Outcome {
	var failed []Outcome
	for _, o := range outcomes {
		if o.Err != nil {
			failed = append(failed, o)
		}
	}
	return failed
}

// Do performs the actions in parallel and returns their outcomes in the same order. Notes on one pool are one write.
func (x *Executor) Do(ctx context.Context, actions []plan.Action) []Outcome {
	outcomes := make([]Outcome, len(actions))
	slots := make(chan struct{}, cmp.Or(x.Workers, workers))
	var running sync.WaitGroup
	for _, group := range together(actions) {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, cmp.Or(x.WriteTimeout, 15*time.Second))
			defer cancel()
			x.perform(ctx, actions, group, outcomes)
		})
	}
	running.Wait()
	return outcomes
}

// perform performs the actions of one write.
func (x *Executor) perform(ctx context.Context, actions []plan.Action, group []int, outcomes []Outcome) {
	var notes []pauseNote
	for _, i := range group {
		if note, is := pauseNoteOf(actions[i]); is {
			notes = append(notes, note)
			continue
		}
		begin := time.Now()
		err := x.do(ctx, actions[i])
		outcomes[i] = Outcome{Action: actions[i], Err: err, Begin: begin, End: time.Now()}
	}
	if len(notes) == 0 {
		return
	}
	err := x.annotatePool(ctx, notes)
	for _, i := range group {
		outcomes[i].Action = actions[i]
		if err != nil {
			outcomes[i].Err = fmt.Errorf("%s: %w", actions[i], err)
		}
	}
}

// Provisioned is the result of a plan.
type Provisioned struct {
	// Plan is the part that was still valid.
	Plan *plan.Provision
	// Dropped is the part that was no longer valid.
	Dropped []guard.Dropped
	// Outcomes are those of all claims in Plan (plan.Provision.AllClaims), in their order.
	Outcomes []Outcome
}

// Provision creates the claims of a plan as far as the newest snapshot still supports it.
func (x *Executor) Provision(ctx context.Context, newest func() *model.Snapshot, p *plan.Provision) Provisioned {
	x.mu.Lock()
	defer x.mu.Unlock()
	snap := newest()
	kept, dropped := guard.CheckProvision(snap, p)
	claims := kept.AllClaims()
	actions := make([]plan.Action, len(claims))
	for i, claim := range claims {
		actions[i] = plan.CreateClaim{NewClaim: claim, Reason: telemetry.CreatedProvisioned}
	}
	return Provisioned{Plan: kept, Dropped: dropped, Outcomes: x.Do(ctx, actions)}
}

// Act decides on the newest snapshot and performs the decision before any other loop decides. No separate check is
// needed. It returns the outcomes of the actions.
func (x *Executor) Act(ctx context.Context, newest func() *model.Snapshot, decide func(*model.Snapshot) []plan.Action) []Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.Do(ctx, decide(newest()))
}

func (x *Executor) newGuard(snap *model.Snapshot) *guard.Guard {
	if x.Guard == nil {
		return guard.New(snap)
	}
	return x.Guard(snap)
}

// Advanced is a command after one step.
type Advanced struct {
	Command  plan.Command
	Outcomes []Outcome
}

// Advance takes one step with each command. It checks safety again on the newest snapshot, and performs the actions
// of the step. It returns the commands after the step, in the same order, with the outcomes of their actions. The
// order of the commands decides which of them use up the budgets.
func (x *Executor) Advance(ctx context.Context, newest func() *model.Snapshot, commands []plan.Command) []Advanced {
	if len(commands) == 0 {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.newGuard(newest())
	g.CordonQuiet = cmp.Or(x.CordonQuiet, g.CordonQuiet)
	advanced := make([]Advanced, len(commands))
	var actions []plan.Action
	ends := make([]int, len(commands))
	for i, command := range commands {
		var more []plan.Action
		advanced[i].Command, more = g.Step(command)
		actions = append(actions, more...)
		ends[i] = len(actions)
	}
	outcomes := x.Do(ctx, actions)
	from := 0
	for i, to := range ends {
		advanced[i].Outcomes = outcomes[from:to:to]
		from = to
	}
	return advanced
}
