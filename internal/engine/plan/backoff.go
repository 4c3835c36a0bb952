package plan

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// A command whose replacements cannot be launched, registered or initialized is abandoned, and its nodes are opened again.
// The same command would be right a moment later, and fail in the same way: its nodes would be closed nearly always, and a
// machine launched for nothing each time. So the reason backs off in the pool:
//
//	failures in a row   1      2      3      4      5 and more
//	pause               1 min  2 min  4 min  8 min  10 min      (half of it fixed, the rest by a hash of pool and number)
//
// After the pause one command of the reason is tried in the pool, and others follow when a replacement has been
// initialized. Commands without replacements are not affected: they launch nothing. Commands that were under way when a
// failure was noted are of the same round and count once.
//
// Invariant: the state is on the pool (model.PoolSpec.Backoffs), so that it outlives the process.
const (
	leastBackoff = time.Minute
	mostBackoff  = 10 * time.Minute
	// backoffMemory is after which time without another failure a backoff is forgotten.
	backoffMemory = time.Hour
)

// NoteBackoff notes on a pool that replacements of commands of the reason failed.
type NoteBackoff struct {
	Pool, UID string
	Backoff   model.Backoff
}

// ClearBackoff notes on a pool that a replacement of a command of the reason has been initialized.
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

// BackoffOf is the pool's backoff for the reason, and until when it lasts; false when there is none. After its end, only
// one command at a time is tried.
func BackoffOf(pool *model.PoolSpec, reason Reason, now time.Time) (model.Backoff, time.Time, bool) {
	i := slices.IndexFunc(pool.Backoffs, func(b model.Backoff) bool { return b.Reason == string(reason) })
	if i < 0 || pool.Backoffs[i].Failures < 1 || now.Sub(pool.Backoffs[i].At) > backoffMemory {
		return model.Backoff{}, time.Time{}, false
	}
	b := pool.Backoffs[i]
	return b, b.At.Add(backoffPause(pool.Name, b.Failures)), true
}

// backoffPause is the pause after so many failures in a row, with equal jitter. Chance is not for the engine: a hash draws.
func backoffPause(pool string, failures int) time.Duration {
	pause := min(leastBackoff<<min(failures-1, 10), mostBackoff)
	hash := fnv.New64a()
	hash.Write([]byte(pool + "\n" + strconv.Itoa(failures)))
	return pause/2 + time.Duration(hash.Sum64()%uint64(pause/2))
}

// Backoff tells whether a command that is to be begun has to wait because replacements for its reason failed lately.
// Commands for which the answer is yes count as begun for those that are asked about afterwards.
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

// secondAfter is the first whole second, in seconds since 1970, at which the time has come. A loop that sleeps until the second
// before it would find the verdict unchanged, and nothing to wake it again.
func secondAfter(t time.Time) int64 { return t.Add(time.Second - time.Nanosecond).Unix() }

// trial is a pool in which a command of the reason launches nodes.
type trial struct {
	pool   string
	reason Reason
}

// tried reports whether a command with replacements is under way in the pool for the reason.
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

// overtaken reports whether a failure was noted since the command was decided, so that it must not launch anything.
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

// failures are the writes that note the failure of an abandoned command's replacements.
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
		if failing && !cmd.Created.After(b.At) { // of the round that was counted
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

// mostFates is how many replacements of a command are named, and longestFate how many bytes of a cause.
const mostFates, longestFate = 2, 300

// fates says what became of an abandoned command's replacements that are not initialized.
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

// recovered are the writes that end the backoff of a command's pools, because a replacement has been initialized since the
// failure: one that was initialized before says nothing, however long its command drains.
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

// poolsOf are the pools of a command's candidates, each once.
func poolsOf(cmd Command) []string {
	pools := make([]string, len(cmd.Candidates))
	for i, c := range cmd.Candidates {
		pools[i] = c.Pool
	}
	slices.Sort(pools)
	return slices.Compact(pools)
}
