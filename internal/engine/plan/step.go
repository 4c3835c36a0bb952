package plan

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Step returns the command in the state that the snapshot shows, and the writes that continue from there. It is pure:
// after a crash at any write, the same call on a snapshot with the completed writes returns the remaining ones. The
// actions of one step may be done in any order and in parallel. The next step is computed when they are done.
func Step(snap *model.Snapshot, cmd Command) (Command, []Action) {
	return NewGuard(snap).Step(cmd)
}

// Step is like the function Step. Commands stepped with one guard share the budgets in the order of the calls.
func (g *Guard) Step(cmd Command) (Command, []Action) {
	switch cmd.Phase {
	case Proposed:
		return g.stepProposed(cmd)
	case Cordoned:
		return g.stepCordoned(cmd)
	case Launching:
		return g.stepLaunching(cmd)
	case Draining:
		if len(g.rest(cmd).Candidates) > 0 { // a deletion failed
			return g.drainIfRight(cmd)
		}
		return g.stepDraining(cmd)
	case Abandoned:
		return cmd, g.rollback(cmd)
	}
	return cmd, nil
}

func (g *Guard) stepProposed(cmd Command) (Command, []Action) {
	now := g.snap.Now
	if g.allLeaving(cmd) {
		return g.stepDraining(cmd.enter(Draining, now))
	}
	if v := g.stillSafe(cmd); !v.OK() {
		return g.abandon(cmd, v)
	}
	// 1. The command is stored in the API before any effect is visible.
	if actions := g.writes(cmd); len(actions) > 0 {
		return cmd, actions
	}
	// 2. A command that moves pods to reduce cost waits. Then it is judged, before any effect is visible.
	if cmd.judged() && now.Before(cmd.Created.Add(g.Validation)) {
		return cmd, nil
	}
	// 3. The taints keep new pods away.
	if actions := g.taints(cmd); len(actions) > 0 {
		if v := g.judge(cmd); !v.OK() {
			return g.abandon(cmd, v)
		}
		return cmd, actions
	}
	return g.proceed(cmd.enter(Cordoned, now))
}

