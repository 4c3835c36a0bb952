package plan

import (
	"hash/fnv"
	"slices"
	"strconv"
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

// SecondAfter returns the first whole second, in Unix seconds, at which t has passed. A loop that sleeps until the
// second before it would find the verdict unchanged and have no further wake-up.
func SecondAfter(t time.Time) int64 { return t.Add(time.Second - time.Nanosecond).Unix() }
