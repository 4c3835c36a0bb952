package interruption

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Category is a value of the label category of karpenter_interruption_instance_status_unhealthy_total.
type Category string

// The categories.
const (
	CategoryInstance Category = "InstanceStatus"
	CategorySystem   Category = "SystemStatus"
	CategoryEvent    Category = "EventStatus"
)

var kindOfCategory = map[Category]Kind{CategoryInstance: InstanceStatus, CategorySystem: SystemStatus, CategoryEvent: EventStatus}

// Status is what one sweep over DescribeInstanceStatus says of a machine.
type Status struct {
	Instance string
	// Since is when the check began to fail, zero if EC2 does not say; of CategoryInstance and CategorySystem only.
	Since time.Time
	// Code, Description and NotBefore are of a scheduled event; of CategoryEvent only.
	Code, Description string
	NotBefore         time.Time
}

// impairedFor is how long a check must have failed before it counts.
const impairedFor = 2 * time.Minute

// episode is a machine's trouble of one category; scheduled events are told apart by their code.
type episode struct {
	category Category
	instance string
	code     string
}

// Checks remember what is wrong with machines, to know for how long it has been and what was counted. It is not for
// several goroutines.
type Checks struct {
	since   map[episode]time.Time
	counted map[episode]bool
}

// NewChecks remember nothing.
func NewChecks() *Checks { return &Checks{since: map[episode]time.Time{}, counted: map[episode]bool{}} }

// Sighting is a notice by a check.
type Sighting struct {
	Notice
	episode episode
}

// Count reports whether the sighting is the first of its episode that is counted.
func (c *Checks) Count(s Sighting) bool {
	again := c.counted[s.episode]
	c.counted[s.episode] = true
	return !again
}

// Notices takes a complete sweep of a category and says what counts, in the order of the ids. Machines that a sweep no
// longer lists are well again. Events that are over are still listed, for a week.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceStatusEvent.html
func (c *Checks) Notices(category Category, sweep []Status, now time.Time) []Sighting {
	sweep = slices.SortedFunc(slices.Values(sweep), func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Code, b.Code), a.NotBefore.Compare(b.NotBefore), cmp.Compare(a.Description, b.Description))
	})
	var found []Sighting
	seen := map[episode]bool{}
	for _, s := range sweep {
		e := episode{category, s.Instance, s.Code}
		if seen[e] || category == CategoryEvent && over(s.Description) {
			continue
		}
		seen[e] = true
		if c.since[e].IsZero() {
			c.since[e] = cmp.Or(s.Since, now)
		}
		if category != CategoryEvent && now.Sub(c.since[e]) < impairedFor {
			continue
		}
		n := Notice{Kind: kindOfCategory[category], Instances: []string{s.Instance}, Sent: c.since[e], At: s.NotBefore, What: s.Code}
		found = append(found, Sighting{n, e})
	}
	well := func(e episode) bool { return e.category == category && !seen[e] }
	maps.DeleteFunc(c.since, func(e episode, _ time.Time) bool { return well(e) })
	maps.DeleteFunc(c.counted, func(e episode, _ bool) bool { return well(e) })
	return found
}

// over says that an event was carried out or called off: EC2 writes that before its description.
func over(description string) bool {
	d := strings.ToLower(description)
	return strings.HasPrefix(d, "[completed]") || strings.HasPrefix(d, "[canceled]") || strings.HasPrefix(d, "[cancelled]")
}
