package instance

import (
	"sync"
	"time"
)

// Interruptions counts how often EC2 has interrupted spot instances of a type in a zone, and derives for how long no more
// are launched there: UnavailableFor after the first interruption, and four times as long after each further one, up to a
// maximum. Each hour without one in which it was not avoided halves the count. It is safe for concurrent use.
//
// It is in memory: a new process begins with 0, and reacts to the next interruption.
type Interruptions struct {
	now     func() time.Time
	longest time.Duration

	mu sync.Mutex
	// seen has at most one entry for each type and zone.
	seen map[pool]interrupted
}

// interrupted describes one type in one zone.
type interrupted struct {
	count int
	// at is when the last interruption was counted, and until when the offering is or was avoided because of several.
	at, until time.Time
}

const (
	// backoffGrowth is by how much each interruption extends the time that its offering is avoided.
	backoffGrowth = 4
	// interruptionsHalve is the time without interruptions that halves their count.
	interruptionsHalve = time.Hour
	// MaxInterruptionBackoff is the greatest maximum of the time that an offering is avoided.
	MaxInterruptionBackoff = time.Hour
)

// NewInterruptions returns Interruptions without any, with the given clock. longest is the maximum of the time that an
// offering is avoided; with UnavailableFor or less, it is UnavailableFor after each interruption.
func NewInterruptions(now func() time.Time, longest time.Duration) *Interruptions {
	return &Interruptions{now: now, longest: max(longest, UnavailableFor), seen: map[pool]interrupted{}}
}

// Count counts an interruption of a spot instance, and returns for how long the offering is avoided from now on. EC2 often
// interrupts several instances at once, and notices are delivered more than once: those within UnavailableFor of the last
// counted one are not counted. A period longer than UnavailableFor begins only if may, which is called then, allows it.
func (i *Interruptions) Count(typeName, zone string, may func() bool) time.Duration {
	now, key := i.now(), pool{typeName, zone}
	of, counted := i.count(key, now)
	if !counted {
		return max(UnavailableFor, of.until.Sub(now))
	}
	period := i.longer(of.count)
	if period <= UnavailableFor || !may() { // without the lock: may reads offerings
		return UnavailableFor
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	of.until = now.Add(period)
	i.seen[key] = of
	return period
}

// count adds an interruption, and reports whether it is counted.
func (i *Interruptions) count(key pool, now time.Time) (of interrupted, counted bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	of = i.seen[key]
	if of.count > 0 && now.Sub(of.at) < UnavailableFor {
		return of, false
	}
	since := of.at
	if of.until.After(since) {
		since = of.until
	}
	for quiet := now.Sub(since); of.count > 0 && quiet >= interruptionsHalve; quiet -= interruptionsHalve {
		of.count /= 2
	}
	of.count, of.at = of.count+1, now
	i.seen[key] = of
	return of, true
}

// longer returns for how long an offering with this many interruptions is avoided.
func (i *Interruptions) longer(count int) time.Duration {
	period := UnavailableFor
	for ; count > 1 && period < i.longest; count-- {
		period *= backoffGrowth
	}
	return min(period, i.longest)
}

// Avoided returns because of how many interruptions the type is not launched as spot in the zone now, 0 if it is not
// avoided for longer than after one interruption.
func (i *Interruptions) Avoided(typeName, zone string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if of := i.seen[pool{typeName, zone}]; of.until.After(i.now()) {
		return of.count
	}
	return 0
}
