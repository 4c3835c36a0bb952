package telemetry

import (
	"fmt"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// These are the reasons of events about pauses after failures.
const (
	ReasonDriftBackoff         = "DriftBackoff"
	ReasonConsolidationBackoff = "ConsolidationBackoff"
	ReasonExpirationBackoff    = "ExpirationBackoff"
)

// DriftBackoff reports that drifted nodes of a pool are temporarily not replaced, because replacements fail.
func DriftBackoff(pool *karpv1.NodePool, f Failing) Event {
	text := backoffText("drifted", f)
	e := event(pool, warning, ReasonDriftBackoff, text, uid(pool), text)
	e.Window = mostPause
	return e
}

// ConsolidationBackoff reports that nodes of a pool are temporarily not replaced by cheaper ones, because
// replacements fail.
func ConsolidationBackoff(pool *karpv1.NodePool, f Failing) Event {
	text := backoffText("underutilized", f)
	e := event(pool, warning, ReasonConsolidationBackoff, text, uid(pool), text)
	e.Window = mostPause
	return e
}

// ExpirationBackoff reports that nodes of a pool are temporarily not replaced before they expire, because
// replacements fail.
func ExpirationBackoff(pool *karpv1.NodePool, f Failing) Event {
	text := backoffText("expiring", f)
	e := event(pool, warning, ReasonExpirationBackoff, text, uid(pool), text)
	e.Window = mostPause
	return e
}

// Failing holds the number of consecutive failed replacements, the end of the pause, and the result of the last one.
// Why may be empty.
type Failing struct {
	Failures int
	Until    time.Time
	Why      string
}

// InARow returns a number of consecutive failures in words.
func InARow(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times in a row", n)
}

// backoffText returns the same text for the whole pause.
func backoffText(nodes string, f Failing) string {
	why := "not launched, registered or initialized in time"
	if f.Why != "" {
		why = f.Why
	}
	return fmt.Sprintf("Replacements of %s nodes failed %s: %s. The nodes are kept and accept pods; the next replacement is tried at %s",
		nodes, InARow(f.Failures), why, f.Until.UTC().Format(time.RFC3339))
}

// mostPause is longer than any pause.
const mostPause = 15 * time.Minute
