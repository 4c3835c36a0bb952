package buffer

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/dump"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/internal/cluster/room"
	"github.com/karpenter-go/karpenter/internal/controller/batch"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// The times of the loop.
const (
	// reread is how often the objects that buffers refer to are read.
	reread = 10 * time.Second
	// longestCall is how long reading one of them, or writing the status of one buffer, may take.
	longestCall = 5 * time.Second
	// patience is how long disruption waits at the start for buffers that cannot be read.
	patience = 5 * time.Minute
	// idle and longest are the window in which changes are collected.
	idle, longest = 200 * time.Millisecond, time.Second
	// kept is how long nodes with the room of a virtual pod that is gone are kept: the pods for which it was may be about
	// to come, as when Kueue deletes a buffer and admits its job at the same moment.
	kept = time.Minute
)

// Store holds the virtual pods for the engine. It is cluster.Store.
type Store interface {
	SetVirtual(kind, owner, fingerprint string, make func() []*corev1.Pod) *model.Rejection
	Nominate(node string, until time.Time)
}

// Reconciler keeps the virtual pods of buffers in the store, and writes the status of buffers. Set the exported fields
// before Start.
type Reconciler struct {
	// Client reads buffers from the cache and writes their status. Live reads the objects that they refer to.
	Client client.Client
	Live   room.Reader
	Cache  cache.Informers
	Store  Store
	// Destination returns the claim or node that the latest plan assigns to a virtual pod, "" for none.
	Destination func(pod types.UID) string
	Metrics     *telemetry.Metrics
	Recorder    *telemetry.Recorder
	Clock       clock.WithTicker
	Log         logr.Logger

	// events receives when a buffer changed, or its room was decided; watched says that the kind is watched.
	events  chan struct{}
	watched bool
	ready   chan struct{}
	// complete says that the last pass has read all that can be read, and listed that it has listed the buffers.
	complete, listed bool
	// began is when the loop was started.
	began  time.Time
	known  map[types.UID]*state
	quotas map[string]quotas
	// planned is the room of all buffers according to the last plan, nil before the first.
	planned atomic.Pointer[planned]
}

// planned is the room of all buffers, by UID, and when it was decided.
type planned struct {
	rooms map[string]*room.Room
	at    time.Time
}

// quotas are those of a namespace, and when they were read.
type quotas struct {
	at   time.Time
	list []corev1.ResourceQuota
}

// state is what is known of a buffer.
type state struct {
	// version is the resource version of the buffer that was resolved at that time.
	version string
	at      time.Time
	request room.Request
	// count and source are the number and the fingerprint of the virtual pods in the store; changed is when they changed.
	count   int64
	source  string
	changed time.Time
	// written is the time of the last write of the status.
	written time.Time
}

// NewReconciler returns a reconciler that has not begun. The other fields are to be set.
func NewReconciler() *Reconciler {
	return &Reconciler{events: make(chan struct{}, 1), ready: make(chan struct{}), known: map[types.UID]*state{},
		quotas: map[string]quotas{}}
}

