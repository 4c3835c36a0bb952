package webhook

import (
	"fmt"
	"time"
)

const (
	// freeCorrections is how many consecutive corrections of a definition are made at once.
	freeCorrections = 10
	// maxWait is the longest time for which a definition is not corrected, and quiet the time after which another
	// writer counts as gone.
	maxWait = 5 * time.Minute
	quiet   = 2 * maxWait
)

// otherWriters tracks definitions whose conversion another writer sets repeatedly: a second installation, or a tool
// that restores what it once applied. An immediate correction each time would make both write as fast as the API server
// responds.
type otherWriters struct {
	now func() time.Time
	// wait is the first pause after which a definition is corrected. It doubles.
	wait time.Duration
	seen map[string]*otherWriter
}

// otherWriter is the state of one definition.
type otherWriter struct {
	times int
	last  time.Time // time of the last correction
	until time.Time // end of the pause
	said  string
}

// yields reports whether a definition, which another writer has changed to name the service said, is not corrected
// for now.
func (r *otherWriters) yields(name, said string) bool {
	now := r.now()
	if r.seen == nil {
		r.seen = map[string]*otherWriter{}
	}
	v := r.seen[name]
	if v == nil || now.Sub(v.last) >= quiet {
		v = &otherWriter{}
		r.seen[name] = v
	}
	v.said = said
	if now.Before(v.until) {
		return true
	}
	v.times++
	v.last = now
	if beyond := v.times - freeCorrections; beyond >= 0 {
		v.until = now.Add(min(r.wait<<min(beyond, 10), maxWait))
	}
	return false
}

// err returns an error about another writer of a definition, with the same text as long as it writes, or nil if there
// is none.
func (r *otherWriters) err(name string) error {
	v := r.seen[name]
	if v == nil || v.times < freeCorrections || r.now().Sub(v.last) >= quiet {
		return nil
	}
	return fmt.Errorf("the definition %s: another program repeatedly sets the conversion to %s, and it is corrected less and less often: "+
		"run one installation only, or let the tool that applies the definition omit spec.conversion (docs/migrating.md)", name, v.said)
}
