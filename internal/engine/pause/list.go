package pause

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Most is the maximum number of pauses in a List, besides those of removals: a limit on removals must not be lost.
const Most = 200

// mostRemovals is how many pauses of removals a List has: that of a NodePool, and that of the fleet.
const mostRemovals = 2

// List holds pauses, one for each key, sorted by key.
type List []Pause

func compare(a, b Key) int {
	return cmp.Or(strings.Compare(a.Reason, b.Reason), strings.Compare(a.Scope, b.Scope))
}

// Of returns the pause with the key. Without one, it returns a pause without failures.
func (l List) Of(key Key) Pause {
	if i := slices.IndexFunc(l, func(p Pause) bool { return p.Key == key }); i >= 0 {
		return l[i]
	}
	return Pause{Key: key}
}

// Active returns the pauses that have not ended.
func (l List) Active(now time.Time) List {
	return slices.DeleteFunc(slices.Clone(l), func(p Pause) bool { return !p.Active(now) })
}

// With returns the list with the pause, and without those whose failures are no longer remembered when it was counted.
// A full list takes no pause with another key.
func (l List) With(p Pause) List {
	l = slices.DeleteFunc(slices.Clone(l), func(o Pause) bool { return o.Key == p.Key || !o.Remembered(p.At) })
	if len(l) >= Most && p.Reason != Removal {
		return l
	}
	l = append(l, p)
	slices.SortFunc(l, func(a, b Pause) int { return compare(a.Key, b.Key) })
	return l
}

// Without returns the list without the pause that has the key.
func (l List) Without(key Key) List {
	return slices.DeleteFunc(slices.Clone(l), func(p Pause) bool { return p.Key == key })
}

const (
	// mostFailures limits the value that is read: the annotation may have been edited.
	mostFailures = 1000
	// longestWhy is the maximum length of a reason, in bytes: all annotations of an object are limited to 256 KiB.
	longestWhy = 300
)

// Parse parses the annotation of a NodePool. It ignores invalid entries, and a text that is not JSON: the next failure
// overwrites them.
func Parse(text string) List {
	var list List
	if text == "" || json.Unmarshal([]byte(text), &list) != nil {
		return nil
	}
	list = slices.DeleteFunc(list, func(p Pause) bool {
		return p.Reason == "" || p.Scope == "" || p.Failures < 1 || p.At.IsZero()
	})
	for i := range list {
		p := &list[i]
		p.Failures, p.At, p.Until = min(p.Failures, mostFailures), p.At.UTC(), p.Until.UTC()
	}
	return list[:min(len(list), Most+mostRemovals)]
}

// Text returns the annotation, "" for no pauses.
func (l List) Text() string {
	if len(l) == 0 {
		return ""
	}
	l = slices.Clone(l)
	for i := range l {
		if why := l[i].Why; len(why) > longestWhy {
			l[i].Why = strings.ToValidUTF8(why[:longestWhy], "") + "..."
		}
	}
	encoded, err := json.Marshal(l)
	if err != nil {
		panic("encoding pauses: " + err.Error()) // strings, numbers and times between the years 1 and 9999 only
	}
	return string(encoded)
}
