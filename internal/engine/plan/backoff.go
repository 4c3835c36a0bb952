package plan

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Backoff of disruption.
//
// A command whose replacements cannot be launched, registered or initialized is abandoned, and its nodes are
// uncordoned. The same command would be proposed again a moment later and fail in the same way: its nodes would be
// cordoned most of the time, and each attempt would launch a machine for nothing. So the reason backs off in the pool:
//
//	failures in a row   1      2      3      4      5 and more
//	pause               1 min  2 min  4 min  8 min  10 min   (half of it fixed, half by a hash of pool and number)
//
// After the pause, one command with the reason is tried in the pool. Others follow when a replacement has been
// initialized. Commands without replacements are not affected: they launch nothing. Commands that were in progress when
// a failure was recorded belong to the same round and count once.
//
// Invariant: the state is stored on the pool (model.PoolSpec.Backoffs), so that it survives a restart.
const (
	leastBackoff = time.Minute
	mostBackoff  = 10 * time.Minute
	// backoffMemory is how long a backoff is remembered without another failure.
	backoffMemory = time.Hour
)

// NoteBackoff records on a pool that replacements of commands with the reason failed.
type NoteBackoff struct {
	Pool, UID string
	Backoff   model.Backoff
}

// ClearBackoff records on a pool that a replacement of a command with the reason has been initialized.
type ClearBackoff struct {
	Pool, UID string
	Reason    Reason
}

func (NoteBackoff) action()  {}
func (ClearBackoff) action() {}

func (a NoteBackoff) String() string {
	return "note on pool " + a.Pool + " that replacements failed, " + strconv.Itoa(a.Backoff.Failures) + " times in a row (" + a.Backoff.Reason + ")"
}
func (a ClearBackoff) String() string {
	return "note on pool " + a.Pool + " that a replacement came (" + string(a.Reason) + ")"
}

// BackoffOf returns the pool's backoff for the reason and the end of its pause, or false when there is none. After the
// pause, only one command at a time is tried.
func BackoffOf(pool *model.PoolSpec, reason Reason, now time.Time) (model.Backoff, time.Time, bool) {
	i := slices.IndexFunc(pool.Backoffs, func(b model.Backoff) bool { return b.Reason == string(reason) })
	if i < 0 || pool.Backoffs[i].Failures < 1 || now.Sub(pool.Backoffs[i].At) > backoffMemory {
		return model.Backoff{}, time.Time{}, false
	}
	b := pool.Backoffs[i]
	return b, b.At.Add(backoffPause(pool.Name, b.Failures)), true
}

// backoffPause returns the pause after that many failures in a row, with jitter of up to one half. The engine uses no
// random numbers; the jitter is a hash.
func backoffPause(pool string, failures int) time.Duration {
	pause := min(leastBackoff<<min(failures-1, 10), mostBackoff)
	hash := fnv.New64a()
	hash.Write([]byte(pool + "\n" + strconv.Itoa(failures)))
	return pause/2 + time.Duration(hash.Sum64()%uint64(pause/2))
}

// Backoff reports whether a command must wait because replacements for its reason failed recently. A command that need
// not wait counts as begun for later calls.
func (g *Guard) Backoff(cmd Command) Verdict {
	if len(cmd.Replacements) == 0 {
		return Verdict{}
	}
	for _, name := range poolsOf(cmd) {
		pool := g.snap.Pool(name)
		if pool == nil || pool.Static {
			continue
		}
		b, until, failing := BackoffOf(pool.PoolSpec, cmd.Reason, g.snap.Now)
		if failing && until.After(g.snap.Now) {
			return Verdict{Code: ReplacementsFailed, Node: cmd.Candidates[0].Node, Have: int64(b.Failures), Need: secondAfter(until)}
		}
		if failing && g.tried(name, cmd.Reason) {
			return Verdict{Code: ReplacementsFailed, Node: cmd.Candidates[0].Node, Have: int64(b.Failures)}
		}
	}
	if g.trials == nil {
		g.trials = map[trial]bool{}
	}
	for _, name := range poolsOf(cmd) {
		g.trials[trial{name, cmd.Reason}] = true
	}
	return Verdict{}
}

