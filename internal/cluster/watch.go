package cluster

import (
	"context"
	"fmt"
	"slices"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// CacheOptions are what the manager's cache needs on the store's account: managed fields are dropped but for our
// nominations, and broken, which must end in Store.Recheck, is called with the error
// when a list or watch breaks.
func CacheOptions(broken func(error)) cache.Options {
	return cache.Options{
		DefaultTransform: Transform,
		DefaultWatchErrorHandler: func(ctx context.Context, r *toolscache.Reflector, err error) {
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
			broken(err)
		},
	}
}

// Transform is convert.Trim as informers want it. Of Provisioners, who manages their fields says in which version they
// were written, which decides what they mean.
func Transform(obj any) (any, error) {
	if _, older := obj.(*karpv1alpha5.Provisioner); older {
		return obj, nil
	}
	if object, ok := obj.(client.Object); ok {
		convert.Trim(object)
	}
	return obj, nil
}

// Watch makes the informers feed the store. Call it once, before or after the informers have been started.
func (s *Store) Watch(ctx context.Context, informers cache.Informers) error {
	for _, k := range s.watched {
		informer, err := informers.GetInformer(ctx, k.prototype(), cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching objects of kind %s: %w", k, err)
		}
		registration, err := informer.AddEventHandler(s.handler())
		if err != nil {
			return fmt.Errorf("watching objects of kind %s: %w", k, err)
		}
		s.mutex.Lock()
		s.synced = append(s.synced, registration)
		s.mutex.Unlock()
	}
	return nil
}

func (s *Store) handler() toolscache.ResourceEventHandlerFuncs {
	saw := func(obj any) {
		if object, ok := obj.(client.Object); ok {
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

// Synced reports whether the first list of every informer is in the store. Before that no snapshot means anything;
// after it the answer stays yes.
func (s *Store) Synced() bool {
	s.mutex.Lock()
	registrations := slices.Clone(s.synced)
	s.mutex.Unlock()
	for _, registration := range registrations {
		if !registration.HasSynced() {
			return false
		}
	}
	return len(registrations) == len(s.watched)
}

// WaitForSync waits until Synced, false when the context ends before.
func (s *Store) WaitForSync(ctx context.Context) bool {
	return toolscache.WaitForCacheSync(ctx.Done(), s.Synced)
}

// Start reads catalogues and keeps own writes honest until the context ends. It is a manager.Runnable.
func (s *Store) Start(ctx context.Context) error {
	s.catalogues.start(ctx)
	s.settle(ctx)
	return nil
}

// NeedLeaderElection is false: a standby keeps its mirror warm.
func (s *Store) NeedLeaderElection() bool { return false }
