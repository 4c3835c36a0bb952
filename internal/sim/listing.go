package sim

import (
	"cmp"
	"slices"
)

// Objects by name. Histories list them many times between two changes, so that the lists are kept until there is a change.

// listing is the objects of one kind by name, as they were at a version.
type listing struct {
	version int
	known   bool
	objects []object
}

// at returns the objects, sorted anew when the version is another one. The result is shared: it must not be changed.
func (l *listing) at(version int, objects func() map[string]object) []object {
	if l.known && l.version == version {
		return l.objects
	}
	all := objects()
	l.version, l.known, l.objects = version, true, make([]object, 0, len(all))
	for _, o := range all {
		l.objects = append(l.objects, o)
	}
	slices.SortFunc(l.objects, func(a, b object) int { return cmp.Compare(a.header().name, b.header().name) })
	return l.objects
}

// list returns the objects as what they are, in a slice of its own.
func list[T object](objects []object) []T {
	all := make([]T, len(objects))
	for i, o := range objects {
		all[i] = o.(T)
	}
	return all
}

// sorted are the objects of a kind by name.
func (a *api) sorted(k kind) []object {
	return a.lists[k].at(len(a.log[k]), func() map[string]object { return a.objects[k] })
}

// sorted are the newest of what was seen and what was written, by name.
func (v *view) sorted(k kind) []object {
	return v.lists[k].at(v.version, func() map[string]object { return v.present(k) })
}

// watched are the objects as the watch has shown them, by name.
func (v *view) watched(k kind) []object {
	return v.shown[k].at(v.cursor[k], func() map[string]object { return v.seen[k] })
}
