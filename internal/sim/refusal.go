package sim

// An API server that refuses writes for a while: some for their number, as priority and fairness does (429), and all new claims, as a
// ResourceQuota over their count does (403). Nothing is written then, and the caller knows.

// throttles reports whether the API server refuses a write for the number of writes.
func (w *world) throttles() bool {
	return !w.calm && w.throttled.After(w.now) && w.rng.IntN(2) == 0
}

// forbids reports whether a quota refuses a new claim.
func (w *world) forbids() bool { return !w.calm && w.quota.After(w.now) }
