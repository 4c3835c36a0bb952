package cluster

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/cluster/record"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
)

// CacheOptions returns the options that the store requires of the manager's cache: managed fields are removed except
// for this controller's nominations, bound pods are held as records, and broken is called with the error when a list or
// watch breaks. It must call Store.Recheck. Workloads of the kinds foresight (state.Config.Foresight) that ask for no pods
// are held as records too: nothing but their absence is read of them.
func CacheOptions(foresight []state.Kind, broken func(error)) cache.Options {
	table := &record.Table{}
	transform := func(obj any) (any, error) {
		if o, ok := obj.(state.Object); ok && idle(foresight, o) {
			return record.IdleOf(o), nil
		}
		return reduced(obj, table), nil
	}
	return cache.Options{
		DefaultTransform: transform,
		NewInformer:      newInformer(transform),
		DefaultWatchErrorHandler: func(ctx context.Context, r *toolscache.Reflector, err error) {
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
			broken(err)
		},
	}
}

// idle reports whether the object is a workload of one of the kinds that asks for no pods.
func idle(kinds []state.Kind, obj state.Object) bool {
	at, ok := state.RefOf(obj)
	if !ok || !slices.Contains(kinds, at.Kind) {
		return false
	}
	scale, _ := convert.ScaleOf(obj)
	return scale.Asked == 0
}

// reduced returns an object as caches hold it: trimmed, and a bound pod as a record. It leaves Provisioners unchanged:
// their managed fields contain the version in which they were written, which determines their meaning.
func reduced(obj any, table *record.Table) any {
	switch o := obj.(type) {
	case *karpv1alpha5.Provisioner, *record.Pod, *record.Idle:
	case *corev1.Pod:
		convert.Trim(o)
		if packed := table.Pack(o); packed != nil {
			return packed
		}
	case client.Object:
		convert.Trim(o)
		table.Share(o)
	}
	return obj
}

// Watch registers the store with the informers. Call it once, before or after the informers are started. Workloads that
// this process may not list are left out: pods are planned when they exist then, until the next start.
func (s *Store) Watch(ctx context.Context, informers cache.Informers) error {
	s.mutex.Lock()
	watched := slices.Clone(s.watched)
	s.mutex.Unlock()
	for _, k := range watched {
		if s.forbidden(ctx, k) {
			s.leaveOut(k)
			s.log.Info("no right to list them: pods that they ask for are planned when they exist, not before", "kind", k.String())
			continue
		}
		err := s.watch(ctx, informers, k)
		if k.Optional() && meta.IsNoMatchError(err) {
			s.leaveOut(k)
			if k == state.NodeOverlays {
				s.catalogs.overlays.absent = informers
			} else {
				s.log.Info("the API server does not serve CapacityQuotas; they have no effect until the next start")
			}
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leaveOut takes a kind from those that are watched.
func (s *Store) leaveOut(k state.Kind) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.watched = slices.DeleteFunc(s.watched, func(other state.Kind) bool { return other == k })
}

// forbidden reports whether this process may not list a kind without which the store is complete. An informer of that kind
// would never be.
func (s *Store) forbidden(ctx context.Context, k state.Kind) bool {
	var list client.ObjectList
	switch {
	case !slices.Contains(s.foresight, k):
		return false
	case k == state.ReplicaSets:
		list = &appsv1.ReplicaSetList{}
	case k == state.StatefulSets:
		list = &appsv1.StatefulSetList{}
	case k == state.Jobs:
		list = &batchv1.JobList{}
	}
	return apierrors.IsForbidden(s.live.List(ctx, list, client.Limit(1)))
}

// watch registers the store with the informer of one kind.
func (s *Store) watch(ctx context.Context, informers cache.Informers, k state.Kind) error {
	informer, err := informers.GetInformer(ctx, k.New().(client.Object), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching objects of kind %s: %w", k, err)
	}
	if pods, ok := informer.(podInformer); ok {
		informer = pods.SharedIndexInformer // the store holds the records
	}
	registration, err := informer.AddEventHandler(s.handler(k))
	if err != nil {
		return fmt.Errorf("watching objects of kind %s: %w", k, err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.synced = append(s.synced, registration)
	return nil
}

func (s *Store) handler(k state.Kind) toolscache.ResourceEventHandlerFuncs {
	saw := func(obj any) {
		switch object := obj.(type) {
		case *record.Idle:
			s.state.Gone(state.Ref{Kind: k, Key: client.ObjectKeyFromObject(object)})
			s.news.publish()
		case client.Object:
			s.Saw(object)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    saw,
		UpdateFunc: func(_, obj any) { saw(obj) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if object, ok := obj.(client.Object); ok {
				s.Gone(object)
			}
		},
	}
}

// Synced reports whether the first list of every informer is in the store. Snapshots taken before are incomplete. It
// stays true afterwards.
func (s *Store) Synced() bool {
	s.mutex.Lock()
	registrations, watched := slices.Clone(s.synced), len(s.watched)
	s.mutex.Unlock()
	for _, registration := range registrations {
		if !registration.HasSynced() {
			return false
		}
	}
	return len(registrations) >= watched
}

// WaitForSync waits until Synced. It returns false if the context ends before.
func (s *Store) WaitForSync(ctx context.Context) bool {
	return toolscache.WaitForCacheSync(ctx.Done(), s.Synced)
}

// Start reads catalogs and checks own writes until the context ends. It is a manager.Runnable.
func (s *Store) Start(ctx context.Context) error {
	go s.catalogs.run(ctx)
	s.settle(ctx)
	return nil
}

// NeedLeaderElection returns false: a standby keeps its mirror up to date.
func (s *Store) NeedLeaderElection() bool { return false }
