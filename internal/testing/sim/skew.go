package sim

import "time"

// Clock jumps: the clock of the controller's machine is set forward or back, and corrected some time later. Meanwhile
// the times that the controller reads are wrong, but not its timers, and not the clock of the API server.

// mended is how long a clock stays wrong.
const mended = 2 * time.Minute

// jump sets the clock of all processes wrong.
func (w *world) jump(by time.Duration) {
	w.say("the clock of the controller is wrong by %v", by)
	w.skew, w.wrong = by, w.now.Add(2*mended)
	w.after(mended, func() {
		w.say("the clock of the controller is right again")
		w.skew = 0
	})
}

// clock returns the time that a process reads.
func (p *process) clock() time.Time { return p.w.now.Add(p.w.skew) }

// wrongClock reports whether decisions may be based on a clock that is or was wrong. Rules about times cannot hold
// then.
func (c *checks) wrongClock() bool { return c.w.wrong.After(c.w.now) }
