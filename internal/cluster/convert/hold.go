package convert

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// wireHold is a hold in the annotation of its pool, by the UID of the controller. Its field names must not change.
type wireHold struct {
	Name     string    `json:"name"`
	Failures int       `json:"failures"`
	Pauses   int       `json:"pauses,omitempty"`
	Until    time.Time `json:"until"`
	Why      string    `json:"why,omitempty"`
}

const (
	// mostWhys is the number of holds, those that last longest, whose reason an annotation contains. All annotations
	// of an object together are limited to 256 KiB.
	mostWhys = 20
	// longestWhy is the maximum length of a reason, in bytes.
	longestWhy = 1000
)

// Holds parses the annotation of a pool. It ignores invalid entries.
func Holds(text string) []model.LaunchHold {
	var list []model.LaunchHold
	wire := readHolds(text)
	for _, owner := range slices.Sorted(maps.Keys(wire)) {
		if h := wire[owner]; owner != "" && h.Failures > 0 && !h.Until.IsZero() {
			list = append(list, model.LaunchHold{Owner: owner, Name: h.Name, Failures: min(h.Failures, mostFailures),
				Pauses: min(max(h.Pauses, 0), mostFailures), Until: h.Until.UTC(), Why: h.Why})
		}
	}
	return list
}

// WithHold returns the text of the annotation with the hold of one controller set, or removed if now is nil. It
// returns "" if no hold remains. An annotation contains at most model.MostHolds; the brake that decides about holds
// (brake.Brake) relies on that limit.
func WithHold(text, owner string, now *model.LaunchHold) string {
	wire := readHolds(text)
	if wire == nil {
		wire = map[string]wireHold{}
	}
	delete(wire, owner)
	if now != nil {
		why := now.Why
		if len(why) > longestWhy {
			why = strings.ToValidUTF8(why[:longestWhy], "") + "..."
		}
		wire[owner] = wireHold{Name: now.Name, Failures: now.Failures, Pauses: now.Pauses, Until: now.Until.UTC(), Why: why}
	}
	shorten(wire)
	if len(wire) == 0 {
		return ""
	}
	encoded, err := json.Marshal(wire)
	if err != nil {
		panic("encoding a hold: " + err.Error()) // strings, numbers and times between the years 1 and 9999 only
	}
	return string(encoded)
}

// shorten removes the holds that end first if there are more than MostHolds, and the reasons of all but mostWhys.
func shorten(wire map[string]wireHold) {
	if len(wire) <= mostWhys {
		return
	}
	owners := slices.SortedFunc(maps.Keys(wire), func(a, b string) int {
		return cmp.Or(wire[b].Until.Compare(wire[a].Until), strings.Compare(a, b))
	})
	for i, owner := range owners[mostWhys:] {
		if mostWhys+i >= model.MostHolds {
			delete(wire, owner)
			continue
		}
		h := wire[owner]
		h.Why = ""
		wire[owner] = h
	}
}

func readHolds(text string) map[string]wireHold {
	var wire map[string]wireHold
	if text == "" || json.Unmarshal([]byte(text), &wire) != nil {
		return nil
	}
	return wire
}
