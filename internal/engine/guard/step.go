package guard

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// CordonQuiet is the default time between the taint and the deletion of claims, see Guard. kube-scheduler may have
// selected the node just before it saw the taint, and that binding must reach the snapshot first.
const CordonQuiet = time.Second

// Validation is the default time that a command which moves pods to reduce cost waits before it is carried out.
const Validation = 15 * time.Second

// Step returns the command in the state that the snapshot shows, and the writes that continue from there. It is pure:
// after a crash at any write, the same call on a snapshot with the completed writes returns the remaining ones. The
// actions of one step may be done in any order and in parallel. The next step is computed when they are done.
func Step(snap *model.Snapshot, cmd plan.Command) (plan.Command, []plan.Action) {
	return New(snap).Step(cmd)
}

// Step is like the function Step. Commands stepped with one guard share the budgets in the order of the calls.
func (g *Guard) Step(cmd plan.Command) (plan.Command, []plan.Action) {
	switch cmd.Phase {
	case plan.Proposed:
		return g.stepProposed(cmd)
	case plan.Cordoned:
		return g.stepCordoned(cmd)
	case plan.Launching:
		return g.stepLaunching(cmd)
	case plan.Draining:
		if len(g.remaining(cmd).Candidates) > 0 { // a deletion failed
			return g.drainAgain(cmd)
		}
		return g.stepDraining(cmd)
	case plan.Abandoned:
		return cmd, g.rollback(cmd)
	}
	return cmd, nil
}

func (g *Guard) stepProposed(cmd plan.Command) (plan.Command, []plan.Action) {
	now := g.snap.Now
	if g.allLeaving(cmd) {
		return g.stepDraining(inPhase(cmd, plan.Draining, now))
	}
	if v := g.stillSafe(cmd); !v.OK() {
		return g.abandon(cmd, v)
	}
	// 1. The command is stored in the API before any effect is visible.
	if actions := g.writes(cmd); len(actions) > 0 {
		return cmd, actions
	}
	// 2. A command that moves pods to reduce cost waits. Then it is judged, before any effect is visible.
	if judged(cmd) && now.Before(cmd.Created.Add(g.Validation)) {
		return cmd, nil
	}
	// 3. The taints keep new pods away.
	if actions := g.taints(cmd); len(actions) > 0 {
		if v := g.judge(cmd); !v.OK() {
			return g.abandon(cmd, v)
		}
		return cmd, actions
	}
	return g.proceed(inPhase(cmd, plan.Cordoned, now))
}

func (g *Guard) stepCordoned(cmd plan.Command) (plan.Command, []plan.Action) {
	if g.allLeaving(cmd) {
		return g.stepDraining(inPhase(cmd, plan.Draining, g.snap.Now))
	}
	if v := g.stillSafe(cmd); !v.OK() {
		return g.abandon(cmd, v)
	}
	if actions := g.taints(cmd); len(actions) > 0 { // the taint was removed, and a pod may have been bound since
		cmd.PhaseSince = g.snap.Now
		return cmd, actions
	}
	return g.proceed(cmd)
}

// stillSafe runs Check and verifies the deadline: a command that cannot begin (a write that is always refused) must not
// occupy the budget forever.
func (g *Guard) stillSafe(cmd plan.Command) plan.Verdict {
	if g.snap.Now.After(cmd.Deadline) {
		return plan.Verdict{Code: plan.DeadlinePassed}
	}
	return g.Admit(cmd)
}

// proceed continues a command that is cordoned and, according to this snapshot, safe.
func (g *Guard) proceed(cmd plan.Command) (plan.Command, []plan.Action) {
	now := g.snap.Now
	if now.Before(cmd.PhaseSince.Add(g.CordonQuiet)) && !g.begun(cmd) {
		return cmd, nil
	}
	missing := slices.DeleteFunc(slices.Clone(cmd.Replacements), func(r plan.NewClaim) bool { return g.snap.Claim(r.Name) != nil })
	if p, is := g.superseded(cmd); is && len(missing) == len(cmd.Replacements) && !g.begun(cmd) {
		v := plan.PausedVerdict(p)
		v.Node = cmd.Candidates[0].Node
		return g.abandon(cmd, v)
	}
	if len(cmd.Replacements) == 0 {
		if v := g.judge(cmd); !v.OK() {
			return g.abandon(cmd, v)
		}
		return g.stepDraining(inPhase(cmd, plan.Draining, now))
	}
	if len(missing) == 0 {
		return g.stepLaunching(inPhase(cmd, plan.Launching, now))
	}
	// An older proposal may no longer be valid: other launches have used the limits, or the pool has changed.
	if v := g.takeLimits(missing); !v.OK() {
		return g.abandon(cmd, v)
	}
	actions := make([]plan.Action, len(missing))
	for i, r := range missing {
		actions[i] = plan.CreateClaim{NewClaim: r, Reason: strings.ToLower(string(cmd.Reason))}
	}
	return cmd, actions
}