func (g *Guard) stepCordoned(cmd Command) (Command, []Action) {
	if g.allLeaving(cmd) {
		return g.stepDraining(cmd.enter(Draining, g.snap.Now))
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
func (g *Guard) stillSafe(cmd Command) Verdict {
	if g.snap.Now.After(cmd.Deadline) {
		return Verdict{Code: DeadlinePassed}
	}
	return g.Admit(cmd)
}

// proceed continues a command that is cordoned and, according to this snapshot, safe.
func (g *Guard) proceed(cmd Command) (Command, []Action) {
	now := g.snap.Now
	if now.Before(cmd.PhaseSince.Add(g.CordonQuiet)) && !g.begun(cmd) {
		return cmd, nil
	}
	if len(cmd.Replacements) == 0 {
		if v := g.judge(cmd); !v.OK() {
			return g.abandon(cmd, v)
		}
		return g.stepDraining(cmd.enter(Draining, now))
	}
	missing := slices.DeleteFunc(slices.Clone(cmd.Replacements), func(r NewClaim) bool { return g.snap.Claim(r.Name) != nil })
	if len(missing) == 0 {
		return g.stepLaunching(cmd.enter(Launching, now))
	}
	if len(missing) == len(cmd.Replacements) && g.overtaken(cmd) {
		return g.abandon(cmd, Verdict{Code: ReplacementsFailed, Node: cmd.Candidates[0].Node})
	}
	// An older proposal may no longer be valid: other launches have used the limits, or the pool has changed.
	if v := g.purchase(missing); !v.OK() {
		return g.abandon(cmd, v)
	}
	actions := make([]Action, len(missing))
	for i, r := range missing {
		actions[i] = CreateClaim{NewClaim: r, Reason: strings.ToLower(string(cmd.Reason))}
	}
	return cmd, actions
}

// purchase reports whether the claims may be launched. If so, it subtracts them from the limits that the commands
// stepped with this guard share.
func (g *Guard) purchase(claims []NewClaim) Verdict {
	if g.purchases == nil {
		g.purchases = &provisionCheck{snap: g.snap, rooms: map[string]*room{}}
	}
	return g.purchases.replacements(claims)
}

func (g *Guard) stepLaunching(cmd Command) (Command, []Action) {
	now := g.snap.Now
	if g.allLeaving(cmd) {
		return g.stepDraining(cmd.enter(Draining, now))
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
			return g.abandon(cmd, Verdict{Code: ReplacementLost, Node: r.Name})
		}
		ready = ready && n.Stage == model.Initialized && n.Ready
	}
	switch {
	case ready && (g.begun(cmd) || !now.Before(cmd.PhaseSince.Add(g.CordonQuiet))):
		return g.drainIfRight(cmd)
	case now.After(cmd.Deadline):
		return g.abandon(cmd, Verdict{Code: DeadlinePassed})
	}
	return cmd, nil
}

// drainIfRight continues a command whose replacements are ready, or that has begun to delete. Minutes may have passed
// since the last check of the whole command. Temporary refusals are waited for, because no pod has been moved yet and
// the replacements are running.
func (g *Guard) drainIfRight(cmd Command) (Command, []Action) {
	v := g.Admit(cmd)
	if v.OK() {
		v = g.judge(cmd)
	}
	if v.OK() {
		v = g.roomForRenewal(cmd)
	}
	passing := v.Code == PDBBlocks || v.Code == BudgetExhausted || v.Code == PodsHomeless && !cmd.judged()
	switch {
	case v.OK():
		return g.stepDraining(cmd.enter(Draining, g.snap.Now))
	case passing && !g.snap.Now.After(cmd.Deadline):
		return cmd, nil
	}
	return g.abandon(cmd, v)
}

// judged reports whether Guard.Judge checks the command. Drifted and expired nodes are removed at any cost, and
// removing an empty node has no cost.
func (c *Command) judged() bool { return c.Reason == Underutilized }

// roomForRenewal checks whether the pods of drifted or expired nodes still fit elsewhere: pending pods may have taken
// the capacity launched for them. At this phase the plan includes them (see Ahead), so the refusal is temporary. The
// nodes of a static pool are replaced one by one, regardless of their pods.
func (g *Guard) roomForRenewal(cmd Command) Verdict {
	pool := g.snap.Pool(cmd.Candidates[0].Pool)
	if g.Judge == nil || cmd.judged() || len(cmd.Replacements) == 0 || pool == nil || pool.Static {
		return Verdict{}
	}
	if v := g.Judge(g.rest(cmd)); v.Code == PodsHomeless {
		return v
	}
	return Verdict{}
}

func (g *Guard) judge(cmd Command) Verdict {
	if g.Judge == nil || !cmd.judged() {
		return Verdict{}
	}
	return g.Judge(g.rest(cmd))
}

func (g *Guard) stepDraining(cmd Command) (Command, []Action) {
	var actions []Action
	left := false
	for _, c := range cmd.Candidates {
		n := g.candidate(c)
		if n == nil {
			continue
		}
		left = true
		if !n.Deleting {
			actions = append(actions, DeleteClaim{Claim: c.Claim, UID: c.ClaimUID, Reason: cmd.Reason})
		}
	}
	notices := g.notices(cmd)
	if !left && g.noted(&cmd, notices) {
		return cmd.enter(Done, g.snap.Now), nil
	}
	return cmd, slices.Concat(actions, g.marks(cmd), notices, g.recovered(cmd))
}

// marks returns the writes that record where the pods of a consolidation go, so that they are not moved again at once.
func (g *Guard) marks(cmd Command) []Action {
	if cmd.Reason != Underutilized {
		return nil
	}
	var actions []Action
	for _, l := range cmd.Landing {
		n := l.On(g.snap)
		if n != nil && n.Ours() && !n.Deleting && n.ConsolidatedAt.Before(cmd.Created.Truncate(time.Second)) {
			actions = append(actions, MarkConsolidated{Claim: l.Claim, UID: l.ClaimUID, At: g.snap.Now})
		}
	}
	return actions
}

func (g *Guard) abandon(cmd Command, why Verdict) (Command, []Action) {
	cmd = cmd.abandon(why, g.snap.Now)
	g.Release(cmd)
	return cmd, g.rollback(cmd)
}

// rollback returns the writes that remove the taints and reasons first and the annotations last, so that a crash in
// between leaves a record to continue from. Candidates that are being deleted anyway keep their taints and lose only
// their annotations: a drain may take arbitrarily long, and its annotation would start the command again. Replacements
// remain: they are capacity, and emptiness removes them when they are unused.
func (g *Guard) rollback(cmd Command) []Action {
	var untaint, clear []Action
	for _, c := range cmd.Candidates {
		n := g.candidate(c)
		if n == nil || !mine(n, cmd) {
			continue
		}
		if !n.Deleting {
			untaint = append(untaint, unmark(n)...)
		}
		clear = append(clear, ClearCommand{Claim: n.Claim, UID: n.ClaimUID})
	}
	failures := g.failures(cmd)
	if len(untaint) > 0 {
		return append(untaint, failures...)
	}
	return append(failures, clear...)
}

// unmark returns the writes that remove the visible effects of a command from a node. The taint may already be gone,
// removed by a user, while the reason is still set.
func unmark(n *model.Node) []Action {
	switch {
	case n.Disrupted:
		return []Action{UntaintNode{Node: n.Name, UID: n.UID}, ClearDisruptionReason{Claim: n.Claim, UID: n.ClaimUID}}
	case n.DisruptionReason:
		return []Action{ClearDisruptionReason{Claim: n.Claim, UID: n.ClaimUID}}
	}
	return nil
}

// mine reports whether the node's annotation contains this command. For the command without an ID, which represents
// unreadable annotations, it reports whether there is any annotation.
func mine(n *model.Node, cmd Command) bool {
	if n.Command == "" {
		return false
	}
	on, err := DecodeCommand(n.Command)
	if cmd.ID == "" {
		return true
	}
	return err == nil && on.ID == cmd.ID
}

// writes returns the writes that update every candidate's annotation to the command. Cordoned is not written over
// proposed, see Phase.
func (g *Guard) writes(cmd Command) []Action {
	var actions []Action
	for _, c := range cmd.Candidates {
		n := g.candidate(c)
		if n == nil || n.Deleting {
			continue
		}
		if on, err := DecodeCommand(n.Command); n.Command == "" || err != nil || on.ID != cmd.ID || on.Phase.order() < cmd.Phase.order() {
			actions = append(actions, WriteCommand{Claim: c.Claim, UID: c.ClaimUID, Command: cmd})
		}
	}
	return actions
}

func (g *Guard) taints(cmd Command) []Action {
	var actions []Action
	for _, c := range cmd.Candidates {
		if n := g.candidate(c); n != nil && !n.Deleting && !n.Disrupted {
			actions = append(actions, TaintNode{Node: c.Node, UID: c.NodeUID},
				SetDisruptionReason{Claim: c.Claim, UID: c.ClaimUID, Reason: cmd.Reason})
		}
	}
	return actions
}

// candidate returns the node of the snapshot that matches the candidate, nil when it is gone.
func (g *Guard) candidate(c Candidate) *model.Node {
	n := g.snap.Claim(c.Claim)
	if n == nil || n.ClaimUID != c.ClaimUID {
		return nil
	}
	return n
}

// allLeaving reports whether every candidate is gone or being deleted: the command reached draining before a crash, or
// another client deleted them.
func (g *Guard) allLeaving(cmd Command) bool {
	return !slices.ContainsFunc(cmd.Candidates, func(c Candidate) bool {
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
func Resume(snap *model.Snapshot, known ...Command) []Command {
	byID := map[string]Command{}
	var broken []Candidate
	read := reader{}
	for _, n := range snap.Nodes {
		if n.Command == "" || !n.Ours() {
			continue
		}
		cmd := read.command(n)
		if cmd == nil {
			broken = append(broken, CandidateOf(n))
			continue
		}
		if other, ok := byID[cmd.ID]; !ok || other.Phase.order() < cmd.Phase.order() {
			byID[cmd.ID] = *cmd
		}
	}
	for id, cmd := range byID {
		if read.takenBack(snap, &cmd) {
			byID[id] = cmd.enter(Abandoned, snap.Now)
		}
	}
	for _, cmd := range known {
		if written, ok := byID[cmd.ID]; cmd.Phase == Draining || ok && cmd.Phase.order() >= written.Phase.order() {
			byID[cmd.ID] = cmd
		}
	}
	commands := make([]Command, 0, len(byID)+1)
	for _, cmd := range byID {
		commands = append(commands, cmd)
	}
	slices.SortFunc(commands, inTurn)
	if len(broken) > 0 {
		commands = append(commands, Command{Phase: Abandoned, Candidates: broken, Created: snap.Now, PhaseSince: snap.Now,
			Why: Verdict{Code: CommandUnreadable, Node: broken[0].Node}})
	}
	return commands
}

// takenBack reports whether candidates of the command remain, and none of them has its annotation.
func (r reader) takenBack(snap *model.Snapshot, cmd *Command) bool {
	stays := false
	for _, c := range cmd.Candidates {
		n := snap.Claim(c.Claim)
		if n == nil || n.ClaimUID != c.ClaimUID || n.Deleting {
			continue
		}
		if on := r.command(n); on != nil && on.ID == cmd.ID {
			return false
		}
		stays = true
	}
	return stays
}

// inTurn orders the commands in progress for shared budgets and limits: by creation, then by the ratio of saving to
// price, highest first.
func inTurn(a, b Command) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(b.Worth.ratio(), a.Worth.ratio()), strings.Compare(a.ID, b.ID))
}

// ratio returns the saving divided by the price of the disruption. It is infinite where that price is zero.
func (w *Worth) ratio() float64 {
	if w.Price <= 0 {
		return math.Inf(1)
	}
	return float64(w.Saving) / float64(w.Price)
}

// names reports whether the node is a candidate of the command.
func (c *Command) names(n *model.Node) bool {
	return slices.ContainsFunc(c.Candidates, func(candidate Candidate) bool {
		return candidate.ClaimUID == n.ClaimUID && candidate.Claim == n.Claim
	})
}

// Orphans returns the writes that clean managed nodes with the disruption taint or reason but no command: the trace of
// a crash during a rollback, or of another implementation that kept its commands in memory.
func Orphans(snap *model.Snapshot) []Action {
	var actions []Action
	for _, n := range snap.Nodes {
		if n.Ours() && !n.Deleting && n.Command == "" {
			actions = append(actions, unmark(n)...)
		}
	}
	return actions
}
