package buffer

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
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
	"github.com/karpenter-go/karpenter/internal/engine/futile"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// The times of the loop.
const (
	// reread is how often the objects that buffers refer to are read.
	reread = 10 * time.Second
	// longestRead is how long reading one of them may take.
	longestRead = 5 * time.Second
	// patience is how long disruption waits at the start for buffers that cannot be read.
	patience = 5 * time.Minute
	// idle and longest are the window in which changes are collected.
	idle, longest = 200 * time.Millisecond, time.Second
	// callAgain is after what time the provision loop is called again for the same missing room.
	callAgain = 10 * time.Second
	// kept is how long nodes with the room of a virtual pod that is gone are kept: the pods for which it was may be about
	// to come, as when Kueue deletes a buffer and admits its job at the same moment.
	kept = time.Minute
)

// Store holds the virtual pods for the engine. It is cluster.Store.
type Store interface {
	SetVirtual(kind, owner, fingerprint string, make func() []*corev1.Pod) *model.Rejection
	Seat(nodes map[string]string)
	Nominate(node string, until time.Time)
}

// Loop keeps the virtual pods of buffers in the store, and tells the buffers which of them have room. Set the exported
// fields before Start.
type Loop struct {
	// Client reads buffers from the cache and writes their status. Live reads the objects that they refer to.
	Client client.Client
	Live   room.Reader
	Cache  cache.Informers
	Store  Store
	// Snapshot returns the newest snapshot, Options those of the plan.
	Snapshot func() *model.Snapshot
	Options  placement.Options
	// Provision calls the provision loop, because room is missing.
	Provision func()
	// Changed receives when pods were bound or removed, or when nodes or pools changed.
	Changed <-chan struct{}
	// Why describes in words why there is no room for pods.
	Why      func(*model.Snapshot, plan.Refusal) string
	Metrics  *telemetry.Metrics
	Recorder *telemetry.Recorder
	Clock    clock.WithTicker
	Log      logr.Logger

	// events receives when a buffer changed; watched says that the kind is watched.
	events  chan struct{}
	watched bool
	ready   chan struct{}
	// complete says that the last pass has read all that can be read, and listed that it has listed the buffers.
	complete, listed bool
	// began is when the loop was started.
	began  time.Time
	known  map[types.UID]*state
	quotas map[string]quotas
	// calledFor is the room for which the provision loop was called last, and when.
	calledFor string
	calledAt  time.Time
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
	// written is the time of the last write of the status.
	written time.Time
}

// NewLoop returns a loop that has not begun. The other fields are to be set.
func NewLoop() *Loop {
	return &Loop{events: make(chan struct{}, 1), ready: make(chan struct{}), known: map[types.UID]*state{},
		quotas: map[string]quotas{}}
}

