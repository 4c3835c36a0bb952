package world

import (
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// view is what the watches of a process have shown: the cache that its controllers read.
type view struct {
	shelves
	// pending are the changes that the watches have not shown yet.
	pending []change
}

// change is a change of an object. before is nil for a new object, after for one that is gone.
type change struct{ before, after client.Object }

// newView lists everything, like a new process.
func newView(a *api) *view {
	v := &view{shelves: shelves{fields: a.shelves.fields, kinds: map[kind]*shelf{}}}
	for k, s := range a.shelves.kinds {
		for key, o := range s.objects {
			v.put(k, key, o)
		}
	}
	a.views = append(a.views, v)
	return v
}

// next shows the oldest change that was not shown. It returns false if there is none.
func (v *view) next() (change, bool) {
	if len(v.pending) == 0 {
		v.pending = nil
		return change{}, false
	}
	c := v.pending[0]
	v.pending = v.pending[1:]
	o := c.before
	if c.after != nil {
		o = c.after
	}
	v.put(kindOf(o), client.ObjectKeyFromObject(o), c.after)
	return c, true
}

// everything returns the objects as if they were new.
func (v *view) everything() []change {
	var all []change
	for _, k := range slices.SortedFunc(maps.Keys(v.kinds), func(a, b kind) int { return strings.Compare(a.Name(), b.Name()) }) {
		for _, o := range v.list(k, "", "") {
			all = append(all, change{after: o})
		}
	}
	return all
}