// secondAfter returns the first whole second, in Unix seconds, at which t has passed. A loop that sleeps until the
// second before it would find the verdict unchanged and have no further wake-up.
func secondAfter(t time.Time) int64 { return t.Add(time.Second - time.Nanosecond).Unix() }

// trial is a pool in which a command with the reason launches nodes.
type trial struct {
	pool   string
	reason Reason
}

// tried reports whether a command with replacements is in progress in the pool for the reason.
func (g *Guard) tried(pool string, reason Reason) bool {
	if g.trials[trial{pool, reason}] {
		return true
	}
	for _, n := range g.snap.Nodes {
		if n.Pool != pool || n.Command == "" || n.Deleting {
			continue
		}
		if on, err := DecodeCommand(n.Command); err == nil && on.Reason == reason && len(on.Replacements) > 0 {
			return true
		}
	}
	return false
}

// overtaken reports whether a failure was recorded since the command was decided, so that it must not launch anything.
func (g *Guard) overtaken(cmd Command) bool {
	return slices.ContainsFunc(poolsOf(cmd), func(name string) bool {
		pool := g.snap.Pool(name)
		if pool == nil || pool.Static {
			return false
		}
		b, until, failing := BackoffOf(pool.PoolSpec, cmd.Reason, g.snap.Now)
		return failing && until.After(g.snap.Now) && !cmd.Created.After(b.At)
	})
}

// failures returns the writes that record the failure of an abandoned command's replacements.
func (g *Guard) failures(cmd Command) []Action {
	if cmd.Why.Code != ReplacementLost && cmd.Why.Code != DeadlinePassed || len(cmd.Replacements) == 0 {
		return nil
	}
	var actions []Action
	why := g.fates(cmd)
	for _, name := range poolsOf(cmd) {
		pool := g.snap.Pool(name)
		if pool == nil || pool.Static || g.backedOff[trial{name, cmd.Reason}] {
			continue
		}
		b, _, failing := BackoffOf(pool.PoolSpec, cmd.Reason, g.snap.Now)
		if failing && !cmd.Created.After(b.At) { // part of the round that was counted
			continue
		}
		if g.backedOff == nil {
			g.backedOff = map[trial]bool{}
		}
		g.backedOff[trial{name, cmd.Reason}] = true
		actions = append(actions, NoteBackoff{Pool: pool.Name, UID: pool.UID,
			Backoff: model.Backoff{Reason: string(cmd.Reason), Failures: b.Failures + 1, At: g.snap.Now, Why: why}})
	}
	return actions
}

// mostFates is how many replacements of a command are named. longestFate is how many bytes of a cause are kept.
const mostFates, longestFate = 2, 300

// fates describes the outcome of those replacements of an abandoned command that are not initialized.
func (g *Guard) fates(cmd Command) string {
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
				is += ": " + strings.ToValidUTF8(cause[:min(len(cause), longestFate)], "")
			}
		}
		if len(list) == mostFates {
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
func (g *Guard) recovered(cmd Command) []Action {
	var last time.Time
	for i := range cmd.Replacements {
		if n := g.snap.Claim(cmd.Replacements[i].Name); n != nil && n.Stage == model.Initialized && n.InitializedAt.After(last) {
			last = n.InitializedAt
		}
	}
	if last.IsZero() {
		return nil
	}
	var actions []Action
	for _, name := range poolsOf(cmd) {
		if pool := g.snap.Pool(name); pool != nil && slices.ContainsFunc(pool.Backoffs, func(b model.Backoff) bool { return b.Reason == string(cmd.Reason) && last.After(b.At) }) {
			actions = append(actions, ClearBackoff{Pool: pool.Name, UID: pool.UID, Reason: cmd.Reason})
		}
	}
	return actions
}

// poolsOf returns the pools of a command's candidates, each once.
func poolsOf(cmd Command) []string {
	pools := make([]string, len(cmd.Candidates))
	for i, c := range cmd.Candidates {
		pools[i] = c.Pool
	}
	slices.Sort(pools)
	return slices.Compact(pools)
}
