package conversion

import (
	"fmt"
	"time"
)

const (
	// freely is how often in a row a definition is put right at once.
	freely = 10
	// longest is the longest that a definition is left to somebody else, and quiet after which time nobody is a rival any more.
	longest = 5 * time.Minute
	quiet   = 2 * longest
)

// rivals say of definitions that somebody else converts, again and again: a second installation, or a tool that puts back what
// it once applied. Putting ours back at once each time would have both write as fast as the API server answers.
type rivals struct {
	now func() time.Time
	// wait is for how long a definition is left to a rival at first; it doubles.
	wait time.Duration
	seen map[string]*rival
}

// rival is what there is to know of one definition.
type rival struct {
	times int
	last  time.Time // when it was last put right
	until time.Time // until when it is left alone
	said  string
}

// yields says whether a definition, which somebody made say this, is left to him for now. Else it is put right.
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

// err tells of a rival of a definition, in the same words as long as he is there; nil if there is none.
func (r *rivals) err(name string) error {
	v := r.seen[name]
	if v == nil || v.times < freely || r.now().Sub(v.last) >= quiet {
		return nil
	}
	return fmt.Errorf("the definition %s: somebody else keeps saying that %s converts, and it is put right less and less often: "+
		"have one installation only, or have what applies the definition leave out spec.conversion (docs/migrating.md)", name, v.said)
}
