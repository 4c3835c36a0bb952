package v1alpha5

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// section is one map of an older object. It records which fields have been read, so that rest can report the others.
type section struct {
	path   string
	values map[string]any
	seen   map[string]bool
	notes  *notes
}

func newSection(path string, values map[string]any, notes *notes) *section {
	return &section{path: path, values: values, seen: map[string]bool{}, notes: notes}
}

// at returns the path of a field.
func (s *section) at(name string) string { return s.path + "." + name }

// has reports whether the field has a value. This does not mark the field as read.
func (s *section) has(name string) bool { return s.values[name] != nil }

// value returns the field and marks it as read.
func (s *section) value(name string) any {
	s.seen[name] = true
	return s.values[name]
}

// child returns a field that is a map, or nil if it is absent or of another type.
func (s *section) child(name string) *section {
	switch value := s.value(name).(type) {
	case nil:
		return nil
	case map[string]any:
		return newSection(s.at(name), value, s.notes)
	default:
		s.mistyped(name, "an object")
		return nil
	}
}

func (s *section) mistyped(name, want string) {
	s.notes.add(Repaired, s.at(name), "", "is %s, want %s; omitted", show(s.values[name]), want)
}

// text returns a string field. A number or a boolean is returned as its text.
func (s *section) text(name string) string {
	value := s.value(name)
	if value == nil {
		return ""
	}
	text, ok := scalar(value)
	if !ok {
		s.mistyped(name, "a string")
	}
	return strings.TrimSpace(text)
}

// whole returns a field that is a non-negative integer, or nil if it is absent or of another type.
func (s *section) whole(name string) *int64 {
	value := s.value(name)
	if value == nil {
		return nil
	}
	text, _ := scalar(value)
	number, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || number < 0 {
		s.mistyped(name, "an integer, 0 or more")
		return nil
	}
	if _, isText := value.(string); isText {
		s.notes.add(Repaired, s.at(name), "", "is %q, want an integer; treated as the number", text)
	}
	return &number
}

// seconds returns a field that is a non-negative number of seconds. It returns nil if the field is absent or, with a
// note, if it cannot be parsed. A duration with units is accepted.
func (s *section) seconds(name string) *int64 {
	value := s.value(name)
	text, _ := scalar(value)
	if value == nil {
		return nil
	}
	if number, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && number >= 0 {
		return s.whole(name)
	}
	if span, ok := spanOf(strings.TrimSpace(text)); ok {
		number := int64(span / time.Second)
		s.notes.add(Repaired, s.at(name), "", "is %s, want an integer; treated as %d seconds", show(value), number)
		return &number
	}
	s.notes.add(Impossible, s.at(name), "", "is %s, want an integer number of seconds, 0 or more; omitted", show(value))
	return nil
}

// spanOf parses a duration with units, including days, in whole seconds.
func spanOf(text string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 64)
		return time.Duration(n) * 24 * time.Hour, err == nil && n >= 0 && n <= 100_000
	}
	span, err := time.ParseDuration(text)
	return span, err == nil && span >= 0 && span%time.Second == 0
}

// flag returns a boolean field, or nil if it is absent or of another type.
func (s *section) flag(name string) *bool {
	value := s.value(name)
	if value == nil {
		return nil
	}
	text, _ := scalar(value)
	on, err := strconv.ParseBool(strings.TrimSpace(text))
	if err != nil {
		s.mistyped(name, "true or false")
		return nil
	}
	return &on
}

// texts returns a field that is a list of strings. One string is read as a list with one member.
func (s *section) texts(name string) []string {
	switch value := s.value(name).(type) {
	case nil:
		return nil
	case []any:
		var list []string
		for i, item := range value {
			if text, ok := scalar(item); ok {
				list = append(list, strings.TrimSpace(text))
				continue
			}
			s.notes.add(Repaired, fmt.Sprintf("%s[%d]", s.at(name), i), "", "is %s, want a string; omitted", show(item))
		}
		return list
	default:
		if text, ok := scalar(value); ok {
			s.notes.add(Repaired, s.at(name), "", "is %s, want a list; treated as a list of one item", show(value))
			return []string{strings.TrimSpace(text)}
		}
		s.mistyped(name, "a list of strings")
		return nil
	}
}

// pairs returns a field that maps strings to strings. Numbers and booleans are returned as their text.
func (s *section) pairs(name string) map[string]string {
	child := s.child(name)
	if child == nil {
		return nil
	}
	pairs := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(child.values)) {
		text, ok := scalar(child.values[key])
		if !ok && child.values[key] != nil {
			child.mistyped(key, "a string")
			continue
		}
		pairs[key] = strings.TrimSpace(text)
	}
	return pairs
}

// listOf returns a field that is a list of objects. Items that do not match the type are omitted.
func listOf[T any](s *section, name string) []T {
	value := s.value(name)
	items, isList := value.([]any)
	if !isList {
		if value != nil {
			s.mistyped(name, "a list")
		}
		return nil
	}
	var list []T
	for i, item := range items {
		var typed T
		at := fmt.Sprintf("%s[%d]", s.at(name), i)
		if err := recode(item, &typed, at, s.notes); err != nil {
			s.notes.add(Repaired, at, "", "cannot be parsed: %v; omitted", err)
			continue
		}
		list = append(list, typed)
	}
	return list
}

const noSuchField = "unknown field; omitted"

// rest adds a note for every field that has not been read: it never had a meaning.
func (s *section) rest() {
	if s == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.values)) {
		if !s.seen[name] {
			s.notes.add(Repaired, s.at(name), "", noSuchField)
		}
	}
}

// scalar returns the text of a string, a number or a boolean.
func scalar(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case int:
		return strconv.Itoa(v), true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return strconv.FormatInt(int64(v), 10), true
		}
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case json.Number:
		return v.String(), true
	}
	return "", false
}

// show formats a value for a sentence.
func show(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprintf("%v", value)
	}
	return strings.TrimSuffix(text.String(), "\n")
}
