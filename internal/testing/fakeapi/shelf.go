package fakeapi

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// mostChanges is how many changes of a kind are kept for watches that begin later; older ones are gone (410).
const mostChanges = 100_000

// change is what a watch shows. before is nil for a new object.
type change struct {
	version       uint64
	kind          watch.EventType
	before, after ref
}

// shelf holds the objects of a kind. Those of the sample have numbers: first those that exist once, then block by block.
type shelf struct {
	kind       *kind
	once, each []*object
	blocks     int
	seed       maphash.Seed
	// index has the number of each of the sample's objects by the hash of its key.
	index map[uint64]uint32
	// replaced holds the sample's objects that were written, nil for those that are gone. written are the others.
	replaced map[uint32]*object
	written  map[string]*object
	count    int
	log      []change
	// since is the version up to which changes are forgotten. changed is closed at the next change.
	since   uint64
	changed chan struct{}
	// every is taken for reading and writing all of the above.
	every *sync.RWMutex
}

func newShelf(k *kind, every *sync.RWMutex) *shelf {
	return &shelf{kind: k, seed: maphash.MakeSeed(), index: map[uint64]uint32{}, replaced: map[uint32]*object{},
		written: map[string]*object{}, changed: make(chan struct{}), every: every}
}

// fill numbers the templates' objects.
func (s *shelf) fill() {
	patterns := map[*object]pattern{}
	for _, o := range slices.Concat(s.once, s.each) {
		patterns[o] = newPattern([]byte(o.key()), o.variables)
	}
	var key []byte
	for i := range s.sampled() {
		r := s.numbered(i)
		p := patterns[r.object]
		key = p.append(key[:0], r.block)
		s.index[maphash.Bytes(s.seed, key)] = i
	}
	s.count = int(s.sampled())
}

// sampled is the number of the sample's objects.
func (s *shelf) sampled() uint32 { return uint32(len(s.once) + len(s.each)*s.blocks) }

// numbered returns one of the sample's objects as it was in the beginning.
func (s *shelf) numbered(i uint32) ref {
	if int(i) < len(s.once) {
		return ref{s.once[i], 0}
	}
	i -= uint32(len(s.once))
	return ref{s.each[int(i)%len(s.each)], int(i) / len(s.each)}
}

// now returns one of the sample's objects as it is, with no object if it is gone.
func (s *shelf) now(i uint32) ref {
	if o, written := s.replaced[i]; written {
		return ref{o, 0}
	}
	return s.numbered(i)
}

// get returns the object with a key, with no object if there is none.
func (s *shelf) get(key string) ref {
	if i, ok := s.index[maphash.String(s.seed, key)]; ok {
		return s.now(i)
	}
	return ref{s.written[key], 0}
}

// put stores an object under a key, and records the change.
func (s *shelf) put(key string, o *object) {
	before := s.get(key)
	if i, ok := s.index[maphash.String(s.seed, key)]; ok {
		s.replaced[i] = o
	} else {
		s.written[key] = o
	}
	if before.object == nil {
		s.count++
		s.tell(change{o.version, watch.Added, ref{}, ref{o, 0}})
		return
	}
	s.tell(change{o.version, watch.Modified, before, ref{o, 0}})
}

// remove takes an object away. last is how it was, with the version of its removal.
func (s *shelf) remove(key string, last *object) {
	before := s.get(key)
	if i, ok := s.index[maphash.String(s.seed, key)]; ok {
		s.replaced[i] = nil
	} else {
		delete(s.written, key)
	}
	s.count--
	s.tell(change{last.version, watch.Deleted, before, ref{last, 0}})
}

func (s *shelf) tell(c change) {
	if len(s.log) >= mostChanges {
		half := len(s.log) / 2
		s.since, s.log = s.log[half-1].version, slices.Clone(s.log[half:])
	}
	s.log = append(s.log, c)
	close(s.changed)
	s.changed = make(chan struct{})
}

// after returns the changes after a version, and false if some are forgotten.
func (s *shelf) after(version uint64) ([]change, bool) {
	if version < s.since {
		return nil, false
	}
	i, found := slices.BinarySearchFunc(s.log, version, func(c change, v uint64) int {
		switch {
		case c.version < v:
			return -1
		case c.version > v:
			return 1
		}
		return 0
	})
	if found {
		i++
	}
	return s.log[i:], true
}

// page returns objects from a position, at most limit if it is positive, and the position of the next one, "" at the end.
// Positions are those of the sample's objects, then keys of the others.
func (s *shelf) page(from position, limit int, admit func(ref) bool) (found []ref, next position, more bool) {
	full := func() bool { return limit > 0 && len(found) == limit }
	for i := from.number; i < s.sampled(); i++ {
		if full() {
			return found, position{number: i}, true
		}
		if r := s.now(i); r.object != nil && admit(r) {
			found = append(found, r)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.written)) {
		if key < from.key {
			continue
		}
		if full() {
			return found, position{number: s.sampled(), key: key}, true
		}
		if r := (ref{s.written[key], 0}); admit(r) {
			found = append(found, r)
		}
	}
	return found, position{}, false
}

// position is where a page begins.
type position struct {
	number uint32
	key    string
}

// in admits the objects of a namespace, all for "".
func in(namespace string, of selector) func(ref) bool {
	return func(r ref) bool {
		if namespace != "" {
			at := r.content.GetNamespace()
			if r.block > 0 && strings.HasPrefix(at, Namespace[:len(Namespace)-len("%04d")]) {
				at = replacer(r.variables, r.block).Replace(at)
			}
			if at != namespace {
				return false
			}
		}
		return of.matches(r)
	}
}
