package telemetry

import (
	"fmt"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Reasons of events about pauses after failures.
const (
	ReasonDriftBackoff         = "DriftBackoff"
	ReasonConsolidationBackoff = "ConsolidationBackoff"
	ReasonExpirationBackoff    = "ExpirationBackoff"
)

// DriftBackoff says that drifted nodes of a pool are not replaced for a while, because replacements fail.
func DriftBackoff(pool *karpv1.NodePool, f Failing) Event {
	text := backoffText("drifted", f)
	e := event(pool, warning, ReasonDriftBackoff, text, uid(pool), text)
	e.Window = mostPause
	return e
}

// ConsolidationBackoff says that nodes of a pool are not replaced by cheaper ones for a while, because replacements fail.
func ConsolidationBackoff(pool *karpv1.NodePool, f Failing) Event {
	text := backoffText("underutilized", f)
	e := event(pool, warning, ReasonConsolidationBackoff, text, uid(pool), text)
	e.Window = mostPause
	return e
}

// ExpirationBackoff says that nodes of a pool are not replaced before they expire, for a while, because replacements fail.
func ExpirationBackoff(pool *karpv1.NodePool, f Failing) Event {
	text := backoffText("expiring", f)
	e := event(pool, warning, ReasonExpirationBackoff, text, uid(pool), text)
	e.Window = mostPause
	return e
}

// Failing is how often in a row replacements failed, until when none is tried, and what became of the last; Why may be empty.
type Failing struct {
	Failures int
	Until    time.Time
	Why      string
}

// InARow is a number of failures in words.
func InARow(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times in a row", n)
}

// backoffText is the same for the whole pause.
func backoffText(nodes string, f Failing) string {
	why := "not launched, registered or initialized in time"
	if f.Why != "" {
		why = f.Why
	}
	return fmt.Sprintf("Replacements of %s nodes failed %s: %s. The nodes stay and take pods; the next replacement is tried at %s",
		nodes, InARow(f.Failures), why, f.Until.UTC().Format(time.RFC3339))
}

// mostPause is longer than a pause lasts.
const mostPause = 15 * time.Minute
