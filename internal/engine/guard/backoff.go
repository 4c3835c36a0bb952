package guard

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Backoff reports whether a command must wait because replacements for its reason failed recently. A command that need
// not wait counts as begun for later calls.
func (g *Guard) Backoff(cmd plan.Command) plan.Verdict {
	if len(cmd.Replacements) == 0 {
		return plan.Verdict{}
	}
	for _, name := range poolsOf(cmd) {
		pool := g.snap.Pool(name)
		if pool == nil || pool.Static {
			continue
		}
		b, until, failing := plan.BackoffOf(pool.PoolSpec, cmd.Reason, g.snap.Now)
		if failing && until.After(g.snap.Now) {
			return plan.Verdict{Code: plan.ReplacementsFailed, Node: cmd.Candidates[0].Node, Have: int64(b.Failures), Need: plan.SecondAfter(until)}
		}
		if failing && g.underTrial(name, cmd.Reason) {
			return plan.Verdict{Code: plan.ReplacementsFailed, Node: cmd.Candidates[0].Node, Have: int64(b.Failures)}
		}
	}
	if g.trials == nil {
		g.trials = map[trial]bool{}
	}
	for _, name := range poolsOf(cmd) {
		g.trials[trial{name, cmd.Reason}] = true
	}
	return plan.Verdict{}
}

// trial is a pool in which a command with the reason launches nodes.
type trial struct {
	pool   string
	reason plan.Reason
}

// underTrial reports whether a command with replacements is in progress in the pool for the reason.
func (g *Guard) underTrial(pool string, reason plan.Reason) bool {
	if g.trials[trial{pool, reason}] {
		return true
	}
	for _, n := range g.snap.Nodes {
		if n.Pool != pool || n.Command == "" || n.Deleting {
			continue
		}
		if on, err := plan.DecodeCommand(n.Command); err == nil && on.Reason == reason && len(on.Replacements) > 0 {
			return true
		}
	}
	return false
}

// superseded reports whether a failure was recorded since the command was decided, so that it must not launch anything.
func (g *Guard) superseded(cmd plan.Command) bool {
	return slices.ContainsFunc(poolsOf(cmd), func(name string) bool {
		pool := g.snap.Pool(name)
		if pool == nil || pool.Static {
			return false
		}
		b, until, failing := plan.BackoffOf(pool.PoolSpec, cmd.Reason, g.snap.Now)
		return failing && until.After(g.snap.Now) && !cmd.Created.After(b.At)
	})
}

// failures returns the writes that record the failure of an abandoned command's replacements. A command whose deadline
// passed before it launched them, because its first writes were refused, says nothing about replacements.
func (g *Guard) failures(cmd plan.Command) []plan.Action {
	if cmd.Why.Code != plan.ReplacementLost && (cmd.Why.Code != plan.DeadlinePassed || cmd.Why.Have == 0) || len(cmd.Replacements) == 0 {
		return nil
	}
	var actions []plan.Action
	why := g.outcomes(cmd)
	for _, name := range poolsOf(cmd) {
		pool := g.snap.Pool(name)
		if pool == nil || pool.Static || g.backedOff[trial{name, cmd.Reason}] {
			continue
		}
		b, _, failing := plan.BackoffOf(pool.PoolSpec, cmd.Reason, g.snap.Now)
		if failing && !cmd.Created.After(b.At) { // part of the round that was counted
			continue
		}
		if g.backedOff == nil {
			g.backedOff = map[trial]bool{}
		}
		g.backedOff[trial{name, cmd.Reason}] = true
		actions = append(actions, plan.NoteBackoff{Pool: pool.Name, UID: pool.UID,
			Backoff: model.Backoff{Reason: string(cmd.Reason), Failures: b.Failures + 1, At: g.snap.Now, Why: why}})
	}
	return actions
}

// mostOutcomes is how many replacements of a command are named. longestOutcome is how many bytes of a cause are kept.
const mostOutcomes, longestOutcome = 2, 300

// outcomes describes the outcome of those replacements of an abandoned command that are not initialized.
func (g *Guard) outcomes(cmd plan.Command) string {
	var list []string
	more := 0
	for i := range cmd.Replacements {
		name, is := cmd.Replacements[i].Name, ""
		switch n := g.snap.Claim(name); {
		case n == nil || n.Deleting:
			is = "is gone"
		case n.Stage == model.Launching:
			is = "was not launched in time"
		case n.Stage == model.Launched:
			is = "was launched, and its node did not register in time"
		case n.Stage != model.Initialized || !n.Ready:
			is = "registered, and was not initialized and ready in time"
		default:
			continue
		}
		if g.Cause != nil {
			if cause := g.Cause(name); cause != "" {
				is += ": " + strings.ToValidUTF8(cause[:min(len(cause), longestOutcome)], "")
			}
		}
		if len(list) == mostOutcomes {
			more++
			continue
		}
		list = append(list, "claim "+name+" "+is)
	}
	if more > 0 {
		list = append(list, "and "+strconv.Itoa(more)+" more")
	}
	return strings.Join(list, "; ")
}

// recovered returns the writes that end the backoff of a command's pools because a replacement has been initialized
// since the failure. A replacement initialized before the failure proves nothing, however long its command drains.
func (g *Guard) recovered(cmd plan.Command) []plan.Action {
	var last time.Time
	for i := range cmd.Replacements {
		if n := g.snap.Claim(cmd.Replacements[i].Name); n != nil && n.Stage == model.Initialized && n.InitializedAt.After(last) {
			last = n.InitializedAt
		}
	}
	if last.IsZero() {
		return nil
	}
	var actions []plan.Action
	for _, name := range poolsOf(cmd) {
		over := func(b model.Backoff) bool { return b.Reason == string(cmd.Reason) && last.After(b.At) }
		if pool := g.snap.Pool(name); pool != nil && slices.ContainsFunc(pool.Backoffs, over) {
			actions = append(actions, plan.ClearBackoff{Pool: pool.Name, UID: pool.UID, Reason: cmd.Reason})
		}
	}
	return actions
}

// poolsOf returns the pools of a command's candidates, each once.
func poolsOf(cmd plan.Command) []string {
	pools := make([]string, len(cmd.Candidates))
	for i, c := range cmd.Candidates {
		pools[i] = c.Pool
	}
	slices.Sort(pools)
	return slices.Compact(pools)
}
