package webhook

import (
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/karpenter-go/karpenter/internal/compat/v1beta1"
)

// cause is why an object or a part of it was not converted. Each has its own log lines.
type cause string

const (
	causeBusy       cause = "busy"
	causeLong       cause = "too long"
	causeAnnotation cause = "annotation"
	causePools      cause = "pools"
	causeContent    cause = "content"
)

// causeOf returns the cause of an error of a conversion.
func causeOf(err error) cause {
	var long *tooLongError
	var bound *v1beta1.BoundError
	switch {
	case errors.Is(err, errBusy):
		return causeBusy
	case errors.As(err, &long):
		return causeLong
	case errors.As(err, &bound):
		return causeAnnotation
	case errors.Is(err, errPools):
		return causePools
	}
	return causeContent
}

// quietly is the minimum time between two log lines of one cause: any client can cause one per request.
const quietly = time.Second

// quietLog writes at most one line per cause in a period. The next line has the number of those that were left out.
type quietLog struct {
	log logr.Logger
	now func() time.Time

	lock sync.Mutex
	last map[cause]time.Time
	left map[cause]int
}

func newQuietLog(log logr.Logger, now func() time.Time) *quietLog {
	return &quietLog{log: log, now: now, last: map[cause]time.Time{}, left: map[cause]int{}}
}

// info writes a line about an error, or counts it.
func (q *quietLog) info(message string, err error, fields ...any) {
	of := causeOf(err)
	if left, ok := q.turn(of); ok {
		q.log.Info(message, append(fields, "cause", string(of), "why", short(err.Error()), "others", left)...)
	}
}

// turn reports whether a line of a cause may be written, and how many were left out before it.
func (q *quietLog) turn(of cause) (left int, ok bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	at := q.now()
	if last, said := q.last[of]; said && at.Sub(last) < quietly {
		q.left[of]++
		return 0, false
	}
	left = q.left[of]
	q.last[of], q.left[of] = at, 0
	return left, true
}
