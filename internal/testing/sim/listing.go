package sim

import (
	"cmp"
	"slices"
)

// Lists of objects by name. Histories list objects many times between two changes, so the lists are cached until a
// change.

// listing holds the objects of one kind by name, at a version.
type listing struct {
	version int
	known   bool
	objects []object
}

// at returns the objects, sorted again if the version has changed. The result is shared: callers must not change it.
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

// list returns the objects with their concrete type, in a new slice.
func list[T object](objects []object) []T {
	all := make([]T, len(objects))
	for i, o := range objects {
		all[i] = o.(T)
	}
	return all
}

// sorted returns the objects of a kind by name.
func (a *api) sorted(k kind) []object {
	return a.lists[k].at(len(a.log[k]), func() map[string]object { return a.objects[k] })
}

// sorted returns the newest of the watched and the written objects, by name.
func (v *view) sorted(k kind) []object {
	return v.lists[k].at(v.version, func() map[string]object { return v.present(k) })
}

// watched returns the objects that the watch has shown, by name.
func (v *view) watched(k kind) []object {
	return v.shown[k].at(v.cursor[k], func() map[string]object { return v.seen[k] })
}
