package sim

import "time"

// view is the knowledge of one process about the API: what the watches have shown, and its own writes that they have
// not shown yet (docs/architecture.md, law 6). It is lost with the process.
type view struct {
	api    *api
	cursor [kinds]int
	seen   [kinds]map[string]object
	own    map[key]*ownWrite
	// lists and shown cache lists, see sorted and watched.
	lists, shown [kinds]listing
	// version counts changes of the current objects.
	version int
	// podEvents holds the nodes to which pods were bound or from which pods were removed, as the watch showed it.
	podEvents map[string]bool
}

// ownWrite is the newest write of the process to an object.
type ownWrite struct {
	uid string
	// object is the object after the write, nil if a live read found it gone.
	object  object
	checked time.Time
}

// newView lists everything, like a new process.
func newView(a *api) *view {
	v := &view{api: a, own: map[key]*ownWrite{}, podEvents: map[string]bool{}}
	for k := range v.seen {
		v.seen[k] = map[string]object{}
		for name, o := range a.objects[k] {
			v.seen[k][name] = o
		}
		v.cursor[k] = len(a.log[k])
	}
	return v
}

// present returns the newest of the watched and the written objects.
func (v *view) present(k kind) map[string]object {
	all := make(map[string]object, len(v.seen[k]))
	for name, o := range v.seen[k] {
		all[name] = o
	}
	for at, o := range v.own {
		switch {
		case at.kind != k:
		case o.object == nil:
			delete(all, at.name)
		default:
			all[at.name] = o.object
		}
	}
	return all
}

// deliver delivers the events until the given time. A watch that broke lists again: then only the last change of each
// name is delivered, and objects that were created and deleted in between are never seen.
func (v *view) deliver(k kind, until time.Time, relist bool) {
	log := v.api.log[k]
	from := v.cursor[k]
	to := from
	for to < len(log) && !log[to].at.After(until) {
		to++
	}
	if to == from {
		return
	}
	v.cursor[k] = to
	v.version++
	if !relist {
		for _, c := range log[from:to] {
			v.show(c)
		}
		return
	}
	last := map[string]int{}
	for i := from; i < to; i++ {
		last[log[i].key.name] = i
	}
	for i := from; i < to; i++ {
		c := log[i]
		if last[c.key.name] != i || c.object == nil && v.seen[k][c.key.name] == nil {
			continue
		}
		v.show(c)
	}
}

// oldest returns when the first change that the watch has not shown happened.
func (v *view) oldest(k kind) (time.Time, bool) {
	if v.cursor[k] == len(v.api.log[k]) {
		return time.Time{}, false
	}
	return v.api.log[k][v.cursor[k]].at, true
}

func (v *view) show(c change) {
	before := v.seen[c.key.kind][c.key.name]
	v.noteBinding(before, c.object)
	own := v.own[c.key]
	if c.object == nil {
		delete(v.seen[c.key.kind], c.key.name)
		if own != nil && own.uid == c.uid {
			delete(v.own, c.key)
		}
		return
	}
	v.seen[c.key.kind][c.key.name] = c.object
	if own != nil && own.object != nil && c.object.header().version >= own.object.header().version {
		delete(v.own, c.key)
	}
	if own != nil && own.object == nil && c.uid != own.uid {
		delete(v.own, c.key)
	}
}

// noteBinding records the nodes to which a pod was bound or from which it was removed. As in the controller, pods of
// DaemonSets are not counted.
func (v *view) noteBinding(before, after object) {
	on := func(o object) string {
		if p, ok := o.(*pod); ok && p != nil && !p.daemon && p.deleting.IsZero() {
			return p.node
		}
		return ""
	}
	if a, b := on(before), on(after); a != b {
		v.podEvents[a], v.podEvents[b] = true, true
		delete(v.podEvents, "")
	}
}

// wrote records an object that the API returned for a write of this process.
func (v *view) wrote(o object) {
	k := o.key()
	if seen := v.seen[k.kind][k.name]; seen != nil && seen.header().version >= o.header().version {
		return
	}
	v.own[k] = &ownWrite{uid: o.header().uid, object: o, checked: v.api.now()}
	v.version++
}

// settle performs live reads for writes that the watch has not shown for long.
func (v *view) settle() {
	for k, own := range v.own {
		if v.api.now().Sub(own.checked) < timers.WriteVisible {
			continue
		}
		v.version++
		own.checked = v.api.now()
		live, seen := v.api.read(k), v.seen[k.kind][k.name]
		switch {
		case live == nil && seen != nil:
			own.uid, own.object = seen.header().uid, nil
		case live == nil:
			delete(v.own, k)
		case seen != nil && seen.header().version >= live.header().version:
			delete(v.own, k)
		default:
			own.uid, own.object = live.header().uid, live
		}
	}
}

// cached returns the object that the watch last showed: what a client that reads from the cache returns.
func (v *view) cached(k key) object { return v.seen[k.kind][k.name] }