// WaitForBuffers waits until the virtual pods of all buffers are in the store for the first time, or the kind is not
// defined: nodes that are empty before may have their room. A pass that failed is not enough, until five minutes have
// passed: then the buffers need only be listed. It returns false if the context ends before.
func (r *Reconciler) WaitForBuffers(ctx context.Context) bool {
	select {
	case <-r.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// SetRoom receives the room of all buffers, by UID, and when it was decided. It does not block.
func (r *Reconciler) SetRoom(rooms map[string]*room.Room, at time.Time) {
	before := r.planned.Swap(&planned{rooms, at})
	if len(rooms) > 0 || before != nil && len(before.rooms) > 0 {
		r.notify()
	}
}

func (r *Reconciler) notify() {
	select {
	case r.events <- struct{}{}:
	default:
	}
}

// Start runs the reconciler until the context ends.
func (r *Reconciler) Start(ctx context.Context) error {
	if r.began.IsZero() {
		r.began = r.Clock.Now()
	}
	for waiting := true; ; {
		if !r.watched {
			if err := r.watch(ctx); err != nil {
				r.Log.Error(err, "watching buffers")
			}
		}
		if r.watched {
			if err := r.Reconcile(ctx); err != nil {
				r.Log.Error(err, "reconciling buffers")
			}
		}
		// A buffer that cannot be read must not keep disruption of the whole cluster waiting; the list of buffers must.
		late := r.listed && r.Clock.Since(r.began) >= patience
		if late && waiting && !r.complete {
			r.Log.Info("disruption begins although the room of some buffers is not known")
		}
		if waiting && (r.complete || late) {
			close(r.ready)
			waiting = false
		}
		received, ok := batch.Wait(ctx, r.Clock, reread, r.events, nil, nil)
		if received != nil {
			ok = batch.End(ctx, r.Clock, received, nil, batch.Window{Idle: idle, Longest: longest})
		}
		if !ok {
			return nil
		}
	}
}

// watch begins to watch buffers. The definition of the kind may be missing; then the next pass tries again.
func (r *Reconciler) watch(ctx context.Context) error {
	informer, err := r.Cache.GetInformer(ctx, &v1beta1.CapacityBuffer{})
	switch {
	case meta.IsNoMatchError(err):
		r.complete = true
		return nil
	case err != nil:
		return err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { r.notify() },
		UpdateFunc: func(before, after any) {
			a, b := before.(*v1beta1.CapacityBuffer), after.(*v1beta1.CapacityBuffer)
			if a.Generation != b.Generation || !maps.Equal(a.Annotations, b.Annotations) {
				r.notify()
			}
		},
		DeleteFunc: func(any) { r.notify() },
	})
	r.watched = err == nil
	return err
}

// Reconcile runs one pass over all buffers: they share quotas and the largest number of virtual pods.
func (r *Reconciler) Reconcile(ctx context.Context) error {
	// 1. List the buffers, in the order in which they get quotas.
	r.complete, r.listed = false, false
	buffers := &v1beta1.CapacityBufferList{}
	if err := r.Client.List(ctx, buffers); err != nil {
		return fmt.Errorf("listing buffers: %w", err)
	}
	r.listed = true
	items := slices.DeleteFunc(buffers.Items, func(b v1beta1.CapacityBuffer) bool { return b.DeletionTimestamp != nil })
	slices.SortFunc(items, func(a, b v1beta1.CapacityBuffer) int { return room.Compare(&a, &b) })
	if len(items) == 0 && len(r.known) == 0 {
		r.complete = true
		return nil
	}
	// 2. Resolve shapes and numbers.
	complete, err := r.resolve(ctx, items)
	// 3. Pass the virtual pods to the store. The provision loop plans them.
	r.setVirtual(items)
	r.complete = complete
	// 4. Write the status of the buffers.
	return errors.Join(err, r.writeStatus(ctx, items))
}

// resolve reads what is due, and computes the numbers. It reports whether everything was read, except for what the
// controller has no right to read: waiting does not change that.
func (r *Reconciler) resolve(ctx context.Context, buffers []v1beta1.CapacityBuffer) (complete bool, err error) {
	var errs []error
	requests := make([]*room.Request, len(buffers))
	tried := map[string]bool{}
	for i := range buffers {
		b := &buffers[i]
		s := r.known[b.UID]
		if s == nil {
			s = &state{}
			r.known[b.UID] = s
		}
		if err := r.read(ctx, b, s); err != nil {
			errs = append(errs, err)
		}
		requests[i] = &s.request
		if s.request.Shape == nil || tried[b.Namespace] {
			continue
		}
		if tried[b.Namespace] = true; r.Clock.Since(r.quotas[b.Namespace].at) >= reread {
			errs = append(errs, r.readQuotas(ctx, b.Namespace))
		}
	}
	maps.DeleteFunc(r.quotas, func(namespace string, _ quotas) bool { return !tried[namespace] })
	room.Allot(requests, r.quotasOf, r.Clock.Now())
	failed := func(err error) bool { return err != nil && !apierrors.IsForbidden(err) }
	return !slices.ContainsFunc(errs, failed), errors.Join(errs...)
}

// readQuotas reads the quotas of a namespace. If reading fails, the last known ones stay.
func (r *Reconciler) readQuotas(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	list := &corev1.ResourceQuotaList{}
	if err := r.Live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the quotas of namespace %s: %w", namespace, err)
	}
	r.quotas[namespace] = quotas{r.Clock.Now(), list.Items}
	return nil
}

