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
func DriftBackoff(pool *karpv1.NodePool, failures int, until time.Time) Event {
	text := backoffText("drifted", failures, until)
	e := event(pool, warning, ReasonDriftBackoff, text, uid(pool), text)
	e.Window = mostPause
	return e
}

// ConsolidationBackoff says that nodes of a pool are not replaced by cheaper ones for a while, because replacements fail.
func ConsolidationBackoff(pool *karpv1.NodePool, failures int, until time.Time) Event {
	text := backoffText("underutilized", failures, until)
	e := event(pool, warning, ReasonConsolidationBackoff, text, uid(pool), text)
	e.Window = mostPause
	return e
}

// ExpirationBackoff says that nodes of a pool are not replaced before they expire, for a while, because replacements fail.
func ExpirationBackoff(pool *karpv1.NodePool, failures int, until time.Time) Event {
	text := backoffText("expiring", failures, until)
	e := event(pool, warning, ReasonExpirationBackoff, text, uid(pool), text)
	e.Window = mostPause
	return e
}

// backoffText is the same for the whole pause.
func backoffText(nodes string, failures int, until time.Time) string {
	return fmt.Sprintf("Replacements of %s nodes failed %d time(s) in a row: not launched, registered or initialized in time. The nodes stay and take pods; the next replacement is tried at %s",
		nodes, failures, until.UTC().Format(time.RFC3339))
}

// mostPause is longer than a pause lasts.
const mostPause = 15 * time.Minute
