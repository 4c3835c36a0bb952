package v1alpha5

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Effect is the kind of translation of a field.
type Effect string

// These are the effects, in increasing importance for users.
const (
	Carried    Effect = "carried"    // it has the same meaning under another name
	Defaulted  Effect = "defaulted"  // it was not set; its former default is written explicitly
	Repaired   Effect = "repaired"   // it was not valid; its plausible meaning is written, or nothing if it had none
	Changed    Effect = "changed"    // it is expressed differently, or its effect differs in a detail
	Impossible Effect = "impossible" // there is no equivalent: its meaning is lost
)

// Note describes the translation of one field.
type Note struct {
	// Field is the path in the older object, such as spec.ttlSecondsAfterEmpty.
	Field string
	// Effect is the kind of translation.
	Effect Effect
	// To is the path of the result, in the NodePool or, if it begins with the kind, in a node class. It is empty if
	// there is no result.
	To string
	// Reason contains the reason, and for Impossible the required action.
	Reason string
}

// String returns the note as one line.
func (n Note) String() string {
	text := string(n.Effect) + " " + n.Field
	if n.To != "" {
		text += " -> " + n.To
	}
	return text + ": " + n.Reason
}

// notes collects the notes on one object.
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

// sorted returns the notes ordered by field. Those about one field keep their order.
func (n *notes) sorted() []Note {
	list := slices.Clone(n.list)
	slices.SortStableFunc(list, func(a, b Note) int { return cmp.Compare(a.Field, b.Field) })
	return list
}

// words returns the names joined for a sentence.
func words(names []string) string { return strings.Join(names, ", ") }
