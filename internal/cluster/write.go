package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// Wrote records an object that the API returned for a create, update or patch of this controller. It is part of every
// snapshot from now on, until the watch shows it or a later version. The object is copied.
func (s *Store) Wrote(obj client.Object) {
	k, ok := kindOf(obj)
	if !ok {
		return
	}
	obj = obj.DeepCopyObject().(client.Object)
	convert.Trim(obj)
	s.own(k, obj, func(e *entry) bool { return e.write(obj, time.Now()) })
}

// Deleted records an object whose deletion by this controller the API accepted (for a pod: its eviction). A pod, or
// an object with finalizers, is marked as being deleted; any other object is gone. The object is copied.
func (s *Store) Deleted(obj client.Object) {
	k, ok := kindOf(obj)
	if !ok {
		return
	}
	s.own(k, obj, func(e *entry) bool { return e.remove(obj, time.Now()) })
}

func (s *Store) own(k kind, obj client.Object, change func(*entry) bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, late := s.gone[obj.GetUID()]; late {
		return
	}
	at := ref{k, client.ObjectKeyFromObject(obj)}
	if e := s.entry(at); change(e) || e.empty() {
		s.apply(at, e)
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

// due returns the own writes that the watch should have shown by now. It also removes old UIDs and nominations.
func (s *Store) due(now time.Time) map[ref]*own {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for uid, at := range s.gone {
		if now.Sub(at) > 12*s.options.WriteVisible {
			delete(s.gone, uid)
		}
	}
	s.machines.forget(now)
	due := map[ref]*own{}
	for at, e := range s.writes {
		if now.Sub(e.own.checked) >= s.options.WriteVisible {
			due[at] = e.own
		}
	}
	return due
}

// check performs a live read. If the read fails for any reason except absence, the write is kept and is due again
// later.
func (s *Store) check(ctx context.Context, at ref, o *own) {
	ctx, cancel := context.WithTimeout(ctx, s.options.WriteVisible)
	defer cancel()
	live := at.kind.prototype()
	err := s.live.Get(ctx, at.key, live)
	switch {
	case apierrors.IsNotFound(err):
		live = nil
	case err != nil:
		s.log.Error(err, "reading an object live that the watch does not show", "kind", at.kind.String(), "name", at.key.String())
	default:
		convert.Trim(live)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	e := s.objects[at.kind][at.key]
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
