package plan

// Remembered is how many pods the brake remembers.
func (b *Brake) Remembered() int {
	n := 0
	for _, o := range b.owners {
		n += len(o.pods)
	}
	return n
}
