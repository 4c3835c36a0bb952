package webhook

import (
	"fmt"
	"time"
)

const (
	// freely is how many consecutive corrections of a definition are made at once.
	freely = 10
	// longest is the longest time for which a definition is not corrected, and quiet the time after which another
	// writer counts as gone.
	longest = 5 * time.Minute
	quiet   = 2 * longest
)

// rivals tracks definitions whose conversion another writer sets repeatedly: a second installation, or a tool that
// restores what it once applied. An immediate correction each time would make both write as fast as the API server
// responds.
type rivals struct {
	now func() time.Time
	// wait is the first pause after which a definition is corrected. It doubles.
	wait time.Duration
	seen map[string]*rival
}

// rival is the state of one definition.
type rival struct {
	times int
	last  time.Time // time of the last correction
	until time.Time // end of the pause
	said  string
}

// yields reports whether a definition, which another writer has changed to name the service said, is not corrected
// for now.
func (r *rivals) yields(name, said string) bool {
	now := r.now()
	if r.seen == nil {
		r.seen = map[string]*rival{}
	}
	v := r.seen[name]
	if v == nil || now.Sub(v.last) >= quiet {
		v = &rival{}
		r.seen[name] = v
	}
	v.said = said
	if now.Before(v.until) {
		return true
	}
	v.times++
	v.last = now
	if beyond := v.times - freely; beyond >= 0 {
		v.until = now.Add(min(r.wait<<min(beyond, 10), longest))
	}
	return false
}

// err returns an error about another writer of a definition, with the same text as long as it writes, or nil if there
// is none.
func (r *rivals) err(name string) error {
	v := r.seen[name]
	if v == nil || v.times < freely || r.now().Sub(v.last) >= quiet {
		return nil
	}
	return fmt.Errorf("the definition %s: another program repeatedly sets the conversion to %s, and it is corrected less and less often: "+
		"have one installation only, or have what applies the definition leave out spec.conversion (docs/migrating.md)", name, v.said)
}
