package convert

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// wireBackoff is a backoff in the annotation of its pool, by reason. Its field names must not change.
type wireBackoff struct {
	Failures int       `json:"failures"`
	At       time.Time `json:"at"`
	Why      string    `json:"why,omitempty"`
}

// mostFailures limits the value that is read: the annotation may have been edited.
const mostFailures = 1000

// Backoffs parses the annotation of a pool. It ignores invalid entries: the next failure overwrites them.
func Backoffs(text string) []model.Backoff {
	var list []model.Backoff
	wire := readBackoffs(text)
	for _, reason := range slices.Sorted(maps.Keys(wire)) {
		if b := wire[reason]; b.Failures > 0 && !b.At.IsZero() {
			list = append(list, model.Backoff{Reason: reason, Failures: min(b.Failures, mostFailures), At: b.At.UTC(), Why: b.Why})
		}
	}
	return list
}

// WithBackoff returns the text of the annotation with the backoff of one reason set, or removed if now is nil. It
// returns "" if no backoff remains.
func WithBackoff(text, reason string, now *model.Backoff) string {
	wire := readBackoffs(text)
	if wire == nil {
		wire = map[string]wireBackoff{}
	}
	delete(wire, reason)
	if now != nil {
		wire[reason] = wireBackoff{Failures: now.Failures, At: now.At.UTC(), Why: now.Why}
	}
	if len(wire) == 0 {
		return ""
	}
	encoded, err := json.Marshal(wire)
	if err != nil {
		panic("encoding a backoff: " + err.Error()) // text, numbers and times between the years 1 and 9999 only
	}
	return string(encoded)
}

func readBackoffs(text string) map[string]wireBackoff {
	var wire map[string]wireBackoff
	if text == "" || json.Unmarshal([]byte(text), &wire) != nil {
		return nil
	}
	return wire
}
