package pause

import (
	"strconv"
	"strings"
	"time"
)

// The first pause lasts shortest, each further one twice as long, at most longest. A failure is remembered for memory
// after it, and after the end of its pause.
const (
	shortest = time.Minute
	longest  = 30 * time.Minute
	memory   = time.Hour
)

// Key identifies a pause.
type Key struct {
	// Reason is what is paused for the scope, Scope the UID or the name of what is paused.
	Reason string `json:"reason"`
	Scope  string `json:"scope"`
}

// Launch is the reason for launches of nodes for the pods of an owner, Removal for removals of machines that neither a
// user nor a plan requested. The other reasons are those of disruption.
const (
	Launch  = "Launch"
	Removal = "Removal"
)

// Fleet is the scope of a pause that concerns all NodePools.
const Fleet = "*"

// Undone is appended to the reason of a disruption whose effect does not last.
const Undone = "Undone"

// Pause counts the failures in a row of what has the key. The zero value has none. Its form in JSON is that of the
// annotation of NodePools and must not change.
type Pause struct {
	Key
	// Name is what is paused, in words and in the plural.
	Name     string `json:"name"`
	Failures int    `json:"failures"`
	// At is when the last failure was counted, Until the end of its pause, zero for none.
	At    time.Time `json:"at"`
	Until time.Time `json:"until,omitzero"`
	// Why describes the last failure. No decision depends on it.
	Why string `json:"why,omitempty"`
	// Shown is what attempts have shown that the next ones must consider, as the package that counts them writes it.
	Shown string `json:"shown,omitempty"`
}

// Active reports whether attempts have to wait.
func (p Pause) Active(now time.Time) bool { return p.Until.After(now) }

// Remembered reports whether the failures still count.
func (p Pause) Remembered(now time.Time) bool {
	last := p.At
	if p.Until.After(last) {
		last = p.Until
	}
	return p.Failures > 0 && now.Sub(last) <= memory
}

// Covers reports whether an attempt that began at that time belongs to the round of the last failure.
func (p Pause) Covers(began time.Time) bool {
	return p.Failures > 0 && (began.Before(p.At) || began.Before(p.Until))
}

// String describes the pause, in the same words wherever it is shown.
func (p Pause) String() string {
	text := p.Name + " are paused until " + p.Until.UTC().Format(time.RFC3339) + ", after " + strconv.Itoa(p.Failures) + " failures in a row"
	if p.Failures == 1 {
		text = strings.TrimSuffix(text, "s in a row")
	}
	if p.Why != "" {
		text += ": " + p.Why
	}
	return text
}

// Fail returns the pause after the failure of an attempt. The first failures, as many as are tolerated, begin no pause.
func (p Pause) Fail(began, now time.Time, tolerated int, why string) Pause {
	if !p.Remembered(now) {
		p.Failures, p.At, p.Until = 0, time.Time{}, time.Time{}
	}
	if p.Covers(began) {
		return p
	}
	p.Failures, p.At, p.Why = p.Failures+1, now, why
	if level := p.Failures - tolerated - 1; level >= 0 {
		p.Until = now.Add(Length(shortest, longest, level+1)).Truncate(time.Second)
	}
	return p
}

// FailWithin is Fail for what may fail a number of times within a window. The first pause lasts as long as the window, and
// a window without a failure clears the count: never more failures than are tolerated, and one, are within a window.
func (p Pause) FailWithin(window time.Duration, now time.Time, tolerated int, why string) Pause {
	if now.Sub(p.At) >= window && now.Sub(p.Until) >= window {
		p.Failures, p.Until = 0, time.Time{}
	}
	if p.Active(now) {
		return p
	}
	p.Failures, p.At, p.Why = p.Failures+1, now, why
	if level := p.Failures - tolerated - 1; level >= 0 {
		p.Until = now.Add(Length(window, longest, level+1) + time.Second).Truncate(time.Second)
	}
	return p
}

// Length returns how long what failed waits after a number of failures in a row, at least one: first after the first,
// twice as long after each further one, at most as long as most, and never less than first.
func Length(first, most time.Duration, failures int) time.Duration {
	return max(first, min(first<<min(failures-1, 10), most))
}
