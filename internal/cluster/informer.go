package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/karpenter-go/karpenter/internal/cluster/record"
	"github.com/karpenter-go/karpenter/internal/cluster/wire"
)

// newInformer returns an informer whose lists hold one page of untransformed objects at a time. That of pods holds
// records, and shows whole pods to its readers.
func newInformer(transform toolscache.TransformFunc) func(toolscache.ListerWatcher, runtime.Object, time.Duration,
	toolscache.Indexers) toolscache.SharedIndexInformer {
	return func(from toolscache.ListerWatcher, of runtime.Object, resync time.Duration,
		indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if reader, ok := from.(*toolscache.ListWatch); ok {
			from = paged(reader, transform)
		}
		if _, pods := of.(*corev1.Pod); pods {
			return podInformer{toolscache.NewSharedIndexInformer(from, of, resync, ofWhole(indexers))}
		}
		return toolscache.NewSharedIndexInformer(from, of, resync, indexers)
	}
}

// CutPods lets the informer of pods read through a client of its own, which cuts pods before it decodes them.
func CutPods(options *cache.Options, config *rest.Config) error {
	pods, err := wire.Pods(config)
	if err != nil {
		return fmt.Errorf("setting up the reader of pods: %w", err)
	}
	informer := options.NewInformer
	options.NewInformer = func(from toolscache.ListerWatcher, of runtime.Object, resync time.Duration,
		indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if _, is := of.(*corev1.Pod); is {
			from = pods
		}
		return informer(from, of, resync, indexers)
	}
	return nil
}

// paged returns a reader that transforms each page of a list before it reads the next one. Without it, a list against an
// API server that does not stream lists (before Kubernetes 1.34) holds all objects as they are stored. The API server
// ignores the limit of a list at resource version 0.
func paged(reader *toolscache.ListWatch, transform toolscache.TransformFunc) *toolscache.ListWatch {
	list := reader.ListWithContextFunc
	reader.ListWithContextFunc = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if options.ResourceVersion == "0" && options.Limit > 0 {
			options.ResourceVersion = ""
		}
		page, err := list(ctx, options)
		if err != nil {
			return nil, err
		}
		return transformed(page, transform)
	}
	return reader
}

// transformed returns a list with its objects transformed.
func transformed(page runtime.Object, transform toolscache.TransformFunc) (runtime.Object, error) {
	about, err := meta.ListAccessor(page)
	if err != nil {
		return nil, err
	}
	out := &internalversion.List{ListMeta: metav1.ListMeta{
		ResourceVersion: about.GetResourceVersion(), Continue: about.GetContinue(), RemainingItemCount: about.GetRemainingItemCount(),
	}}
	err = meta.EachListItemWithAlloc(page, func(item runtime.Object) error {
		object, err := transform(item)
		if err != nil {
			return err
		}
		kept, ok := object.(runtime.Object)
		if !ok {
			return fmt.Errorf("a transform made %T of %T", object, item)
		}
		out.Items = append(out.Items, kept)
		return nil
	})
	return out, err
}

// podInformer shows the records of an informer as whole pods.
type podInformer struct{ toolscache.SharedIndexInformer }

func (i podInformer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandler(podHandler{h})
}

func (i podInformer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler,
	every time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(podHandler{h}, every)
}

func (i podInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler,
	o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithOptions(podHandler{h}, o)
}

func (i podInformer) AddIndexers(indexers toolscache.Indexers) error {
	return i.SharedIndexInformer.AddIndexers(ofWhole(indexers))
}

func (i podInformer) GetStore() toolscache.Store { return i.GetIndexer() }

func (i podInformer) GetIndexer() toolscache.Indexer {
	return podIndexer{i.SharedIndexInformer.GetIndexer()}
}

// ofWhole returns indexers of records that index whole pods. An index keeps no pod.
func ofWhole(indexers toolscache.Indexers) toolscache.Indexers {
	of := toolscache.Indexers{}
	for name, index := range indexers {
		of[name] = func(obj any) ([]string, error) {
			place := places.Get().(*record.Place)
			defer places.Put(place)
			return index(place.Whole(obj))
		}
	}
	return of
}

var places = sync.Pool{New: func() any { return &record.Place{} }}

// whole returns the whole pod of a record, and any other object unchanged.
func whole(obj any) any {
	if r, ok := obj.(*record.Pod); ok && r != nil {
		return r.Whole()
	}
	return obj
}

// podHandler shows whole pods to a handler.
type podHandler struct {
	to toolscache.ResourceEventHandler
}

func (h podHandler) OnAdd(obj any, first bool) { h.to.OnAdd(whole(obj), first) }

func (h podHandler) OnUpdate(before, after any) { h.to.OnUpdate(whole(before), whole(after)) }

func (h podHandler) OnDelete(obj any) {
	if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		last.Obj = whole(last.Obj)
		h.to.OnDelete(last)
		return
	}
	h.to.OnDelete(whole(obj))
}

// podIndexer returns whole pods.
type podIndexer struct{ toolscache.Indexer }

func (i podIndexer) List() []any {
	all := i.Indexer.List()
	for at := range all {
		all[at] = whole(all[at])
	}
	return all
}

func (i podIndexer) Index(name string, obj any) ([]any, error) {
	all, err := i.Indexer.Index(name, obj)
	for at := range all {
		all[at] = whole(all[at])
	}
	return all, err
}

func (i podIndexer) ByIndex(name, value string) ([]any, error) {
	all, err := i.Indexer.ByIndex(name, value)
	for at := range all {
		all[at] = whole(all[at])
	}
	return all, err
}

func (i podIndexer) Get(obj any) (any, bool, error) {
	found, has, err := i.Indexer.Get(obj)
	return whole(found), has, err
}

func (i podIndexer) GetByKey(key string) (any, bool, error) {
	found, has, err := i.Indexer.GetByKey(key)
	return whole(found), has, err
}

func (i podIndexer) AddIndexers(indexers toolscache.Indexers) error {
	return i.Indexer.AddIndexers(ofWhole(indexers))
}
