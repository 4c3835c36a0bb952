package execute

import "sync"

// mostCauses limits the number of remembered claims. The oldest is dropped first.
const mostCauses = 1000

// Causes remembers why claims failed to launch or to register, beyond their deletion. A command whose replacement is
// gone reports the cause. The zero value is empty. Methods are safe for concurrent use.
type Causes struct {
	mu      sync.Mutex
	byClaim map[string]string
	order   []string
}

// Note records the last failure of the claim. An empty text removes the record.
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

// Of returns the last failure of the claim, or an empty string if none is known.
func (c *Causes) Of(claim string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byClaim[claim]
}
