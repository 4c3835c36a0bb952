package awssim

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// ShiftKind is the origin of a zonal shift.
type ShiftKind string

// The kinds of zonal shifts, in the order of their precedence.
const (
	ShiftByUser   ShiftKind = "user"      // a zonal shift that a user started
	ShiftByAWS    ShiftKind = "autoshift" // AWS moved the traffic away
	ShiftPractice ShiftKind = "practice"  // a practice run of zonal autoshift
)

var shiftKinds = []ShiftKind{ShiftByUser, ShiftByAWS, ShiftPractice}

// userShift and practiceShift are how long shifts last unless StartShift says otherwise. Autoshifts have no end.
const (
	userShift     = 24 * time.Hour
	practiceShift = 30 * time.Minute
)

// zonalShift is a shift of the cluster's traffic away from a zone.
type zonalShift struct {
	id     string
	zone   *zone
	kind   ShiftKind
	began  time.Time
	expiry time.Time // zero for an autoshift
}

func arcMethods() map[string]method {
	return map[string]method{"GetManagedResource": {run: getManagedResource, params: []string{"resourceIdentifier"}}}
}

// arcAction returns the action of a REST request. GET /managedresources/{ARN} is the only one that is simulated.
func arcAction(verb, path string) string {
	if arn, ok := strings.CutPrefix(path, "/managedresources/"); ok && verb == http.MethodGet && arn != "" {
		return "GetManagedResource"
	}
	return verb + " " + path
}

// getManagedResource implements arc-zonal-shift:GetManagedResource for the cluster, the only managed resource. Of the
// shifts that are active, one is applied: that of a user before an autoshift, and an autoshift before a practice run.
// https://docs.aws.amazon.com/arc-zonal-shift/latest/api/API_GetManagedResource.html,
// https://docs.aws.amazon.com/arc-zonal-shift/latest/api/API_AutoshiftInResource.html (appliedStatus)
func getManagedResource(c *Cloud, r *request, now time.Time) (any, error) {
	arn := strings.TrimPrefix(r.path, "/managedresources/")
	if arn != c.clusterARN() || c.unmanaged {
		return nil, &apiError{"ResourceNotFoundException", "The resource " + arn + " is not a managed resource.", http.StatusNotFound}
	}
	active := c.activeShifts(now)
	shifts, autoshifts, weights := []any{}, []any{}, map[string]float64{}
	for _, z := range c.zones {
		weights[z.id] = 1
	}
	for k, s := range active {
		status := "NOT_APPLIED"
		if k == 0 {
			status, weights[s.zone.id] = "APPLIED", 0
		}
		item := map[string]any{"appliedStatus": status, "awayFrom": s.zone.id, "startTime": s.began.Unix()}
		if s.kind == ShiftByAWS {
			autoshifts = append(autoshifts, item)
			continue
		}
		item["expiryTime"], item["zonalShiftId"], item["resourceIdentifier"] = s.expiry.Unix(), s.id, arn
		item["comment"], item["shiftType"] = "", "ZONAL_SHIFT"
		if s.kind == ShiftPractice {
			item["practiceRunOutcome"], item["shiftType"] = "PENDING", "PRACTICE_RUN"
		}
		shifts = append(shifts, item)
	}
	return map[string]any{"arn": arn, "name": c.opts.Cluster.Name, "appliedWeights": weights, "zonalShifts": shifts,
		"autoshifts": autoshifts, "zonalAutoshiftStatus": "ENABLED"}, nil
}

// activeShifts returns the shifts that have not ended, by precedence. The caller holds the lock.
func (c *Cloud) activeShifts(now time.Time) []*zonalShift {
	c.shifts = slices.DeleteFunc(c.shifts, func(s *zonalShift) bool { return !s.expiry.IsZero() && !s.expiry.After(now) })
	active := slices.Clone(c.shifts)
	slices.SortStableFunc(active, func(a, b *zonalShift) int {
		return cmp.Compare(slices.Index(shiftKinds, a.kind), slices.Index(shiftKinds, b.kind))
	})
	return active
}

// StartShift starts a shift of the cluster's traffic away from a zone, by name or ID, and returns its ID. It lasts for
// the given time: a day when that is 0, half an hour for a practice run, and without end for an autoshift. A cluster
// has one shift of a kind at most.
func (c *Cloud) StartShift(zoneOrID string, kind ShiftKind, lasts time.Duration) (id string, err error) {
	defaultTo(&kind, ShiftByUser)
	if !slices.Contains(shiftKinds, kind) {
		return "", fmt.Errorf("kind of zonal shift %q: must be one of %v", kind, shiftKinds)
	}
	c.locked(func(now time.Time) {
		at := slices.IndexFunc(c.zones, func(z *zone) bool { return z.name == zoneOrID || z.id == zoneOrID })
		switch {
		case at < 0:
			err = fmt.Errorf("zone %q does not exist", zoneOrID)
			return
		case slices.ContainsFunc(c.activeShifts(now), func(s *zonalShift) bool { return s.kind == kind }):
			err = fmt.Errorf("a zonal shift of the kind %s is active already", kind)
			return
		}
		s := &zonalShift{id: c.uuid(), zone: c.zones[at], kind: kind, began: now}
		if kind == ShiftPractice {
			defaultTo(&lasts, practiceShift)
		}
		if kind != ShiftByAWS {
			defaultTo(&lasts, userShift)
			s.expiry = now.Add(lasts)
		}
		c.shifts = append(c.shifts, s)
		id = s.id
	})
	return id, err
}

// EndShift ends a zonal shift, or all of them when id is empty.
func (c *Cloud) EndShift(id string) {
	c.locked(func(time.Time) {
		c.shifts = slices.DeleteFunc(c.shifts, func(s *zonalShift) bool { return id == "" || s.id == id })
	})
}

// ManageCluster registers the cluster for zonal shifts, as it is at the start, or removes its registration.
func (c *Cloud) ManageCluster(managed bool) { c.locked(func(time.Time) { c.unmanaged = !managed }) }
