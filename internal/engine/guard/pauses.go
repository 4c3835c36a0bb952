package guard

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Paused reports whether a command must wait because replacements for its reason failed recently, or commands with the
// reason were undone (package pause). After the pause one command with the reason is tried in the pool; others follow
// when a replacement has been initialized, or when an effect has lasted. A command that need not wait counts as begun for
// later calls.
func (g *Guard) Paused(cmd plan.Command) plan.Verdict {
	for _, pool := range g.poolsOf(cmd) {
		for _, p := range g.pausesOf(pool, cmd) {
			trial := p.Remembered(g.snap.Now) && !p.Until.IsZero() && g.underTrial(p.Key)
			if p.Active(g.snap.Now) || trial {
				v := plan.PausedVerdict(p)
				if v.Node, v.Pool = cmd.Candidates[0].Node, pool.Name; trial {
					v.Need = 0
				}
				return v
			}
		}
	}
	if g.trials == nil {
		g.trials = map[pause.Key]bool{}
	}
	for _, pool := range g.poolsOf(cmd) {
		for _, key := range keysOf(pool.Name, cmd) {
			g.trials[key] = true
		}
	}
	return plan.Verdict{}
}

// pausesOf returns the pauses that concern a command in the pool, as they are after this snapshot.
func (g *Guard) pausesOf(pool *model.Pool, cmd plan.Command) pause.List {
	if g.undone == nil {
		g.undone = findUndone(g.snap)
	}
	var list pause.List
	for _, key := range keysOf(pool.Name, cmd) {
		p := g.undone.of(pool, key)
		if until := g.undone.trial[key]; p.Remembered(g.snap.Now) && until.After(p.Until) {
			p.Until = until
		}
		list = append(list, p)
	}
	return list
}

// keysOf returns the keys of the pauses that concern a command in the pool.
func keysOf(pool string, cmd plan.Command) []pause.Key {
	keys := []pause.Key{undoneKey(pool, cmd.Reason)}
	if len(cmd.Replacements) > 0 {
		keys = append(keys, pause.Key{Reason: string(cmd.Reason), Scope: pool})
	}
	return keys
}

// keyOf returns the key of the pauses of replacements in the pool, for the reason of the command.
func keyOf(pool *model.Pool, cmd plan.Command) pause.Key {
	return pause.Key{Reason: string(cmd.Reason), Scope: pool.Name}
}

// underTrial reports whether a command that the pauses with the key concern is in progress in the pool.
func (g *Guard) underTrial(key pause.Key) bool {
	if g.trials[key] {
		return true
	}
	for _, n := range g.snap.Nodes {
		if n.Pool != key.Scope || n.Command == "" || n.Deleting {
			continue
		}
		if on, err := plan.DecodeCommand(n.Command); err == nil && slices.Contains(keysOf(n.Pool, on), key) {
			return true
		}
	}
	return false
}

// superseded returns the pause that began since the command was decided, so that it must not launch anything.
func (g *Guard) superseded(cmd plan.Command) (p pause.Pause, is bool) {
	for _, pool := range g.poolsOf(cmd) {
		if active := g.pausesOf(pool, cmd).Active(g.snap.Now); len(active) > 0 {
			return active[0], true
		}
	}
	return p, false
}

// failures returns the writes that record the failure of an abandoned command's replacements. A command whose deadline
// passed before it launched them, because its first writes were refused, says nothing about replacements.
func (g *Guard) failures(cmd plan.Command) []plan.Action {
	lost := cmd.Why.Code == plan.ReplacementLost || cmd.Why.Code == plan.DeadlinePassed && cmd.Why.Have > 0
	vain := !lost && judged(cmd) && g.launched(cmd)
	if len(cmd.Replacements) == 0 || !lost && !vain {
		return nil
	}
	var actions []plan.Action
	for _, pool := range g.poolsOf(cmd) {
		before := pool.Pauses.Of(keyOf(pool, cmd))
		before.Name = "replacements (" + strings.ToLower(string(cmd.Reason)) + ")"
		p := before.Fail(cmd.Created, g.snap.Now, 0, g.outcomes(cmd))
		if vain {
			before = pool.Pauses.Of(undoneKey(pool.Name, cmd.Reason))
			p = failUndone(before, cmd.Reason, cmd.Created, g.snap.Now, "replacement "+cmd.Replacements[0].Name+" was launched in vain")
		}
		if p != before {
			actions = append(actions, plan.SetPause{Pool: pool.Name, UID: pool.UID, Pause: p})
		}
	}
	return actions
}

// launched reports whether a replacement of the command exists.
func (g *Guard) launched(cmd plan.Command) bool {
	return slices.ContainsFunc(cmd.Replacements, func(r plan.NewClaim) bool { return g.snap.Claim(r.Name) != nil })
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

// recovered returns the writes that end the pauses of a command's pools because a replacement has been initialized
// since the failure. A replacement initialized before the failure proves nothing, however long its command drains.
func (g *Guard) recovered(cmd plan.Command) []plan.Action {
	var last time.Time
	for i := range cmd.Replacements {
		if n := g.snap.Claim(cmd.Replacements[i].Name); n != nil && n.Stage == model.Initialized && n.InitializedAt.After(last) {
			last = n.InitializedAt
		}
	}
	var actions []plan.Action
	for _, pool := range g.poolsOf(cmd) {
		if p := pool.Pauses.Of(keyOf(pool, cmd)); p.Failures > 0 && last.After(p.At) {
			actions = append(actions, plan.EndPause{Pool: pool.Name, UID: pool.UID, Key: p.Key})
		}
	}
	return actions
}

// poolsOf returns the pools of a command's candidates that exist, each once.
func (g *Guard) poolsOf(cmd plan.Command) []*model.Pool {
	var pools []*model.Pool
	for _, c := range cmd.Candidates {
		if pool := g.snap.Pool(c.Pool); pool != nil && !slices.Contains(pools, pool) {
			pools = append(pools, pool)
		}
	}
	return pools
}