// takeLimits reports whether the claims may be launched. If so, it charges them to the ledger that the commands stepped
// with this guard share.
func (g *Guard) takeLimits(claims []plan.NewClaim) plan.Verdict {
	trial := g.ledger.Clone()
	for i := range claims {
		v := poolVerdict(g.snap, &claims[i])
		if v.OK() {
			v = claims[i].Charge(g.snap, trial)
		}
		if !v.OK() {
			return v
		}
	}
	g.ledger = trial
	return plan.Verdict{}
}

func (g *Guard) stepLaunching(cmd plan.Command) (plan.Command, []plan.Action) {
	now := g.snap.Now
	if g.allLeaving(cmd) {
		return g.stepDraining(inPhase(cmd, plan.Draining, now))
	}
	if actions := g.writes(cmd); len(actions) > 0 {
		return cmd, actions
	}
	if actions := g.taints(cmd); len(actions) > 0 {
		cmd.PhaseSince = now
		return cmd, actions
	}
	ready := true
	for _, r := range cmd.Replacements {
		n := g.snap.Claim(r.Name)
		if n == nil || n.Deleting {
			return g.abandon(cmd, plan.Verdict{Code: plan.ReplacementLost, Node: r.Name})
		}
		ready = ready && n.Stage == model.Initialized && n.Ready
	}
	switch {
	case ready && (g.begun(cmd) || !now.Before(cmd.PhaseSince.Add(g.CordonQuiet))):
		return g.drainIfRight(cmd)
	case now.After(cmd.Deadline):
		return g.abandon(cmd, plan.Verdict{Code: plan.DeadlinePassed, Have: int64(len(cmd.Replacements))})
	}
	return cmd, nil
}

// drainIfRight continues a command whose replacements are ready, or that has begun to delete. Minutes may have passed
// since the last check of the whole command. Temporary refusals are waited for, because no pod has been moved yet and
// the replacements are running.
func (g *Guard) drainIfRight(cmd plan.Command) (plan.Command, []plan.Action) {
	v := g.Admit(cmd)
	if v.OK() {
		v = g.judge(cmd)
	}
	if v.OK() {
		v = g.roomForRenewal(cmd)
	}
	passing := v.Code == plan.PDBBlocks || v.Code == plan.BudgetExhausted || v.Code == plan.PodsHomeless && !judged(cmd)
	switch {
	case v.OK():
		return g.stepDraining(inPhase(cmd, plan.Draining, g.snap.Now))
	case passing && !g.snap.Now.After(cmd.Deadline):
		return cmd, nil
	}
	return g.abandon(cmd, v)
}

// drainAgain continues a command of which some deletions failed. It may have waited since, and another command may have
// removed a replacement meanwhile. The nodes that remain are then kept. That is no failure of the replacement.
func (g *Guard) drainAgain(cmd plan.Command) (plan.Command, []plan.Action) {
	for _, r := range cmd.Replacements {
		if n := g.snap.Claim(r.Name); n == nil || n.Deleting {
			return g.abandon(cmd, plan.Verdict{Code: plan.NodeGone, Node: r.Name})
		}
	}
	return g.drainIfRight(cmd)
}

// judged reports whether Guard.Judge checks the command. Drifted and expired nodes are removed at any cost, and
// removing an empty node has no cost.
func judged(cmd plan.Command) bool { return cmd.Reason == plan.Underutilized }

// roomForRenewal checks whether the pods of drifted or expired nodes still fit elsewhere: pending pods may have taken
// the capacity launched for them. At this phase the plan includes them (see Ahead), so the refusal is temporary. The
// nodes of a static pool are replaced one by one, regardless of their pods.
func (g *Guard) roomForRenewal(cmd plan.Command) plan.Verdict {
	pool := g.snap.Pool(cmd.Candidates[0].Pool)
	if g.Judge == nil || judged(cmd) || len(cmd.Replacements) == 0 || pool == nil || pool.Static {
		return plan.Verdict{}
	}
	if v := g.Judge(g.remaining(cmd)); v.Code == plan.PodsHomeless {
		return v
	}
	return plan.Verdict{}
}

func (g *Guard) judge(cmd plan.Command) plan.Verdict {
	if g.Judge == nil || !judged(cmd) {
		return plan.Verdict{}
	}
	return g.Judge(g.remaining(cmd))
}

