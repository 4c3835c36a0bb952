package telemetry

import (
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Component is the reporting component of events. Pass it to the manager's GetEventRecorder.
const Component = "karpenter"

const (
	// defaultWindow is how long an event is not repeated.
	defaultWindow = 2 * time.Minute
	// longestNote is the limit, in bytes, of the note of an events.k8s.io/v1 Event.
	longestNote = 1024
	// Nominated events are limited over all pods.
	nominatedPerSecond, nominatedBurst = 5, 10
	// changeWindow is how long a changed message is not written. changesPerSecond and changesBurst limit changed
	// messages over all objects: a thousand pods whose reason changes with every plan must not overload the API
	// server.
	changeWindow                   = time.Minute
	changesPerSecond, changesBurst = 10, 100
	// Unconsolidatable events are limited over all nodes: a large cluster has as many of them as nodes.
	keptPerSecond, keptBurst = 10, 200
	// sweepAbove is the number of remembered events above which those outside of their window are dropped.
	sweepAbove = 4096
)

// Event is something that happened to an object. Build one with a constructor of this package.
type Event struct {
	// Object is the object of the event.
	Object client.Object
	// Related is a second object of the event. It may be nil.
	Related client.Object
	// Type is Normal or Warning.
	Type string
	// Reason is a CamelCase word, one of the Reason constants.
	Reason string
	// Message is a sentence for users.
	Message string
	// Key distinguishes events with one reason that must not suppress each other.
	Key []string
	// Window is how long an event with the same reason and Key is not repeated. Zero means 2 minutes.
	Window time.Duration
	// Changes means that an event with another message is written earlier, a minute after the last one.
	Changes bool
}

// Recorder emits events, each once per window. A nil Recorder drops all events. It is safe for concurrent use.
type Recorder struct {
	sink     events.EventRecorder
	clock    clock.PassiveClock
	nominate *rate.Limiter
	changes  *rate.Limiter
	kept     *rate.Limiter

	mu       sync.Mutex
	reported map[string]telling // by reason and key
}

// telling records the last written message, and until when an event is not repeated.
type telling struct {
	note          uint64 // hash of the message
	changed, till time.Time
}

// NewRecorder returns a Recorder that writes to sink, usually manager.GetEventRecorder(telemetry.Component).
func NewRecorder(sink events.EventRecorder, clock clock.PassiveClock) *Recorder {
	return &Recorder{
		sink:     sink,
		clock:    clock,
		nominate: rate.NewLimiter(nominatedPerSecond, nominatedBurst),
		changes:  rate.NewLimiter(changesPerSecond, changesBurst),
		kept:     rate.NewLimiter(keptPerSecond, keptBurst),
		reported: map[string]telling{},
	}
}

// Emit writes the events that are new. It does not wait for the API.
func (r *Recorder) Emit(list ...Event) {
	if r == nil {
		return
	}
	for _, e := range list {
		if !r.news(e) {
			continue
		}
		var related runtime.Object // not a nil object in an interface
		if e.Related != nil {
			related = e.Related
		}
		r.sink.Eventf(e.Object, related, e.Type, e.Reason, e.action(), "%s", note(e.Message))
	}
}

// Once reports whether it was not called with the same key within the window. Log lines that accompany events use it. It
// returns false for a nil Recorder.
func (r *Recorder) Once(window time.Duration, key ...string) bool {
	return r != nil && r.news(Event{Reason: "log", Key: key, Window: window})
}

// action returns the action of the API's event. It distinguishes events that differ only in their message: clients of
// the API increment the count of such an event and keep the message of the first one, so that a changed message would
// never be visible.
func (e *Event) action() string { return e.Reason + "-" + strconv.FormatUint(e.hash(), 36) }

// hash returns the hash of the message as it is written.
func (e *Event) hash() uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(note(e.Message)))
	return h.Sum64()
}

// news reports whether the event is to be written, and records it if so.
func (r *Recorder) news(e Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, hash := r.clock.Now(), e.hash()
	key := strings.ToLower(e.Reason) + "\x00" + strings.Join(e.Key, "\x00")
	if last, seen := r.reported[key]; seen && now.Before(last.till) {
		if !e.Changes || hash == last.note || now.Before(last.changed) || !r.changes.AllowN(now, 1) {
			return false
		}
	}
	if e.Reason == ReasonNominated && !r.nominate.AllowN(now, 1) || e.Reason == ReasonUnconsolidatable && !r.kept.AllowN(now, 1) {
		return false
	}
	window := e.Window
	if window == 0 {
		window = defaultWindow
	}
	if len(r.reported) >= sweepAbove {
		r.sweep(now)
	}
	r.reported[key] = telling{note: hash, changed: now.Add(min(window, changeWindow)), till: now.Add(window)}
	return true
}

func (r *Recorder) sweep(now time.Time) {
	for key, last := range r.reported {
		if !now.Before(last.till) {
			delete(r.reported, key)
		}
	}
}

// note returns a message, truncated to the limit of the API.
func note(message string) string {
	if len(message) <= longestNote {
		return message
	}
	return strings.ToValidUTF8(message[:longestNote-3], "") + "..."
}

const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning
)
