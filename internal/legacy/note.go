package legacy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Effect is what became of a field.
type Effect string

// The effects, from the least to the most important for a reader.
const (
	Carried    Effect = "carried"    // it says the same under another name
	Defaulted  Effect = "defaulted"  // it was not set; what that meant is written out
	Repaired   Effect = "repaired"   // it was not valid; what it can only have meant is written, or nothing if it meant nothing
	Changed    Effect = "changed"    // it is said differently, or what it does differs in a detail
	Impossible Effect = "impossible" // it cannot be said today: its meaning is lost
)

// Note is what became of one field.
type Note struct {
	// Field is the path in the older object, such as spec.ttlSecondsAfterEmpty.
	Field string
	// Effect is what happened.
	Effect Effect
	// To is the path of what it became, in the NodePool or, if it begins with the kind, in a node class; empty if it
	// became nothing.
	To string
	// Reason says why, and for Impossible what to do.
	Reason string
}

// String is the note as one line.
func (n Note) String() string {
	text := string(n.Effect) + " " + n.Field
	if n.To != "" {
		text += " -> " + n.To
	}
	return text + ": " + n.Reason
}

// notes collects what becomes of one object.
type notes struct{ list []Note }

func (n *notes) add(effect Effect, field, to, reason string, args ...any) {
	if len(args) > 0 {
		reason = fmt.Sprintf(reason, args...)
	}
	note := Note{Field: field, Effect: effect, To: to, Reason: reason}
	if !slices.Contains(n.list, note) {
		n.list = append(n.list, note)
	}
}

// sorted are the notes by field; those of one field stay in the order in which they were made.
func (n *notes) sorted() []Note {
	list := slices.Clone(n.list)
	slices.SortStableFunc(list, func(a, b Note) int { return cmp.Compare(a.Field, b.Field) })
	return list
}

// words lists names in a sentence.
func words(names []string) string { return strings.Join(names, ", ") }
