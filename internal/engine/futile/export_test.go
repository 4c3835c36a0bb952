package futile

// Remembered returns how many pods are kept in memory.
func (l *Launches) Remembered() int {
	n := 0
	for _, o := range l.counters {
		n += len(o.pods)
	}
	return n
}
