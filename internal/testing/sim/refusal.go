package sim

// An API server that refuses writes for a while: a part of them because of their rate, like priority and fairness
// (429), and all new claims, like a ResourceQuota on their count (403). Nothing is written then, and the caller gets
// the error.

// throttles reports whether the API server refuses a write because of the rate.
func (w *world) throttles() bool {
	return !w.calm && w.throttled.After(w.now) && w.rng.IntN(2) == 0
}

// forbids reports whether a quota refuses a new claim.
func (w *world) forbids() bool { return !w.calm && w.quota.After(w.now) }
