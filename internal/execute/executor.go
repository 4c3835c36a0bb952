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
//	               API server    Store.Wrote       so that the next snapshot knows, before the watch tells
//
// Every write may be done twice. Objects are named by UID: to an object that came later under the same name, and to
// one that is gone, nothing is done, and that is success, because the next step is decided from what is there then.
// A create that finds its name taken by a claim that lives means success too: claims have deterministic names, so it
// is this same claim, created before a crash. Lists (taints, conditions) are patched under an optimistic lock and
// read live after a conflict. The failure of one object's write stops no other's; the loops come back for what is
// left, since they decide from the cluster and not from what they remember.
//
// The package must not decide anything: no selection, no ordering, no policy. It must not know the cloud's
// machines: of package cloud it uses how amounts of resources are written.
package execute

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Store is told of every object that was written, as the API returned it, and of every one whose deletion the API
// accepted.
type Store interface {
	Wrote(object client.Object)
	Deleted(object client.Object)
	// Refuse tells that the API server refuses a claim of the pool with that UID, and why.
	Refuse(pool, uid, why string)
}

// parallelWrites is how many writes are under way at most; the client's own rate limit comes on top.
const parallelWrites = 64

// Executor performs actions. Set the exported fields before the first use and leave them alone then. It may be used by
// several goroutines.
type Executor struct {
	// Client writes, and reads from the cache.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Nominations writes nominations; nil means Client. A client with a rate limit of its own keeps a thousand
	// nominations from standing in the way of everything else.
	Nominations client.Client
	Store       Store
	Metrics     *telemetry.Metrics
	Recorder    *telemetry.Recorder
	// WellKnown are the labels that a claim need not carry as labels for its node to get them: the core's and the
	// provider's.
	WellKnown map[string]bool

	// WriteTimeout bounds one action, retries included; 0 means 15 s. CordonQuiet is that of plan.Guard.
	WriteTimeout time.Duration
	CordonQuiet  time.Duration
	// Guard makes the guard that commands are stepped with; nil means plan.NewGuard.
	Guard func(*model.Snapshot) *plan.Guard

	// mu orders "check, then first write" of both loops.
	mu sync.Mutex
}

// Outcome is how an action ended. Nil Err is success; a *NotNowError says that waiting may help.
type Outcome struct {
	Action plan.Action
	Err    error
}

// Failures are the outcomes with an error.
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
	slots := make(chan struct{}, parallelWrites)
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

// perform does the actions of one write.
func (x *Executor) perform(ctx context.Context, actions []plan.Action, group []int, outcomes []Outcome) {
	var notes []poolNote
	for _, i := range group {
		if note, is := poolNoteOf(actions[i]); is {
			notes = append(notes, note)
			continue
		}
		outcomes[i] = Outcome{Action: actions[i], Err: x.do(ctx, actions[i])}
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

// Provisioned is what became of a plan.
type Provisioned struct {
	// Plan is the part that was still right.
	Plan *plan.Provision
	// Dropped was no longer right.
	Dropped []plan.Dropped
	// Outcomes of the claims of Plan, in their order.
	Outcomes []Outcome
	// Reserved are the outcomes of the reservations on claims that are there.
	Reserved []Outcome
}

// Provision creates the claims of a plan as far as the newest snapshot still agrees with it. Reservations on claims that are there
// come first: a process that finds the new claims without them would plan the other pods anew.
func (x *Executor) Provision(ctx context.Context, newest func() *model.Snapshot, p *plan.Provision) Provisioned {
	x.mu.Lock()
	defer x.mu.Unlock()
	snap := newest()
	kept, dropped := plan.CheckProvision(snap, p)
	reserved := x.Do(ctx, plan.Reservations(snap, kept))
	actions := make([]plan.Action, len(kept.Claims))
	for i, claim := range kept.Claims {
		actions[i] = plan.CreateClaim{NewClaim: claim, Reason: telemetry.CreatedProvisioned}
	}
	return Provisioned{Plan: kept, Dropped: dropped, Outcomes: x.Do(ctx, actions), Reserved: reserved}
}

// Act decides on the newest snapshot and does what is decided, before any other loop decides anything: the check and the
// decision are one.
func (x *Executor) Act(ctx context.Context, newest func() *model.Snapshot, decide func(*model.Snapshot) []plan.Action) []Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.Do(ctx, decide(newest()))
}

func (x *Executor) newGuard(snap *model.Snapshot) *plan.Guard {
	if x.Guard == nil {
		return plan.NewGuard(snap)
	}
	return x.Guard(snap)
}

// Advanced is a command after one step.
type Advanced struct {
	Command  plan.Command
	Outcomes []Outcome
}

// Advance takes one step with each command on the newest snapshot, where its safety is checked again, and does what
// the step asks for. The order of the commands decides who gets the budgets.
func (x *Executor) Advance(ctx context.Context, newest func() *model.Snapshot, commands []plan.Command) []Advanced {
	if len(commands) == 0 {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	guard := x.newGuard(newest())
	guard.CordonQuiet = cmp.Or(x.CordonQuiet, guard.CordonQuiet)
	advanced := make([]Advanced, len(commands))
	var actions []plan.Action
	ends := make([]int, len(commands))
	for i, command := range commands {
		var more []plan.Action
		advanced[i].Command, more = guard.Step(command)
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