func (g *Guard) stepDraining(cmd plan.Command) (plan.Command, []plan.Action) {
	var actions []plan.Action
	left := false
	for _, c := range cmd.Candidates {
		n := g.candidate(c)
		if n == nil {
			continue
		}
		left = true
		if !n.Deleting {
			actions = append(actions, plan.DeleteClaim{Claim: c.Claim, UID: c.ClaimUID, Reason: cmd.Reason})
		}
	}
	arrivalNotes := g.arrivalNotes(cmd)
	if !left && g.arrivalsRecorded(&cmd, arrivalNotes) {
		return inPhase(cmd, plan.Done, g.snap.Now), nil
	}
	return cmd, slices.Concat(actions, g.settleNotes(cmd), arrivalNotes, g.recovered(cmd))
}

// settleNotes returns the writes that record where the pods of a consolidation go, so that they are not moved again at
// once.
func (g *Guard) settleNotes(cmd plan.Command) []plan.Action {
	if cmd.Reason != plan.Underutilized {
		return nil
	}
	var actions []plan.Action
	for _, l := range cmd.Destinations {
		n := l.On(g.snap)
		if n != nil && n.Ours() && !n.Deleting && n.ConsolidatedAt.Before(cmd.Created.Truncate(time.Second)) {
			actions = append(actions, plan.MarkConsolidated{Claim: l.Claim, UID: l.ClaimUID, At: g.snap.Now})
		}
	}
	return actions
}

// inPhase returns the command in another phase.
func inPhase(c plan.Command, phase plan.Phase, now time.Time) plan.Command {
	if c.Phase != phase {
		c.Phase, c.PhaseSince = phase, now
	}
	return c
}

// abandoned returns the command in its last phase, with the reason.
func abandoned(c plan.Command, why plan.Verdict, now time.Time) plan.Command {
	c = inPhase(c, plan.Abandoned, now)
	c.Why = why
	return c
}

func (g *Guard) abandon(cmd plan.Command, why plan.Verdict) (plan.Command, []plan.Action) {
	cmd = abandoned(cmd, why, g.snap.Now)
	g.Release(cmd)
	return cmd, g.rollback(cmd)
}

// rollback returns the writes that remove the taints and reasons first and the annotations last, so that a crash in
// between leaves a record to continue from. Candidates that are being deleted anyway keep their taints and lose only
// their annotations: a drain may take arbitrarily long, and its annotation would start the command again. Replacements
// remain: they are capacity, and emptiness removes them when they are unused.
func (g *Guard) rollback(cmd plan.Command) []plan.Action {
	var untaint, clear []plan.Action
	for _, c := range cmd.Candidates {
		n := g.candidate(c)
		if n == nil || !carries(n, cmd) {
			continue
		}
		if !n.Deleting {
			untaint = append(untaint, clearMarks(n)...)
		}
		clear = append(clear, plan.ClearCommand{Claim: n.Claim, UID: n.ClaimUID})
	}
	failures := g.failures(cmd)
	if len(untaint) > 0 {
		return append(untaint, failures...)
	}
	return append(failures, clear...)
}

// clearMarks returns the writes that remove the visible effects of a command from a node. The taint may already be
// gone, removed by a user, while the reason is still set.
func clearMarks(n *model.Node) []plan.Action {
	switch {
	case n.Disrupted:
		return []plan.Action{plan.UntaintNode{Node: n.Name, UID: n.UID}, plan.ClearDisruptionReason{Claim: n.Claim, UID: n.ClaimUID}}
	case n.DisruptionReason:
		return []plan.Action{plan.ClearDisruptionReason{Claim: n.Claim, UID: n.ClaimUID}}
	}
	return nil
}

// carries reports whether the node's annotation contains this command. For the command without an ID, which represents
// unreadable annotations, it reports whether there is any annotation.
func carries(n *model.Node, cmd plan.Command) bool {
	if n.Command == "" {
		return false
	}
	on, err := plan.DecodeCommand(n.Command)
	if cmd.ID == "" {
		return true
	}
	return err == nil && on.ID == cmd.ID
}

// writes returns the writes that update every candidate's annotation to the command. Cordoned is not written over
// proposed, see Phase.
func (g *Guard) writes(cmd plan.Command) []plan.Action {
	var actions []plan.Action
	for _, c := range cmd.Candidates {
		n := g.candidate(c)
		if n == nil || n.Deleting {
			continue
		}
		if on, err := plan.DecodeCommand(n.Command); n.Command == "" || err != nil || on.ID != cmd.ID || on.Phase.Before(cmd.Phase) {
			actions = append(actions, plan.WriteCommand{Claim: c.Claim, UID: c.ClaimUID, Command: cmd})
		}
	}
	return actions
}