// WaitForBuffers waits until the virtual pods of all buffers are in the store for the first time, or the kind is not
// defined: nodes that are empty before may have their room. A pass that failed is not enough, until five minutes have
// passed: then the buffers need only be listed. It returns false if the context ends before.
func (l *Loop) WaitForBuffers(ctx context.Context) bool {
	select {
	case <-l.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// Start runs the loop until the context ends.
func (l *Loop) Start(ctx context.Context) error {
	if l.began.IsZero() {
		l.began = l.Clock.Now()
	}
	for waiting := true; ; {
		if !l.watched {
			if err := l.watch(ctx); err != nil {
				l.Log.Error(err, "watching buffers")
			}
		}
		if l.watched {
			if err := l.Tick(ctx); err != nil {
				l.Log.Error(err, "keeping the room of buffers")
			}
		}
		// A buffer that cannot be read must not keep disruption of the whole cluster waiting; the list of buffers must.
		late := l.listed && l.Clock.Since(l.began) >= patience
		if late && waiting && !l.complete {
			l.Log.Info("disruption begins although the room of some buffers is not known")
		}
		if waiting && (l.complete || late) {
			close(l.ready)
			waiting = false
		}
		received, ok := batch.Wait(ctx, l.Clock, reread, l.events, l.Changed, nil)
		if received != nil {
			ok = batch.End(ctx, l.Clock, received, nil, batch.Window{Idle: idle, Longest: longest})
		}
		if !ok {
			return nil
		}
	}
}

// watch begins to watch buffers. The definition of the kind may be missing; then the next pass tries again.
func (l *Loop) watch(ctx context.Context) error {
	informer, err := l.Cache.GetInformer(ctx, &v1beta1.CapacityBuffer{})
	switch {
	case meta.IsNoMatchError(err):
		l.complete = true
		return nil
	case err != nil:
		return err
	}
	changed := func() {
		select {
		case l.events <- struct{}{}:
		default:
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() },
		UpdateFunc: func(before, after any) {
			a, b := before.(*v1beta1.CapacityBuffer), after.(*v1beta1.CapacityBuffer)
			if a.Generation != b.Generation || !maps.Equal(a.Annotations, b.Annotations) {
				changed()
			}
		},
		DeleteFunc: func(any) { changed() },
	})
	l.watched = err == nil
	return err
}

// Tick runs one pass.
func (l *Loop) Tick(ctx context.Context) error {
	// 1. List the buffers, in the order in which they get quotas.
	l.complete, l.listed = false, false
	buffers := &v1beta1.CapacityBufferList{}
	if err := l.Client.List(ctx, buffers); err != nil {
		return fmt.Errorf("listing buffers: %w", err)
	}
	l.listed = true
	items := slices.DeleteFunc(buffers.Items, func(b v1beta1.CapacityBuffer) bool { return b.DeletionTimestamp != nil })
	slices.SortFunc(items, func(a, b v1beta1.CapacityBuffer) int { return room.Compare(&a, &b) })
	if len(items) == 0 && len(l.known) == 0 {
		l.complete = true
		return nil
	}
	// 2. Resolve shapes and numbers.
	complete, err := l.resolve(ctx, items)
	// 3. Tell the store.
	before := l.seats(l.Snapshot())
	l.tell(items)
	l.complete = complete
	// 4. Find out which virtual pods have room. Pods that are pending now are planned by the provision loop.
	snap := l.Snapshot()
	found := placement.ScheduleVirtual(snap, l.Options, &plan.Provision{})
	if found != nil {
		found = new(futile.Launches).Restrain(snap, found)
	}
	l.seat(before, snap, found)
	l.call(found)
	// 5. Write the status of the buffers.
	return errors.Join(err, l.report(ctx, items, snap, found))
}

// resolve reads what is due, and computes the numbers. It reports whether everything was read, except for what the
// controller has no right to read: waiting does not change that.
func (l *Loop) resolve(ctx context.Context, buffers []v1beta1.CapacityBuffer) (complete bool, err error) {
	var errs []error
	requests := make([]*room.Request, len(buffers))
	tried := map[string]bool{}
	for i := range buffers {
		b := &buffers[i]
		s := l.known[b.UID]
		if s == nil {
			s = &state{}
			l.known[b.UID] = s
		}
		if err := l.read(ctx, b, s); err != nil {
			errs = append(errs, err)
		}
		requests[i] = &s.request
		if s.request.Shape == nil || tried[b.Namespace] {
			continue
		}
		if tried[b.Namespace] = true; l.Clock.Since(l.quotas[b.Namespace].at) >= reread {
			errs = append(errs, l.readQuotas(ctx, b.Namespace))
		}
	}
	maps.DeleteFunc(l.quotas, func(namespace string, _ quotas) bool { return !tried[namespace] })
	room.Allot(requests, l.quotasOf, l.Clock.Now())
	failed := func(err error) bool { return err != nil && !apierrors.IsForbidden(err) }
	return !slices.ContainsFunc(errs, failed), errors.Join(errs...)
}

// readQuotas reads the quotas of a namespace. If reading fails, the last known ones stay.
func (l *Loop) readQuotas(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, longestRead)
	defer cancel()
	list := &corev1.ResourceQuotaList{}
	if err := l.Live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the quotas of namespace %s: %w", namespace, err)
	}
	l.quotas[namespace] = quotas{l.Clock.Now(), list.Items}
	return nil
}

