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
	CategoryEBS      Category = "AttachedEbsStatus" // not upstream
)

var kindOfCategory = map[Category]Kind{CategoryInstance: InstanceStatus, CategorySystem: SystemStatus, CategoryEvent: EventStatus,
	CategoryEBS: EBSStatus}

// Status is what one sweep over DescribeInstanceStatus reports for a machine.
type Status struct {
	Instance string
	// Since is when the check began to fail, and zero if EC2 does not report it. It is for CategoryInstance and
	// CategorySystem only.
	Since time.Time
	// Code, Description and NotBefore describe a scheduled event. They are for CategoryEvent only.
	Code, Description string
	NotBefore         time.Time
	// Unread means that it is not known whether the problem lasts: it does not begin, end or count now.
	Unread bool
}

// impairedFor is how long a check must have failed before it counts.
const impairedFor = 2 * time.Minute

// countsAfter returns how long a problem of the category must have lasted before it counts.
func countsAfter(category Category) time.Duration {
	switch category {
	case CategoryEvent:
		return 0
	case CategoryEBS:
		return volumesFor
	}
	return impairedFor
}

// episode identifies a problem of a machine in one category. Scheduled events are also distinguished by their code.
type episode struct {
	category Category
	instance string
	code     string
}

// Checks tracks the problems of machines, to know how long they have lasted and which have been counted. It is not safe
// for concurrent use.
type Checks struct {
	since   map[episode]time.Time
	counted map[episode]bool
}

// NewChecks returns empty Checks.
func NewChecks() *Checks { return &Checks{since: map[episode]time.Time{}, counted: map[episode]bool{}} }

// Sighting is a notice from a check.
type Sighting struct {
	Notice
	episode episode
}

// Count reports whether the sighting is the first one of its episode to be counted.
func (c *Checks) Count(s Sighting) bool {
	again := c.counted[s.episode]
	c.counted[s.episode] = true
	return !again
}

// Notices processes a complete sweep of a category and returns the sightings that count, sorted by instance ID.
// Machines that are no longer in a sweep have recovered. EC2 lists events that are over for another week.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceStatusEvent.html
func (c *Checks) Notices(category Category, sweep []Status, now time.Time) []Sighting {
	sweep = slices.SortedFunc(slices.Values(sweep), func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Code, b.Code), a.NotBefore.Compare(b.NotBefore),
			cmp.Compare(a.Description, b.Description))
	})
	var found []Sighting
	seen := map[episode]bool{}
	for _, s := range sweep {
		e := episode{category, s.Instance, s.Code}
		if seen[e] || category == CategoryEvent && over(s.Description) {
			continue
		}
		if seen[e] = true; s.Unread {
			continue
		}
		if c.since[e].IsZero() {
			c.since[e] = cmp.Or(s.Since, now)
		}
		if now.Sub(c.since[e]) < countsAfter(category) {
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

// over reports whether an event was completed or canceled: EC2 prefixes its description accordingly.
func over(description string) bool {
	d := strings.ToLower(description)
	return strings.HasPrefix(d, "[completed]") || strings.HasPrefix(d, "[canceled]") || strings.HasPrefix(d, "[cancelled]")
}
