package expression

import (
	"maps"
	"sync"
	"time"
)

// keptFor is how long a compiled expression is kept after its last use.
const keptFor = 12 * time.Hour

// Cache keeps compiled expressions with their results, by text. It is safe for concurrent use.
type Cache struct {
	now func() time.Time

	mu       sync.Mutex
	compiled map[string]*compiled
}

type compiled struct {
	program *Program
	err     error
	used    time.Time
}

// NewCache returns an empty cache.
func NewCache(now func() time.Time) *Cache { return &Cache{now: now, compiled: map[string]*compiled{}} }

// Program is Compile for an expression that is used repeatedly.
func (c *Cache) Program(text string) (*Program, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	found := c.compiled[text]
	if found == nil {
		maps.DeleteFunc(c.compiled, func(_ string, old *compiled) bool { return now.Sub(old.used) >= keptFor })
		found = &compiled{}
		found.program, found.err = Compile(text)
		c.compiled[text] = found
	}
	found.used = now
	return found.program, found.err
}
