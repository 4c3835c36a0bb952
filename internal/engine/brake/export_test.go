package brake

// Remembered returns how many pods the brake keeps in memory.
func (b *Brake) Remembered() int {
	n := 0
	for _, o := range b.owners {
		n += len(o.pods)
	}
	return n
}