// quotasOf returns the quotas of a namespace; one that allows no pods if they have never been read.
func (l *Loop) quotasOf(namespace string) []corev1.ResourceQuota {
	if known, read := l.quotas[namespace]; read {
		return known.list
	}
	none := corev1.ResourceList{corev1.ResourcePods: resource.Quantity{}}
	return []corev1.ResourceQuota{{ObjectMeta: metav1.ObjectMeta{Name: "(cannot be read)"},
		Status: corev1.ResourceQuotaStatus{Hard: none}}}
}

// read reads the shape of a buffer if that is due. If reading fails, the last known shape stays.
func (l *Loop) read(ctx context.Context, b *v1beta1.CapacityBuffer, s *state) error {
	s.request.Buffer = b
	now := l.Clock.Now()
	if s.version == version(b) && now.Sub(s.at) < reread {
		return nil
	}
	reading, cancel := context.WithTimeout(ctx, longestRead)
	defer cancel()
	shape, err := room.Resolve(reading, l.Live, b)
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

// tell passes the virtual pods to the store, and removes those of buffers that are gone.
func (l *Loop) tell(buffers []v1beta1.CapacityBuffer) {
	there := map[types.UID]bool{}
	for i := range buffers {
		b := &buffers[i]
		q := &l.known[b.UID].request
		there[b.UID] = true
		if q.Shape == nil || q.Count == 0 {
			q.Refused = nil
			l.Store.SetVirtual(model.VirtualBuffer, string(b.UID), "", nil)
			continue
		}
		q.Refused = l.Store.SetVirtual(model.VirtualBuffer, string(b.UID), fingerprint(q.Shape, q.Count), q.Pods)
	}
	for uid := range l.known {
		if !there[uid] {
			delete(l.known, uid)
			l.Store.SetVirtual(model.VirtualBuffer, string(uid), "", nil)
		}
	}
}

// fingerprint identifies a shape and a number.
func fingerprint(s *room.Shape, count int64) string {
	hash := fnv.New64a()
	fmt.Fprint(hash, dump.ForHash(s.Template.Labels), dump.ForHash(s.Template.Annotations), dump.ForHash(s.Template.Spec))
	return fmt.Sprintf("%x/%d", hash.Sum64(), count)
}

// seats returns the nodes of the virtual pods according to the last pass, by UID.
func (l *Loop) seats(snap *model.Snapshot) map[string]string {
	nodes := map[string]string{}
	for _, g := range snap.Virtual {
		for _, p := range g.Pods {
			if p.Nominated != "" {
				nodes[p.UID] = p.Nominated
			}
		}
	}
	return nodes
}

// seat records where the virtual pods are, and keeps nodes for a while whose virtual pods are gone.
func (l *Loop) seat(before map[string]string, snap *model.Snapshot, found *plan.Provision) {
	still, now := map[string]bool{}, map[string]string{}
	for _, g := range snap.Virtual {
		for _, p := range g.Pods {
			still[p.UID] = true
		}
	}
	if found != nil {
		for _, placed := range found.Placed {
			for _, p := range placed.Pods {
				now[p.UID] = placed.Node
			}
		}
	}
	for uid, node := range before {
		if !still[uid] {
			l.Store.Nominate(node, l.Clock.Now().Add(kept))
		}
	}
	l.Store.Seat(now)
}

// call calls the provision loop when nodes are to be launched for room, once for the same nodes.
func (l *Loop) call(found *plan.Provision) {
	if found == nil || len(found.Claims) == 0 {
		l.calledFor = ""
		return
	}
	names := make([]string, len(found.Claims))
	for i := range found.Claims {
		names[i] = found.Claims[i].Name
	}
	missing := strings.Join(names, " ")
	if missing == l.calledFor && l.Clock.Since(l.calledAt) < callAgain {
		return
	}
	l.calledFor, l.calledAt = missing, l.Clock.Now()
	l.Provision()
}
