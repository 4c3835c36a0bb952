package world

import (
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// view is what the watches of a process have shown: the cache that its controllers read.
type view struct {
	shelves
	// pending are the changes that the watches have not shown yet, by kind, each with the time at which it is shown. The
	// watch of each kind lags by itself, as long as lag says.
	pending map[kind][]change
	lag     func() time.Duration
	count   int
}

// change is a change of an object. before is nil for a new object, after for one that is gone.
type change struct {
	before, after client.Object
	due           time.Time
	order         int
}

// object returns the object, or what it was.
func (c change) object() client.Object {
	if c.after != nil {
		return c.after
	}
	return c.before
}

// newView lists everything, like a new process.
func newView(a *api, lag func() time.Duration) *view {
	v := &view{shelves: shelves{fields: a.shelves.fields, kinds: map[kind]*shelf{}}, pending: map[kind][]change{}, lag: lag}
	for k, s := range a.shelves.kinds {
		for key, o := range s.objects {
			v.put(k, key, o)
		}
	}
	a.views = append(a.views, v)
	return v
}

// add adds a change that the watch will show.
func (v *view) add(c change, now time.Time) {
	k := kindOf(c.object())
	v.count++
	c.due, c.order = now.Add(v.lag()), v.count
	if before := v.pending[k]; len(before) > 0 && before[len(before)-1].due.After(c.due) {
		c.due = before[len(before)-1].due
	}
	v.pending[k] = append(v.pending[k], c)
}

// first returns the change that is shown first, false if there is none.
func (v *view) first() (first change, any bool) {
	for _, list := range v.pending {
		if len(list) > 0 && (!any || list[0].due.Before(first.due) || list[0].due.Equal(first.due) && list[0].order < first.order) {
			first, any = list[0], true
		}
	}
	return first, any
}

// show shows the first change if it is due. It returns false if there is none.
func (v *view) show(now time.Time) (change, bool) {
	c, any := v.first()
	if !any || c.due.After(now) {
		return change{}, false
	}
	o := c.object()
	k := kindOf(o)
	v.pending[k] = v.pending[k][1:]
	v.put(k, client.ObjectKeyFromObject(o), c.after)
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