func (g *Guard) taints(cmd plan.Command) []plan.Action {
	var actions []plan.Action
	for _, c := range cmd.Candidates {
		if n := g.candidate(c); n != nil && !n.Deleting && !n.Disrupted {
			actions = append(actions, plan.TaintNode{Node: c.Node, UID: c.NodeUID},
				plan.SetDisruptionReason{Claim: c.Claim, UID: c.ClaimUID, Reason: cmd.Reason})
		}
	}
	return actions
}

// candidate returns the node of the snapshot that matches the candidate, nil when it is gone.
func (g *Guard) candidate(c plan.Candidate) *model.Node {
	n := g.snap.Claim(c.Claim)
	if n == nil || n.ClaimUID != c.ClaimUID {
		return nil
	}
	return n
}

// allLeaving reports whether every candidate is gone or being deleted: the command reached draining before a crash, or
// another client deleted them.
func (g *Guard) allLeaving(cmd plan.Command) bool {
	return !slices.ContainsFunc(cmd.Candidates, func(c plan.Candidate) bool {
		n := g.candidate(c)
		return n != nil && !n.Deleting
	})
}

// Resume returns the commands in progress: first those that began earlier, then those with the higher ratio of saving
// to price. They are the commands on the snapshot's claims, each in the furthest phase that a member or an earlier step
// shows. A known command without a trace is over, or never began. It is returned only when its claims were being
// deleted, so that it can reach Done. Claims whose annotation is unreadable, or contains a command that does not list
// them, form one abandoned command without an ID, so that their annotations and taints are removed. A command that only
// claims under deletion contain, while other candidates remain, is abandoned: a rollback was interrupted before it
// cleared the last annotation.
func Resume(snap *model.Snapshot, known ...plan.Command) []plan.Command {
	byID := map[string]plan.Command{}
	var broken []plan.Candidate
	read := plan.CommandReader{}
	for _, n := range snap.Nodes {
		if n.Command == "" || !n.Ours() {
			continue
		}
		cmd := read.Command(n)
		if cmd == nil {
			broken = append(broken, plan.CandidateOf(n))
			continue
		}
		if other, ok := byID[cmd.ID]; !ok || other.Phase.Before(cmd.Phase) {
			byID[cmd.ID] = *cmd
		}
	}
	for id, cmd := range byID {
		if withdrawn(snap, read, &cmd) {
			byID[id] = inPhase(cmd, plan.Abandoned, snap.Now)
		}
	}
	for _, cmd := range known {
		if written, ok := byID[cmd.ID]; cmd.Phase == plan.Draining || ok && !cmd.Phase.Before(written.Phase) {
			byID[cmd.ID] = cmd
		}
	}
	commands := make([]plan.Command, 0, len(byID)+1)
	for _, cmd := range byID {
		commands = append(commands, cmd)
	}
	slices.SortFunc(commands, byPrecedence)
	if len(broken) > 0 {
		commands = append(commands, plan.Command{Phase: plan.Abandoned, Candidates: broken, Created: snap.Now, PhaseSince: snap.Now,
			Why: plan.Verdict{Code: plan.CommandUnreadable, Node: broken[0].Node}})
	}
	return commands
}

// withdrawn reports whether candidates of the command remain, and none of them has its annotation.
func withdrawn(snap *model.Snapshot, read plan.CommandReader, cmd *plan.Command) bool {
	stays := false
	for _, c := range cmd.Candidates {
		n := snap.Claim(c.Claim)
		if n == nil || n.ClaimUID != c.ClaimUID || n.Deleting {
			continue
		}
		if on := read.Command(n); on != nil && on.ID == cmd.ID {
			return false
		}
		stays = true
	}
	return stays
}

// byPrecedence orders the commands in progress for shared budgets and limits: by creation, then by the ratio of saving
// to price, highest first.
func byPrecedence(a, b plan.Command) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(ratio(b.Worth), ratio(a.Worth)), strings.Compare(a.ID, b.ID))
}

// ratio returns the saving divided by the price of the disruption. It is infinite where that price is zero.
func ratio(w plan.Worth) float64 {
	if w.Price <= 0 {
		return math.Inf(1)
	}
	return float64(w.Saving) / float64(w.Price)
}

// StaleTaintActions returns the writes that clean managed nodes with the disruption taint or reason but no command: the
// trace of a crash during a rollback, or of another implementation that kept its commands in memory.
func StaleTaintActions(snap *model.Snapshot) []plan.Action {
	var actions []plan.Action
	for _, n := range snap.Nodes {
		if n.Ours() && !n.Deleting && n.Command == "" {
			actions = append(actions, clearMarks(n)...)
		}
	}
	return actions
}
