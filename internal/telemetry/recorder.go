package telemetry

import (
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

// Component is the reporting component of our events; give it to the manager's GetEventRecorder.
const Component = "karpenter"

const (
	// defaultWindow is for how long an event is not repeated (core specification 7.2).
	defaultWindow = 2 * time.Minute
	// longestNote is the limit, in bytes, of the note of an events.k8s.io/v1 Event.
	longestNote = 1024
	// Nominated events are limited over all pods (core specification 3.10).
	nominatedPerSecond, nominatedBurst = 5, 10
	// sweepAbove is the number of remembered events above which those out of their window are forgotten.
	sweepAbove = 4096
)

// Event is something that happened to an object. Build one with a constructor of this package.
type Event struct {
	// Object is what the event is about.
	Object client.Object
	// Related is another object that the event is about too; may be nil. The API counts up an event that differs from
	// the last in nothing but its message, and keeps the message of the first: events about several related objects
	// need this to be told apart.
	Related client.Object
	// Type is Normal or Warning.
	Type string
	// Reason is a CamelCase word, one of those of core specification 7.2.
	Reason string
	// Message is a sentence for a human.
	Message string
	// Key tells apart events of one reason that must not silence each other.
	Key []string
	// Window is for how long an event of the same reason and Key is not repeated; zero means 2 minutes.
	Window time.Duration
}

// Recorder emits events, each once per window. A nil Recorder drops them all. It may be used by several goroutines.
type Recorder struct {
	sink     events.EventRecorder
	clock    clock.PassiveClock
	nominate *rate.Limiter

	mu   sync.Mutex
	till map[string]time.Time // by reason and key: until when the event is no news
}

// NewRecorder emits into sink, usually manager.GetEventRecorder(telemetry.Component).
func NewRecorder(sink events.EventRecorder, clock clock.PassiveClock) *Recorder {
	return &Recorder{
		sink:     sink,
		clock:    clock,
		nominate: rate.NewLimiter(nominatedPerSecond, nominatedBurst),
		till:     map[string]time.Time{},
	}
}

// Emit writes the events that are news. It does not wait for the API.
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
		r.sink.Eventf(e.Object, related, e.Type, e.Reason, e.Reason, "%s", note(e.Message))
	}
}

// news says whether the event is to be written, and remembers it if so.
func (r *Recorder) news(e Event) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	key := strings.ToLower(e.Reason) + "\x00" + strings.Join(e.Key, "\x00")
	if till, seen := r.till[key]; seen && now.Before(till) {
		return false
	}
	if e.Reason == ReasonNominated && !r.nominate.AllowN(now, 1) {
		return false
	}
	window := e.Window
	if window == 0 {
		window = defaultWindow
	}
	if len(r.till) >= sweepAbove {
		r.sweep(now)
	}
	r.till[key] = now.Add(window)
	return true
}

func (r *Recorder) sweep(now time.Time) {
	for key, till := range r.till {
		if !now.Before(till) {
			delete(r.till, key)
		}
	}
}

// note cuts a message to what the API accepts.
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
