package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

const (
	// unreadableEvery is the minimum time between two searches for objects that cannot be decoded.
	unreadableEvery = time.Minute
	// unreadablePage is the number of objects that a search reads at a time.
	unreadablePage = 500
	// mostUnreadable bounds the events that wait for the connection, and the number of reported errors that are
	// remembered.
	mostUnreadable = 1000
)

// unreadables reports stored objects that no client can decode, by a log line and an event on each: one of them keeps an
// informer from every object of its kind.
//
//	informer --failed, neither network nor status--> search: list each kind, decode one by one --> log, event
//
// Events are written from the start, by standbys too: an informer that never syncs keeps a process from leading.
type unreadables struct {
	// broken receives a signal when an informer failed.
	broken chan struct{}

	lock     sync.Mutex
	recorder *telemetry.Recorder // nil until there is a connection
	waiting  []telemetry.Event
	said     map[string]bool
}

func newUnreadables() *unreadables {
	return &unreadables{broken: make(chan struct{}, 1), said: map[string]bool{}}
}

func (u *unreadables) emit(e telemetry.Event) {
	u.lock.Lock()
	defer u.lock.Unlock()
	if u.recorder != nil {
		u.recorder.Emit(e)
	} else if len(u.waiting) < mostUnreadable {
		u.waiting = append(u.waiting, e)
	}
}

// failed receives the error of an informer's list or watch.
func (u *unreadables) failed(err error) {
	if !undecoded(err) {
		return
	}
	select {
	case u.broken <- struct{}{}:
	default:
	}
}

// undecoded reports whether a client could not decode a response: the network did not fail and the API server did not
// return an error.
func undecoded(err error) bool {
	var network net.Error
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) || apierrors.HasStatusCause(err, "ClientWatchDecoding")
	}
	return err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, context.Canceled) && !errors.As(err, &network)
}

// connect writes events through a connection of its own from now on.
func (u *unreadables) connect(ctx context.Context, config *rest.Config, scheme *runtime.Scheme) error {
	clients, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(config), "unreadable"))
	if err != nil {
		return fmt.Errorf("setting up events about objects that cannot be read: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("setting up events about objects that cannot be read: %w", err)
	}
	u.lock.Lock()
	defer u.lock.Unlock()
	u.recorder = telemetry.NewRecorder(broadcaster.NewRecorder(scheme, telemetry.Component), clock.RealClock{})
	u.recorder.Emit(u.waiting...)
	u.waiting = nil
	return nil
}

// search searches for objects that cannot be decoded after each failure of an informer, until the context ends.
func (u *unreadables) search(ctx context.Context, reader client.Reader, scheme *runtime.Scheme, kinds []schema.GroupVersionKind) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-u.broken:
		}
		for _, kind := range kinds {
			if err := u.look(ctx, reader, scheme, kind); err != nil && ctx.Err() == nil {
				ctrl.Log.V(1).Info("objects cannot be looked through for one that cannot be read", "kind", kind.Kind, "error", err.Error())
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(unreadableEvery):
		}
	}
}

// look decodes the objects of a kind one by one, and reports those that cannot be decoded.
func (u *unreadables) look(ctx context.Context, reader client.Reader, scheme *runtime.Scheme, kind schema.GroupVersionKind) error {
	page := &unstructured.UnstructuredList{}
	page.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	for more := true; more; more = page.GetContinue() != "" {
		if err := reader.List(ctx, page, client.Limit(unreadablePage), client.Continue(page.GetContinue())); err != nil {
			return fmt.Errorf("listing objects of kind %s: %w", kind.Kind, err)
		}
		for i := range page.Items {
			item := &page.Items[i]
			into, err := scheme.New(kind)
			if err != nil {
				return fmt.Errorf("looking for the type of kind %s: %w", kind.Kind, err)
			}
			text, err := item.MarshalJSON()
			if err == nil {
				err = json.Unmarshal(text, into)
			}
			if err != nil && u.isNews(item, err) {
				ctrl.Log.Error(err, "a stored object cannot be read, and keeps every object of its kind from being seen; correct or delete it", "kind", kind.Kind, "name", item.GetName())
				u.emit(telemetry.SetAside(item, fmt.Sprintf("it cannot be read, and keeps every %s from being seen until it is corrected or deleted: %s", kind.Kind, err)))
			}
		}
	}
	return nil
}

// isNews reports whether the object in its current generation was not reported with this error yet.
func (u *unreadables) isNews(object client.Object, err error) bool {
	u.lock.Lock()
	defer u.lock.Unlock()
	key := fmt.Sprint(object.GetUID(), " ", object.GetGeneration(), " ", err)
	if u.said[key] {
		return false
	}
	if len(u.said) >= mostUnreadable {
		clear(u.said)
	}
	u.said[key] = true
	return true
}

// watchBroke receives the error of a list or watch of the cache.
func (w *wiring) watchBroke(err error) {
	w.store.Recheck()
	w.process.unreadable.failed(err)
}

// addUnreadable starts the search for objects that cannot be decoded, before the caches are filled.
func (w *wiring) addUnreadable() error {
	kinds := []schema.GroupVersionKind{karpv1.GroupVersion.WithKind("NodePool"), karpv1.GroupVersion.WithKind("NodeClaim")}
	switch w.o.cloudProvider {
	case "aws":
		kinds = append(kinds, awsv1.GroupVersion.WithKind(awsv1.Kind))
	case "kwok":
		kinds = append(kinds, kwokv1alpha1.GroupVersion.WithKind(kwokv1alpha1.Kind))
	}
	return w.mgr.Add(controller.BeforeCaches{Run: func(ctx context.Context) error {
		return w.process.unreadable.search(ctx, w.mgr.GetAPIReader(), w.mgr.GetScheme(), kinds)
	}})
}
