package plan

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Step returns the command as the snapshot shows it to be, and the writes that lead on from there. It is pure: after a
// crash at any write the same question, asked of a snapshot that shows what was written, gives what is left to do.
// The actions of one step may be done in any order and in parallel; the next step is asked when they are done.
func Step(snap *model.Snapshot, cmd Command) (Command, []Action) {
	return NewGuard(snap).Step(cmd)
}

// Step is the function Step; commands that are stepped with one guard share the budgets in the order of the calls.
func (g *Guard) Step(cmd Command) (Command, []Action) {
	switch cmd.Phase {
	case Proposed:
		return g.stepProposed(cmd)
	case Cordoned:
		return g.stepCordoned(cmd)
	case Launching:
		return g.stepLaunching(cmd)
	case Draining:
		if len(g.rest(cmd).Candidates) > 0 { // a deletion did not come through
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
	// 1. The command stands in the API before anything can be seen of it.
	if actions := g.writes(cmd); len(actions) > 0 {
		return cmd, actions
	}
	// 2. What moves pods to save money stands for a while; then it is judged, before anything can be seen of it.
	if cmd.judged() && now.Before(cmd.Created.Add(g.Validation)) {
		return cmd, nil
	}
	// 3. No new pods.
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
	if actions := g.taints(cmd); len(actions) > 0 { // somebody took it off, and a pod may have come since
		cmd.PhaseSince = g.snap.Now
		return cmd, actions
	}
	return g.proceed(cmd)
}

// stillSafe is Check, and whether there is time left: what cannot be begun (a write that is refused again and again)
// must not keep the budget for ever.
func (g *Guard) stillSafe(cmd Command) Verdict {
	if g.snap.Now.After(cmd.Deadline) {
		return Verdict{Code: DeadlinePassed}
	}
	return g.Admit(cmd)
}

// proceed goes on from a command that is cordoned and, as far as this snapshot shows, safe.
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
	// What was proposed some time ago may no longer be bought: somebody else has used the limits, or the pool is another.
	if v := g.purchase(missing); !v.OK() {
		return g.abandon(cmd, v)
	}
	actions := make([]Action, len(missing))
	for i, r := range missing {
		actions[i] = CreateClaim{NewClaim: r, Reason: strings.ToLower(string(cmd.Reason))}
	}
	return cmd, actions
}

// purchase tells whether the claims may be bought, and when they may takes them from the limits that the commands stepped
// with this guard share.
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

// drainIfRight goes on from a command whose replacements are there, or that has begun to delete: minutes may have passed
// since it was last looked at as a whole. What passes by itself is waited for, because what is left has been moved by
// nobody yet, and the replacements are paid.
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

// judged reports whether the command is of those that Guard.Judge is asked about. Drifted and expired nodes go whatever
// it costs, and an empty one costs nobody anything.
func (c *Command) judged() bool { return c.Reason == Underutilized }

// roomForRenewal asks whether the pods of nodes that are to be renewed still have a place: pending pods may have taken the
// room that was bought for them. They are planned for by then (see Ahead), so that this passes. A static pool's nodes
// are replaced one by one, whoever is on them.
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

// marks note where the pods of a consolidation go, so that they are not moved again at once.
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

// rollback takes off the taints and reasons first and the annotations last, so that a crash in between leaves a trace
// to go on from. Candidates that are leaving anyway keep their taints and lose their annotations only: a drain may take for
// ever, and an annotation on it would begin the command again. Replacements stay: they are capacity that emptiness removes
// when nobody uses it.
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

// unmark takes off what a command shows on a node: the taint may be gone, by a user's hand, and the reason still be
// there.
func unmark(n *model.Node) []Action {
	switch {
	case n.Disrupted:
		return []Action{UntaintNode{Node: n.Name, UID: n.UID}, ClearDisruptionReason{Claim: n.Claim, UID: n.ClaimUID}}
	case n.DisruptionReason:
		return []Action{ClearDisruptionReason{Claim: n.Claim, UID: n.ClaimUID}}
	}
	return nil
}

// mine reports whether the node's annotation is this command, or, for the command that stands for annotations that
// cannot be read (without an ID), whether there is any.
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

// writes are those that bring the annotation of every candidate up to the command. Cordoned is not written over
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

// candidate returns the node of the snapshot that is the candidate, nil when it is gone.
func (g *Guard) candidate(c Candidate) *model.Node {
	n := g.snap.Claim(c.Claim)
	if n == nil || n.ClaimUID != c.ClaimUID {
		return nil
	}
	return n
}

// allLeaving reports whether every candidate is gone or being deleted: the command came to draining before the
// crash, or somebody else did its work.
func (g *Guard) allLeaving(cmd Command) bool {
	return !slices.ContainsFunc(cmd.Candidates, func(c Candidate) bool {
		n := g.candidate(c)
		return n != nil && !n.Deleting
	})
}

// Resume returns the commands that are under way, those that were begun first and pay most first: those that the
// snapshot's claims carry, each as far along as any of its members says, or as is known from earlier steps. A known
// command that has left no trace is over, or never began; it is returned only when its claims were being deleted, to be seen
// done. Claims whose annotation cannot be read, or belongs to a command that does not name them, make
// one abandoned command without an ID, so that their annotations and taints go. A command that only claims which are being
// deleted carry, beside candidates that stay, is abandoned: a rollback was cut short before it cleared the last annotation.
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

// takenBack reports whether candidates of the command stay, and none of these carries it.
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

// inTurn is the order in which commands under way share budgets and limits: what has begun earlier comes first, then what pays
// most times over.
func inTurn(a, b Command) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(b.Worth.ratio(), a.Worth.ratio()), strings.Compare(a.ID, b.ID))
}

// ratio is the saving by the price of the disruption, infinite where that is nothing.
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

// Orphans are the writes that clean nodes of ours which carry the disruption taint or reason though no command does: the
// trace of a crash during a rollback, or of another implementation that kept its commands in memory.
func Orphans(snap *model.Snapshot) []Action {
	var actions []Action
	for _, n := range snap.Nodes {
		if n.Ours() && !n.Deleting && n.Command == "" {
			actions = append(actions, unmark(n)...)
		}
	}
	return actions
}
