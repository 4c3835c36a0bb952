package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Outcome is the kind of a note.
type Outcome string

// These are the outcomes.
const (
	Changed    Outcome = "changed"    // has the same meaning in another form or at another path
	Defaulted  Outcome = "defaulted"  // was not set, and had a default that differs from the current one
	Repaired   Outcome = "repaired"   // was invalid, and now has its plausible meaning
	Impossible Outcome = "impossible" // has no equivalent, or cannot be interpreted
	Advice     Outcome = "advice"     // an action outside of manifests
)

// Note describes the migration of one field of an object.
type Note struct {
	Outcome Outcome `json:"outcome"`
	Field   string  `json:"field,omitempty"` // its former path, such as spec.ttlSecondsAfterEmpty; empty: the whole object
	Text    string  `json:"text"`
}

// Entry describes the migration of one object.
type Entry struct {
	Origin string   `json:"origin"`           // file and document
	Object string   `json:"object"`           // kind and name in the input
	Became []string `json:"became,omitempty"` // kind and name of the results, if they differ
	Notes  []Note   `json:"notes,omitempty"`  // empty: the object is unchanged
}

func (e *Entry) note(outcome Outcome, field, format string, arguments ...any) {
	n := Note{outcome, field, fmt.Sprintf(format, arguments...)}
	if !slices.Contains(e.Notes, n) {
		e.Notes = append(e.Notes, n)
	}
}

// Report has an entry for each object in the input, in its order.
type Report []*Entry

// Count returns how many notes, or objects, had the outcome.
func (r Report) Count(outcome Outcome) int {
	n := 0
	for _, e := range r {
		for _, note := range e.Notes {
			if note.Outcome == outcome {
				n++
			}
		}
	}
	return n
}

// JSON writes the report as a list of entries.
func (r Report) JSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if r == nil {
		r = Report{}
	}
	return encoder.Encode(r)
}

// Text returns the report as text: the objects with notes, and a line with totals.
func (r Report) Text() string {
	var b strings.Builder
	touched := 0
	for _, e := range r {
		if len(e.Notes) == 0 && len(e.Became) == 0 {
			continue
		}
		touched++
		fmt.Fprintf(&b, "%s (%s)", e.Object, e.Origin)
		if len(e.Became) > 0 {
			fmt.Fprintf(&b, " becomes %s", strings.Join(e.Became, ", "))
		}
		b.WriteByte('\n')
		for _, n := range e.Notes {
			field := cmp.Or(n.Field, "object")
			fmt.Fprintf(&b, "  %-11s%s: %s\n", n.Outcome, field, strings.ReplaceAll(n.Text, "\n", "\n             "))
		}
	}
	fmt.Fprintf(&b, "%s, %d unchanged", plural(len(r), "object"), len(r)-touched)
	for _, o := range []Outcome{Changed, Defaulted, Repaired, Impossible} {
		if n := r.Count(o); n > 0 {
			fmt.Fprintf(&b, ", %d %s", n, o)
		}
	}
	b.WriteByte('\n')
	return b.String()
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
