package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
)

// Wrote records an object that the API returned for a create, update or patch of this controller. It is part of every
// snapshot from now on, until the watch shows it or a later version. The object is copied.
func (s *Store) Wrote(obj client.Object) {
	at, ok := state.RefOf(obj)
	if !ok {
		return
	}
	obj = obj.DeepCopyObject().(client.Object)
	convert.Trim(obj)
	s.own(at, obj.GetUID(), func(e *entry) bool { return e.write(obj, time.Now()) })
}

// Deleted records an object whose deletion by this controller the API accepted (for a pod: its eviction). A pod, or
// an object with finalizers, is marked as being deleted; any other object is gone. The object is copied.
func (s *Store) Deleted(obj client.Object) {
	at, ok := state.RefOf(obj)
	if !ok {
		return
	}
	s.own(at, obj.GetUID(), func(e *entry) bool { return e.remove(obj, time.Now()) })
}

func (s *Store) own(at state.Ref, uid types.UID, change func(*entry) bool) {
	defer s.news.publish()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, late := s.gone[uid]; late {
		return
	}
	if e := s.entry(at); change(e) {
		s.apply(at, e)
	}
}

// entry returns an object with its own write, if there is one.
func (s *Store) entry(at state.Ref) *entry {
	if e := s.writes[at]; e != nil {
		return e
	}
	return &entry{seen: s.Object(at)}
}

// apply updates the state after a change of an entry.
func (s *Store) apply(at state.Ref, e *entry) {
	if obj := e.now(); obj != nil {
		s.state.Saw(obj)
	} else {
		s.state.Gone(at)
	}
	if e.own != nil {
		s.writes[at] = e
	} else {
		delete(s.writes, at)
	}
}

// Recheck starts live reads at once for all own writes that the watch has not shown. It is for a broken watch: the
// watch may restart with a list and skip the events in between.
func (s *Store) Recheck() {
	s.mutex.Lock()
	for _, e := range s.writes {
		e.own.checked = time.Time{}
	}
	s.mutex.Unlock()
	select {
	case s.recheck <- struct{}{}:
	default:
	}
}

// settle performs the due live reads periodically, until the context ends.
func (s *Store) settle(ctx context.Context) {
	ticker := time.NewTicker(max(s.options.WriteVisible/5, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.recheck:
		}
		for at, o := range s.due(time.Now()) {
			s.check(ctx, at, o)
		}
	}
}

// due returns the own writes that the watch should have shown by now. It also removes old UIDs.
func (s *Store) due(now time.Time) map[state.Ref]*own {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for uid, at := range s.gone {
		if now.Sub(at) > 12*s.options.WriteVisible {
			delete(s.gone, uid)
		}
	}
	due := map[state.Ref]*own{}
	for at, e := range s.writes {
		if now.Sub(e.own.checked) >= s.options.WriteVisible {
			due[at] = e.own
		}
	}
	return due
}

// check performs a live read. If the read fails for any reason except absence, the write is kept and is due again
// later.
func (s *Store) check(ctx context.Context, at state.Ref, o *own) {
	ctx, cancel := context.WithTimeout(ctx, s.options.WriteVisible)
	defer cancel()
	live := at.Kind.New()
	err := s.live.Get(ctx, at.Key, live)
	switch {
	case apierrors.IsNotFound(err):
		live = nil
	case err != nil:
		s.log.Error(err, "reading an object live that the watch does not show", "kind", at.Kind.String(), "name", at.Key.String())
	default:
		convert.Trim(live)
	}
	defer s.news.publish()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	e := s.writes[at]
	if e == nil || e.own != o {
		return // the watch, or a newer write, was faster
	}
	if err != nil && live != nil {
		o.checked = time.Now()
		return
	}
	if uid := e.decide(live, time.Now()); uid != types.UID("") {
		s.gone[uid] = time.Now()
	}
	s.apply(at, e)
}
