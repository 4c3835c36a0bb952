package removal

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Record is the number of removed machines of a NodePool per minute. The annotation karpenter-go.github.io/removals
// stores it: "2026-01-02T15:04:00Z=3 2026-01-02T15:06:00Z=1". The annotation of one NodePool also stores the record
// of machines without a NodePool: "of-none:2026-01-02T15:04:00Z=2". The minutes are those of the API server's clock.
type Record map[time.Time]int

// ofNone is the prefix of the minutes in the record of machines without a NodePool.
const ofNone = "of-none:"

// readRecord parses a record in which each minute has the prefix. It omits what cannot be parsed or is older than the
// window. A minute in the future counts as the present one.
func readRecord(text, prefix string, now time.Time, window time.Duration) Record {
	r := Record{}
	for item := range strings.FieldsSeq(text) {
		item, own := strings.CutPrefix(item, prefix)
		minute, number, found := strings.Cut(item, "=")
		at, err := time.Parse(time.RFC3339, minute)
		n, bad := strconv.Atoi(number)
		if !own || !found || err != nil || bad != nil || n <= 0 || now.Sub(at) >= window+time.Minute {
			continue
		}
		if at.After(now) {
			at = now
		}
		r.add(at, n)
	}
	return r
}

func (r Record) add(at time.Time, n int) { r[at.UTC().Truncate(time.Minute)] += n }

// within returns the number of removals in the window, and drops older ones. A minute in the future comes from a
// clock that has been set back since: its removals count from now on, so that they are neither lost nor counted until
// that minute is reached.
func (r Record) within(now time.Time, window time.Duration) int {
	total, early := 0, 0
	for minute, n := range r {
		switch {
		case minute.After(now):
			early += n
			delete(r, minute)
		case now.Sub(minute) >= window+time.Minute:
			delete(r, minute)
		default:
			total += n
		}
	}
	if early > 0 {
		r.add(now, early)
	}
	return total + early
}

// with returns the record that has, in each minute, the larger number of the two.
func (r Record) with(other Record) Record {
	both := Record{}
	maps.Copy(both, r)
	for minute, n := range other {
		both[minute] = max(both[minute], n)
	}
	return both
}

// String returns the record in the format of the annotation.
func (r Record) String() string { return r.prefixed("") }

func (r Record) prefixed(prefix string) string {
	var items []string
	for _, minute := range slices.SortedFunc(maps.Keys(r), time.Time.Compare) {
		items = append(items, prefix+minute.Format(time.RFC3339)+"="+strconv.Itoa(r[minute]))
	}
	return strings.Join(items, " ")
}
