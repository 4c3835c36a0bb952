package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Outcome is what became of a field.
type Outcome string

// The outcomes.
const (
	Changed    Outcome = "changed"    // says the same in another way, or in another place
	Defaulted  Outcome = "defaulted"  // was not written, and had another default than today's
	Repaired   Outcome = "repaired"   // was wrong as it was written, and says now what was meant
	Impossible Outcome = "impossible" // cannot be said any more, or cannot be understood
	Advice     Outcome = "advice"     // what to do outside of manifests
)

// Note says what became of one field of an object.
type Note struct {
	Outcome Outcome `json:"outcome"`
	Field   string  `json:"field,omitempty"` // where it was, such as spec.ttlSecondsAfterEmpty; empty: the whole object
	Text    string  `json:"text"`
}

// Entry is what became of one object.
type Entry struct {
	Origin string   `json:"origin"`           // file and document
	Object string   `json:"object"`           // as it was: kind and name
	Became []string `json:"became,omitempty"` // kind and name of what it is now, where that is something else
	Notes  []Note   `json:"notes,omitempty"`  // none: it is as it was
}

func (e *Entry) note(outcome Outcome, field, format string, arguments ...any) {
	n := Note{outcome, field, fmt.Sprintf(format, arguments...)}
	if !slices.Contains(e.Notes, n) {
		e.Notes = append(e.Notes, n)
	}
}

// Report has an entry for each object that was read, in the order of the input.
type Report []*Entry

// Count is how often a field, or an object, had the outcome.
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

// Text is the report for people: the objects of which there is something to say, and a line of sums.
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
			fmt.Fprintf(&b, " is now %s", strings.Join(e.Became, ", "))
		}
		b.WriteByte('\n')
		for _, n := range e.Notes {
			field := cmp.Or(n.Field, "object")
			fmt.Fprintf(&b, "  %-11s%s: %s\n", n.Outcome, field, strings.ReplaceAll(n.Text, "\n", "\n             "))
		}
	}
	fmt.Fprintf(&b, "%s, %d as before", plural(len(r), "object"), len(r)-touched)
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
