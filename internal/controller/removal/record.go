package removal

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Record is how many machines of a NodePool were removed in each minute. The annotation
// karpenter-go.github.io/removals keeps it: "2026-01-02T15:04:00Z=3 2026-01-02T15:06:00Z=1". That of one NodePool also
// keeps the record of machines of none: "of-none:2026-01-02T15:04:00Z=2". The minutes are those of the API server's clock.
type Record map[time.Time]int

// ofNone is before the minutes of the record of machines of no NodePool.
const ofNone = "of-none:"

// readRecord reads a record, of which each minute has the prefix. What cannot be read, and what is older than the window, is left
// out; a minute that has not come yet counts as the present one.
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

// within is the number of removals of the window, and drops what is older. A minute in the future is of a clock that has been
// set back since: its removals count from now on, so that they are neither forgotten nor counted until that minute comes.
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

// with is the record with, in each minute, the larger number of the two.
func (r Record) with(other Record) Record {
	both := Record{}
	maps.Copy(both, r)
	for minute, n := range other {
		both[minute] = max(both[minute], n)
	}
	return both
}

// String is the record as the annotation has it.
func (r Record) String() string { return r.prefixed("") }

func (r Record) prefixed(prefix string) string {
	var items []string
	for _, minute := range slices.SortedFunc(maps.Keys(r), time.Time.Compare) {
		items = append(items, prefix+minute.Format(time.RFC3339)+"="+strconv.Itoa(r[minute]))
	}
	return strings.Join(items, " ")
}
