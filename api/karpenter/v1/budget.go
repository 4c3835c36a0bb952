package v1

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// AppliesTo reports whether the budget applies to the reason.
func (b *Budget) AppliesTo(reason DisruptionReason) bool {
	return b.Reasons == nil || slices.Contains(b.Reasons, reason)
}

// Active reports whether the budget applies at the time now. Without a schedule it always applies. Otherwise it
// applies for the duration after each time of the schedule, in UTC.
func (b *Budget) Active(now time.Time) (bool, error) {
	if b.Schedule == nil && b.Duration == nil {
		return true, nil
	}
	if b.Schedule == nil || b.Duration == nil {
		return false, fmt.Errorf("reading a budget: schedule and duration must be set together")
	}
	schedule, err := parseSchedule(*b.Schedule)
	if err != nil {
		return false, err
	}
	now = now.UTC()
	hit := schedule.Next(now.Add(-b.Duration.Duration))
	return !hit.IsZero() && !hit.After(now), nil
}

// mostWindows is the maximum number of consecutive windows that Changes examines.
const mostWindows = 50

// Changes returns the next time after now at which Active changes, or zero if it never changes. For a budget
// with gapless windows, it may return the end of a window at which the budget is still active.
func (b *Budget) Changes(now time.Time) (time.Time, error) {
	active, err := b.Active(now)
	if err != nil || b.Schedule == nil {
		return time.Time{}, err
	}
	schedule, err := parseSchedule(*b.Schedule)
	if err != nil {
		return time.Time{}, err
	}
	now = now.UTC()
	if !active {
		return schedule.Next(now), nil
	}
	hit := schedule.Next(now.Add(-b.Duration.Duration))
	for range mostWindows {
		next := schedule.Next(hit)
		if next.IsZero() || next.After(hit.Add(b.Duration.Duration)) {
			break
		}
		hit = next
	}
	return hit.Add(b.Duration.Duration), nil
}

// Allowed returns the number of nodes out of total that the budget allows to be disrupted at the same time. A
// percentage is rounded up.
func (b *Budget) Allowed(total int) (int, error) {
	digits, percent := strings.CutSuffix(b.Nodes, "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || (percent && n > 100) {
		return 0, fmt.Errorf("reading a budget: nodes is %q, want a number such as \"5\" or a percentage such as \"10%%\"", b.Nodes)
	}
	if percent {
		return (total*n + 99) / 100, nil
	}
	return n, nil
}

// parseSchedule parses a cron expression in UTC.
func parseSchedule(text string) (cron.Schedule, error) {
	schedule, err := cron.ParseStandard("TZ=UTC " + text)
	if err != nil {
		return nil, fmt.Errorf("reading a budget: schedule is %q, want five cron fields or a name such as @daily: %w", text, err)
	}
	return schedule, nil
}