// quotasOf returns the quotas of a namespace; one that allows no pods if they have never been read.
func (r *Reconciler) quotasOf(namespace string) []corev1.ResourceQuota {
	if known, read := r.quotas[namespace]; read {
		return known.list
	}
	none := corev1.ResourceList{corev1.ResourcePods: resource.Quantity{}}
	return []corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Name: "(cannot be read)"},
		Status: corev1.ResourceQuotaStatus{Hard: none}}}
}

// read reads the shape of a buffer if that is due. If reading fails, the last known shape stays.
func (r *Reconciler) read(ctx context.Context, b *v1beta1.CapacityBuffer, s *state) error {
	s.request.Buffer = b
	now := r.Clock.Now()
	if s.version == version(b) && now.Sub(s.at) < reread {
		return nil
	}
	reading, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	shape, err := room.Resolve(reading, r.Live, b)
	var fault *room.UnresolvedError
	if err != nil && !errors.As(err, &fault) {
		if s.request.Shape == nil {
			s.request.Err = &room.UnresolvedError{Reason: v1beta1.ReasonResolutionFailed, Message: err.Error()}
		}
		return err
	}
	s.version, s.at, s.request.Shape, s.request.Err = version(b), now, shape, err
	return nil
}

// version is equal as long as nothing in the buffer changes that its shape depends on.
func version(b *v1beta1.CapacityBuffer) string { return fmt.Sprintf("%s/%d", b.UID, b.Generation) }

// setVirtual passes the virtual pods to the store, and removes those of buffers that are gone.
func (r *Reconciler) setVirtual(buffers []v1beta1.CapacityBuffer) {
	exists := map[types.UID]bool{}
	for i := range buffers {
		uid := buffers[i].UID
		exists[uid] = true
		r.set(uid, r.known[uid])
	}
	for uid, s := range r.known {
		if !exists[uid] {
			delete(r.known, uid)
			s.request.Count = 0
			r.set(uid, s)
		}
	}
}

// set passes the virtual pods of one buffer to the store. It keeps the nodes of those that are gone.
func (r *Reconciler) set(uid types.UID, s *state) {
	q := &s.request
	var pods func() []*corev1.Pod
	var source string
	if q.Shape != nil && q.Count > 0 {
		pods, source = q.Pods, fingerprint(q.Shape, q.Count)
	}
	for number := q.Count; number < s.count; number++ {
		if node := r.Destination(room.PodUID(uid, number)); node != "" {
			r.Store.Nominate(node, r.Clock.Now().Add(kept))
		}
	}
	q.Refused = r.Store.SetVirtual(model.VirtualBuffer, string(uid), source, pods)
	if source != s.source {
		s.changed = r.Clock.Now()
	}
	s.source, s.count = source, q.Count
}

// fingerprint identifies a shape and a number.
func fingerprint(s *room.Shape, count int64) string {
	hash := fnv.New64a()
	fmt.Fprint(hash, dump.ForHash(s.Template.Labels), dump.ForHash(s.Template.Annotations), dump.ForHash(s.Template.Spec))
	return fmt.Sprintf("%x/%d", hash.Sum64(), count)
}
