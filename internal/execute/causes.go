package execute

import "sync"

// mostCauses bounds how many claims are remembered; the oldest is forgotten first.
const mostCauses = 1000

// Causes remembers why claims could not be launched or did not register, beyond their deletion: a command whose replacement is
// gone names the cause. The zero value is empty. Methods may be called from any goroutine.
type Causes struct {
	mu      sync.Mutex
	byClaim map[string]string
	order   []string
}

// Note remembers why the claim failed last; an empty text forgets it.
func (c *Causes) Note(claim, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.byClaim[claim]; known {
		c.byClaim[claim] = why
		return
	}
	if why == "" {
		return
	}
	if c.byClaim == nil {
		c.byClaim = map[string]string{}
	}
	if len(c.order) >= mostCauses {
		delete(c.byClaim, c.order[0])
		c.order = c.order[1:]
	}
	c.byClaim[claim], c.order = why, append(c.order, claim)
}

// Of is why the claim failed last, empty if that is not known.
func (c *Causes) Of(claim string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byClaim[claim]
}
